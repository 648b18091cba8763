"""From one raw event to the events of ours, purely. What cannot be read becomes `unknown` and stops nothing behind it (CH-4)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypedDict, cast

from channels.discord.content import Names, files, mentions, whole
from channels.discord.payloads import Deletion, Guild, Interaction, Message, Option, User
from channels.discord.position import Place
from channels.errors import UnreadableEvent
from channels.message import Account, ChatType, EventKind, InboundEvent, ReplyTo

EXCERPT_MAX = 500
FORWARD = 1
TALK = frozenset({0, 19, 20, 23})  # said, answered, said by a command
NOTICES = frozenset({*range(1, 19), 21, 22, *range(24, 64)})  # of the server itself, or of its clients: joined, pinned, boosted …
DIRECT, THREADS = (1, 3), (10, 11, 12)


def _no(*_: str) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Who we are there. `role_of`: the id of the role that is the bot itself in a server, for people who pick it instead of the bot.

    `echoed`: whether a text was said by us in a channel just now, so that what repeats it through a webhook is known as our own words.
    """

    account: Account
    me: str
    application_id: str = ""
    prefix: str = "/"
    names: Names = field(default_factory=Names)
    role_of: Callable[[str], str] = lambda _guild_id: ""
    echoed: Callable[[str, str], bool] = _no

    def ours(self, guild_id: str) -> frozenset[str]:
        return frozenset(filter(None, (self.me, self.role_of(guild_id) if guild_id else "")))


class _Where(TypedDict):
    chat_id: str
    chat_type: ChatType
    thread_id: str
    parent_chat_id: str
    space_id: str
    shared_id: str
    space_title: str
    chat_title: str
    thread_title: str


def convert(
    name: str, raw: object, place: Place | None, setting: Setting, now: datetime, *, starter: Message | None = None
) -> list[InboundEvent]:
    """The events of a raw one called `name`; none for what is left out on purpose. `place`: where it happened, when that is known.

    `starter`: the message that a thread was made of, for the first message there.
    """
    try:
        match name:
            case "MESSAGE_CREATE" if place is not None:
                return _of_message(Message.model_validate(raw), place, setting, now, starter)
            case "MESSAGE_UPDATE" if place is not None:
                return _of_edit(raw, place, setting, now)
            case "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK" if place is not None:
                return _of_deletion(Deletion.model_validate(raw), place, setting, now)
            case "INTERACTION_CREATE" if place is not None:
                return _of_interaction(Interaction.model_validate(raw), place, setting, now)
            case "GUILD_CREATE" | "GUILD_DELETE":
                return _of_membership(name, Guild.model_validate(raw), setting, now)
            case _:
                raise UnreadableEvent("an event of a kind that is not known")
    except (ValueError, UnreadableEvent):  # pydantic's ValidationError is a ValueError
        return [_unknown(name, raw, setting.account, now)]


def channel_of(raw: object) -> str:
    """The channel of a raw event; empty when it names none."""
    return _id(raw, "channel_id")


def guild_of(raw: object) -> str:
    """The server of a raw event; empty in a direct chat."""
    return _id(raw, "guild_id")


def fields_of(raw: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", raw) if isinstance(raw, Mapping) else {}


def _id(raw: object, key: str) -> str:
    value = fields_of(raw).get(key)
    return str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""


def _where(place: Place) -> _Where:
    thread = bool(place.parent_id)
    return _Where(
        chat_id=place.parent_id if thread else place.channel_id,
        chat_type=ChatType.THREAD if thread else ChatType.GROUP if place.guild_id else ChatType.DM,
        thread_id=place.channel_id if thread else "",
        parent_chat_id=place.parent_id,
        space_id=place.guild_id,
        shared_id=place.guild_id if place.is_open else "",
        space_title=place.guild_name,
        chat_title=place.parent_name if thread else place.name,
        thread_title=place.name if thread else "",
    )


def _of_message(message: Message, place: Place, setting: Setting, now: datetime, starter: Message | None) -> list[InboundEvent]:
    if message.type in NOTICES:
        return []
    if message.type not in TALK:
        raise UnreadableEvent("a message of a kind that is not known")
    return [_event(message, message.id, EventKind.MESSAGE, place, setting, now, starter)]


def _of_edit(raw: object, place: Place, setting: Setting, now: datetime) -> list[InboundEvent]:
    """A message changes without being edited too: a link gets its preview. Its edit time tells, and makes the key (CH-51, CH-181)."""
    if not fields_of(raw).get("edited_timestamp"):
        return []
    message = Message.model_validate(raw)
    if message.author.id == setting.me or message.edited_timestamp is None:
        return []  # our own previews grow by edits
    key = f"{message.id}:{message.edited_timestamp.isoformat()}"
    return [_event(message, key, EventKind.EDITED, place, setting, now, None)]


def _event(
    message: Message, key: str, kind: EventKind, place: Place, setting: Setting, now: datetime, starter: Message | None
) -> InboundEvent:
    ours = setting.ours(place.guild_id)
    forwarded = [snapshot.message for snapshot in message.message_snapshots]
    text = "\n".join(
        line
        for line in (
            whole(message, names=setting.names, guild_id=place.guild_id, ours=ours),
            *(whole(held, names=setting.names, guild_id=place.guild_id) for held in forwarded),
        )
        if line
    )
    by_webhook = bool(message.webhook_id) and message.type == 0
    is_us = message.author.id == setting.me or (
        by_webhook
        and ((bool(setting.application_id) and message.application_id == setting.application_id) or setting.echoed(place.channel_id, message.content))
    )
    reply = _reply(message, place, setting) or (_quoted(starter, place, setting) if starter is not None else None)
    answers_us = message.referenced_message is not None and message.referenced_message.author.id == setting.me
    return InboundEvent(
        account=setting.account,
        kind=kind,
        platform_event_id=key,
        platform_message_id=message.id,
        **_where(place),
        sender_id=message.author.id,
        sender_name=_name(message.author, message.member.nick if message.member else ""),
        is_bot=message.author.bot or by_webhook or is_us,
        is_us=is_us,
        mentioned=not place.guild_id or mentions(message, ours) or bool(ours & set(message.mention_roles)) or answers_us,
        reply_to=reply,
        text=text,
        attachments=files(message),
        platform_ts=message.edited_timestamp if kind is EventKind.EDITED else message.timestamp,
        edited_ts=message.edited_timestamp,
        received_at=now,
        hint="message",
        forwarded=bool(forwarded),
    )


def _of_deletion(deletion: Deletion, place: Place, setting: Setting, now: datetime) -> list[InboundEvent]:
    gone = [*deletion.ids, *([deletion.id] if deletion.id else [])]
    if not gone:
        raise UnreadableEvent("a deletion of nothing")
    return [
        InboundEvent(
            account=setting.account,
            kind=EventKind.DELETED,
            platform_event_id=f"{message_id}:deleted",
            platform_message_id=message_id,
            **_where(place),
            received_at=now,
            hint="deleted",
        )
        for message_id in gone
    ]


def _of_interaction(called: Interaction, place: Place, setting: Setting, now: datetime) -> list[InboundEvent]:
    """A slash command is the message that it stands for; a button is an action whose `target` is what the button carries."""
    sender = called.member.user if called.member and called.member.user else called.user
    if sender is None:
        raise UnreadableEvent("an interaction of nobody")
    is_command = bool(called.data.name)
    return [
        InboundEvent(
            account=setting.account,
            kind=EventKind.MESSAGE if is_command else EventKind.ACTION,
            platform_event_id=called.id,
            platform_message_id=called.message.id if called.message else "",
            **_where(place),
            sender_id=sender.id,
            sender_name=_name(sender, called.member.nick if called.member else ""),
            is_bot=sender.bot,
            mentioned=True,
            text=" ".join([f"{setting.prefix}{called.data.name}", *_typed(called.data.options)]) if is_command else "",
            received_at=now,
            hint="command" if is_command else "button",
            target="" if is_command else called.data.custom_id,
            language=called.locale,
        )
    ]


def _typed(options: Iterable[Option]) -> Iterable[str]:
    """The words of a command as they would be typed: subcommands by name, the rest by value."""
    for option in options:
        if option.options or option.type in (1, 2):
            yield option.name
            yield from _typed(option.options)
        elif str(option.value).strip():
            yield str(option.value).strip()


def _of_membership(name: str, guild: Guild, setting: Setting, now: datetime) -> list[InboundEvent]:
    """We were added to a server or taken out of it. The caller leaves out what only became reachable or unreachable."""
    hint = "added" if name == "GUILD_CREATE" else "removed"
    return [
        InboundEvent(
            account=setting.account,
            kind=EventKind.MEMBERSHIP,
            platform_event_id=f"{guild.id}:{hint}:{now.isoformat()}",
            chat_id=guild.id,
            chat_type=ChatType.GROUP,
            space_id=guild.id,
            received_at=now,
            hint=hint,
        )
    ]


def _unknown(name: str, raw: object, account: Account, now: datetime) -> InboundEvent:
    kept = {key: value for key, value in fields_of(raw).items() if key != "token"}  # an interaction's own, and stored nowhere (CH-43)
    text = json.dumps(kept or raw, default=str)
    number = _id(raw, "id") or hashlib.sha256(text.encode(errors="replace")).hexdigest()[:24]
    return InboundEvent(
        account=account,
        kind=EventKind.UNKNOWN,
        platform_event_id=f"{name}:{number}",
        chat_id=channel_of(raw) or "?",
        hint=name,
        text=text,
        received_at=now,
    )


def _name(user: User, nick: str) -> str:
    return nick or user.name


# What was answered


def _reply(message: Message, place: Place, setting: Setting) -> ReplyTo | None:
    reference = message.message_reference
    if reference is None or reference.type == FORWARD or not reference.message_id:
        return None
    if message.referenced_message is None:  # deleted since
        return ReplyTo(message_id=reference.message_id)
    return _quoted(message.referenced_message, place, setting)


def _quoted(answered: Message, place: Place, setting: Setting) -> ReplyTo:
    held = [answered, *(snapshot.message for snapshot in answered.message_snapshots)]
    told = "\n".join(line for each in held if (line := whole(each, names=setting.names, guild_id=place.guild_id)))
    return ReplyTo(
        message_id=answered.id,
        author_is_us=answered.author.id == setting.me,
        author_name=_name(answered.author, ""),
        excerpt=(told or " ".join(f"[{file.kind} {file.name}]" for file in files(answered)))[:EXCERPT_MAX],
    )

"""From one raw update to one event, purely. What cannot be read becomes `unknown` and stops nothing behind it (CH-4, CH-150)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import cast

from channels.errors import UnreadableEvent
from channels.message import Account, Attachment, ChatType, EventKind, InboundEvent, ReplyTo
from channels.telegram.content import files, stand_ins
from channels.telegram.updates import CallbackQuery, ChatMemberUpdated, Entity, Message, Update, User

EXCERPT_MAX = 500
GENERAL = "1"  # the topic that every forum has: no thread of its own (CH-155)
CHANNEL_POSTER = "777000"  # Telegram itself, posting in the group what its channel said
UPDATE_ID_KEY = "update_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Who we are there, and what counts."""

    account: Account
    me: User
    channel_posts: bool = False


def convert(raw: object, setting: Setting, now: datetime) -> InboundEvent | None:
    """The event of a raw update; None for what is left out on purpose (posts of channels, unless they count: CH-153)."""
    try:
        update = Update.model_validate(raw)
        return _event(update, _fields(raw), setting, now)
    except (ValueError, OverflowError, OSError, UnreadableEvent):  # also pydantic's; times out of range raise the middle ones
        return _unknown(raw, setting.account, now)


def update_id(raw: object) -> int | None:
    """Its place in the feed; None when the record has none."""
    value = _fields(raw).get(UPDATE_ID_KEY)
    try:
        return int(value) if isinstance(value, int | str) and not isinstance(value, bool) else None
    except ValueError:
        return None


def forum(raw: object) -> str:
    """The id of the forum that an update is from; empty for any other chat. General has to be named when typing there (CH-155)."""
    chat = _fields(_fields(_fields(raw).get("message")).get("chat"))
    return str(chat.get("id", "")) if chat.get("is_forum") else ""


def _fields(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _event(update: Update, raw: Mapping[str, object], setting: Setting, now: datetime) -> InboundEvent | None:
    for name, message, kind in (
        ("message", update.message, EventKind.MESSAGE),
        ("edited_message", update.edited_message, EventKind.EDITED),
        ("channel_post", update.channel_post, EventKind.MESSAGE),
        ("edited_channel_post", update.edited_channel_post, EventKind.EDITED),
    ):
        if message is not None:
            if message.chat.type == "channel" and not setting.channel_posts:
                return None
            return replace(_of_message(update, message, _fields(raw[name]), kind, setting, now), hint=name)
    if update.callback_query is not None:
        return _of_press(update, update.callback_query, setting, now)
    if update.my_chat_member is not None:
        return _of_membership(update, update.my_chat_member, setting, now)
    raise UnreadableEvent("an update of a kind that is not known")


def _of_message(update: Update, message: Message, raw: Mapping[str, object], kind: EventKind, setting: Setting, now: datetime) -> InboundEvent:
    moved_from, moved_to = message.migrate_from_chat_id or message.chat.id, message.migrate_to_chat_id or message.chat.id
    sender_id, sender_name, is_bot = _sender(message)
    words, mentioned = _words(message, setting.me)
    reply = _reply(message, raw, setting.me)
    held = files(message)
    text = "\n".join(part for part in (*stand_ins(message, raw), words) if part)
    if not text.strip() and not held and message.reply_to_message is not None and reply is not None:
        held = files(message.reply_to_message)  # who only names us and points at something means that (CH-156)
    thread_id = _thread(message)
    moved = moved_from != moved_to
    return InboundEvent(
        account=setting.account,
        kind=EventKind.MIGRATED if moved else kind,
        platform_event_id=update.update_id,
        platform_message_id=message.message_id,
        chat_id=moved_from if moved else message.chat.id,
        chat_type=_chat_type(message, thread_id),
        parent_chat_id=message.chat.id if thread_id and message.chat.type != "private" else "",
        thread_id=thread_id,
        chat_title=message.chat.title,
        thread_title=_renamed(message),
        thread_made_as=_made_as(message),
        sender_id=sender_id,
        sender_name=sender_name,
        is_bot=is_bot,
        is_us=message.sender is not None and message.sender.id == setting.me.id,
        mentioned=message.chat.type == "private" or mentioned or (reply is not None and reply.author_is_us),
        reply_to=reply,
        text=text,
        attachments=held,
        platform_ts=_time(message.edit_date if kind is EventKind.EDITED else message.date),
        edited_ts=_time(message.edit_date),
        received_at=now,
        target=moved_to if moved else "",
        language=message.sender.language_code if message.sender else "",
        forwarded=message.forward_origin is not None,
    )


def _of_press(update: Update, press: CallbackQuery, setting: Setting, now: datetime) -> InboundEvent:
    """A button below one of our messages: `target` is the key that the button carries (CH-159)."""
    if press.message is None:
        raise UnreadableEvent("a button without its message")
    thread_id = _thread(press.message)
    return InboundEvent(
        account=setting.account,
        kind=EventKind.ACTION,
        platform_event_id=update.update_id,
        platform_message_id=press.message.message_id,
        chat_id=press.message.chat.id,
        chat_type=_chat_type(press.message, thread_id),
        parent_chat_id=press.message.chat.id if thread_id and press.message.chat.type != "private" else "",
        thread_id=thread_id,
        chat_title=press.message.chat.title,
        sender_id=press.sender.id,
        sender_name=press.sender.name,
        is_bot=press.sender.is_bot,
        mentioned=True,
        received_at=now,
        hint="button",
        target=press.data,
        language=press.sender.language_code,
    )


def _of_membership(update: Update, change: ChatMemberUpdated, setting: Setting, now: datetime) -> InboundEvent:
    """We were added, promoted, removed or blocked: `hint` is what we are now."""
    return InboundEvent(
        account=setting.account,
        kind=EventKind.MEMBERSHIP,
        platform_event_id=update.update_id,
        chat_id=change.chat.id,
        chat_type=ChatType.DM if change.chat.type == "private" else ChatType.GROUP,
        sender_id=change.sender.id,
        sender_name=change.sender.name,
        is_bot=change.sender.is_bot,
        platform_ts=_time(change.date),
        received_at=now,
        hint=change.new_chat_member.status,
        language=change.sender.language_code,
    )


def _unknown(raw: object, account: Account, now: datetime) -> InboundEvent:
    text = json.dumps(raw, default=str)
    number = update_id(raw)
    return InboundEvent(
        account=account,
        kind=EventKind.UNKNOWN,
        platform_event_id=text[:200] if number is None else str(number),
        chat_id="?",
        hint=next((key for key in _fields(raw) if key != UPDATE_ID_KEY), "?"),
        text=text,
        received_at=now,
    )


def _sender(message: Message) -> tuple[str, str, bool]:
    """Id, name and whether it is a bot. An anonymous admin, or who writes as a channel, is that chat and no bot (CH-153)."""
    automatic = message.is_automatic_forward or (message.sender is not None and message.sender.id == CHANNEL_POSTER)
    if message.sender_chat is not None:
        chat = message.sender_chat
        return chat.id, message.author_signature or chat.title or chat.username or chat.id, automatic
    if message.sender is None:
        raise UnreadableEvent("a message of nobody")
    return message.sender.id, message.sender.name, automatic or message.sender.is_bot


def _thread(message: Message) -> str:
    """The topic. A reply in a plain group carries a thread id as well, and is in no topic (CH-155)."""
    return message.message_thread_id if message.is_topic_message and message.message_thread_id != GENERAL else ""


def _renamed(message: Message) -> str:
    """The topic's new name, in the notice of that; no other message tells the present one."""
    return message.forum_topic_edited.name if message.forum_topic_edited else ""


def _made_as(message: Message) -> str:
    """The topic's first name: in the notice that opened it, which every message of the topic that answers nothing else names as well."""
    opened = message.forum_topic_created or (message.reply_to_message.forum_topic_created if message.reply_to_message else None)
    return opened.name if opened else ""


def _chat_type(message: Message, thread_id: str) -> ChatType:
    if message.chat.type == "private":
        return ChatType.DM
    if message.chat.type not in ("group", "supergroup", "channel"):
        raise UnreadableEvent("a chat of a kind that is not known")
    return ChatType.THREAD if thread_id else ChatType.GROUP


def _time(seconds: int) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


# What was answered


def _reply(message: Message, raw: Mapping[str, object], me: User) -> ReplyTo | None:
    quote = message.quote.text if message.quote else ""
    answered = message.reply_to_message
    if answered is None:
        outside = message.external_reply
        return ReplyTo(message_id=outside.message_id, quote=quote) if outside is not None else None
    if message.is_topic_message and answered.message_id == message.message_thread_id:
        return None  # every message in a topic names the one that opened it
    lines = stand_ins(answered, _fields(raw.get("reply_to_message")))
    excerpt = "\n".join(part for part in (*lines, answered.text or answered.caption) if part) or _named(files(answered))
    return ReplyTo(
        message_id=answered.message_id,
        author_is_us=answered.sender is not None and answered.sender.id == me.id,
        author_name=_author(answered),
        excerpt=excerpt[:EXCERPT_MAX],
        quote=quote,
    )


def _author(message: Message) -> str:
    return message.sender_chat.title if message.sender_chat else message.sender.name if message.sender else ""


def _named(held: Iterable[Attachment]) -> str:
    return " ".join(f"[{file.kind} {file.name}]" for file in held)


# Words, and who is meant by them


def _words(message: Message, me: User) -> tuple[str, bool]:
    """The text or caption without what names us, and whether it does (CH-3, CH-6)."""
    text, entities = (message.text, message.entities) if message.text else (message.caption, message.caption_entities)
    if not me.username:
        return text, False
    ours = list(_mentions(text, entities, me))
    for start, end in sorted(ours, reverse=True):
        text = text[:start] + text[end:]
    return (text.strip() if ours else text), bool(ours)


def _mentions(text: str, entities: Sequence[Entity], me: User) -> Iterable[tuple[int, int]]:
    """Where we are named, in code points; of `/help@us` only the name. Clients mark what is a mention; peers that mark nothing are read by sight."""
    name = f"@{me.username}".casefold()
    command = re.match(rf"/\w{{1,32}}({re.escape(name)})(?!\w)", text, re.IGNORECASE)
    if command:
        yield command.span(1)
    if not entities:
        yield from (found.span() for found in re.finditer(rf"(?<![\w/]){re.escape(name)}(?!\w)", text, re.IGNORECASE))
        return
    for entity in entities:
        start, end = _span(text, entity)
        by_name = entity.type == "mention" and text[start:end].casefold() == name
        if by_name or (entity.type == "text_mention" and entity.user is not None and entity.user.id == me.id):
            yield start, end


def _span(text: str, entity: Entity) -> tuple[int, int]:
    """An entity's place in code points: the platform counts UTF-16 units."""
    encoded = text.encode("utf-16-le", "surrogatepass")

    def index(units: int) -> int:
        return len(encoded[: 2 * units].decode("utf-16-le", "surrogatepass"))

    return index(entity.offset), index(entity.offset + entity.length)

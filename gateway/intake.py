"""Durable in: one transaction stores what a platform delivered, its cursor, and what is to become of each event (CH-10, CH-50 to CH-53).

Plain functions on a `Connection`. An event that cannot be taken is rolled back to its savepoint and stored as `dead`, so that it never
stops the ones behind it (CH-4). Nothing here talks to anybody: the dispatcher acts on what comes back, after the commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import exc

from channels.message import Account, Address, ChatType, EventKind, InboundEvent, ReplyTo, clean, is_blank, safe_name, to_json
from channels.port import Accepted, Arrival, Capabilities, Cursor
from gateway import inbox, outbox_store, senders
from gateway.access import Facts, Rules, decide, includes
from gateway.command_line import CommandLine, parse
from gateway.inbox import Waiting
from gateway.senders import Sender
from memory import conversations
from memory.conversations import Conversation, Message
from memory.ids import new_delivery, new_turn
from memory.schema import spaces

log = logging.getLogger(__name__)

EXCERPT_MAX = 500  # characters of a quoted message that are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """An admitted command, to be carried out at once beside whatever runs."""

    row_id: int
    conversation_id: str
    sender: Sender
    line: CommandLine
    event: InboundEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What became of one event. At most one of `waiting` and `command` is set."""

    accepted: Accepted
    event: InboundEvent
    conversation_id: str = ""
    message: Message | None = None
    waiting: Waiting | None = None
    command: CommandCall | None = None
    touched: str = ""  # the message that an edit or a deletion was about


def _never(*_: str) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the gateway knows beside the database when events arrive."""

    now: datetime
    capabilities: Capabilities
    rules: Rules
    prefixes: tuple[str, ...]
    needed_role: Callable[[str], str]  # of a command's name; empty for an unknown one
    queue_full: Callable[[str], bool] = _never  # of an address
    over_rate: Callable[[str, str], bool] = _never  # of a person or sender, and an address; asked once, for what no other rule refuses
    drop_before: datetime | None = None  # what was written before then is kept and not answered (CH-55)
    bot_over_rate: Callable[[str], bool] = _never  # of an address, for listed bots (CH-120)
    length: Callable[[str], int] = len  # in the platform's own unit


def receive(
    connection: sa.Connection, account: Account, events: Sequence[InboundEvent], cursor: Cursor | None, setting: Setting
) -> list[Received]:
    """Store what `account` delivered, and its `cursor`; one `Received` per event, in order."""
    received = [_guarded(connection, event, setting) for event in events]
    if cursor is not None:
        inbox.save_cursor(connection, channel=account.channel, account=account.name, cursor=cursor, now=setting.now)
    return received


def _guarded(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    event = replace(cleaned(event), delivery_id=new_delivery())
    for last_try in (False, True):
        if (known := inbox.find_duplicate(connection, event)) is not None:
            return Received(accepted=known[0], event=event, conversation_id=known[1])
        try:
            with connection.begin_nested():
                return _TAKES[event.kind](connection, event, setting)
        except exc.IntegrityError:  # another writer stored this event, or made its person or chat, a moment ago: look again
            if last_try:
                log.exception("delivery %s could not be taken in", event.delivery_id)
        except (ValueError, TypeError, LookupError, exc.DataError):
            log.exception("delivery %s could not be taken in", event.delivery_id)
            break
    return _refused(connection, event, setting, "unreadable", state="dead")


def cleaned(event: InboundEvent) -> InboundEvent:
    """Hygiene for everything that people or platforms may have put a broken character into, not the text alone (CH-6)."""
    return replace(
        event,
        **{name: clean(getattr(event, name)) for name in _TEXTS},
        reply_to=event.reply_to and ReplyTo(
            message_id=clean(event.reply_to.message_id),
            author_is_us=event.reply_to.author_is_us,
            excerpt=clean(event.reply_to.excerpt)[:EXCERPT_MAX],
            quote=clean(event.reply_to.quote),
        ),
        attachments=tuple(replace(file, name=safe_name(file.name), mime=clean(file.mime)) for file in event.attachments),
    )  # fmt: skip


_TEXTS = (
    "platform_event_id", "platform_message_id", "chat_id", "parent_chat_id", "thread_id", "sender_id", "sender_name", "text", "hint", "target",
    "language",
)  # fmt: skip


def _take_message(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    sender = senders.find(connection, event, are_people=setting.capabilities.senders_are_people)
    chat = conversations.conversation_by_key(connection, str(event.address))
    line = parse(event.text, setting.prefixes) if event.kind is EventKind.MESSAGE else None
    facts = _facts(connection, event, setting, sender, chat, line)
    if decide(facts) in ("", "full"):  # only what is answered counts against anybody's rate
        facts = replace(facts, over_rate=_over_rate(event, setting, sender))
    if rule := decide(facts) or _says_nothing(event) or _replaces_nothing(connection, event, chat):
        return _refused(connection, event, setting, rule, conversation_id=chat.id if chat else "")
    sender = replace(sender or senders.meet(connection, event, now=setting.now), role=facts.role or "guest")
    conversation_id = chat.id if chat else senders.open_chat(connection, event, person_id=sender.id, now=setting.now)
    if setting.drop_before is not None and (event.platform_ts or event.received_at) < setting.drop_before:
        return _keep(connection, event, setting, sender, conversation_id, line)
    if line is not None:
        return _admit_command(connection, event, setting, sender, conversation_id, line)
    return _admit(connection, event, setting, sender, conversation_id, busy=chat.busy if chat else "")


def _over_rate(event: InboundEvent, setting: Setting, sender: Sender | None) -> bool:
    address = str(event.address)
    if event.is_bot and setting.bot_over_rate(address):
        return True
    return setting.over_rate(sender.id if sender else event.sender_id, address)


def _says_nothing(event: InboundEvent) -> str:
    empty = event.kind is EventKind.MESSAGE and is_blank(event.text) and not event.attachments and event.reply_to is None
    return "blank" if empty else ""


def _facts(
    connection: sa.Connection,
    event: InboundEvent,
    setting: Setting,
    sender: Sender | None,
    chat: Conversation | None,
    line: CommandLine | None,
) -> Facts:
    in_group = event.chat_type is not ChatType.DM
    role = senders.role_of(sender, listed=setting.rules.admits(event.sender_id))
    return Facts(
        rules=setting.rules,
        own_message=event.is_us,
        is_bot=event.is_bot,
        bot_listed=event.sender_id in setting.rules.bots,
        blocked=sender is not None and sender.blocked,
        yours=not setting.capabilities.senders_are_people or (sender is not None and chat is not None and chat.person_id == sender.id),
        role=role,
        admitted=includes(role, "user"),
        in_group=in_group,
        group_allowed=in_group and _group_allowed(connection, event, setting),
        privacy_full=sender is not None and sender.privacy == "full",
        for_other_bot=line is not None and bool(line.bot),
        mentioned=event.mentioned,
        needed_role=setting.needed_role(line.name) if line else "",
        queue_full=line is None and setting.queue_full(str(event.address)),
    )


def _group_allowed(connection: sa.Connection, event: InboundEvent, setting: Setting) -> bool:
    return setting.rules.admits_group(event.chat_id, event.parent_chat_id) or senders.space_allowed(connection, event)


def _replaces_nothing(connection: sa.Connection, event: InboundEvent, chat: Conversation | None) -> str:
    """An edit of a message that is not in this chat is refused like a chat that is not the sender's: nobody learns whether it exists."""
    names_one = event.kind is EventKind.MESSAGE and bool(event.target)
    return "not-yours" if names_one and _replaced(connection, event, chat.id if chat else "") is None else ""


def _replaced(connection: sa.Connection, event: InboundEvent, conversation_id: str) -> Message | None:
    """The message that this one takes the place of, when it stands in this conversation."""
    if event.kind is not EventKind.MESSAGE or not event.target:
        return None
    found = conversations.message(connection, event.target)
    return found if found is not None and found.conversation_id == conversation_id else None


def _refused(
    connection: sa.Connection, event: InboundEvent, setting: Setting, rule: str, *, state: str = "ignored", conversation_id: str = ""
) -> Received:
    if setting.capabilities.senders_are_people and rule in ("rate", "full"):  # they may send it again under the same key, and be heard then
        event = replace(event, platform_event_id=f"{event.platform_event_id}+{event.delivery_id}")
    inbox.store(connection, event, state=state, rule=rule, conversation_id=conversation_id, now=setting.now)
    accepted = Accepted(arrival=Arrival.NEW, delivery_id=event.delivery_id, state=state, rule=rule)
    return Received(accepted=accepted, event=event, conversation_id=conversation_id)


def _keep(
    connection: sa.Connection, event: InboundEvent, setting: Setting, sender: Sender, conversation_id: str, line: CommandLine | None
) -> Received:
    """Too old to be answered: history only (CH-55). An old command is nothing at all."""
    if line is not None or event.kind is not EventKind.MESSAGE:
        return _refused(connection, event, setting, "old", conversation_id=conversation_id)
    message = _log(connection, event, setting, sender, conversation_id, turn_id=new_turn())
    inbox.store(
        connection, event, state="ignored", rule="old", conversation_id=conversation_id, person_id=sender.id, message_id=message.id,
        turn_id=message.turn_id, now=setting.now,
    )  # fmt: skip
    accepted = Accepted(arrival=Arrival.NEW, delivery_id=event.delivery_id, state="ignored", rule="old", message_id=message.id)
    return Received(accepted=accepted, event=event, conversation_id=conversation_id, message=message)


def _admit(
    connection: sa.Connection, event: InboundEvent, setting: Setting, sender: Sender, conversation_id: str, *, busy: str
) -> Received:
    """A message joins the log; an action on a turn (regenerate) only waits for its lane."""
    is_action = event.kind is EventKind.ACTION
    turn_id = event.target if is_action else new_turn()
    message = None if is_action else _log(connection, event, setting, sender, conversation_id, turn_id=turn_id)
    message_id = message.id if message else ""
    row_id = inbox.store(
        connection,
        event,
        state="new",
        conversation_id=conversation_id,
        person_id=sender.id,
        message_id=message_id,
        turn_id=turn_id,
        now=setting.now,
    )
    waiting = Waiting(
        row_id=row_id,
        delivery_id=event.delivery_id,
        address=str(event.address),
        conversation_id=conversation_id,
        person_id=sender.id,
        message_id=message_id,
        turn_id=turn_id,
        action=event.hint if is_action else "",
        received_at=event.received_at,
        written_at=event.platform_ts,
        text_length=setting.length(event.text),
        attachments=len(event.attachments),
        text=event.text,
        platform_message_id=event.platform_message_id,
        busy=busy,
    )
    accepted = Accepted(arrival=Arrival.NEW, delivery_id=event.delivery_id, state="new", message_id=message_id, turn_id=turn_id)
    return Received(accepted=accepted, event=event, conversation_id=conversation_id, message=message, waiting=waiting)


def _admit_command(
    connection: sa.Connection, event: InboundEvent, setting: Setting, sender: Sender, conversation_id: str, line: CommandLine
) -> Received:
    message = _log(connection, event, setting, sender, conversation_id, origin="command")
    row_id = inbox.store(
        connection,
        event,
        state="new",
        conversation_id=conversation_id,
        person_id=sender.id,
        message_id=message.id,
        now=setting.now,
    )
    call = CommandCall(row_id=row_id, conversation_id=conversation_id, sender=sender, line=line, event=event)
    accepted = Accepted(arrival=Arrival.NEW, delivery_id=event.delivery_id, state="new", message_id=message.id)
    return Received(accepted=accepted, event=event, conversation_id=conversation_id, message=message, command=call)


def _log(
    connection: sa.Connection,
    event: InboundEvent,
    setting: Setting,
    sender: Sender,
    conversation_id: str,
    *,
    turn_id: str = "",
    origin: str = "person",
) -> Message:
    if replaced := _replaced(connection, event, conversation_id):  # edit-and-resend: it and all after it leave the talk first (WO-10)
        conversations.rewind(connection, conversation_id, replaced.seq)
    message = conversations.add_message(
        connection,
        now=setting.now,
        conversation_id=conversation_id,
        turn_id=turn_id,
        role="user",
        origin=origin,
        author_person_id=sender.id,
        author_name=sender.name or event.sender_name,
        text=event.text,
        attachments=[to_json(attachment) for attachment in event.attachments],
        reply_to=to_json(event.reply_to) if event.reply_to else None,
    )
    if event.platform_message_id:
        at = _ref(event)
        conversations.add_ref(connection, **at, message_id=message.id)
    return message


def _ref(event: InboundEvent) -> dict[str, str]:
    return {
        "channel": event.account.channel,
        "account": event.account.name,
        "chat_id": event.chat_id,
        "platform_message_id": event.platform_message_id,
    }


def _take_edit(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    """History is corrected; a turn that has not begun reads the new words, a running or finished one is not answered again (CH-2)."""
    found = conversations.by_ref(connection, **_ref(event))
    if found is not None and found.state == "live":
        conversations.correct(connection, found, event.text, setting.now)
    return _noted(connection, event, setting, found)


def _take_deletion(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    """The words leave the log; a waiting message is dropped, a running turn goes on (CH-2)."""
    found = conversations.by_ref(connection, **_ref(event))
    if found is not None:
        conversations.forget(connection, found.id)
        waiting = inbox.waiting_of_message(connection, found.id)
        inbox.finish(connection, waiting, now=setting.now, state="ignored", rule="deleted")
        inbox.forget_words(connection, found.id)
    return _noted(connection, event, setting, found)


def _take_migration(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    """A group got another id: everything kept under the old one follows, in this transaction; repeating it changes nothing (CH-166)."""
    if not event.target:
        raise ValueError("a chat that moved must say where to")
    space_id = move_chat(connection, old=event.address, new=replace(event.address, chat_id=event.target))
    if space_id and setting.rules.admits_group(event.chat_id):  # the list in the configuration knows the old id
        connection.execute(sa.update(spaces).where(spaces.c.id == space_id).values(allowed=True))
    return _noted(connection, event, setting, None)


def move_chat(connection: sa.Connection, *, old: Address, new: Address) -> str:
    """Re-key a chat with its topics, its space and what waits to be sent; returns the id of the space, empty when there is none.

    The references to platform messages stay: message ids of the new chat begin anew and would meet the old ones.
    """
    if new.chat_id == old.chat_id:
        return ""
    before, after = str(replace(old, thread_id="")), str(replace(new, thread_id=""))
    for key in conversations.keys_of_chat(connection, before):
        conversations.move(connection, old=key, new=f"{after}{key.removeprefix(before)}")
    outbox_store.readdress(connection, before, new.chat_id)
    return senders.move_space(connection, old.account, old=old.chat_id, new=new.chat_id)


def _noted(connection: sa.Connection, event: InboundEvent, setting: Setting, about: Message | None) -> Received:
    conversation_id = about.conversation_id if about else ""
    inbox.store(connection, event, state="done", conversation_id=conversation_id, now=setting.now)
    accepted = Accepted(arrival=Arrival.NEW, delivery_id=event.delivery_id, state="done")
    return Received(accepted=accepted, event=event, conversation_id=conversation_id, touched=about.id if about else "")


def _report(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    if event.kind is EventKind.MEMBERSHIP and event.chat_type is not ChatType.DM and not _group_allowed(connection, event, setting):
        log.warning("%s: %s in a group that is not allowed (chat %s)", event.account, event.hint or "membership changed", event.chat_id)
    return _refused(connection, event, setting, event.kind.value)


_TAKES: dict[EventKind, Callable[[sa.Connection, InboundEvent, Setting], Received]] = {
    EventKind.MESSAGE: _take_message,
    EventKind.ACTION: _take_message,
    EventKind.EDITED: _take_edit,
    EventKind.DELETED: _take_deletion,
    EventKind.MIGRATED: _take_migration,
    EventKind.MEMBERSHIP: _report,
    EventKind.UNKNOWN: _report,
}

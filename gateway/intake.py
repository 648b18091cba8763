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

from channels.message import Account, ChatType, EventKind, InboundEvent, is_blank, to_json
from channels.port import Accepted, Arrival, Capabilities, Cursor
from gateway import buttons, early_edits, held_parts, inbox, moved_chats, notices, place_titles, saved_undo, senders, trimming, vault
from gateway.access import Facts, Rules, decide, includes
from gateway.buttons import BUTTON
from gateway.challenges import OVER, is_over
from gateway.command_line import CommandLine, parse
from gateway.hygiene import ID_MAX, cleaned, over_long, shortened
from gateway.inbox import Waiting
from gateway.language import from_tag, guess, say
from gateway.senders import Sender
from memory import conversations
from memory.conversations import Conversation, Message
from memory.ids import new_delivery, new_turn
from memory.saved.store import Limits
from memory.saved.undo import JOURNAL_DAYS
from memory.scopes import scope_of, scope_or_none, space_scope

log = logging.getLogger(__name__)

REGENERATE = "regenerate"  # the one thing that can be done to a turn
_TO_THE_END = 2**62  # beyond every number of the log


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


_LIMITS = Limits()


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
    opens_groups: Callable[[str], bool] = _never  # whether an admin may give this command in a group that is not allowed yet (CH-115)
    queue_full: Callable[[str], bool] = _never  # of an address
    over_rate: Callable[[str, str], bool] = _never  # of a person or sender, and an address; asked once, for what no other rule refuses
    drop_before: datetime | None = None  # what was written before then is kept and not answered (CH-55)
    bot_over_rate: Callable[[str], bool] = _never  # of an address, for listed bots (CH-120)
    length: Callable[[str], int] = len  # in the platform's own unit
    limits: Limits = _LIMITS  # of lists of saved memories
    journal_days: int = JOURNAL_DAYS  # for which what a model did to them can be taken back


def receive(connection: sa.Connection, account: Account, events: Sequence[InboundEvent], cursor: Cursor | None, setting: Setting) -> list[Received]:
    """Store what `account` delivered, and its `cursor`; one `Received` per event, in order."""
    received = [_guarded(connection, event, setting) for event in events]
    if cursor is not None:
        inbox.save_cursor(connection, channel=account.channel, account=account.name, cursor=cursor, now=setting.now)
        vault.keep(connection, account, cursor.vault, setting.now)
    if setting.capabilities.send_budget is not None:
        for event in _written(received):
            _release(connection, event, setting, setting.capabilities.send_budget)
    return received


def _written(received: Sequence[Received]) -> list[InboundEvent]:
    """What people have newly written: each opens a new budget there (WX-41)."""
    new = [each.event for each in received if each.accepted.arrival is Arrival.NEW]
    return [event for event in new if event.kind is EventKind.MESSAGE and not event.is_us and event.chat_type is ChatType.DM]


def _release(connection: sa.Connection, event: InboundEvent, setting: Setting, budget: int) -> None:
    """What waited for this person goes out before the answer to what they wrote (WX-44)."""
    can, sender = setting.capabilities, senders.find(connection, event, are_people=setting.capabilities.senders_are_people)
    language = (sender.language if sender else "") or from_tag(event.language) or guess(event.text)
    held_parts.release(connection, str(event.address), setting.now, language=language, limit=can.text_max, unit=can.text_unit, most=budget - 1)


def _guarded(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    event = replace(cleaned(event), delivery_id=new_delivery())
    long = over_long(event)
    event = shortened(event)
    if event.kind is EventKind.DELETED and event.platform_message_id:
        event = replace(event, platform_event_id=inbox.deletion_key(event))
    for last_try in (False, True):
        if (known := inbox.find_duplicate(connection, event)) is not None:
            return Received(accepted=known[0], event=event, conversation_id=known[1])
        if long and event.kind is not EventKind.UNKNOWN:
            named = ", ".join(f"{name} has {length:,} characters" for name, length in long.items())
            log.warning("%s: delivery %s is not taken in: %s, and an id may have %d", event.account, event.delivery_id, named, ID_MAX)
            return _refused(connection, event, setting, "id-too-long", state="dead")
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


def _take_action(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    """Something done to a turn, or a button of ours: the command behind it, said by who pressed it (CH-159).

    What a button brings back is a key and is trusted for nothing else: it works once, for whom the question was put to, in the chat where it was."""
    if event.hint != BUTTON:
        return _take_message(connection, event, setting)
    chat = conversations.conversation_by_key(connection, str(event.address))
    pressed = buttons.find(connection, event.target, setting.now)
    if pressed is None or chat is None or pressed.conversation_id != chat.id:
        return _not_pressed(connection, event, setting, chat, "no-such-action", "button_over", from_tag(event.language) or guess(""), spent=True)
    sender = senders.find(connection, event, are_people=setting.capabilities.senders_are_people)
    if sender is None or sender.id != pressed.person_id:
        return _not_pressed(connection, event, setting, chat, "not-yours", "button_not_yours", from_tag(event.language) or pressed.language)
    line = parse(pressed.line, setting.prefixes) if pressed.line else None
    if pressed.line and line is None:
        return _not_pressed(connection, event, setting, chat, "no-such-action", "button_over", pressed.language, spent=True)
    if line is None:
        buttons.use(connection, pressed, setting.now)
        return _not_pressed(connection, event, setting, chat, "declined", "button_left", pressed.language, spent=True)
    said = replace(event, text=pressed.line, platform_message_id="", target="")  # the number is of the message above the button
    received = _take_message(connection, said, setting, line)
    if received.command is None or not buttons.use(connection, pressed, setting.now):
        return received
    return replace(received, accepted=replace(received.accepted, spent=True))


def _not_pressed(
    connection: sa.Connection,
    event: InboundEvent,
    setting: Setting,
    chat: Conversation | None,
    rule: str,
    key: str,
    language: str,
    *,
    spent: bool = False,
) -> Received:
    received = _refused(connection, event, setting, rule, conversation_id=chat.id if chat else "")
    return replace(received, accepted=replace(received.accepted, aside=say(language, key), spent=spent))


def _take_message(connection: sa.Connection, event: InboundEvent, setting: Setting, pressed: CommandLine | None = None) -> Received:
    """`pressed`: the command behind a button."""
    if not event.chat_id or not event.sender_id:  # it would be one person, or one chat, for all who come without
        raise ValueError("a message must say who wrote it, and where")
    if event.kind is EventKind.MESSAGE and inbox.is_deleted(connection, event):  # the platform told of its end first
        early_edits.drop(connection, event)
        return _refused(connection, event, setting, "deleted")
    event = early_edits.applied(connection, event) if event.kind is EventKind.MESSAGE else event
    sender = senders.find(connection, event, are_people=setting.capabilities.senders_are_people)
    chat = conversations.conversation_by_key(connection, str(event.address))
    line = parse(event.text, setting.prefixes) if event.kind is EventKind.MESSAGE else pressed
    facts = _facts(connection, event, setting, sender, chat, line)
    if decide(facts) in ("", "full"):  # only what is answered counts against anybody's rate
        facts = replace(facts, over_rate=_over_rate(event, setting, sender))
    if rule := decide(facts) or _says_nothing(event) or _names_nothing(connection, event, chat) or _is_over(chat, line):
        if chat is not None and facts.group_allowed:
            place_titles.keep(connection, event, chat)
        return _refused(connection, event, setting, rule, conversation_id=chat.id if chat else "")
    sender = replace(sender or senders.meet(connection, event, now=setting.now), role=facts.role or "guest")
    chat = senders.in_its_space(connection, event, chat or senders.open_chat(connection, event, person_id=sender.id, now=setting.now), setting.now)
    chat = place_titles.keep(connection, event, chat)
    if setting.drop_before is not None and (event.platform_ts or event.received_at) < setting.drop_before:
        return _keep(connection, event, setting, sender, chat, line)
    if line is not None:
        return _admit_command(connection, event, setting, sender, chat, line)
    return _admit(connection, event, setting, sender, chat)


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
    place = senders.place_of(connection, event) if in_group else senders.Place()
    allowing = line is not None and setting.opens_groups(line.name) and includes(role, "admin")
    return Facts(
        rules=replace(setting.rules, mention_needed=place.mention == "on") if place.mention else setting.rules,
        own_message=event.is_us,
        is_bot=event.is_bot,
        bot_listed=event.sender_id in setting.rules.bots,
        blocked=sender is not None and sender.blocked,
        yours=not setting.capabilities.senders_are_people or (sender is not None and chat is not None and chat.person_id == sender.id),
        role=role,
        admitted=includes(role, "user"),
        in_group=in_group,
        group_allowed=in_group and (allowing or _admits_group(event, setting, place)),
        privacy_full=sender is not None and sender.privacy == "full",
        for_other_bot=line is not None and bool(line.bot),
        mentioned=event.mentioned,
        needed_role=setting.needed_role(line.name) if line else "",
        queue_full=line is None and setting.queue_full(str(event.address)),
    )


def _admits_group(event: InboundEvent, setting: Setting, place: senders.Place) -> bool:
    return setting.rules.admits_group(event.chat_id, event.parent_chat_id, event.space_id) or place.allowed


def _is_over(chat: Conversation | None, line: CommandLine | None) -> str:
    """In a challenge whose turns are used up only commands are taken."""
    return OVER if line is None and chat is not None and is_over(chat) else ""


def _names_nothing(connection: sa.Connection, event: InboundEvent, chat: Conversation | None) -> str:
    """What is about a message or turn that is not in this chat is refused like a chat that is not the sender's: nobody learns whether it exists.
    A button may carry whatever the one who presses it likes (CH-159)."""
    if event.kind is EventKind.ACTION and event.hint != BUTTON:
        if event.hint != REGENERATE:
            return "no-such-action"
        asked = conversations.of_turn(connection, event.target) if event.target and chat else []
        return "" if chat and any(message.conversation_id == chat.id for message in asked) else "not-yours"
    return "not-yours" if event.target and _replaced(connection, event, chat.id if chat else "") is None else ""


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


def _keep(connection: sa.Connection, event: InboundEvent, setting: Setting, sender: Sender, chat: Conversation, line: CommandLine | None) -> Received:
    """Too old to be answered: history only (CH-55). An old command is nothing at all."""
    if line is not None or event.kind is not EventKind.MESSAGE:
        return _refused(connection, event, setting, "old", conversation_id=chat.id)
    message = _log(connection, event, setting, sender, chat, turn_id=new_turn())
    inbox.store(
        connection, event, state="ignored", rule="old", conversation_id=chat.id, person_id=sender.id, message_id=message.id,
        turn_id=message.turn_id, now=setting.now,
    )  # fmt: skip
    accepted = Accepted(arrival=Arrival.NEW, delivery_id=event.delivery_id, state="ignored", rule="old", message_id=message.id)
    return Received(accepted=accepted, event=event, conversation_id=chat.id, message=message)


def _admit(connection: sa.Connection, event: InboundEvent, setting: Setting, sender: Sender, chat: Conversation) -> Received:
    """A message joins the log; an action on a turn (regenerate) only waits for its lane."""
    is_action = event.kind is EventKind.ACTION
    turn_id = event.target if is_action else new_turn()
    message = None if is_action else _log(connection, event, setting, sender, chat, turn_id=turn_id)
    message_id = message.id if message else ""
    row_id = inbox.store(
        connection,
        event,
        state="new",
        conversation_id=chat.id,
        person_id=sender.id,
        message_id=message_id,
        turn_id=turn_id,
        now=setting.now,
    )
    waiting = Waiting(
        row_id=row_id,
        delivery_id=event.delivery_id,
        address=str(event.address),
        conversation_id=chat.id,
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
        busy=chat.busy,
    )
    accepted = Accepted(arrival=Arrival.NEW, delivery_id=event.delivery_id, state="new", message_id=message_id, turn_id=turn_id)
    return Received(accepted=accepted, event=event, conversation_id=chat.id, message=message, waiting=waiting)


def _admit_command(
    connection: sa.Connection, event: InboundEvent, setting: Setting, sender: Sender, chat: Conversation, line: CommandLine
) -> Received:
    message = _log(connection, event, setting, sender, chat, origin="command")
    row_id = inbox.store(
        connection,
        event,
        state="new",
        conversation_id=chat.id,
        person_id=sender.id,
        message_id=message.id,
        now=setting.now,
    )
    call = CommandCall(row_id=row_id, conversation_id=chat.id, sender=sender, line=line, event=event)
    accepted = Accepted(arrival=Arrival.NEW, delivery_id=event.delivery_id, state="new", message_id=message.id)
    return Received(accepted=accepted, event=event, conversation_id=chat.id, message=message, command=call)


def _log(
    connection: sa.Connection,
    event: InboundEvent,
    setting: Setting,
    sender: Sender,
    chat: Conversation,
    *,
    turn_id: str = "",
    origin: str = "person",
) -> Message:
    if replaced := _replaced(connection, event, chat.id):  # edit-and-resend: it and all after it leave the talk first (WO-10)
        _take_back_memories(connection, event, setting, sender, chat, replaced)
        conversations.rewind(connection, chat.id, replaced.seq)
        trimming.changed(connection, chat.id, replaced.seq, _TO_THE_END, setting.now)
    message = conversations.add_message(
        connection,
        now=setting.now,
        conversation_id=chat.id,
        turn_id=turn_id,
        role="user",
        origin=origin,
        author_person_id=sender.id,
        author_name=sender.name or event.sender_name,
        text=event.text,
        attachments=[to_json(attachment) for attachment in event.attachments],
        reply_to=to_json(event.reply_to) if event.reply_to else None,
        scope=_scope(chat, sender),
        foreign_text=_is_foreign(connection, event),
    )
    if event.platform_message_id:
        at = _ref(event)
        conversations.add_ref(connection, **at, message_id=message.id)
    return message


def _take_back_memories(
    connection: sa.Connection, event: InboundEvent, setting: Setting, sender: Sender, chat: Conversation, replaced: Message
) -> None:
    """What the turns that are about to leave wrote to saved memories (SM-69); of old ones it cannot be told any more, and the person hears so."""
    limits, language = setting.limits, sender.language or guess(event.text)
    done = saved_undo.rewound(connection, chat.id, replaced.seq, setting.now, limits=limits, journal_days=setting.journal_days)
    if done.stays:
        text, once = say(language, "memory_stays"), f"stays:{replaced.id}"
        notices.tell_here(connection, chat.id, _scope(chat, sender), text, once=once, language=language, now=setting.now)


def _scope(chat: Conversation, sender: Sender) -> str:
    """Whose memory a message belongs to: settled here, where the sender's role of this moment is known (WD-9). Empty for nobody's."""
    access = scope_of(
        chat.kind,
        person=scope_or_none(sender.scope),
        space=space_scope(chat.space_id) if chat.space_id else None,
        memory_on=chat.memory_on,
        known=includes(sender.role, "user"),
    )
    return str(access.scope) if access.scope else ""


def _is_foreign(connection: sa.Connection, event: InboundEvent) -> bool:
    """Words that the sender did not write: files, and what is quoted from outside of this chat (WD-67)."""
    quoted = event.reply_to
    if event.forwarded or event.attachments or quoted is None or quoted.author_is_us:
        return event.forwarded or bool(event.attachments)
    return conversations.by_ref(connection, **{**_ref(event), "platform_message_id": quoted.message_id}) is None


def _ref(event: InboundEvent) -> dict[str, str]:
    return {
        "channel": event.account.channel,
        "account": event.account.name,
        "chat_id": event.chat_id,
        "platform_message_id": event.platform_message_id,
    }


def _take_edit(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    """History is corrected; a turn that has not begun reads the new words, a running or finished one is not answered again (CH-2). Words older than
    those that are known change nothing: edits may come in any order, again, and before their message."""
    found = conversations.by_ref(connection, **_ref(event))
    if found is None and _would_be_heard(connection, event, setting):
        early_edits.keep(connection, event, setting.now)
    if found is None or found.state != "live":
        return _noted(connection, event, setting, found)
    if not inbox.reword(connection, found.id, event.text, event.platform_ts or event.received_at):
        return replace(_noted(connection, event, setting, found), touched="")
    if event.text != found.text:
        conversations.correct(connection, found, event.text, setting.now)
        trimming.changed(connection, found.conversation_id, found.seq, found.seq, setting.now)
    return _noted(connection, event, setting, found)


def _would_be_heard(connection: sa.Connection, event: InboundEvent, setting: Setting) -> bool:
    """Whether an edit would be stored if it were the message itself, which has not come yet or never will."""
    if not (event.chat_id and event.sender_id and event.platform_message_id) or inbox.is_deleted(connection, event):
        return False
    sender = senders.find(connection, event, are_people=setting.capabilities.senders_are_people)
    chat = conversations.conversation_by_key(connection, str(event.address))
    return decide(_facts(connection, event, setting, sender, chat, None)) in ("", "full")


def _take_deletion(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    """The words leave the log; a waiting message is dropped, a running turn goes on (CH-2)."""
    found = conversations.by_ref(connection, **_ref(event))
    if found is not None:
        conversations.forget(connection, found.id)
        trimming.changed(connection, found.conversation_id, found.seq, found.seq, setting.now)
        waiting = inbox.waiting_of_message(connection, found.id)
        inbox.finish(connection, waiting, now=setting.now, state="ignored", rule="deleted")
        inbox.forget_words(connection, found.id)
    early_edits.drop(connection, event)
    return _noted(connection, event, setting, found)


def _take_migration(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    if not event.target:
        raise ValueError("a chat that moved must say where to")
    moved_chats.follow(connection, old=event.address, new_chat_id=event.target, rules=setting.rules, now=setting.now)
    return _noted(connection, event, setting, None)


def _noted(connection: sa.Connection, event: InboundEvent, setting: Setting, about: Message | None) -> Received:
    conversation_id = about.conversation_id if about else ""
    inbox.store(connection, event, state="done", conversation_id=conversation_id, now=setting.now)
    accepted = Accepted(arrival=Arrival.NEW, delivery_id=event.delivery_id, state="done")
    return Received(accepted=accepted, event=event, conversation_id=conversation_id, touched=about.id if about else "")


def _report(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    place = senders.place_of(connection, event)
    if event.kind is EventKind.MEMBERSHIP and event.chat_type is not ChatType.DM and not _admits_group(event, setting, place):
        log.warning("%s: %s in a group that is not allowed (chat %s)", event.account, event.hint or "membership changed", event.chat_id)
    return _refused(connection, event, setting, event.kind.value)


_TAKES: dict[EventKind, Callable[[sa.Connection, InboundEvent, Setting], Received]] = {
    EventKind.MESSAGE: _take_message,
    EventKind.ACTION: _take_action,
    EventKind.EDITED: _take_edit,
    EventKind.DELETED: _take_deletion,
    EventKind.MIGRATED: _take_migration,
    EventKind.MEMBERSHIP: _report,
    EventKind.UNKNOWN: _report,
}

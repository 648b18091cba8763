"""Messages, commands and actions as they are taken in: refused by a rule, kept as history only, or admitted to the lanes."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa

from channels.message import EventKind, InboundEvent
from channels.port import Accepted, Arrival
from gateway import buttons
from gateway.arrivals import early_edits, inbox, place_titles, senders
from gateway.arrivals.admission import judged
from gateway.arrivals.inbox import Waiting
from gateway.arrivals.received import CommandCall, Received, Setting, refused
from gateway.arrivals.senders import Sender
from gateway.arrivals.talk_log import join
from gateway.buttons import BUTTON
from gateway.command_line import CommandLine, parse
from gateway.language import from_tag, guess, say
from memory import conversations
from memory.conversations import Conversation
from memory.ids import new_turn


def take_action(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    """Something done to a turn, or a button of ours: the command behind it, said by who pressed it (CH-159).

    What a button brings back is a key and is trusted for nothing else: it works once, for whom the question was put to, in the chat where it was."""
    if event.hint != BUTTON:
        return take_message(connection, event, setting)
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
    received = take_message(connection, said, setting, line)
    if received.command is None or not buttons.use(connection, pressed, setting.now):
        return received
    return replace(received, accepted=replace(received.accepted, spent=True))


def take_message(connection: sa.Connection, event: InboundEvent, setting: Setting, pressed: CommandLine | None = None) -> Received:
    """`pressed`: the command behind a button."""
    if not event.chat_id or not event.sender_id:  # it would be one person, or one chat, for all who come without
        raise ValueError("a message must say who wrote it, and where")
    if event.kind is EventKind.MESSAGE and inbox.is_deleted(connection, event):  # the platform told of its end first
        early_edits.drop(connection, event)
        return refused(connection, event, setting, "deleted")
    event = early_edits.applied(connection, event) if event.kind is EventKind.MESSAGE else event
    sender = senders.find(connection, event, are_people=setting.capabilities.senders_are_people)
    chat = conversations.conversation_by_key(connection, str(event.address))
    line = parse(event.text, setting.prefixes) if event.kind is EventKind.MESSAGE else pressed
    facts, rule = judged(connection, event, setting, sender, chat, line)
    if rule:
        if chat is not None and facts.group_allowed:
            place_titles.keep(connection, event, chat)
        return refused(connection, event, setting, rule, conversation_id=chat.id if chat else "")
    sender = replace(sender or senders.meet(connection, event, now=setting.now), role=facts.role or "guest")
    chat = senders.in_its_space(connection, event, chat or senders.open_chat(connection, event, person_id=sender.id, now=setting.now), setting.now)
    chat = place_titles.keep(connection, event, chat)
    if setting.drop_before is not None and (event.platform_ts or event.received_at) < setting.drop_before:
        return _keep(connection, event, setting, sender, chat, line)
    if line is not None:
        return _admit_command(connection, event, setting, sender, chat, line)
    return _admit(connection, event, setting, sender, chat)


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
    received = refused(connection, event, setting, rule, conversation_id=chat.id if chat else "")
    return replace(received, accepted=replace(received.accepted, aside=say(language, key), spent=spent))


def _keep(connection: sa.Connection, event: InboundEvent, setting: Setting, sender: Sender, chat: Conversation, line: CommandLine | None) -> Received:
    """Too old to be answered: history only (CH-55). An old command is nothing at all."""
    if line is not None or event.kind is not EventKind.MESSAGE:
        return refused(connection, event, setting, "old", conversation_id=chat.id)
    message = join(connection, event, setting, sender, chat, turn_id=new_turn())
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
    message = None if is_action else join(connection, event, setting, sender, chat, turn_id=turn_id)
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
        scope=message.scope if message else "",
        busy=chat.busy,
    )
    accepted = Accepted(arrival=Arrival.NEW, delivery_id=event.delivery_id, state="new", message_id=message_id, turn_id=turn_id)
    return Received(accepted=accepted, event=event, conversation_id=chat.id, message=message, waiting=waiting)


def _admit_command(
    connection: sa.Connection, event: InboundEvent, setting: Setting, sender: Sender, chat: Conversation, line: CommandLine
) -> Received:
    message = join(connection, event, setting, sender, chat, origin="command")
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

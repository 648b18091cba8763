"""Whether an event is taken in: what the store knows of its sender and place, for the rules of `gateway.access`, and what else may keep it out."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa

from channels.message import ChatType, EventKind, InboundEvent, is_blank
from gateway.access import Facts, decide, includes
from gateway.arrivals import inbox, senders
from gateway.arrivals.received import Setting
from gateway.arrivals.senders import Sender
from gateway.buttons import BUTTON
from gateway.challenges import OVER, is_over
from gateway.command_line import CommandLine
from memory import conversations
from memory.conversations import Conversation, Message

REGENERATE = "regenerate"  # the one thing that can be done to a turn


def judged(
    connection: sa.Connection,
    event: InboundEvent,
    setting: Setting,
    sender: Sender | None,
    chat: Conversation | None,
    line: CommandLine | None,
) -> tuple[Facts, str]:
    """What is known about a message, a command or an action, and the first rule that refuses it, empty for none."""
    facts = _facts(connection, event, setting, sender, chat, line)
    if decide(facts) in ("", "full"):  # only what is answered counts against anybody's rate
        facts = replace(facts, over_rate=_over_rate(event, setting, sender))
    return facts, decide(facts) or _says_nothing(event) or _names_nothing(connection, event, chat) or _is_over(chat, line)


def would_be_heard(connection: sa.Connection, event: InboundEvent, setting: Setting) -> bool:
    """Whether an edit would be stored if it were the message itself, which has not come yet or never will."""
    if not (event.chat_id and event.sender_id and event.platform_message_id) or inbox.is_deleted(connection, event):
        return False
    sender = senders.find(connection, event, are_people=setting.capabilities.senders_are_people)
    chat = conversations.conversation_by_key(connection, str(event.address))
    return decide(_facts(connection, event, setting, sender, chat, None)) in ("", "full")


def admits_group(event: InboundEvent, setting: Setting, place: senders.Place) -> bool:
    return setting.rules.admits_group(event.chat_id, event.parent_chat_id, event.space_id) or place.allowed


def replaced_by(connection: sa.Connection, event: InboundEvent, conversation_id: str) -> Message | None:
    """The message that this one takes the place of, when it stands in this conversation."""
    if event.kind is not EventKind.MESSAGE or not event.target:
        return None
    found = conversations.message(connection, event.target)
    return found if found is not None and found.conversation_id == conversation_id else None


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
        group_allowed=in_group and (allowing or admits_group(event, setting, place)),
        privacy_full=sender is not None and sender.privacy == "full",
        for_other_bot=line is not None and bool(line.bot),
        mentioned=event.mentioned,
        needed_role=setting.needed_role(line.name) if line else "",
        queue_full=line is None and setting.queue_full(str(event.address)),
    )


def _over_rate(event: InboundEvent, setting: Setting, sender: Sender | None) -> bool:
    address = str(event.address)
    if event.is_bot and setting.bot_over_rate(address):
        return True
    return setting.over_rate(sender.id if sender else event.sender_id, address)


def _says_nothing(event: InboundEvent) -> str:
    empty = event.kind is EventKind.MESSAGE and is_blank(event.text) and not event.attachments and event.reply_to is None
    return "blank" if empty else ""


def _names_nothing(connection: sa.Connection, event: InboundEvent, chat: Conversation | None) -> str:
    """What is about a message or turn that is not in this chat is refused like a chat that is not the sender's: nobody learns whether it exists.
    A button may carry whatever the one who presses it likes (CH-159)."""
    if event.kind is EventKind.ACTION and event.hint != BUTTON:
        if event.hint != REGENERATE:
            return "no-such-action"
        asked = conversations.of_turn(connection, event.target) if event.target and chat else []
        return "" if chat and any(message.conversation_id == chat.id for message in asked) else "not-yours"
    return "not-yours" if event.target and replaced_by(connection, event, chat.id if chat else "") is None else ""


def _is_over(chat: Conversation | None, line: CommandLine | None) -> str:
    """In a challenge whose turns are used up only commands are taken."""
    return OVER if line is None and chat is not None and is_over(chat) else ""

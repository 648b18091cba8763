"""How what a person wrote joins the log of its chat, and whose memory it belongs to."""

from __future__ import annotations

import sqlalchemy as sa

from channels.message import InboundEvent, to_json
from gateway import notices, trimming
from gateway.access import includes
from gateway.arrivals.admission import replaced_by
from gateway.arrivals.received import Setting
from gateway.arrivals.senders import Sender
from gateway.chat_scope import access_in
from gateway.language import guess, say
from gateway.saved import undo as saved_undo
from memory import conversations, message_changes
from memory.conversations import Conversation, Message

_TO_THE_END = 2**62  # beyond every number of the log


def join(
    connection: sa.Connection,
    event: InboundEvent,
    setting: Setting,
    sender: Sender,
    chat: Conversation,
    *,
    turn_id: str = "",
    origin: str = "person",
) -> Message:
    """The message as it is stored."""
    if replaced := replaced_by(connection, event, chat.id):  # edit-and-resend: it and all after it leave the talk first (WO-10)
        _take_back_memories(connection, event, setting, sender, chat, replaced)
        message_changes.rewind(connection, chat.id, replaced.seq)
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
        at = ref(event)
        conversations.add_ref(connection, **at, message_id=message.id)
    return message


def ref(event: InboundEvent) -> dict[str, str]:
    """How the platform names the message that `event` is, or is about."""
    return {
        "channel": event.account.channel,
        "account": event.account.name,
        "chat_id": event.chat_id,
        "platform_message_id": event.platform_message_id,
    }


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
    access = access_in(chat, sender.scope, known=includes(sender.role, "user"))
    return str(access.scope) if access.scope else ""


def _is_foreign(connection: sa.Connection, event: InboundEvent) -> bool:
    """Words that the sender did not write: files, and what is quoted from outside of this chat (WD-67)."""
    quoted = event.reply_to
    if event.forwarded or event.attachments or quoted is None or quoted.author_is_us:
        return event.forwarded or bool(event.attachments)
    return conversations.by_ref(connection, **{**ref(event), "platform_message_id": quoted.message_id}) is None

"""What groups, channels and topics are called: kept current with every event that tells it, and shown in the place of an id.

A title decides nothing (CH-111) and belongs to its place: it stands in no log, and in no prompt but those of that place. A server's title is that of
the memory which its open channels share; else the group, the channel or the private thread has a memory, and a title, of its own (WD-12).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import sqlalchemy as sa

from channels.message import ChatType, InboundEvent
from gateway.arrivals import senders
from memory import conversations
from memory.conversations import Conversation
from memory.schema import conversations as chats
from memory.schema import spaces

BELOW = " › "  # between a place and what is a part of it


def of_space(event: InboundEvent) -> str:
    """The place whose members share one memory; empty when the platform does not tell."""
    return event.space_title if event.shared_id else _joined(event.space_title, event.chat_title)


def of_chat(event: InboundEvent, known: str = "") -> str:
    """The chat within that place. `known`: what its thread was called till now, worth more than what it was made as."""
    if event.chat_type is not ChatType.THREAD:
        return event.chat_title if event.shared_id else of_space(event)
    if not event.thread_title:
        return known or event.thread_made_as
    return _joined(event.chat_title if event.shared_id else "", event.thread_title)


def whole(place: str, chat: str) -> str:
    """Both as one name, for lists of chats; empty when neither is known. `place`: of its space, empty for one's own chats."""
    return chat if chat == place else _joined(place, chat)


def named(connection: sa.Connection, ids: Collection[str]) -> dict[str, str]:
    """What is called somehow, by its id: of `ids`, which may be those of spaces and addresses of chats, and of anything else."""
    found = {row.id: row.title for row in connection.execute(_SPACES, {"ids": list(ids)})}
    return found | {row.key: whole(row.place or "", row.title) for row in connection.execute(_CHATS, {"ids": list(ids)})}


def keep(connection: sa.Connection, event: InboundEvent, chat: Conversation) -> Conversation:
    """The group as `event` names it: the chat with its present title. What the platform does not tell stays, and so does a title that a person gave.

    Nothing of a chat that has just become a part of another place: its new name is not that place's to know before it has moved (WD-12).
    """
    if event.chat_type is ChatType.DM:
        return chat
    space = senders.space_of(connection, event)
    if space is None or space.id != chat.space_id:
        return chat
    if (place := of_space(event)) and place != space.title:
        connection.execute(sa.update(spaces).where(spaces.c.id == space.id).values(title=place))
    title = of_chat(event, chat.title)
    if not title or title == chat.title or not conversations.change_title(connection, chat.id, title, over="", origin=""):
        return chat
    return replace(chat, title=title)


def _joined(*names: str) -> str:
    return BELOW.join(filter(None, names))


_IDS = sa.bindparam("ids", type_=sa.Text, expanding=True)
_SPACES = sa.select(spaces.c.id, spaces.c.title).where(spaces.c.id.in_(_IDS), spaces.c.title != "")
_CHATS = (
    sa.select(chats.c.key, chats.c.title, spaces.c.title.label("place"))
    .join(spaces, spaces.c.id == chats.c.space_id)
    .where(chats.c.key.in_(_IDS), sa.or_(chats.c.title != "", spaces.c.title != ""))
)

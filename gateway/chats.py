"""Web chats of a person: listing, searching, forking; every look-up names the person, for a chat id is no capability (WO-51)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from channels.message import Account, Address
from gateway import receipt_view
from memory import conversations as store
from memory import whole_conversations
from memory.conversations import Conversation, Message
from memory.ids import ConversationId, new_conversation
from memory.schema import conversations, inbox, messages, turns

WEB = Account(channel="web")
LIST_MAX = 500
SNIPPET = 80  # characters around a hit
TITLE_MAX = 120

_COLUMNS = [conversations.c[name] for name in Conversation.__dataclass_fields__]
_OWN = (
    (conversations.c.person_id == sa.bindparam("person"))
    & (conversations.c.channel == WEB.channel)
    & conversations.c.deleted_at.is_(None)
)
_LIST = sa.select(*_COLUMNS).where(_OWN).order_by(conversations.c.updated_at.desc()).limit(LIST_MAX)
_HITS = (
    sa.select(messages.c.conversation_id, messages.c.text)
    .join(conversations, conversations.c.id == messages.c.conversation_id)
    .where(_OWN, messages.c.state == "live", messages.c.canonical, sa.func.lower(messages.c.text).like(sa.bindparam("pattern"), escape="\\"))
    .order_by(messages.c.seq.desc())
    .limit(LIST_MAX)
)
_WAITING = sa.select(inbox.c.message_id).where(
    inbox.c.conversation_id == sa.bindparam("chat"), inbox.c.state == "new", inbox.c.message_id != ""
)
_TURN = sa.select(turns.c.receipt, turns.c.conversation_id).where(turns.c.id == sa.bindparam("turn"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    messages: list[Message]
    waiting: frozenset[str]
    more: bool


def key_of(chat_id: str) -> str:
    return str(Address(account=WEB, chat_id=chat_id))


def create(
    connection: sa.Connection,
    person_id: str,
    *,
    now: datetime,
    title: str,
    character: str,
    kind: str,
    characters: Sequence[str] = (),
    challenge: str = "",
    turns_left: int | None = None,
) -> str:
    chat_id = new_conversation()
    return store.create_conversation(
        connection, now=now, conversation_id=chat_id, key=key_of(chat_id), channel=WEB.channel, account=WEB.name, kind=kind,
        person_id=person_id, character=character, characters=characters, challenge=challenge, title=title[:TITLE_MAX], turns_left=turns_left,
    )  # fmt: skip


def find(connection: sa.Connection, chat_id: str, person_id: str) -> Conversation | None:
    """The chat, when it is this person's."""
    chat = store.conversation(connection, chat_id)
    return chat if chat is not None and chat.person_id == person_id and chat.channel == WEB.channel else None


def listed(connection: sa.Connection, person_id: str, query: str) -> list[tuple[Conversation, str]]:
    """A person's chats, newest first, each with a snippet when `query` was found in its words."""
    chats = [store.conversation_of(row) for row in connection.execute(_LIST, {"person": person_id}).mappings()]
    if not query.strip():
        return [(chat, "") for chat in chats]
    wanted = query.strip().lower()
    pattern = "%" + wanted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    snippets: dict[str, str] = {}
    for chat_id, text in connection.execute(_HITS, {"person": person_id, "pattern": pattern}):
        snippets.setdefault(chat_id, snippet(text, wanted))
    return [(chat, snippets.get(chat.id, "")) for chat in chats if chat.id in snippets or wanted in chat.title.lower()]


def snippet(text: str, wanted: str) -> str:
    """The words around a hit, on one line."""
    flat = " ".join(text.split())
    at = max(0, flat.lower().find(wanted))
    start = max(0, at - SNIPPET // 2)
    return f"{'…' if start else ''}{flat[start : start + SNIPPET]}{'…' if start + SNIPPET < len(flat) else ''}"


def page(connection: sa.Connection, chat_id: str, *, before: str, limit: int) -> Page:
    """Up to `limit` messages before a message id (empty = the newest), and which of them still wait for their turn."""
    mark = store.message(connection, before) if before else None
    below = mark.seq if mark is not None and mark.conversation_id == chat_id else 2**62
    found = store.page(connection, chat_id, before=below, limit=limit + 1)
    waiting = frozenset(connection.execute(_WAITING, {"chat": chat_id}).scalars())
    return Page(messages=found[-limit:], waiting=waiting, more=len(found) > limit)


def receipt(connection: sa.Connection, chat: Conversation, turn_id: str, person_id: str) -> dict[str, Any] | None:
    """As `person_id` may see it; None for a turn that is not of this chat or has none."""
    row = connection.execute(_TURN, {"turn": turn_id}).one_or_none()
    if row is None or row.conversation_id != chat.id or row.receipt is None:
        return None
    return receipt_view.for_person(connection, chat, row.receipt, person_id)


def seen(connection: sa.Connection, chat: Conversation, message_id: str) -> None:
    """The person has read up to this message; never back."""
    mark = store.message(connection, message_id)
    if mark is not None and mark.conversation_id == chat.id and mark.seq > chat.seen_seq:
        store.change(connection, chat.id, seen_seq=mark.seq)


def fork(connection: sa.Connection, chat: Conversation, message_id: str, *, now: datetime) -> ConversationId | None:
    """A new chat with everything up to a message (empty = all); None when the message is not in the chat."""
    mark = store.message(connection, message_id) if message_id else None
    if message_id and (mark is None or mark.conversation_id != chat.id):
        return None
    new_id = new_conversation()
    up_to = mark.seq if mark else chat.last_seq
    whole_conversations.fork(connection, chat, key=key_of(new_id), new_id=new_id, up_to_seq=up_to, title=chat.title, now=now)
    return new_id


def turn_to_regenerate(connection: sa.Connection, chat_id: str, turn_id: str) -> str | None:
    """The turn meant: the named one, else that of the newest question; None when it is not in this chat."""
    if turn_id:
        row = connection.execute(_TURN, {"turn": turn_id}).one_or_none()
        return turn_id if row is not None and row.conversation_id == chat_id else None
    return store.last_question_turn(connection, chat_id)

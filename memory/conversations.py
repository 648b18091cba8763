"""The durable log: conversations, their messages and turns. Plain functions on a `Connection`, to be joined into the caller's transaction.

A message belongs to one turn; its canonical version is the one that is shown and sent. Nothing here is ever deleted except with its conversation.
What changes a message that is there already stands in `message_changes`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory.ids import ConversationId, MessageId, PersonId, SpaceId, TurnId, new_conversation, new_message
from memory.schema import conversations, message_refs, messages

CLEARED = "context.cleared"  # the setting of a chat that holds the number of the last message when its context was emptied for good
JUMPED = "window.jump"  # the one that holds where the edge of its window was before it jumped
SPOKEN = ("person", "assistant", "scheduled")  # origins that are talk; notices, commands and their answers are not (WD-117)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One chat; `key` is its address `channel:account:chat[:thread]`. `turns_left` counts in challenge chats only.

    `characters`: ids of all who answer here, the first one included; empty = `character` alone (WO-40). `challenge`: which one a challenge chat
    plays; empty = its character alone. `mode`, `record`, `recall_on` and `settings`: as in `memory.schema`.
    """

    id: ConversationId
    key: str
    channel: str
    account: str
    kind: str
    person_id: PersonId | None
    space_id: SpaceId | None
    character: str
    persona: str
    profile: str
    timezone: str
    busy: str
    memory_on: bool
    title: str
    title_origin: str
    window_edge: int
    seen_seq: int
    last_seq: int
    turns_left: int | None
    created_at: datetime
    updated_at: datetime
    characters: tuple[str, ...] = ()
    challenge: str = ""
    mode: str = ""
    record: str = ""
    recall_on: bool | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def members(self) -> tuple[str, ...]:
        """The ids of all characters that answer here, one at least."""
        return self.characters or (self.character,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of the log. `role` is user, assistant or notice; `origin` is person, assistant, command, notice, scheduled or imported.
    `author_character`: who answered, an id of the configuration.

    `scope`: whose memory it belongs to, empty for nobody's (WD-9); `foreign_text`: it holds, or was made from, words of others (WD-67).
    """

    seq: int
    id: MessageId
    conversation_id: ConversationId
    turn_id: TurnId
    role: str
    author_person_id: str
    author_name: str
    text: str
    state: str
    origin: str
    attempt: int
    outcome: str
    attachments: tuple[Mapping[str, Any], ...]
    reply_to: Mapping[str, Any] | None
    created_at: datetime
    scope: str = ""
    foreign_text: bool = False
    author_character: str = ""


_CONVERSATION = [conversations.c[name] for name in Conversation.__dataclass_fields__]
_MESSAGE = [messages.c[name] for name in Message.__dataclass_fields__]
SHOWN = (messages.c.state == "live") & messages.c.canonical

_BY_KEY = sa.select(*_CONVERSATION).where(conversations.c.key == sa.bindparam("key"), conversations.c.deleted_at.is_(None))
_BY_ID = sa.select(*_CONVERSATION).where(conversations.c.id == sa.bindparam("id"), conversations.c.deleted_at.is_(None))
_INSERT = sa.insert(conversations)
_ADD = sa.insert(messages).returning(messages.c.seq)
_ADD_REF = sa.insert(message_refs)
_TOUCH = sa.update(conversations).where(conversations.c.id == sa.bindparam("of")).values(updated_at=sa.bindparam("now"), last_seq=sa.bindparam("seq"))
_WINDOW = (
    sa.select(*_MESSAGE)
    .where(
        messages.c.conversation_id == sa.bindparam("id"),
        messages.c.seq > sa.bindparam("edge"),
        messages.c.origin.in_(SPOKEN),
        SHOWN,
    )
    .order_by(messages.c.seq)
)
_PAGE = (
    sa.select(*_MESSAGE)
    .where(messages.c.conversation_id == sa.bindparam("id"), messages.c.seq < sa.bindparam("before"), SHOWN)
    .order_by(messages.c.seq.desc())
    .limit(sa.bindparam("limit"))
)
_MESSAGE_BY_ID = sa.select(*_MESSAGE).where(messages.c.id == sa.bindparam("id"))
_OF_TURN = sa.select(*_MESSAGE).where(messages.c.turn_id == sa.bindparam("turn_id"), SHOWN).order_by(messages.c.seq)
_LAST_SAID = (
    sa.select(messages.c.turn_id, messages.c.text)
    .where(messages.c.conversation_id == sa.bindparam("id"), messages.c.role == "user", messages.c.origin == "person", SHOWN)
    .order_by(messages.c.seq.desc())
    .limit(1)
)
_REF = sa.select(message_refs.c.message_id).where(
    message_refs.c.channel == sa.bindparam("channel"),
    message_refs.c.account == sa.bindparam("account"),
    message_refs.c.chat_id == sa.bindparam("chat_id"),
    message_refs.c.platform_message_id == sa.bindparam("platform_message_id"),
)
_HOLD = sa.select(conversations.c.id).where(conversations.c.id == sa.bindparam("id")).with_for_update(key_share=True)
_WITH_SETTING = sa.select(conversations.c.id).where(
    conversations.c.deleted_at.is_(None), sa.cast(conversations.c.settings, sa.Text).contains(sa.bindparam("named", type_=sa.Text), autoescape=False)
)
_MOVE_EDGE = (
    sa.update(conversations)
    .where(conversations.c.id == sa.bindparam("of"), conversations.c.window_edge < sa.bindparam("edge"))
    .values(window_edge=sa.bindparam("edge"))
)


def _conversation(row: sa.Row[Any] | None) -> Conversation | None:
    return None if row is None else conversation_of(row._mapping)  # pyright: ignore[reportPrivateUsage]  # SQLAlchemy's public name


def conversation_of(row: Mapping[Any, Any]) -> Conversation:
    """From a row with the columns of `Conversation`."""
    values: dict[str, Any] = dict(row)
    values["characters"], values["settings"] = tuple(values["characters"] or ()), values["settings"] or {}
    return Conversation(**values)


def _message(row: sa.Row[Any]) -> Message:
    values = dict(row._mapping)  # pyright: ignore[reportPrivateUsage]  # SQLAlchemy's public name
    values["attachments"] = tuple(values["attachments"] or ())
    return Message(**values)


def conversation_by_key(connection: sa.Connection, key: str) -> Conversation | None:
    return _conversation(connection.execute(_BY_KEY, {"key": key}).one_or_none())


def conversation(connection: sa.Connection, conversation_id: str) -> Conversation | None:
    return _conversation(connection.execute(_BY_ID, {"id": conversation_id}).one_or_none())


def held(connection: sa.Connection, conversation_id: str) -> Conversation | None:
    """As it is stored now, and nobody else changes it before this transaction ends."""
    connection.execute(_HOLD, {"id": conversation_id})  # on PostgreSQL; SQLite has one writer
    return conversation(connection, conversation_id)


def change_settings(connection: sa.Connection, conversation_id: str, changes: Mapping[str, Any]) -> Conversation | None:
    """Its own settings with these changed, None for one that goes; they are one column, and the others stay, whoever else writes now."""
    fresh = held(connection, conversation_id)
    if fresh is None:
        return None
    kept = {key: value for key, value in {**fresh.settings, **changes}.items() if value is not None}
    change(connection, conversation_id, settings=kept or None)
    return conversation(connection, conversation_id)


def with_setting(connection: sa.Connection, key: str) -> list[ConversationId]:
    """Chats that have a value of their own for `key`."""
    return list(connection.execute(_WITH_SETTING, {"named": f'"{key}":'}).scalars())


def create_conversation(
    connection: sa.Connection,
    *,
    now: datetime,
    key: str,
    channel: str,
    account: str,
    kind: str,
    conversation_id: ConversationId | None = None,
    person_id: str | None = None,
    space_id: str | None = None,
    character: str = "default",
    title: str = "",
    characters: Sequence[str] = (),
    challenge: str = "",
    turns_left: int | None = None,
    forked_from: str = "",
) -> ConversationId:
    """A new conversation. IntegrityError when its key exists."""
    new_id = conversation_id or new_conversation()
    values: dict[str, Any] = {
        "id": new_id, "key": key, "channel": channel, "account": account, "kind": kind, "person_id": person_id, "space_id": space_id,
        "character": character, "characters": list(characters) or None, "challenge": challenge, "title": title,
        "title_origin": "person" if title else "", "turns_left": turns_left, "forked_from": forked_from, "created_at": now, "updated_at": now,
    }  # fmt: skip
    connection.execute(_INSERT, values)
    return new_id


def add_message(
    connection: sa.Connection,
    *,
    now: datetime,
    conversation_id: str,
    role: str,
    text: str,
    message_id: MessageId | None = None,
    turn_id: str = "",
    author_person_id: str = "",
    author_character: str = "",
    author_name: str = "",
    origin: str = "person",
    attempt: int = 1,
    outcome: str = "",
    attachments: Iterable[Mapping[str, Any]] = (),
    reply_to: Mapping[str, Any] | None = None,
    audience_people: list[str] | None = None,
    scope: str = "",
    foreign_text: bool = False,
) -> Message:
    """Append to the log and move the conversation's newest mark."""
    new_id = message_id or new_message()
    values: dict[str, Any] = {
        "id": new_id, "conversation_id": conversation_id, "turn_id": turn_id, "role": role, "author_person_id": author_person_id,
        "author_character": author_character, "author_name": author_name, "text": text, "origin": origin, "attempt": attempt, "outcome": outcome,
        "attachments": list(attachments) or None, "reply_to": dict(reply_to) if reply_to else None, "audience_people": audience_people,
        "scope": scope, "foreign_text": foreign_text,
        "fingerprint": fingerprint(new_id, role, author_person_id or author_character, text), "created_at": now,
    }  # fmt: skip
    seq = put(connection, values, now)
    same = (
        "id", "conversation_id", "turn_id", "role", "author_person_id", "author_character", "author_name", "text", "origin", "scope",
        "foreign_text",
    )  # fmt: skip
    shown = {name: values[name] for name in same}
    return Message(
        seq=seq, state="live", attempt=attempt, outcome=outcome, attachments=tuple(attachments), reply_to=reply_to, created_at=now, **shown
    )  # fmt: skip


def put(connection: sa.Connection, values: Mapping[str, Any], now: datetime) -> int:
    """Append a row to the log as it is; returns its number, which is the conversation's newest mark now."""
    seq: int = connection.execute(_ADD, dict(values)).scalar_one()
    connection.execute(_TOUCH, {"of": values["conversation_id"], "now": now, "seq": seq})
    return seq


def fingerprint(message_id: str, role: str, author: str, text: str) -> str:
    """What a summary or chunk compares before it is used: changes whenever the message would be read differently (RS-22)."""
    return hashlib.blake2b("\x1f".join((message_id, role, author, text)).encode(), digest_size=12).hexdigest()


def add_ref(connection: sa.Connection, *, channel: str, account: str, chat_id: str, platform_message_id: str, message_id: str) -> None:
    """Remember which message of ours a platform's message is. Once per platform message: callers insert only for new events."""
    connection.execute(_ADD_REF, {
        "channel": channel, "account": account, "chat_id": chat_id, "platform_message_id": platform_message_id, "message_id": message_id,
    })  # fmt: skip


def by_ref(connection: sa.Connection, *, channel: str, account: str, chat_id: str, platform_message_id: str) -> Message | None:
    found = connection.execute(
        _REF, {"channel": channel, "account": account, "chat_id": chat_id, "platform_message_id": platform_message_id}
    ).scalar()
    return message(connection, found) if found else None


def message(connection: sa.Connection, message_id: str) -> Message | None:
    row = connection.execute(_MESSAGE_BY_ID, {"id": message_id}).one_or_none()
    return _message(row) if row else None


def window(connection: sa.Connection, conversation_id: str, edge: int) -> list[Message]:
    """The talk after the saved edge, oldest first: canonical, live, no notices and no commands."""
    return [_message(row) for row in connection.execute(_WINDOW, {"id": conversation_id, "edge": edge})]


def page(connection: sa.Connection, conversation_id: str, *, before: int, limit: int) -> list[Message]:
    """Up to `limit` shown messages with a smaller sequence number than `before`, oldest first."""
    rows = connection.execute(_PAGE, {"id": conversation_id, "before": before, "limit": limit}).all()
    return [_message(row) for row in reversed(rows)]


def of_turn(connection: sa.Connection, turn_id: str) -> list[Message]:
    return [_message(row) for row in connection.execute(_OF_TURN, {"turn_id": turn_id})]


def last_question_turn(connection: sa.Connection, conversation_id: str) -> TurnId | None:
    """The turn of the newest message by a person that is still shown."""
    said = connection.execute(_LAST_SAID, {"id": conversation_id}).one_or_none()
    return said.turn_id if said else None


def last_words(connection: sa.Connection, conversation_id: str) -> str:
    """What a person said last, commands apart; empty for nothing."""
    said = connection.execute(_LAST_SAID, {"id": conversation_id}).one_or_none()
    return said.text if said else ""


def move_edge(connection: sa.Connection, conversation_id: str, edge: int) -> None:
    """The context begins after `edge` from now on; it never moves back."""
    connection.execute(_MOVE_EDGE, {"of": conversation_id, "edge": edge})


def change(connection: sa.Connection, conversation_id: str, **values: Any) -> None:
    """Set columns of one conversation."""
    connection.execute(sa.update(conversations).where(conversations.c.id == conversation_id).values(**values))


def rekey(connection: sa.Connection, *, old: str, new: str) -> bool:
    """Give a conversation its new address (CH-166); False when there is none, or the new one exists already."""
    if conversation_by_key(connection, new) is not None:
        return False
    return connection.execute(sa.update(conversations).where(conversations.c.key == old).values(key=new)).rowcount > 0


def cleared(chat: Conversation) -> int:
    """The number up to which nothing of a chat stands in its prompt, in no form; 0 where its context was never emptied."""
    number = chat.settings.get(CLEARED)
    return number if isinstance(number, int) else 0


def clear_context(connection: sa.Connection, conversation_id: str) -> None:
    """Everything said so far leaves the context for good; the log stays."""
    connection.execute(sa.update(conversations).where(conversations.c.id == conversation_id).values(window_edge=conversations.c.last_seq))


def change_title(connection: sa.Connection, conversation_id: str, title: str, *, over: str, origin: str = "model") -> bool:
    """A title of ours, unless a person has given one meanwhile: only over a title of origin `over`. Whether it was taken."""
    mine = (conversations.c.id == conversation_id) & (conversations.c.title_origin == over)
    return connection.execute(sa.update(conversations).where(mine).values(title=title, title_origin=origin)).rowcount > 0

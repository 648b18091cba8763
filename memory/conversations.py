"""The durable log: conversations, their messages and turns. Plain functions on a `Connection`, to be joined into the caller's transaction.

A message belongs to one turn; its canonical version is the one that is shown and sent. Nothing here is ever deleted except with its conversation:
what a rewind or a deletion takes away keeps its row and changes its state.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory import schema
from memory.ids import ConversationId, MessageId, PersonId, SpaceId, TurnId, new_conversation, new_message, new_turn
from memory.schema import conversations, message_refs, messages, turns

SPOKEN = ("person", "assistant", "scheduled")  # origins that are talk; notices, commands and their answers are not (WD-117)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One chat; `key` is its address `channel:account:chat[:thread]`. `turns_left` counts in challenge chats only."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of the log. `role` is user, assistant or notice; `origin` is person, assistant, command, notice, scheduled or imported."""

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


_CONVERSATION = [conversations.c[name] for name in Conversation.__dataclass_fields__]
_MESSAGE = [messages.c[name] for name in Message.__dataclass_fields__]
_SHOWN = (messages.c.state == "live") & messages.c.canonical

_BY_KEY = sa.select(*_CONVERSATION).where(conversations.c.key == sa.bindparam("key"), conversations.c.deleted_at.is_(None))
_BY_ID = sa.select(*_CONVERSATION).where(conversations.c.id == sa.bindparam("id"), conversations.c.deleted_at.is_(None))
_INSERT = sa.insert(conversations)
_ADD = sa.insert(messages).returning(messages.c.seq)
_ADD_REF = sa.insert(message_refs)
_TOUCH = (
    sa.update(conversations)
    .where(conversations.c.id == sa.bindparam("of"))
    .values(updated_at=sa.bindparam("now"), last_seq=sa.bindparam("seq"))
)
_WINDOW = (
    sa.select(*_MESSAGE)
    .where(
        messages.c.conversation_id == sa.bindparam("id"),
        messages.c.seq > sa.bindparam("edge"),
        messages.c.origin.in_(SPOKEN),
        _SHOWN,
    )
    .order_by(messages.c.seq)
)
_PAGE = (
    sa.select(*_MESSAGE)
    .where(messages.c.conversation_id == sa.bindparam("id"), messages.c.seq < sa.bindparam("before"), _SHOWN)
    .order_by(messages.c.seq.desc())
    .limit(sa.bindparam("limit"))
)
_MESSAGE_BY_ID = sa.select(*_MESSAGE).where(messages.c.id == sa.bindparam("id"))
_OF_TURN = sa.select(*_MESSAGE).where(messages.c.turn_id == sa.bindparam("turn_id"), _SHOWN).order_by(messages.c.seq)
_LAST_ANSWER = (
    sa.select(*_MESSAGE)
    .where(messages.c.conversation_id == sa.bindparam("id"), messages.c.role == "assistant", messages.c.origin == "assistant", _SHOWN)
    .order_by(messages.c.seq.desc())
    .limit(1)
)
_LAST_QUESTION = (
    sa.select(messages.c.turn_id)
    .where(messages.c.conversation_id == sa.bindparam("id"), messages.c.role == "user", messages.c.origin == "person", _SHOWN)
    .order_by(messages.c.seq.desc())
    .limit(1)
)
_REWIND = (
    sa.update(messages)
    .where(messages.c.conversation_id == sa.bindparam("of"), messages.c.seq >= sa.bindparam("start"), messages.c.state == "live")
    .values(state="hidden")
)
_QUESTION_STATES = sa.select(messages.c.state).where(messages.c.turn_id == sa.bindparam("turn"), messages.c.role == "user").distinct()
_OLD_ANSWERS = (
    sa.update(messages)
    .where(messages.c.turn_id == sa.bindparam("of"), messages.c.role != "user", messages.c.attempt < sa.bindparam("attempt_now"))
    .values(canonical=False)
)
_REF = sa.select(message_refs.c.message_id).where(
    message_refs.c.channel == sa.bindparam("channel"),
    message_refs.c.account == sa.bindparam("account"),
    message_refs.c.chat_id == sa.bindparam("chat_id"),
    message_refs.c.platform_message_id == sa.bindparam("platform_message_id"),
)
_MOVE_EDGE = (
    sa.update(conversations)
    .where(conversations.c.id == sa.bindparam("of"), conversations.c.window_edge < sa.bindparam("edge"))
    .values(window_edge=sa.bindparam("edge"))
)


def _conversation(row: sa.Row[Any] | None) -> Conversation | None:
    return None if row is None else Conversation(**row._mapping)  # pyright: ignore[reportPrivateUsage]  # SQLAlchemy's public name


def _message(row: sa.Row[Any]) -> Message:
    values = dict(row._mapping)  # pyright: ignore[reportPrivateUsage]  # SQLAlchemy's public name
    values["attachments"] = tuple(values["attachments"] or ())
    return Message(**values)


def conversation_by_key(connection: sa.Connection, key: str) -> Conversation | None:
    return _conversation(connection.execute(_BY_KEY, {"key": key}).one_or_none())


def conversation(connection: sa.Connection, conversation_id: str) -> Conversation | None:
    return _conversation(connection.execute(_BY_ID, {"id": conversation_id}).one_or_none())


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
    turns_left: int | None = None,
    forked_from: str = "",
) -> ConversationId:
    """A new conversation. IntegrityError when its key exists."""
    new_id = conversation_id or new_conversation()
    values: dict[str, Any] = {
        "id": new_id, "key": key, "channel": channel, "account": account, "kind": kind, "person_id": person_id, "space_id": space_id,
        "character": character, "title": title, "title_origin": "person" if title else "", "turns_left": turns_left, "forked_from": forked_from,
        "created_at": now, "updated_at": now,
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
) -> Message:
    """Append to the log and move the conversation's newest mark."""
    new_id = message_id or new_message()
    values: dict[str, Any] = {
        "id": new_id, "conversation_id": conversation_id, "turn_id": turn_id, "role": role, "author_person_id": author_person_id,
        "author_character": author_character, "author_name": author_name, "text": text, "origin": origin, "attempt": attempt, "outcome": outcome,
        "attachments": list(attachments) or None, "reply_to": dict(reply_to) if reply_to else None, "audience_people": audience_people,
        "fingerprint": fingerprint(new_id, role, author_person_id or author_character, text), "created_at": now,
    }  # fmt: skip
    seq = connection.execute(_ADD, values).scalar_one()
    connection.execute(_TOUCH, {"of": conversation_id, "now": now, "seq": seq})
    shown = {name: values[name] for name in ("id", "conversation_id", "turn_id", "role", "author_person_id", "author_name", "text", "origin")}
    return Message(
        seq=seq, state="live", attempt=attempt, outcome=outcome, attachments=tuple(attachments), reply_to=reply_to, created_at=now, **shown
    )  # fmt: skip


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


def last_answer(connection: sa.Connection, conversation_id: str) -> Message | None:
    row = connection.execute(_LAST_ANSWER, {"id": conversation_id}).one_or_none()
    return _message(row) if row else None


def last_question_turn(connection: sa.Connection, conversation_id: str) -> TurnId | None:
    """The turn of the newest message by a person that is still shown."""
    return connection.execute(_LAST_QUESTION, {"id": conversation_id}).scalar()


def rewind(connection: sa.Connection, conversation_id: str, start_seq: int) -> int:
    """Take `start_seq` and all after it out of the talk (edit-and-resend); returns how many messages left. The rows stay."""
    return connection.execute(_REWIND, {"of": conversation_id, "start": start_seq}).rowcount


def is_withdrawn(connection: sa.Connection, turn_id: str) -> bool:
    """Whether every question of a turn was taken out of the talk by a rewind; one that its author deleted still gets its answer (CH-2)."""
    states = set(connection.execute(_QUESTION_STATES, {"turn": turn_id}).scalars())
    return states == {"hidden"}


def retire_answers(connection: sa.Connection, turn_id: str, attempt: int) -> None:
    """Answers of earlier attempts of this turn are no longer the canonical ones."""
    connection.execute(_OLD_ANSWERS, {"of": turn_id, "attempt_now": attempt})


def correct(connection: sa.Connection, found: Message, text: str, now: datetime) -> None:
    """The person edited a message: the log says the new words from now on (CH-2)."""
    print_ = fingerprint(found.id, found.role, found.author_person_id, text)
    connection.execute(sa.update(messages).where(messages.c.id == found.id).values(text=text, edited_at=now, fingerprint=print_))


def set_attachments(connection: sa.Connection, message_id: str, files: Iterable[Mapping[str, Any]]) -> None:
    """The files of a message, as they are known now. A message whose words were taken away gets none back."""
    of = (messages.c.id == message_id) & (messages.c.state != "forgotten")
    connection.execute(sa.update(messages).where(of).values(attachments=list(files) or None))


def forget(connection: sa.Connection, message_id: str) -> None:
    """The person deleted a message: its words leave the log, its row stays (CH-2)."""
    connection.execute(sa.update(messages).where(messages.c.id == message_id).values(text="", state="forgotten", attachments=None))


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


def keys_of_chat(connection: sa.Connection, key: str) -> list[str]:
    """The keys of the conversations of one chat: its own, and those of its topics."""
    like = conversations.c.key.startswith(f"{key}:", autoescape=True)
    found = connection.execute(sa.select(conversations.c.key).where((conversations.c.key == key) | like)).scalars()
    return [each for each in found if each == key or each.startswith(f"{key}:")]  # SQLite compares without regard to case


def move(connection: sa.Connection, *, old: str, new: str) -> None:
    """The chat of a conversation has another address now (CH-166). Where the new one is in use already, the earlier talk goes before it."""
    earlier, present = conversation_by_key(connection, old), conversation_by_key(connection, new)
    if earlier is None:
        return
    if present is None:
        rekey(connection, old=old, new=new)
        return
    for table in (messages, turns):
        connection.execute(sa.update(table).where(table.c.conversation_id == earlier.id).values(conversation_id=present.id))
    move_edge(connection, present.id, earlier.window_edge)


def delete_conversation(connection: sa.Connection, conversation_id: str) -> None:
    """The conversation with its messages and turns, for good."""
    of = conversation_id
    connection.execute(sa.delete(message_refs).where(message_refs.c.message_id.in_(sa.select(messages.c.id).where(messages.c.conversation_id == of))))
    for table in (messages, turns, schema.outbox):
        connection.execute(sa.delete(table).where(table.c.conversation_id == of))
    # The keys of the inbox stay, so that nothing is answered again; its words go.
    connection.execute(sa.update(schema.inbox).where(schema.inbox.c.conversation_id == of).values(conversation_id="", event=None))
    connection.execute(sa.update(schema.model_calls).where(schema.model_calls.c.conversation_id == of).values(conversation_id=""))
    connection.execute(sa.delete(conversations).where(conversations.c.id == of))


def fork(connection: sa.Connection, source: Conversation, *, key: str, new_id: ConversationId, up_to_seq: int, title: str, now: datetime) -> None:
    """A new conversation with copies of everything shown up to `up_to_seq`; saved memory is shared, not copied (SM-1)."""
    create_conversation(
        connection, now=now, key=key, conversation_id=new_id, channel=source.channel, account=source.account, kind=source.kind,
        person_id=source.person_id, character=source.character, title=title, forked_from=source.id, turns_left=source.turns_left,
    )  # fmt: skip
    copied = connection.execute(
        sa.select(messages).where(messages.c.conversation_id == source.id, messages.c.seq <= up_to_seq, _SHOWN).order_by(messages.c.seq)
    ).all()
    edge = 0
    turn_ids: defaultdict[str, str] = defaultdict(new_turn)
    for row in copied:
        values = dict(row._mapping)  # pyright: ignore[reportPrivateUsage]  # SQLAlchemy's public name
        old_seq = values.pop("seq")
        values |= {"id": new_message(), "conversation_id": new_id, "turn_id": turn_ids[values["turn_id"]]}
        seq = connection.execute(_ADD, values).scalar_one()
        edge = seq if old_seq <= source.window_edge else edge
        connection.execute(_TOUCH, {"of": new_id, "now": now, "seq": seq})
    move_edge(connection, new_id, edge)


def clear_context(connection: sa.Connection, conversation_id: str) -> None:
    """Everything said so far leaves the context for good; the log stays."""
    connection.execute(sa.update(conversations).where(conversations.c.id == conversation_id).values(window_edge=conversations.c.last_seq))


def change_title(connection: sa.Connection, conversation_id: str, title: str, *, over: str, origin: str = "model") -> bool:
    """A title of ours, unless a person has given one meanwhile: only over a title of origin `over`. Whether it was taken."""
    mine = (conversations.c.id == conversation_id) & (conversations.c.title_origin == over)
    return connection.execute(sa.update(conversations).where(mine).values(title=title, title_origin=origin)).rowcount > 0

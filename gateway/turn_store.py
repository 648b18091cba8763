"""The transactions of a turn: how it begins and how it ends (CH-53). Each is all or nothing, so a kill at any moment leaves it before or after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from agent.turn import ModelCall
from gateway import inbox, outbox_store
from gateway.inbox import ATTEMPTS_MAX, Waiting
from gateway.outbox_store import NewPart
from memory import conversations
from memory.conversations import Conversation, Message
from memory.schema import messages, model_calls, people, turns

CallRow = tuple[ModelCall, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStart:
    """What a turn begins with. `attempt` counts from 1 and grows with every regenerate; `dead`: it has been tried too often."""

    conversation: Conversation
    person: Mapping[str, Any]
    questions: tuple[Message, ...]
    history: tuple[Message, ...]
    attempt: int
    preview_id: str = ""
    dead: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """What a turn leaves behind. `answer` empty = no message by us; `notice` a sentence of ours to show instead or beside it."""

    turn_id: str
    conversation_id: str
    state: str  # answered, stopped, failed, empty
    rows: tuple[int, ...]  # of the inbox
    attempt: int = 1
    answer: str = ""
    character: str = ""
    character_name: str = ""
    notice: str = ""
    error_code: str = ""
    receipt: Mapping[str, Any] = field(default_factory=dict[str, Any])
    steered: tuple[Waiting, ...] = ()
    window_edge: int | None = None
    row_state: str = "done"


_PERSON = sa.select(people.c.id, people.c.name, people.c.role, people.c.scope, people.c.language, people.c.timezone).where(
    people.c.id == sa.bindparam("id")
)
_TURN = sa.select(turns.c.preview_ids).where(turns.c.id == sa.bindparam("id"))
_NEWEST_ATTEMPT = sa.select(sa.func.max(messages.c.attempt)).where(messages.c.turn_id == sa.bindparam("turn"), messages.c.role != "user")
_BEGIN = sa.insert(turns)
_BEGIN_AGAIN = (
    sa.update(turns)
    .where(turns.c.id == sa.bindparam("of"))
    .values(state="running", attempt=sa.bindparam("attempt_now"), started_at=sa.bindparam("now"), ended_at=None, error_code="")
)
_END = (
    sa.update(turns)
    .where(turns.c.id == sa.bindparam("of"))
    .values(preview_ids=sa.null(), **{name: sa.bindparam(f"new_{name}") for name in ("state", "model", "error_code", "receipt", "ended_at")})
)
_WITHDRAWN = sa.update(turns).where(turns.c.id == sa.bindparam("of")).values(state="stopped", ended_at=sa.bindparam("now"))
_PREVIEW = sa.update(turns).where(turns.c.id == sa.bindparam("of")).values(preview_ids=sa.bindparam("ids"))
_JOIN_MESSAGES = (
    sa.update(messages).where(messages.c.id.in_(sa.bindparam("messages", expanding=True))).values(turn_id=sa.bindparam("turn"))
)
_CALL = sa.insert(model_calls)


def begin(connection: sa.Connection, items: Sequence[Waiting], now: datetime, *, attempts_max: int = ATTEMPTS_MAX) -> TurnStart | None:
    """Mark the rows as running and read what the turn needs. None when there is nothing left to answer (deleted, or answered already).

    A turn that was begun before (regenerated, killed, or cut short by a drain) is another attempt of the same turn.
    """
    turn_id = items[0].turn_id
    tried = inbox.start(connection, [item.row_id for item in items], turn_id)
    chat = conversations.conversation(connection, items[0].conversation_id)
    if tried == 0:
        return None
    if chat is None:
        inbox.finish(connection, [item.row_id for item in items], now=now, state="ignored", rule="deleted")
        return None
    if len(items) > 1:
        connection.execute(_JOIN_MESSAGES, {"messages": [item.message_id for item in items], "turn": turn_id})
    log = conversations.window(connection, chat.id, chat.window_edge)
    questions = tuple(message for message in log if message.turn_id == turn_id and message.role == "user")
    if not questions:
        questions = tuple(message for message in conversations.of_turn(connection, turn_id) if message.role == "user")
    if not questions:
        inbox.finish(connection, [item.row_id for item in items], now=now, state="ignored", rule="deleted")
        return None
    first = min(message.seq for message in questions)
    order = {item.message_id: place for place, item in enumerate(items)}
    questions = tuple(sorted(questions, key=lambda message: order.get(message.id, len(order))))
    begun = connection.execute(_TURN, {"id": turn_id}).one_or_none()
    attempt = (connection.execute(_NEWEST_ATTEMPT, {"turn": turn_id}).scalar() or 0) + 1 if begun else 1
    _open(connection, turn_id, chat, items[0].person_id, attempt, again=begun is not None, now=now)
    person = connection.execute(_PERSON, {"id": items[0].person_id}).mappings().one_or_none()
    return TurnStart(
        conversation=chat,
        person=dict(person) if person else {},
        questions=questions,
        history=_before(log, turn_id, first),
        attempt=attempt,
        preview_id=begun.preview_ids[0] if begun and begun.preview_ids else "",
        dead=tried > attempts_max,
    )


def _before(log: Sequence[Message], turn_id: str, first: int) -> tuple[Message, ...]:
    """The talk before a question that has number `first`: every earlier question with its answer, also when the answer came after `first` (DL-14)."""
    asked: dict[str, int] = {}
    for message in log:
        if message.role == "user" and message.turn_id:
            asked.setdefault(message.turn_id, message.seq)

    def place(message: Message) -> int:
        return asked.get(message.turn_id, message.seq)

    earlier = [message for message in log if message.turn_id != turn_id and place(message) < first]
    return tuple(sorted(earlier, key=lambda message: (place(message), message.seq)))


def _open(connection: sa.Connection, turn_id: str, chat: Conversation, person_id: str, attempt: int, *, again: bool, now: datetime) -> None:
    if again:
        connection.execute(_BEGIN_AGAIN, {"of": turn_id, "attempt_now": attempt, "now": now})
        return
    connection.execute(_BEGIN, {
        "id": turn_id, "conversation_id": chat.id, "person_id": person_id, "state": "running", "attempt": attempt,
        "character": chat.character, "started_at": now,
    })  # fmt: skip


def store_preview(connection: sa.Connection, turn_id: str, ids: Sequence[str]) -> None:
    """The preview on show, before its next edit (CH-97)."""
    connection.execute(_PREVIEW, {"of": turn_id, "ids": list(ids)})


def end(
    connection: sa.Connection, ending: TurnEnd, *, parts: Sequence[NewPart], calls: Sequence[CallRow], now: datetime
) -> list[Message]:
    """The reply, its outbox rows and the end of `running`, in one transaction. Returns the messages that joined the log."""
    rows = [*ending.rows, *(item.row_id for item in ending.steered)]
    if conversations.conversation(connection, ending.conversation_id) is None:  # deleted meanwhile: nobody is to read this, but it was paid for
        inbox.finish(connection, rows, now=now, state="ignored", rule="deleted")
        record_calls(connection, [(call, {**of, "conversation_id": ""}) for call, of in calls], now)
        return []
    if conversations.is_withdrawn(connection, ending.turn_id):  # edited and sent again meanwhile: the answer is to words that left the talk
        connection.execute(_WITHDRAWN, {"of": ending.turn_id, "now": now})
        inbox.finish(connection, rows, now=now, state="ignored", rule="withdrawn")
        record_calls(connection, calls, now)
        return []
    added: list[Message] = []
    if ending.answer:
        if ending.attempt > 1:
            conversations.retire_answers(connection, ending.turn_id, ending.attempt)
        added.append(
            conversations.add_message(
                connection,
                now=now,
                conversation_id=ending.conversation_id,
                turn_id=ending.turn_id,
                role="assistant",
                origin="assistant",
                author_character=ending.character,
                author_name=ending.character_name,
                text=ending.answer,
                attempt=ending.attempt,
                outcome=ending.state,
            )
        )
    if ending.notice:
        added.append(
            conversations.add_message(
                connection,
                now=now,
                conversation_id=ending.conversation_id,
                turn_id=ending.turn_id,
                role="notice",
                origin="notice",
                text=ending.notice,
                attempt=ending.attempt,
                outcome=ending.state,
            )
        )
    connection.execute(_END, {
        "of": ending.turn_id, "new_state": ending.state, "new_model": calls[-1][0].model if calls else "", "new_error_code": ending.error_code,
        "new_receipt": dict(ending.receipt), "new_ended_at": now,
    })  # fmt: skip
    if ending.steered:
        inbox.join(connection, [item.row_id for item in ending.steered], ending.turn_id)
        connection.execute(_JOIN_MESSAGES, {"messages": [item.message_id for item in ending.steered], "turn": ending.turn_id})
    inbox.finish(connection, rows, now=now, state=ending.row_state, rule=ending.error_code)
    outbox_store.put(connection, parts, now)
    record_calls(connection, calls, now)
    if ending.window_edge is not None:
        conversations.move_edge(connection, ending.conversation_id, ending.window_edge)
    return added


def record_calls(connection: sa.Connection, calls: Sequence[CallRow], now: datetime) -> None:
    """Usage: each request with what it was for (turn, person, conversation, channel, purpose, cost; all optional)."""
    if calls:
        connection.execute(_CALL, [_call_row(call, of, now) for call, of in calls])


def _call_row(call: ModelCall, of: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    return {
        "model": call.model, "outcome": call.outcome, "input_tokens": call.usage.input_tokens, "output_tokens": call.usage.output_tokens,
        "cached_tokens": call.usage.cached_tokens, "estimated": call.usage.estimated, "milliseconds": call.milliseconds, "at": now,
        "turn_id": "", "person_id": "", "conversation_id": "", "channel": "", "purpose": "reply", "cost": 0.0, **of,
    }  # fmt: skip

"""Attempts at challenges: each challenge chat is one. Plain functions on a `Connection` (WO-16, SM-88).

An attempt is `open` while it has turns, `judging` while a model reads it, then `won` or `lost`; one that was begun anew before its end is `given_up`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway import chats
from gateway.challenges import SETTING, SUCCESS, Challenge, in_language
from gateway.jobs.table import Job, enqueue
from memory import conversations as store
from memory.conversations import Conversation
from memory.saved_schema import attempts
from memory.schema import conversations

JUDGE = "judge"  # kind of the job


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """`number` counts a person's attempts at one challenge from 1; `turns`: answers so far; `score`: 0 to 100, None before it was judged."""

    conversation_id: str
    challenge: str
    number: int
    state: str
    turns: int
    score: int | None
    verdict: str
    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """What a person has made of one challenge: attempts, those won, and the best score."""

    count: int = 0
    won: int = 0
    best: int | None = None


_COLUMNS = [attempts.c[name] for name in Attempt.__dataclass_fields__]
_OF = sa.select(*_COLUMNS).where(attempts.c.conversation_id.in_(sa.bindparam("chats", expanding=True)))
_MINE = (
    sa.select(attempts)
    .join(conversations, conversations.c.id == attempts.c.conversation_id)
    .where(conversations.c.person_id == sa.bindparam("person"))
)
_LAST_NUMBER = sa.select(sa.func.max(attempts.c.number)).where(
    attempts.c.challenge == sa.bindparam("challenge"),
    attempts.c.conversation_id.in_(sa.select(conversations.c.id).where(conversations.c.person_id == sa.bindparam("person"))),
)
_COUNT_TURN = (
    sa.update(attempts).where(attempts.c.conversation_id == sa.bindparam("of"), attempts.c.state == "open").values(turns=attempts.c.turns + 1)
)
_USE_TURN = (
    sa.update(conversations)
    .where(conversations.c.id == sa.bindparam("of"), conversations.c.turns_left > 0)
    .values(turns_left=conversations.c.turns_left - 1)
)


def start(
    connection: sa.Connection, person_id: str, challenge_id: str, challenge: Challenge, *, language: str, now: datetime, title: str = ""
) -> str:
    """A new chat that plays a challenge from its beginning; its id."""
    chat_id = chats.create(
        connection, person_id, now=now, title=title or in_language(challenge.title, language), character=challenge.character, kind="challenge",
        challenge=challenge_id, turns_left=challenge.turns,
    )  # fmt: skip
    store.change(connection, chat_id, settings={SETTING: challenge.model_dump(mode="json")})
    _open(connection, chat_id, person_id, challenge_id, now)
    return chat_id


def forked(connection: sa.Connection, source: Conversation, new_id: str, now: datetime) -> None:
    """A fork of a challenge is an attempt of its own, with the turns that its source has left; of an ended one it can only be read."""
    found = of_chats(connection, [source.id]).get(source.id)
    if found is not None and found.state == "open":
        _open(connection, new_id, str(source.person_id), source.challenge, now, turns=found.turns)
    elif found is not None:
        store.change(connection, new_id, turns_left=0)


def of_chats(connection: sa.Connection, chat_ids: list[str]) -> dict[str, Attempt]:
    """By chat; chats that play no challenge are not in it."""
    return {row.conversation_id: Attempt(**row) for row in connection.execute(_OF, {"chats": chat_ids}).mappings()} if chat_ids else {}


def tries(connection: sa.Connection, person_id: str) -> Mapping[str, Tries]:
    """By challenge."""
    found: dict[str, Tries] = {}
    for row in connection.execute(_MINE, {"person": person_id}):
        known = found.get(row.challenge, Tries())
        best = max((score for score in (known.best, row.score) if score is not None), default=None)
        found[row.challenge] = Tries(count=known.count + 1, won=known.won + (row.state == "won"), best=best)
    return found


def after_turn(connection: sa.Connection, chat: Conversation, *, answered: bool) -> None:
    """In the transaction that ends a turn: every answer uses one, a regenerated one too; after the last the attempt is judged."""
    if not answered or chat.kind != "challenge" or chat.turns_left is None:
        return
    connection.execute(_USE_TURN, {"of": chat.id})
    connection.execute(_COUNT_TURN, {"of": chat.id})
    now_left = store.conversation(connection, chat.id)
    if now_left is not None and now_left.turns_left == 0:
        finish(connection, chat.id)


def finish(connection: sa.Connection, chat_id: str) -> bool:
    """No more turns: the attempt goes to its judge. False when it is not open."""
    if not _move(connection, chat_id, "open", state="judging"):
        return False
    store.change(connection, chat_id, turns_left=0)
    enqueue(connection, Job(kind=JUDGE, key=chat_id, payload={"conversation": chat_id}))
    return True


def give_up(connection: sa.Connection, chat_id: str, now: datetime) -> None:
    """An open attempt ends without a judgement; any other stays as it is."""
    if _move(connection, chat_id, "open", state="given_up", ended_at=now):
        store.change(connection, chat_id, turns_left=0)


def judged(connection: sa.Connection, chat_id: str, score: int, verdict: str, now: datetime) -> bool:
    """The judgement, once: a second one changes nothing."""
    state = "won" if score >= SUCCESS else "lost"
    return _move(connection, chat_id, "judging", state=state, score=score, verdict=verdict, ended_at=now)


def _open(connection: sa.Connection, chat_id: str, person_id: str, challenge_id: str, now: datetime, *, turns: int = 0) -> None:
    last = connection.execute(_LAST_NUMBER, {"challenge": challenge_id, "person": person_id}).scalar() or 0
    connection.execute(sa.insert(attempts), {
        "conversation_id": chat_id, "challenge": challenge_id, "number": last + 1, "state": "open", "turns": turns, "started_at": now,
    })  # fmt: skip


def _move(connection: sa.Connection, chat_id: str, before: str, **values: Any) -> bool:
    mine = (attempts.c.conversation_id == chat_id) & (attempts.c.state == before)
    return connection.execute(sa.update(attempts).where(mine).values(**values)).rowcount > 0

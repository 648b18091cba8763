"""Forget me: a person and everything that is held about them, everywhere, after two confirmations (WO-22, SM-90).

Each yes is a token that counts once, for its person and step. What the person said in groups loses its words there; what a space knows stays with the
space. The owner of the machine cannot be forgotten by a button: their files are the workspace itself.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from gateway import audit, scope_removal
from gateway.arrivals import early_edits, inbox
from gateway.audit import Actor
from gateway.person import Person
from memory import message_changes, one_yes, whole_conversations
from memory.database import Database
from memory.saved import moves
from memory.schema import conversations, messages, people
from memory.scopes import ROOT, parse_scope

OPEN_FOR = timedelta(minutes=10)
STEPS = (1, 2)

_OWN = sa.select(conversations.c.id, conversations.c.key).where(conversations.c.person_id == sa.bindparam("person"))
_ELSEWHERE = (
    sa.select(messages.c.id)
    .join(conversations, conversations.c.id == messages.c.conversation_id)
    .where(messages.c.author_person_id == sa.bindparam("person"), sa.func.coalesce(conversations.c.person_id, "") != sa.bindparam("person"))
)


class CannotForget(Exception):
    """The owner of the root scope: whoever runs the machine removes its files."""


class ForgetExpired(Exception):
    """No such question is open for this person and step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    token: str
    step: int


class ForgetMe:
    """`stop`: ends what runs in a chat; `changed` is told of the person that is no more; `wake_jobs`: the folder waits to be removed."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        stop: Callable[[str], Awaitable[object]],
        changed: Callable[[str], None],
        wake_jobs: Callable[[], None],
    ) -> None:
        self._db = db
        self._clock = clock
        self._stop = stop
        self._changed = changed
        self._wake_jobs = wake_jobs

    async def ask(self, person: Person) -> Question:
        """The first question; it changes nothing. Raises CannotForget."""
        if person.scope == str(ROOT):
            raise CannotForget("the owner's files are removed by the owner, not by the program")
        return await self._question(person, 1)

    async def confirm(self, by: Actor, person: Person, step: int, token: str) -> Question | None:
        """A yes: to the first question the second one follows; to the second the person is forgotten. Raises ForgetExpired."""
        now = self._clock()
        taken = await self._db.write(lambda connection: _take(connection, person, step, token, now))
        if not taken:
            raise ForgetExpired("there is nothing open to confirm: begin again")
        if step == 1:
            return await self._question(person, 2)
        for row in await self._db.read(lambda connection: connection.execute(_OWN, {"person": person.id}).all()):
            await self._stop(row.key)
        await self._db.write(lambda connection: _forget(connection, by, person, now))
        self._changed(person.id)
        self._wake_jobs()
        return None

    async def _question(self, person: Person, step: int) -> Question:
        token, now = secrets.token_urlsafe(24), self._clock()

        def ask(connection: sa.Connection) -> None:
            one_yes.ask(connection, token, person_id=person.id, about=_about(person), step=step, now=now, until=now + OPEN_FOR)

        await self._db.write(ask)
        return Question(token=token, step=step)


def _take(connection: sa.Connection, person: Person, step: int, token: str, now: datetime) -> bool:
    return one_yes.take(connection, token, person_id=person.id, about=_about(person), steps=[step], now=now) is not None


def _forget(connection: sa.Connection, by: Actor, person: Person, now: datetime) -> None:
    of = {"person": person.id}
    moves.forget_person(connection, person.id)
    for message_id in connection.execute(_ELSEWHERE, of).scalars().all():
        message_changes.forget(connection, message_id)
        inbox.forget_words(connection, message_id)
    early_edits.forget(connection, person.id)
    for row in connection.execute(_OWN, of).all():
        whole_conversations.delete(connection, row.id)
    scope_removal.order(connection, parse_scope(person.scope))
    audit.record(connection, by, "person.forget", at=now, target=person.id)
    connection.execute(sa.delete(people).where(people.c.id == person.id))


def _about(person: Person) -> str:
    return f"person:{person.id}"

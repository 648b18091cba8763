"""Saved memories forget along with the files: a person's wish reaches their rows and what the journal keeps of them (WD-92)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import sqlalchemy as sa

from memory.database import Database
from memory.forget_match import Held
from memory.saved import journal, moves, stored
from memory.saved.rows import ListKey, Memory
from memory.schema import people
from memory.scopes import Kind, Scope

_OWNERS = sa.select(people.c.id).where(people.c.scope == sa.bindparam("scope"))


class SavedForgetter:
    """A `Forgetter`. Pins go too: the person saw them in the list and said yes."""

    name = "saved"

    def __init__(self, *, db: Database, clock: Callable[[], datetime]) -> None:
        self._db = db
        self._clock = clock

    async def find(self, scope: Scope, held: Held) -> Sequence[str]:
        """The texts of the rows that would go."""

        def look(connection: sa.Connection) -> list[str]:
            return [memory.content for memory in _matching(connection, _lists_of(connection, scope), held)]

        return await self._db.read(look)

    async def forget(self, scope: Scope, held: Held) -> int:
        """How many rows went. What the journal held of such texts is erased, so no undo brings them back."""

        def remove(connection: sa.Connection) -> int:
            now = self._clock()
            keys = _lists_of(connection, scope)
            stored.lock(connection, keys)
            gone = _matching(connection, keys, held)
            stored.delete(connection, gone)
            for memory in gone:
                journal.void_row(connection, memory.id, now)
            journal.void_texts(connection, keys, held.in_text, now)
            return len(gone)

        return await self._db.write(remove)


def _lists_of(connection: sa.Connection, scope: Scope) -> list[ListKey]:
    """All lists of the people whose memory this is, or of the space."""
    if scope.kind is Kind.SPACE:
        return moves.lists_of_spaces(connection, [scope.id])
    return moves.lists_of_people(connection, connection.execute(_OWNERS, {"scope": str(scope)}).scalars().all())


def _matching(connection: sa.Connection, keys: Sequence[ListKey], held: Held) -> list[Memory]:
    return [memory for memory in stored.rows_of(connection, keys) if held.in_text(memory.content)]

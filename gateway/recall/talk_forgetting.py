"""Chunks and summaries of the talk forget along with the files (WD-92, RS-189): what says it goes, and is made anew without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sqlalchemy as sa

from memory.database import Database
from memory.forget_match import Held
from memory.recall import chunk_store
from memory.recall_schema import message_chunks, summaries
from memory.schema import messages
from memory.scopes import Scope

_CHATS = sa.select(messages.c.conversation_id).where(messages.c.scope == sa.bindparam("scope", type_=sa.Text)).distinct()
_SUMMARIES = sa.select(summaries.c.id, summaries.c.title, summaries.c.text, summaries.c.details).where(summaries.c.conversation_id.in_(_CHATS))
_CHUNKS = sa.select(message_chunks.c.id, message_chunks.c.text).where(message_chunks.c.conversation_id.in_(_CHATS))
_DROP = sa.delete(summaries).where(summaries.c.id.in_(sa.bindparam("ids", type_=sa.BigInteger, expanding=True)))


class TalkForgetter:
    """A `Forgetter`. `gone` is told when chunks went, so that the index of the talk follows."""

    name = "talk"

    def __init__(self, *, db: Database, changed: Callable[[str], object]) -> None:
        self._db = db
        self._changed = changed

    async def find(self, scope: Scope, held: Held) -> Sequence[str]:
        """The summaries that would go; chunks are only copies of messages, which are listed by themselves."""
        return await self._db.read(lambda connection: [text for _, text in _telling(connection, scope, held)])

    async def forget(self, scope: Scope, held: Held) -> int:
        """How many summaries went. Their messages count as uncovered again, and those that were forgotten are left out of what is made anew."""

        def remove(connection: sa.Connection) -> tuple[int, list[str]]:
            rows = _telling(connection, scope, held)
            connection.execute(_DROP, {"ids": [number for number, _ in rows]})
            copies = [row.id for row in connection.execute(_CHUNKS, {"scope": str(scope)}) if held.in_text(row.text)]
            chunk_store.drop(connection, copies)
            return len(rows), list(connection.execute(_CHATS, {"scope": str(scope)}).scalars()) if copies else []

        count, chats = await self._db.write(remove)
        for chat in chats:
            self._changed(chat)
        return count


def _telling(connection: sa.Connection, scope: Scope, held: Held) -> list[tuple[int, str]]:
    return [
        (row.id, row.text)
        for row in connection.execute(_SUMMARIES, {"scope": str(scope)})
        if held.in_text(row.text) or held.in_text(row.title) or held.in_json(row.details)
    ]

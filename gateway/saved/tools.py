"""The model's hand in the saved memories of one turn: each call one transaction, with its journal, and an answer by code (SM-50 to SM-55).

Nothing here is an error for the model: the reply goes on in all cases.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from agent.tools.memory_delete import MemoryDelete
from agent.tools.memory_save import List, MemorySave
from agent.tools.memory_update import MemoryUpdate
from agent.tools.port import Tool
from agent.turn import Record
from memory.database import Database
from memory.errors import StoreError
from memory.saved import hand, permits
from memory.saved.hand import Hand
from memory.saved.journal import Writer
from memory.saved.lists import Where
from memory.saved.rows import ListKey, ListKind, Memory, Origin
from memory.saved.writing import Limits, New, Outcome, Result

log = logging.getLogger(__name__)

_SAID: Mapping[Outcome, str] = {
    Outcome.SAVED: "It has the number {id}.",
    Outcome.UPDATED: "Number {id} says so now.",
    Outcome.DELETED: "Number {id} is gone.",
    Outcome.UNCHANGED: "Number {id} says exactly that already.",
    Outcome.MEMORY_OFF: "Nothing is remembered in this chat.",
    Outcome.LEARNING_OFF: "The person does not want you to learn from this talk.",
    Outcome.PRIVACY: "The person does not want anything about them to be remembered in shared places.",
    Outcome.BLACKLISTED: "Nothing is remembered of this person here.",
    Outcome.LIST_FULL: "The list is full and nothing in it may be forgotten for this: tell the person, who can make room in the memory panel.",
    Outcome.SEARCH_UNAVAILABLE: "The list is full, and which row may be forgotten cannot be told just now: try again in a later turn.",
    Outcome.TOO_LONG: "The text has {length} characters, at most {limit} are kept: say it shorter, or as two facts.",
    Outcome.EMPTY: "The text is empty; to remove a row use memory_delete.",
    Outcome.UNKNOWN_ID: "No row of that number stands before you.",
    Outcome.PINNED: "Only the person may change it, for they pinned it.",
    Outcome.CHANGED: "Somebody changed it meanwhile, and nothing was done. It says now: {present}",
    Outcome.NEEDS_YES: (
        "Nothing was changed, for text written by others entered this turn. Show the person what you would write and ask; once they say yes in a "
        "message of their own, do it."
    ),
    Outcome.LIST_NOT_ALLOWED: "That list is not yours to write here: of others you may save only to the list space, inside of a group.",
    Outcome.TOO_MANY_OPERATIONS: "This turn has changed enough: tell the person what is left.",
    Outcome.STORAGE_ERROR: "The memories cannot be written just now, and nothing was changed: tell the person, and try again in a later turn.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the hand of a turn goes by. `sent`: rows of its prompt; `visible`: ids of all that count in this place; `foreign`: whether text of others
    entered the run by now; `source`: as in a row."""

    writer: Writer
    where: Where
    sent: tuple[Memory, ...]
    visible: frozenset[int]
    search_ok: bool
    ageing_on: bool
    operations_max: int
    limits: Limits
    model: str
    record: Record
    foreign: Callable[[], bool]
    source: Mapping[str, Any]

    def hand(self) -> Hand:
        """As things are now: rows that gave way in the prompt were not sent (SM-28)."""
        gone = frozenset(self.record.rows_left_out)
        where = self.where
        return Hand(
            writer=self.writer,
            lists=permits.writable(where),
            sent={memory.id: memory.revision for memory in self.sent if memory.id not in gone},
            visible=self.visible,
            search_ok=self.search_ok,
            ageing_on=self.ageing_on,
            private=where.space is None or not where.open_channel,
            operations_max=self.operations_max,
            limits=self.limits,
            author_id=self.model,
        )


class TurnMemories:
    """`agent.tools.memory_save.Memories` for one turn. `on_written`: rows have changed (SM-55)."""

    def __init__(self, facts: Facts, *, db: Database, clock: Callable[[], datetime], on_written: Callable[[], None]) -> None:
        self._facts = facts
        self._db = db
        self._clock = clock
        self._on_written = on_written

    @property
    def tools(self) -> tuple[Tool, ...]:
        return (MemorySave(self), MemoryUpdate(self), MemoryDelete(self))

    async def save(self, content: str, kind: List) -> str:
        where = self._facts.where
        key = permits.target(where, ListKind(kind))
        if isinstance(key, Outcome):
            return told(Result(outcome=key))
        new = self._new(key, content)
        return await self._done(lambda connection: hand.save(connection, self._facts.hand(), new, self._clock()))

    async def update(self, memory_id: int, content: str) -> str:
        return await self._touched(lambda connection: hand.update(connection, self._facts.hand(), memory_id, content, self._clock()))

    async def delete(self, memory_id: int) -> str:
        return await self._touched(lambda connection: hand.delete(connection, self._facts.hand(), memory_id, self._clock()))

    def _new(self, key: ListKey, content: str) -> New:
        birth = permits.birth(self._facts.where, key.kind)
        return New(
            key=key,
            content=content,
            origin=Origin.TOOL,
            author_kind="model",
            author_id=self._facts.model,
            private_origin=birth.private_origin,
            channel_ids=birth.channel_ids,
            source=self._facts.source,
        )

    async def _touched(self, work: Callable[[sa.Connection], Result]) -> str:
        if not permits.writable(self._facts.where):  # then the reason for a save is the reason for everything
            closed = permits.target(self._facts.where, ListKind.CHARACTER)
            return told(Result(outcome=closed if isinstance(closed, Outcome) else Outcome.MEMORY_OFF))
        return await self._done(work)

    async def _done(self, work: Callable[[sa.Connection], Result]) -> str:
        if self._facts.foreign():
            return told(Result(outcome=Outcome.NEEDS_YES))
        try:
            result = await self._db.write(work)
        except StoreError as error:
            log.warning("a saved memory could not be written: %s", error)
            return told(Result(outcome=Outcome.STORAGE_ERROR))
        if result.outcome in (Outcome.SAVED, Outcome.UPDATED, Outcome.DELETED):
            self._on_written()
        return told(result)


def told(result: Result) -> str:
    """What the model reads: the code, and what it means for it."""
    sentence = _SAID[result.outcome].format(
        id=result.memory.id if result.memory else 0, length=result.length, limit=result.limit, present=result.present_text
    )
    room = " An older memory that nobody needed was forgotten for it." if result.outcome is Outcome.SAVED and result.victim else ""
    return f"{result.outcome}: {sentence}{room}"

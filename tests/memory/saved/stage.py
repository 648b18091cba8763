"""A database with two people, two characters and a space, and short words for what is done to their saved memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import sqlalchemy as sa

from memory.database import Database
from memory.saved import decay_store, hand, store, stored, undo
from memory.saved.hand import Hand
from memory.saved.journal import Writer
from memory.saved.rows import ListKey, Memory, character_list, global_list, space_list
from memory.saved.writing import Limits, New, Result
from memory.schema import characters, people, spaces
from tests.conftest import FakeClock

T = TypeVar("T")

ANN, BOB = "p-aaaaaaaaaa", "p-bbbbbbbbbb"
YUKI, SORA = "h-yuki", "h-sora"
DEN = "s-dddddddddd"
GLOBAL, MINE, PLACE = global_list(ANN), character_list(ANN, YUKI), space_list(DEN, YUKI)
SMALL = Limits(unpinned=4, pinned=2)  # so that a full list is a short test


def found(connection: sa.Connection, start: datetime) -> None:
    connection.execute(sa.insert(people), [{"id": each, "name": each[2:5], "scope": f"people/{each}", "created_at": start} for each in (ANN, BOB)])
    connection.execute(
        sa.insert(characters),
        [
            {"id": YUKI, "config_id": "yuki", "name": "雪", "created_at": start},
            {"id": SORA, "config_id": "sora", "name": "Sora", "created_at": start},
        ],
    )
    connection.execute(sa.insert(spaces), {"id": DEN, "channel": "discord", "account": "main", "platform_space_id": "9", "created_at": start})


@dataclass
class Stage:
    db: Database
    clock: FakeClock
    limits: Limits = SMALL
    attempt: int = 1

    @classmethod
    def of(cls, db: Database, clock: FakeClock, limits: Limits = SMALL) -> Stage:
        db.write_now(lambda connection: found(connection, clock()))
        return cls(db, clock, limits)

    def do(self, work: Callable[[sa.Connection], T]) -> T:
        return self.db.write_now(work)

    # -- people

    def new(self, content: str, key: ListKey = MINE, *, pinned: bool = False) -> New:
        return New(key=key, content=content, origin="panel", author_kind="person", author_id=ANN, protected=True, pinned=pinned)

    def add(self, content: str, key: ListKey = MINE, *, pinned: bool = False, evict: int | None = None, ageing_on: bool = True) -> Result:
        new = self.new(content, key, pinned=pinned)
        return self.do(lambda connection: store.add(connection, new, self.clock(), limits=self.limits, evict=evict, ageing_on=ageing_on))

    def edit(self, memory_id: int, content: str, based_on: str = "") -> Result:
        return self.do(lambda connection: store.change(connection, memory_id, content, self.clock(), by=ANN, limits=self.limits, based_on=based_on))

    def pin(self, memory_id: int) -> Result:
        return self.do(lambda connection: store.pin(connection, memory_id, self.clock(), by=ANN, limits=self.limits))

    def unpin(self, memory_id: int) -> Result:
        return self.do(lambda connection: store.unpin(connection, memory_id, self.clock(), by=ANN, limits=self.limits))

    def remove(self, memory_id: int) -> Result:
        return self.do(lambda connection: store.remove(connection, memory_id, self.clock()))

    # -- the AI

    def hand(self, turn: str = "t-1", *, search_ok: bool = True, ageing_on: bool = True, private: bool = True, operations_max: int = 10) -> Hand:
        """Everything in Ann's lists and the space was sent, as it is now."""
        rows = self.rows(GLOBAL, MINE, PLACE)
        return Hand(
            writer=Writer(actor="tool", turn_id=turn, attempt=self.attempt, conversation_id="c-1"),
            lists=frozenset({GLOBAL, MINE, PLACE}),
            sent={memory.id: memory.revision for memory in rows},
            visible=[memory.id for memory in rows],
            search_ok=search_ok,
            ageing_on=ageing_on,
            private=private,
            operations_max=operations_max,
            limits=self.limits,
            author_id="model",
        )

    def save(self, content: str, key: ListKey = MINE, *, by: Hand | None = None) -> Result:
        new = New(key=key, content=content, origin="tool", author_kind="model")
        use = by or self.hand()
        return self.do(lambda connection: hand.save(connection, use, new, self.clock()))

    def update(self, memory_id: int, content: str, *, by: Hand | None = None) -> Result:
        use = by or self.hand()
        return self.do(lambda connection: hand.update(connection, use, memory_id, content, self.clock()))

    def delete(self, memory_id: int, *, by: Hand | None = None) -> Result:
        use = by or self.hand()
        return self.do(lambda connection: hand.delete(connection, use, memory_id, self.clock()))

    def undo(self, turn: str = "t-1", attempt: int | None = None) -> undo.Undone:
        which = self.attempt if attempt is None else attempt
        return self.do(lambda connection: undo.undo_attempt(connection, turn, which, self.clock(), limits=self.limits))

    # -- time and rows

    def search(self, matched: Iterable[int] = (), may_tick: Iterable[int] = ()) -> None:
        self.do(lambda connection: decay_store.commit_search(connection, list(matched), list(may_tick), self.clock()))

    def sleep(self, *ids: int) -> None:
        """Seven days on which these are compared without a match."""
        for _ in range(7):
            self.clock.advance(days=1)
            self.search(may_tick=ids)

    def rows(self, *keys: ListKey) -> list[Memory]:
        return self.do(lambda connection: stored.rows_of(connection, keys))

    def row(self, memory_id: int) -> Memory | None:
        return self.do(lambda connection: stored.row(connection, memory_id))

    def texts(self, key: ListKey = MINE) -> list[str]:
        return [memory.content for memory in self.rows(key)]

    def tool_row(self, content: str, key: ListKey = MINE) -> int:
        """A plain row by the AI, of which no journal tells any more."""
        return self.tool_rows([content], key)[0]

    def tool_rows(self, contents: Iterable[str], key: ListKey = MINE) -> list[int]:
        news = [New(key=key, content=content, origin="tool", author_kind="model", author_id="model") for content in contents]
        return self.do(lambda connection: [store.insert_new(connection, new, self.clock()).id for new in news])

    def fill(self, key: ListKey = MINE, *, asleep: bool = True) -> list[int]:
        """A list full of plain rows."""
        free = self.limits.unpinned - sum(not memory.pinned for memory in self.rows(key))
        ids = self.tool_rows((f"filler {at} {key}" for at in range(free)), key)
        if asleep:
            self.sleep(*ids)
        return ids

"""Whatever is done in whatever order, the invariants of saved memory hold after each step (T25)."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory import vectors
from memory.database import Database, sqlite_url
from memory.index_schema import vectors as vector_rows
from memory.saved import clearing, moves
from memory.saved.journal import Op
from memory.saved.rows import ListKey
from memory.saved.writing import Limits, Outcome
from memory.saved_schema import memories, memory_journal
from tests.conftest import FakeClock
from tests.memory.saved.stage import ANN, GLOBAL, MINE, PLACE, YUKI, Stage

LIMITS = Limits(unpinned=3, pinned=2)
KEYS = (GLOBAL, MINE, PLACE)
WORDS = [*"abcdef", "雪", "茶"]


class Run:
    """One history, with what must hold after each of its steps."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.turn = 1
        self.lifted: set[ListKey] = set()  # above a cap by an undo or a move, which may be (SM-6)

    def some(self, at: int) -> int:
        rows = self.stage.rows(*KEYS)
        return rows[at % len(rows)].id if rows else 0

    def save(self, at: int, word: str) -> None:
        key = KEYS[at % 3]
        before = {memory.id: memory for memory in self.stage.rows(key)}
        result = self.stage.save(word, key, by=self.stage.hand(f"t-{self.turn}"))
        gone = before.keys() - {memory.id for memory in self.stage.rows(key)}
        assert len([memory for memory in self.stage.rows(key) if not memory.pinned]) <= max(
            LIMITS.unpinned, len([memory for memory in before.values() if not memory.pinned])
        )
        assert gone == ({result.victim.id} if result.outcome is Outcome.SAVED and result.victim else set())
        assert all(before[each].dormant and not before[each].protected and key is not GLOBAL for each in gone)

    def update(self, at: int, word: str) -> None:
        pins = [memory for memory in self.stage.rows(*KEYS) if memory.pinned]
        self.stage.update(self.some(at), word, by=self.stage.hand(f"t-{self.turn}"))
        assert [memory for memory in self.stage.rows(*KEYS) if memory.pinned] == pins

    def delete(self, at: int, _word: str) -> None:
        pins = [memory for memory in self.stage.rows(*KEYS) if memory.pinned]
        self.stage.delete(self.some(at), by=self.stage.hand(f"t-{self.turn}"))
        assert [memory for memory in self.stage.rows(*KEYS) if memory.pinned] == pins

    def edit(self, at: int, word: str) -> None:
        self.stage.edit(self.some(at), word)

    def add(self, at: int, word: str) -> None:
        self.stage.add(word, KEYS[at % 3], pinned=at % 2 == 0)

    def remove(self, at: int, _word: str) -> None:
        self.stage.remove(self.some(at))

    def pin(self, at: int, _word: str) -> None:
        held = {memory.id for memory in self.stage.rows(*KEYS) if memory.pinned}
        self.stage.pin(self.some(at))
        for key in KEYS:
            pins = [memory for memory in self.stage.rows(key) if memory.pinned]
            assert len(pins) <= LIMITS.pinned or {memory.id for memory in pins} <= held

    def unpin(self, at: int, _word: str) -> None:
        self.stage.unpin(self.some(at))

    def match(self, at: int, _word: str) -> None:
        self.stage.search(matched=[self.some(at)], may_tick=[memory.id for memory in self.stage.rows(*KEYS)])

    def days(self, at: int, _word: str) -> None:
        for _ in range(at % 9):
            self.stage.clock.advance(days=1)
            self.stage.search(may_tick=[memory.id for memory in self.stage.rows(*KEYS)])

    def regenerate(self, _at: int, _word: str) -> None:
        pins = [memory for memory in self.stage.rows(*KEYS) if memory.pinned]
        self.lifted |= {memory.key for memory in self.stage.undo(f"t-{self.turn}").restored}
        assert not self.stage.undo(f"t-{self.turn}")
        assert [memory for memory in self.stage.rows(*KEYS) if memory.pinned] == pins
        self.stage.attempt += 1

    def next_turn(self, _at: int, _word: str) -> None:
        self.turn += 1
        self.stage.attempt = 1

    def clear(self, at: int, _word: str) -> None:
        key = KEYS[at % 3]
        question = self.stage.do(lambda connection: clearing.ask(connection, ANN, key, self.stage.clock()))
        self.stage.do(lambda connection: clearing.clear(connection, question.token, ANN, key, self.stage.clock()))
        assert all(memory.pinned for memory in self.stage.rows(key))

    def lose_character(self, _at: int, _word: str) -> None:
        texts = sorted(memory.content for memory in self.stage.rows(GLOBAL, MINE))
        self.stage.do(lambda connection: moves.delete_character(connection, YUKI, self.stage.clock()))
        self.stage.do(lambda connection: moves.return_character(connection, YUKI))
        assert sorted(memory.content for memory in self.stage.rows(GLOBAL, MINE)) == texts
        self.lifted.add(GLOBAL)

    def check(self) -> None:
        rows = self.stage.rows(*KEYS)
        assert not [memory for memory in rows if memory.pinned and (memory.dormant or not memory.protected)]
        assert all(0 <= memory.unused_days <= 7 and memory.dormant == (memory.unused_days == 7) for memory in rows if not memory.pinned)
        for key in set(KEYS) - self.lifted:
            here = [memory for memory in rows if memory.key == key]
            assert sum(memory.pinned for memory in here) <= LIMITS.pinned
            assert sum(not memory.pinned for memory in here) <= LIMITS.unpinned
        self.stage.do(self._vectors_are_those_of_rows)
        self.stage.do(self._every_work_of_the_ai_is_journalled)

    def _vectors_are_those_of_rows(self, connection: sa.Connection) -> None:
        """None left over; then the background makes those that are missing."""
        live = set(connection.execute(sa.select(memories.c.content_hash)).scalars())
        assert set(connection.execute(sa.select(vector_rows.c.text_hash)).scalars()) <= live
        vectors.put(connection, "f", {each: np.ones(2, np.float32) for each in live})

    def _every_work_of_the_ai_is_journalled(self, connection: sa.Connection) -> None:
        saved = connection.execute(sa.select(memories.c.id).where(memories.c.origin == "tool")).scalars()
        told = connection.execute(sa.select(memory_journal.c.memory_id).where(memory_journal.c.op == Op.CREATE)).scalars()
        assert set(saved) <= set(told)


STEPS: tuple[Callable[[Run, int, str], None], ...] = (
    Run.save,
    Run.save,
    Run.update,
    Run.delete,
    Run.edit,
    Run.add,
    Run.remove,
    Run.pin,
    Run.unpin,
    Run.match,
    Run.days,
    Run.regenerate,
    Run.next_turn,
    Run.clear,
    Run.lose_character,
)
HISTORIES = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 30), st.sampled_from(WORDS)), min_size=5, max_size=25)


@pytest.mark.rule("SM-2", "SM-6", "SM-45", "SM-48", "SM-64", "SM-73", "SM-74", "SM-75")
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=HISTORIES)
def test_the_invariants_hold_after_every_step_of_any_history(
    history: list[tuple[Callable[[Run, int, str], None], int, str]], empty_sqlite: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run.db"
    for old in tmp_path.glob("run.db*"):
        old.unlink()
    shutil.copy(empty_sqlite, path)
    database = Database(sqlite_url(path))
    try:
        follow(Run(Stage.of(database, FakeClock(), LIMITS)), history)
    finally:
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(asyncio.run, database.close()).result()


@pytest.mark.rule("SM-2", "SM-45", "SM-64", "SM-73", "SM-75")
def test_the_invariants_hold_on_both_databases(database: Database, clock: FakeClock) -> None:
    stage = Stage.of(database, clock, LIMITS)
    once = [(step, at, WORDS[at % len(WORDS)]) for at, step in enumerate(STEPS * 2)]
    follow(Run(stage), [*once, *once[::-1]])


def follow(run: Run, history: list[tuple[Callable[[Run, int, str], None], int, str]]) -> None:
    for step, at, word in history:
        step(run, at, word)
        run.check()

"""A dream that is cut short at any point leaves the old MEMORY.md or the new one, and comes to its end after the restart (A10)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest
import sqlalchemy as sa

from memory.database import Database, sqlite_url
from memory.file_schema import file_changes
from memory.layout import CURATED
from memory.lines import line_hash
from memory.scopes import ROOT, Scope
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads
from tests.conftest import FakeClock
from tests.gateway.dreams import Dreamer, answer, entry, shown
from tests.gateway.nights import OWNER, utc

T = TypeVar("T")
pytestmark = pytest.mark.rule("WD-82", "WD-83", "WD-85")
NIGHT = "2026-03-08"


class Killed(BaseException):
    """Stands for SIGKILL at one point: nothing of the program catches it."""


class Steps:
    """Counts the durable steps and kills before or behind one of them."""

    def __init__(self) -> None:
        self.count, self.deadly = 0, -1

    def passed(self) -> None:
        self.count += 1
        if self.count - 1 == self.deadly:
            raise Killed


class MortalDatabase(Database):
    def __init__(self, url: str, steps: Steps) -> None:
        super().__init__(url)
        self.steps = steps

    async def write(self, work: Callable[[sa.Connection], T]) -> T:
        self.steps.passed()
        done = await super().write(work)
        self.steps.passed()
        return done


class MortalFiles(WorkspaceThreads):
    def __init__(self, workspace: Workspace, steps: Steps) -> None:
        super().__init__(workspace)
        self.steps = steps

    async def write(self, scope: Scope, work: Callable[[Workspace], T]) -> T:
        self.steps.passed()
        done = await super().write(scope, work)
        self.steps.passed()
        return done


class Round:
    """One night over a fresh folder, killed at one step."""

    def __init__(self, empty: Path, folder: Path, clock: FakeClock) -> None:
        folder.mkdir()
        shutil.copy(empty, folder / "yumegate.db")
        clock.now = utc("2026-03-08T23:57")
        self.steps = Steps()
        self.db = MortalDatabase(sqlite_url(folder / "yumegate.db"), self.steps)
        self.house = Dreamer(self.db, folder, clock)
        self.files = MortalFiles(self.house.workspace, self.steps)
        self.house.tie(self.db, self.files)
        self.house.script = lambda request: answer(
            entry("Lives in Basel", old=[shown(request).line("Bern")], evidence=[shown(request).note("Basel")]),
            dropped={shown(request).line("tea"): "outdated"},
            keep=shown(request),
        )

    async def prepare(self) -> None:
        await self.house.person()
        await self.house.remembers("Lives in Bern", "Likes tea", "Has a sister", "Plays chess")
        await self.house.notes(NIGHT, "Moved to Basel")

    async def killed_at(self, step: int) -> bool:
        self.steps.count, self.steps.deadly = 0, step
        try:
            await self.house.dream(NIGHT)
        except Killed:
            return True
        finally:
            self.steps.deadly = -1
        return False

    async def restart(self) -> None:
        """Another process takes the job over when its lease has ended; whatever the first one knew is gone."""
        self.house.tie(self.db, self.files)
        self.house.clock.advance(timedelta(minutes=5))
        await self.house.dream(NIGHT)

    async def close(self) -> None:
        await self.files.close()
        await self.house.close()
        await self.db.close()


OLD = ["Lives in Bern", "Likes tea", "Has a sister", "Plays chess"]
NEW = ["Lives in Basel", "Has a sister", "Plays chess"]


@pytest.mark.rule("WD-16")
async def test_a_kill_before_or_behind_any_step_leaves_old_or_new_and_the_restart_ends_it(
    empty_sqlite: Path, tmp_path: Path, clock: FakeClock
) -> None:
    step, killed = 0, True
    calls: set[int] = set()
    while killed:
        round_ = Round(empty_sqlite, tmp_path / str(step), clock)
        await round_.prepare()
        killed = await round_.killed_at(step)
        house = round_.house
        assert house.memory_lines() in (OLD, NEW)
        if house.memory_lines() == OLD:
            assert not any(line.used_by for line in (await house.lines(NIGHT)).values())
        await round_.restart()
        assert house.memory_lines() == NEW, step
        assert all(line.used_by for line in (await house.lines(NIGHT)).values())
        assert set(await house.rows()) == {line_hash(text) for text in NEW}
        assert [dream.state for dream in await house.dreams_of()] == ["done"]
        assert len(await house.values(file_changes)) == 1
        assert house.diary(NIGHT).count("## 23:") + house.diary(NIGHT).count("## 00:") == 1
        assert house.diary(NIGHT).count("Lives in Bern → Lives in Basel") == 1
        assert ("root", CURATED) in house.written
        revision = house.workspace.revisions(ROOT, CURATED)
        assert len(revision) == 1
        undone = await house.undoing.undo(ROOT)
        assert undone is not None
        assert undone.whole
        assert house.memory_lines() == OLD
        calls.add(house.calls)
        await round_.close()
        step += 1
    assert step > 15
    assert calls == {1, 2}  # a kill while the answer was on its way pays twice; behind that, never


async def test_an_edit_between_the_kill_and_the_restart_is_kept_and_the_dream_runs_again(
    empty_sqlite: Path, tmp_path: Path, clock: FakeClock
) -> None:
    """N5: neither the old text nor the new one; a person was there."""
    step, killed = 0, True
    while killed:
        round_ = Round(empty_sqlite, tmp_path / str(step), clock)
        await round_.prepare()
        killed = await round_.killed_at(step)
        house = round_.house
        house.write(CURATED, house.memory() + "Written in the night\n")
        await round_.restart()
        assert house.memory_lines() == [*NEW, "Written in the night"], step
        assert all(line.used_by for line in (await house.lines(NIGHT)).values())
        states = [dream.state for dream in await house.dreams_of()]
        assert set(states) == {"done"}
        await round_.close()
        step += 1
    assert step > 15


async def test_a_yes_that_was_cut_short_is_carried_out_at_the_start(empty_sqlite: Path, tmp_path: Path, clock: FakeClock) -> None:
    step, killed = 0, True
    while killed:
        killed = False
        round_ = Round(empty_sqlite, tmp_path / str(step), clock)
        await round_.prepare()
        house = round_.house
        house.script = lambda request: answer(dropped=dict.fromkeys(shown(request).old, "outdated"))
        house.write(CURATED, house.memory() + "Mine\n")
        await house.dream(NIGHT)
        [proposal] = await house.open()
        round_.steps.count, round_.steps.deadly = 0, step
        try:
            await house.dreaming.apply(ROOT, proposal.id, OWNER)
        except Killed:
            killed = True
        round_.steps.deadly = -1
        house.tie(round_.db, round_.files)
        await house.dreaming.recover()
        if await house.open():  # killed before anything was staged
            assert house.memory_lines() == [*OLD, "Mine"]
            await house.dreaming.apply(ROOT, proposal.id, OWNER)
        assert house.memory_lines() == ["Mine"]
        assert await house.open() == []
        assert house.diary(NIGHT).count("Likes tea") == 1
        await round_.close()
        step += 1
    assert step > 6


@pytest.mark.slow
@pytest.mark.rule("WD-16", "WD-82")
def test_sigkill_at_every_step_of_the_write(empty_sqlite: Path, tmp_path: Path) -> None:
    """At least fifty kills of a real process (A10)."""
    order = [sys.executable, "-m", "tests.gateway.killed_dream", str(empty_sqlite), str(tmp_path)]
    done = subprocess.run(order, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) >= 50

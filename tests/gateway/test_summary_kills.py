"""A kill at any point of a summary leads to the same text, once: at every step of the work, and by SIGKILL at any moment."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa

from gateway import trimming
from memory import blocks, conversations, message_changes
from memory.database import Database, sqlite_url
from memory.lines import entries
from memory.scopes import Scope
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads
from tests.conftest import FakeClock
from tests.gateway import killed_summary
from tests.gateway.nights import Night, utc

T = TypeVar("T")
pytestmark = pytest.mark.rule("WD-18", "WD-47", "WD-50", "WD-98")


class Killed(BaseException):
    """Stands for SIGKILL at one point: nothing of the program catches it."""


class Steps:
    """Counts the durable steps and kills behind one of them, which is before the next one."""

    def __init__(self) -> None:
        self.count = 0
        self.deadly = -1

    def passed(self) -> None:
        self.count += 1
        if self.count == self.deadly:
            raise Killed


class MortalDatabase(Database):
    def __init__(self, url: str, steps: Steps) -> None:
        super().__init__(url)
        self.steps = steps

    async def write(self, work: Callable[[sa.Connection], T]) -> T:
        done = await super().write(work)
        self.steps.passed()
        return done


class MortalFiles(WorkspaceThreads):
    def __init__(self, workspace: Workspace, steps: Steps) -> None:
        super().__init__(workspace)
        self.steps = steps

    async def write(self, scope: Scope, work: Callable[[Workspace], T]) -> T:
        done = await super().write(scope, work)
        self.steps.passed()
        return done


def house(db: MortalDatabase, folder: Path, clock: FakeClock) -> Night:
    """One that dies at the deadly step; another one over the same store and files goes on."""
    db.steps.deadly = -1
    return Night(db, folder, clock, make_files=partial(MortalFiles, steps=db.steps))


async def talk(night: Night) -> str:
    chat = await night.chat()
    for n, words in enumerate(("We meet at the station", "Bring the blue bag", "The train is red")):
        await night.says(chat, words, at=utc(f"2026-03-08T23:5{n}"))
    last = await night.says(chat, "It is Monday now", at=utc("2026-03-09T00:01"))
    await night.leaves(chat, 1, last.seq)
    await night.says(chat, "Said after the trim", at=utc("2026-03-09T00:02"))
    return chat


async def state(night: Night, chat: str) -> object:
    """Everything that must come out the same: both files, whose lines they are, what is covered, what stands in the context."""
    covered = sorted((row.first_seq, row.last_seq, row.local_date, row.section, row.stale) for row in await night.covered())
    days = ("2026-03-08", "2026-03-09")
    lines = [sorted((row.hash, row.origin, len(row.sources)) for row in (await night.lines(day)).values()) for day in days]
    return [night.day(day) for day in days], lines, covered, await night.db.read(lambda c: blocks.standing(c, chat).text)


async def finish(night: Night) -> None:
    night.clock.now = utc("2026-03-09T23:59:30")
    await night.look()
    await night.run()


@pytest.mark.parametrize("stale", [False, True], ids=["new", "edited"])
async def test_a_kill_at_any_step_leads_to_the_same_text_once(empty_sqlite: Path, tmp_path: Path, clock: FakeClock, stale: bool) -> None:
    """The whole way of a trim and a night, killed behind each durable step in turn."""
    wanted: object = None
    deadly = 0
    while True:
        folder = tmp_path / f"round{deadly}"
        folder.mkdir()
        shutil.copy(empty_sqlite, folder / "yumegate.db")
        clock.now, steps = utc("2026-03-08T20:00"), Steps()
        db = MortalDatabase(sqlite_url(folder / "yumegate.db"), steps)
        first = house(db, folder, clock)
        chat = await talk(first)
        if stale:
            await first.run()
            await finish(first)
            clock.now = utc("2026-03-09T23:59:40")
            await db.write(lambda c, chat=chat: edit(c, chat, clock))
        killed = False
        steps.count, steps.deadly = 0, deadly
        try:
            if stale:
                clock.now = utc("2026-03-10T23:59:30")
                await first.look()
                await first.run()
            else:
                await first.run()
                await finish(first)
        except Killed:
            killed = True
        second = house(db, folder, clock)
        for _ in range(3):
            clock.advance(timedelta(seconds=130))
            await second.run()
        if stale:
            clock.now = utc("2026-03-10T23:59:50")
            await second.look()
            await second.run()
        else:
            await finish(second)
        clock.advance(timedelta(minutes=5))
        await second.run()
        found = await state(second, chat)
        wanted = wanted or found
        assert found == wanted, f"killed at step {deadly}"
        for night in (first, second):
            await night.close()
        await db.close()
        deadly += 1
        if deadly > 1 and not killed:
            break
    assert deadly > 12
    assert "Said: Bring the red bag" in str(wanted) if stale else "Said: Bring the blue bag" in str(wanted)


def edit(c: sa.Connection, chat: str, clock: FakeClock) -> None:
    found = conversations.page(c, chat, before=2**62, limit=50)[1]
    message_changes.correct(c, found, "Bring the red bag", clock())
    trimming.changed(c, chat, found.seq, found.seq, clock())


def killed_child(nursery: Any, folder: Path, hours: int, questions: int, seconds: float) -> None:
    """A child that is killed `seconds` after it asked the model so many questions, or has ended: by its own steps, for on a busy machine every kill
    by the clock would meet the same job, and five of them park it."""
    ours, theirs = nursery.Pipe()
    child = nursery.Process(target=killed_summary.main, args=(folder, hours, theirs), daemon=True)
    child.start()
    theirs.close()
    try:
        for _ in range(1 + questions):
            ours.recv()
    except EOFError:
        pass
    time.sleep(seconds)
    child.kill()
    child.join()
    child.close()
    ours.close()


async def test_sigkill_at_any_moment_loses_and_doubles_nothing(sqlite: Database, tmp_path: Path, clock: FakeClock, nursery: Any) -> None:
    night = Night(sqlite, tmp_path, clock)
    for letter in "abcdefgh":
        chat = await night.chat(title=f"Talk {letter}")
        for word in "qwertz":
            said = await night.says(chat, f"Word {word} in {letter}")
        await night.leaves(chat, 1, said.seq)
        await night.says(chat, f"And after it in {letter}")
    chance = random.Random(7)
    for hours in range(24, 24 * 7, 24):
        await asyncio.to_thread(killed_child, nursery, tmp_path, hours, chance.randint(0, 2), chance.uniform(0.0, 0.02))
    clock.advance(days=8)
    for _ in range(8):  # what a kill left half done may wait its turn
        await night.look()
        await night.run()
        clock.advance(hours=1)
    text = night.day("2026-03-14")
    said = [entry.text for entry in entries(text)]
    assert len(said) == len(set(said)) == 8 * 7
    assert set((await night.times_covered()).values()) == {1}
    assert set(await night.lines("2026-03-14")) == {entry.hash for entry in entries(text)}
    await night.close()

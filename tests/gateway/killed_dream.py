"""Dreams that are killed at every step of their write (WD-82, WD-83, A10); run by `test_dream_kills`, alone in a process of its own.

At each moment of a night a fork is killed by SIGKILL; another fork then goes on where it left off, and the folder is looked at after both.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply
from memory.database import Database, sqlite_url
from memory.file_schema import file_changes
from memory.lines import line_hash
from tests.conftest import FakeClock
from tests.gateway.dreams import Dreamer, promote
from tests.gateway.nights import utc

T = TypeVar("T")
NIGHT = "2026-03-08"
OLD = "- Likes tea\nMy own words\n"
NEW = "- Likes tea\nMy own words\n\n- Likes coffee\n"
STEPS = ("open", "write", "fsync", "link", "rename", "unlink", "mkdir")


class Moments:
    """Counts what happens once the model has answered, and kills the process at moment `fatal`."""

    def __init__(self, fatal: int) -> None:
        self.fatal, self.passed, self.counts = fatal, 0, False

    def answered(self, request: ModelRequest) -> Reply:
        self.counts = True
        return promote(request)

    def __call__(self) -> None:
        self.passed += self.counts
        if self.counts and self.passed - 1 == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)


class MortalDatabase(Database):
    moments: Moments

    def write_now(self, work: Callable[[sa.Connection], T]) -> T:
        def deadly(connection: sa.Connection) -> T:
            done = work(connection)
            self.moments()  # before the commit
            return done

        self.moments()
        done = super().write_now(deadly)
        self.moments()
        return done


def arm(moments: Moments) -> None:
    def wrapped(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            moments()
            done = real(*args, **named)
            moments()
            return done

        return call

    for name in STEPS:
        setattr(os, name, wrapped(getattr(os, name)))


async def night(folder: Path, hours: int, moments: Moments) -> None:
    clock = FakeClock(utc(f"{NIGHT}T23:57"))
    clock.advance(hours=hours)
    db = MortalDatabase(sqlite_url(folder / "yumegate.db"))
    db.moments = Moments(-1)
    house = Dreamer(db, folder, clock, moments.answered)
    arm(moments)
    db.moments = moments
    await house.dream(NIGHT)
    await house.close()
    await db.close()


async def prepare(folder: Path) -> None:
    db = Database(sqlite_url(folder / "yumegate.db"))
    house = Dreamer(db, folder, FakeClock(utc(f"{NIGHT}T20:00")))
    await house.person()
    await house.remembers("Likes tea")
    house.write("MEMORY.md", OLD)
    await house.notes(NIGHT, "Likes coffee")
    await house.close()
    await db.close()


def child(work: Callable[[], None]) -> bool:
    """Whether it came to its end."""
    process = os.fork()
    if process == 0:
        leave = os._exit
        try:
            work()
            leave(0)
        finally:
            leave(1)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert code in (0, -signal.SIGKILL), f"the child failed by itself ({code})"
    return code == 0


async def look(folder: Path) -> tuple[str, str, bool, int, list[str]]:
    """The memory, the diary, whether the note is used, how many changes are booked, the states of dreams."""
    db = Database(sqlite_url(folder / "yumegate.db"))
    house = Dreamer(db, folder, FakeClock())
    used = bool((await house.lines(NIGHT))[line_hash("Likes coffee")].used_by)
    booked = len(await house.values(file_changes))
    found = house.memory(), house.diary(NIGHT), used, booked, [dream.state for dream in await house.dreams_of()]
    if booked:
        assert line_hash("Likes coffee") in await house.rows()
    await house.close()
    await db.close()
    return found


def main(empty: Path, folder: Path) -> None:
    """Prints how many kills there were."""
    kills = 0
    seen: set[str] = set()
    start = folder / "start"
    start.mkdir()
    shutil.copy(empty, start / "yumegate.db")
    child(lambda: asyncio.run(prepare(start)))
    while True:
        place = folder / str(kills)
        shutil.copytree(start, place)
        ended = child(lambda place=place, fatal=kills: asyncio.run(night(place, 0, Moments(fatal))))
        memory, diary, used, booked, _ = asyncio.run(look(place))
        seen.add(memory)
        assert memory in (OLD, NEW), memory
        assert used == bool(booked)
        assert not (used and memory == OLD), "a note counts as used before the file is durable"
        assert not (diary and not booked)
        child(lambda place=place: asyncio.run(night(place, 1, Moments(-1))))
        memory, diary, used, booked, states = asyncio.run(look(place))
        assert (memory, used, booked, states) == (NEW, True, 1, ["done"]), (kills, memory, used, booked, states)
        assert diary.count("Likes coffee") == 1, diary
        if ended:
            break
        kills += 1
    assert seen == {OLD, NEW}
    sys.stdout.write(f"{kills}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

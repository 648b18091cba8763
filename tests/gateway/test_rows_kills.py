"""A kill at any point of the jobs that summarise chats leads to the same rows, each message in one of them, and pays for no answer twice (RS-191)."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from gateway import trimming
from memory import conversations, message_changes
from memory.database import sqlite_url
from memory.recall.summary_rows import State
from memory.schema import job_parts
from tests.conftest import FakeClock
from tests.gateway.rows_house import RowsHouse, utc_now_at
from tests.gateway.test_summary_kills import Killed, MortalDatabase, Steps

pytestmark = [pytest.mark.slow, pytest.mark.rule("RS-43", "RS-49", "RS-190", "RS-191")]

Work = Callable[[RowsHouse, str], Awaitable[None]]


async def rolling_talk(house: RowsHouse, chat: str) -> None:
    numbers = [(await house.says(chat, f"word{n}")).seq for n in range(25)]
    found = await house.conversation(chat)

    def leave(c: sa.Connection) -> None:
        trimming.left(c, found, "root", numbers[0], numbers[-1], house.clock(), into="rolling")
        conversations.move_edge(c, chat, numbers[-1])

    await house.db.write(leave)


async def rolling_work(house: RowsHouse, _chat: str) -> None:
    await house.run("rolling")


async def calendar_talk(house: RowsHouse, chat: str) -> None:
    for day in range(2, 10):
        await house.says(chat, f"on the {day}th", at=utc_now_at(f"2026-03-{day:02}T12:00"))


async def calendar_work(house: RowsHouse, _chat: str) -> None:
    house.clock.now = max(house.clock.now, utc_now_at("2026-03-10T10:00"))
    await house.plan()
    while await house.run("day-row", "fold", "restate-summaries"):
        await house.plan()


async def edited_talk(house: RowsHouse, chat: str) -> None:
    await calendar_talk(house, chat)
    await calendar_work(house, chat)
    house.clock.now = utc_now_at("2026-03-10T12:00")
    messages = await house.db.read(lambda c: conversations.page(c, chat, before=2**62, limit=50))
    await house.db.write(lambda c: message_changes.correct(c, messages[2], "corrected", house.clock()))
    await house.db.write(lambda c: message_changes.forget(c, messages[5].id))
    house.clock.now = utc_now_at("2026-03-10T13:00")


@pytest.mark.parametrize(
    ("profile", "talk", "work"),
    [("companion", rolling_talk, rolling_work), ("calendar", calendar_talk, calendar_work), ("calendar", edited_talk, calendar_work)],
    ids=["rolling", "days", "restated"],
)
async def test_a_kill_at_any_step_leads_to_the_same_rows(
    empty_sqlite: Path, tmp_path: Path, clock: FakeClock, profile: str, talk: Work, work: Work
) -> None:
    wanted: object = None
    calls, deadly = 0, 0
    while True:
        folder = tmp_path / f"round{deadly}"
        folder.mkdir()
        shutil.copy(empty_sqlite, folder / "yumegate.db")
        clock.now, steps = utc_now_at("2026-03-09T12:00"), Steps()
        db = MortalDatabase(sqlite_url(folder / "yumegate.db"), steps)
        first = house(db, folder, clock, profile)
        await first.person()
        chat = await first.made()
        await talk(first, chat)
        before, killed = first.calls, False
        steps.count, steps.deadly = 0, deadly
        try:
            await work(first, chat)
        except Killed:
            killed = True
        second = house(db, folder, clock, profile)
        for _ in range(3):
            clock.advance(timedelta(seconds=130))
            await work(second, chat)
        found = await state(second, chat)
        wanted, calls = wanted or found, calls or first.calls - before
        assert found == wanted, f"killed at step {deadly}"
        assert first.calls - before + second.calls <= calls + 1, f"an answer was paid for twice at step {deadly}"
        for each in (first, second):
            await each.close()
        await db.close()
        deadly += 1
        if deadly > 1 and not killed:
            break
    assert deadly > 8


def house(db: MortalDatabase, folder: Path, clock: FakeClock, profile: str) -> RowsHouse:
    """One that dies at the deadly step; another one over the same store goes on."""
    db.steps.deadly = -1
    return RowsHouse(db, folder, clock, profile=profile, companion={"messages": 10, "block": 5})


async def state(house: RowsHouse, chat: str) -> object:
    """Everything that must come out the same."""
    rows = [(row.kind, row.state, row.text, row.local_date, row.part, row.stale) for row in await house.rows(chat, states=tuple(State)) if row.text]
    return sorted(map(str, rows)), await house.stood_for(chat), await house.stands(chat), await house.count(job_parts)

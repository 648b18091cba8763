"""A kill at any step of a backfill or a merge of entries leads to the same entries, each message in one of them, and pays for no answer twice."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from gateway.entries import jobs as entries
from memory.database import sqlite_url
from memory.recall import entry_rows, summary_rows
from memory.recall.kinds import Kind
from memory.recall.summary_rows import NewSummary, State
from memory.schema import job_parts
from tests.conftest import FakeClock
from tests.gateway.entry_house import EntryHouse
from tests.gateway.nights import OWNER
from tests.gateway.rows_house import utc_now_at
from tests.gateway.test_summary_kills import Killed, MortalDatabase, Steps

pytestmark = [pytest.mark.slow, pytest.mark.case("AT-13"), pytest.mark.rule("RS-87", "RS-95", "RS-75", "RS-191")]

Prepare = Callable[[EntryHouse, str], Awaitable[None]]


async def old_chat(house: EntryHouse, chat: str) -> None:
    await house.talk(chat, 24)
    await house.configure(chat, last_n=10)
    await house.desk.backfill(chat)


async def too_many(house: EntryHouse, chat: str) -> None:
    await house.talk(chat, 48)
    at = list((await house.numbers(chat)).values())

    def store(c: sa.Connection) -> None:
        for n in range(24):
            seqs = at[2 * n : 2 * n + 2]
            new = NewSummary(conversation_id=chat, kind=Kind.ENTRY, text=f"part {n}", sources=seqs, origin=entry_rows.AUTOMATIC)
            summary_rows.add(c, new, house.clock())

    await house.db.write(store)
    await house.desk.switch(chat, OWNER, [], enabled=True)


@pytest.mark.parametrize(("prepare", "room"), [(old_chat, 6_500), (too_many, 64)], ids=["backfill", "merge"])
async def test_a_kill_at_any_step_leads_to_the_same_entries(
    empty_sqlite: Path, tmp_path: Path, clock: FakeClock, prepare: Prepare, room: int
) -> None:
    wanted: object = None
    calls, deadly = 0, 0
    while True:
        folder = tmp_path / f"round{deadly}"
        folder.mkdir()
        shutil.copy(empty_sqlite, folder / "yumegate.db")
        clock.now, steps = utc_now_at("2026-03-09T12:00"), Steps()
        db = MortalDatabase(sqlite_url(folder / "yumegate.db"), steps)
        first = EntryHouse(db, folder, clock, context={"memory_budget": room, "memory_overrun": 0})
        await first.person()
        chat = await first.made()
        await prepare(first, chat)
        steps.count, steps.deadly, killed = 0, deadly, False
        try:
            await first.run(entries.KIND)
        except Killed:
            killed = True
        steps.deadly = -1
        second = EntryHouse(db, folder, clock, context={"memory_budget": room, "memory_overrun": 0})
        for _ in range(3):
            clock.advance(timedelta(seconds=130))
            await second.run(entries.KIND)
        found = await state(second, chat)
        wanted, calls = wanted or found, calls or first.calls
        assert found == wanted, f"killed at step {deadly}"
        assert first.calls + second.calls <= calls + 1, f"an answer was paid for twice at step {deadly}"
        for each in (first, second):
            await each.close()
        await db.close()
        deadly += 1
        if deadly > 1 and not killed:
            break
    assert deadly > 6


async def state(house: EntryHouse, chat: str) -> object:
    """Everything that must come out the same."""
    rows = [(row.state, row.text, row.origin) for row in await house.rows(chat, Kind.ENTRY, states=tuple(State))]
    seen = await house.listing(chat)
    return sorted(map(str, rows)), await house.stood_for(chat, Kind.ENTRY), seen.uncovered, seen.progress, await house.count(job_parts)

"""Jobs by hand, and what is kept of jobs that ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from gateway import housekeeping
from gateway.admin import Admin, AdminFault
from gateway.config import Config
from gateway.credentials import VisitCache
from gateway.jobs import claims
from gateway.jobs.handling import JobContext
from gateway.jobs.table import Job, JobRow, enqueue, list_jobs
from gateway.leases import LeaseLost
from gateway.login_links import LoginLinks
from gateway.passwords import Passwords
from gateway.people import People
from gateway.tokens import ApiTokens
from memory.database import Database
from memory.schema import job_parts, jobs, messages
from tests.conftest import FakeClock
from tests.gateway.nights import Night


def admin(db: Database, clock: Callable[[], Any], passwords: Passwords, woken: list[int]) -> Admin:
    return Admin(
        db=db,
        clock=clock,
        people=People(db, clock, passwords),
        links=LoginLinks(db, clock),
        tokens=ApiTokens(db, clock, VisitCache(clock)),
        page=lambda: "",
        wake_jobs=lambda: woken.append(1),
        config=lambda: Config(timezone="Asia/Tokyo"),
    )


@pytest.mark.rule("WD-130")
@pytest.mark.parametrize(
    ("arguments", "kind", "scope", "payload"),
    [
        ({"job": "daily-summary"}, "daily-summary", "root", {"date": "2026-03-14", "zone": "Asia/Tokyo", "manual": True}),
        ({"job": "daily-summary", "date": "2026-03-08", "scope": "people/p-aaaaaaaaaa"}, "daily-summary", "people/p-aaaaaaaaaa",
         {"date": "2026-03-08", "zone": "Asia/Tokyo", "manual": True}),
        ({"job": "dream"}, "dream", "root", {"days": 3, "force": False, "date": "2026-03-14", "person": ""}),
        ({"job": "dream", "date": "2026-03-10"}, "dream", "root", {"days": 5, "force": False, "date": "2026-03-14", "person": ""}),
        ({"job": "dream", "date": "2025-01-01"}, "dream", "root", {"days": 30, "force": False, "date": "2026-03-14", "person": ""}),
    ],
)  # fmt: skip
async def test_a_run_by_hand_has_a_row_of_its_own_that_is_no_ledger(
    sqlite: Database, clock: FakeClock, arguments: dict[str, str], kind: str, scope: str, payload: dict[str, Any]
) -> None:
    woken: list[int] = []
    with Passwords() as passwords:
        desk = admin(sqlite, clock, passwords, woken)
        for _ in range(2):
            told = await desk.run("job run", arguments)
            clock.advance(seconds=1)
    rows: list[JobRow] = await sqlite.read(list_jobs)
    assert len(rows) == 2
    assert {(row.job.kind, row.job.scope, row.job.local_date) for row in rows} == {(kind, scope, "")}
    assert rows[0].job.payload == payload
    assert told == {"job": rows[0].id, "running": False}
    assert woken == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"job": "daily-summary", "scope": "spaces/../root"}, "there is no scope"),
        ({"job": "dream", "date": "yesterday"}, "is no date"),
        ({"job": "nightly"}, "none of daily-summary, dream"),
    ],
)
async def test_what_cannot_be_run_is_said_in_one_sentence(sqlite: Database, clock: FakeClock, arguments: dict[str, str], sentence: str) -> None:
    with Passwords() as passwords, pytest.raises(AdminFault, match=sentence):
        await admin(sqlite, clock, passwords, []).run("job run", arguments)
    assert await sqlite.read(list_jobs) == []


@pytest.mark.rule("WD-60", "WD-98")
async def test_what_a_job_settled_at_its_first_look_stays_whatever_changes_and_only_its_holder_settles(database: Database, clock: FakeClock) -> None:
    await database.write(lambda c: enqueue(c, Job(kind="note", key="1"), now=clock()))
    seen = iter([[], ["something new"]])

    async def run(token: str) -> JobContext:
        claim = await database.write(lambda c: claims.claim(c, token, ["note"], now=clock()))
        assert claim is not None
        return JobContext(database, claim, clock)

    first = await run("first")
    assert await first.settled("plan", lambda _c: next(seen)) == []
    clock.advance(minutes=3)  # its lease has ended
    second = await run("second")
    assert await second.settled("plan", lambda _c: next(seen)) == []
    with pytest.raises(LeaseLost):
        await first.settled("plan", lambda _c: next(seen))
    assert next(seen) == ["something new"]


@pytest.mark.rule("WD-53")
@pytest.mark.case("SC-15")
async def test_two_months_of_runs_every_ten_minutes_leave_few_records_and_the_ledger_whole(
    database: Database, tmp_path: Path, clock: FakeClock
) -> None:
    night = Night(database, tmp_path, clock)
    chat = await night.chat()
    await night.says(chat, "A person's words stay")
    start = clock()

    def fill(c: sa.Connection) -> None:
        for n in range(60 * 24 * 6):
            at = start + timedelta(minutes=10 * n)
            values = {"kind": "task", "key": str(n), "not_before": at, "created_at": at, "updated_at": at, "state": "done"}
            c.execute(sa.insert(jobs), values)
        for n in range(60):
            at = start + timedelta(days=n)
            ledger = {"kind": "daily-summary", "key": str(n), "local_date": f"day {n}", "not_before": at, "created_at": at, "updated_at": at}
            c.execute(sa.insert(jobs), {**ledger, "state": "done"})
        first = c.execute(sa.select(jobs.c.id).where(jobs.c.kind == "daily-summary")).scalars().first()
        c.execute(sa.insert(job_parts), {"job_id": first, "part": "text 0", "output": {"bullets": []}, "created_at": start})

    await database.write(fill)
    clock.now = start + timedelta(days=60)
    await database.write(lambda c: enqueue(c, housekeeping.daily(clock()), now=clock()))
    claim = await database.write(lambda c: claims.claim(c, "worker", [housekeeping.KIND], now=clock()))
    assert claim is not None
    sweep = housekeeping.Housekeeping(db=database, attachments_folder=tmp_path, clock=clock, journal_days=lambda: 30)
    await sweep.run(claim.row.job, JobContext(database, claim, clock))

    def counts(c: sa.Connection) -> dict[str, int]:
        return {kind: number for kind, number in c.execute(sa.select(jobs.c.kind, sa.func.count()).group_by(jobs.c.kind))}  # noqa: C416

    kept = await database.read(counts)
    assert kept["task"] <= 30 * 24 * 6
    assert kept["task"] <= housekeeping.RUNS_MOST
    assert kept["daily-summary"] == 60
    assert await night.count(job_parts) == 0
    assert await night.count(messages) == 1
    await night.close()

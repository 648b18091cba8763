"""When tasks run: once for each time, whatever sleeps, is late, doubled or broken."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from gateway.tasks.cron import parse
from gateway.tasks.jobs import KEPT, KEPT_OF_ONE, sweep, task_job
from gateway.tasks.loop import REST_MAX_S, TaskLoop
from gateway.tasks.rules import Once, due, settled
from memory.database import Database
from memory.schema import jobs
from memory.tasks import Task
from tests.conftest import FakeClock
from tests.gateway.chores import Chores, chores
from tests.gateway.test_jobs import Sleeper
from tests.patience import patience


@pytest.fixture
async def house(database: Database, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Chores]:
    clock.now = datetime(2026, 8, 1, 8, 0, tzinfo=UTC)
    async with chores(database, clock, tmp_path) as made:
        yield made


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# -- what is due, purely -----------------------------------------------------------------------------------------------------


PLANNED = Task(
    id=1, person_id="p", address="a:b:c", scope="", kind="say", text="x", silent=False, rule="0 9 * * *", once_at=None, timezone="UTC", language="en",
    state="active", fault="", next_run=at("2026-08-01T09:00"), run_slot=None, run_turn="", run_key="", run_stored=False, last_run=None,
    last_result="", last_error="", runs=0, skipped=0, missed=0, created_at=at("2026-07-01T00:00"), ended_at=None,
)  # fmt: skip


@pytest.mark.rule("WD-135")
@pytest.mark.parametrize(
    ("now", "doing", "slot", "following"),
    [
        ("2026-08-01T09:00:03", "run", "2026-08-01T09:00", "2026-08-02T09:00"),
        ("2026-08-01T23:00", "run", "2026-08-01T09:00", "2026-08-02T09:00"),
        ("2026-08-03T08:00", "run", "2026-08-02T09:00", "2026-08-03T09:00"),  # two were missed: the newer one counts
        ("2026-09-01T09:00", "run", "2026-09-01T09:00", "2026-09-02T09:00"),
    ],
)
def test_missed_runs_are_one_run(now: str, doing: str, slot: str, following: str) -> None:
    decided = due(PLANNED, parse(PLANNED.rule), ZoneInfo("UTC"), at(now), late=timedelta(hours=24))
    assert (decided.doing, decided.slot, decided.next_run) == (doing, at(slot), at(following))


@pytest.mark.rule("WD-135", "WD-136")
def test_what_is_too_late_is_missed_and_what_overlaps_is_left_out() -> None:
    zone = ZoneInfo("UTC")
    once, moment = replace(PLANNED, rule="", once_at=PLANNED.next_run), Once(at=at("2026-08-01T09:00"))
    assert due(once, moment, zone, at("2026-08-02T09:00"), late=timedelta(hours=24)).doing == "run"
    assert due(once, moment, zone, at("2026-08-02T09:01"), late=timedelta(hours=24)).doing == "miss"
    assert due(replace(PLANNED, run_turn="t-1"), parse(PLANNED.rule), zone, at("2026-08-01T09:00"), late=timedelta(hours=24)).doing == "skip"


@pytest.mark.rule("CH-84", "WD-138")
@pytest.mark.parametrize(
    ("parts", "job", "outcome"),
    [
        ([("sent", ""), ("sent", "")], "done", ("sent", "")),
        ([("sent", ""), ("queued", "")], "done", None),
        ([("unknown", "no answer came")], "done", None),
        ([("sent", ""), ("failed", "chat not found")], "done", ("failed", "undelivered")),
        ([("failed", "revoked")], "done", ("revoked", "")),
        ([("expired", "expired")], "done", ("failed", "expired")),
        ([], "running", None),
        ([], "waiting", None),
        ([], "done", ("failed", "")),
        ([], "parked", ("failed", "")),
        ([], "cancelled", ("failed", "")),
        ([], None, ("failed", "")),
    ],
)
def test_delivered_is_what_the_channel_gave_an_id_for(parts: list[tuple[str, str]], job: str | None, outcome: tuple[str, str] | None) -> None:
    assert settled(parts, job) == outcome


# -- the loop ----------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-129", "WD-135")
@pytest.mark.case("SC-07", "N29")
@pytest.mark.parametrize("late_s", [0, 3, 600])
async def test_a_loop_that_was_blocked_for_a_moment_loses_nothing_and_says_nothing_of_it(house: Chores, late_s: int) -> None:
    await house.make("drink water", "0 10 * * *")
    await house.go("2026-08-01T09:59:59")
    assert house.platform.texts() == []
    await house.go(seconds=1 + late_s)
    assert house.platform.texts() == ["drink water"]


@pytest.mark.rule("WD-135")
@pytest.mark.case("N29")
async def test_after_a_night_asleep_the_missed_runs_are_one_with_a_note(house: Chores) -> None:
    await house.make("drink water", "0 * * * *")
    await house.go("2026-08-02T07:40")
    assert house.platform.texts() == ["drink water\n\n(Late: this was due on 2026-08-02 07:00 (Sunday).)"]
    await house.go("2026-08-02T08:00")
    assert house.platform.texts()[1:] == ["drink water"]


@pytest.mark.rule("WD-135")
async def test_a_reminder_is_told_late_up_to_a_day_and_then_shown_as_missed_and_never_lost_unseen(house: Chores) -> None:
    told, missed = await house.make("call Ann", "2026-08-01 20:00"), await house.make("call Bob", "2026-08-01 09:00")
    await house.go("2026-08-02T10:00")
    assert house.platform.texts() == ["call Ann\n\n(Late: this was due on 2026-08-01 20:00 (Saturday).)"]
    ends = [await house.task(task) for task in (told, missed)]
    assert [(end.state, end.last_result) for end in ends] == [("done", "sent"), ("failed", "missed")]
    await house.db.write(lambda c: sweep(c, house.clock() + timedelta(days=31)))
    assert await house.rows("tasks", "id") == [missed.id]  # nobody has seen it yet
    assert [task.id for task in await house.tasks.of_chat(house.chats["own"])] == [missed.id]
    await house.db.write(lambda c: sweep(c, house.clock() + timedelta(days=31)))
    assert await house.rows("tasks", "id") == []


@pytest.mark.rule("WD-130", "WD-136")
@pytest.mark.case("SC-08", "N30")
async def test_two_loops_on_one_store_run_a_task_once(house: Chores) -> None:
    task = await house.make("once", "0 9 * * *")
    house.clock.now = at("2026-08-01T09:00")
    loops = [TaskLoop(db=house.db, clock=house.clock, config=lambda: house.config, wake_jobs=lambda: None) for _ in range(4)]
    await asyncio.gather(*(loop.tick() for loop in loops * 3))
    assert await house.rows("jobs", "kind", "key") == [("task", f"{task.id}:2026-08-01T09:00Z")]
    await house.work()
    await house.claim()
    assert house.platform.texts() == ["once"]
    assert (await house.task(task)).runs == 1


@pytest.mark.rule("WD-135", "WD-136")
@pytest.mark.case("SC-09")
async def test_a_run_longer_than_its_period_skips_and_counts(house: Chores) -> None:
    task = await house.make("tick", "* * * * *")
    await house.go("2026-08-01T08:00")
    house.clock.now = at("2026-08-01T08:01")
    await house.claim()  # its job begins, and takes 150 s
    for minute in (2, 3):
        house.clock.now = at(f"2026-08-01T08:0{minute}")
        await house.claim()
    house.clock.advance(seconds=30)
    await house.work()
    await house.claim()
    assert (await house.task(task)).skipped == 2
    assert house.platform.texts() == ["tick"]
    await house.go("2026-08-01T08:04")
    assert house.platform.texts() == ["tick", "tick"]


@pytest.mark.rule("WD-135")
async def test_while_the_platform_is_down_reminders_do_not_pile_up(house: Chores) -> None:
    await house.make("tick", "* * * * *")
    house.platform.down = True
    for minute in range(1, 6):
        await house.go(f"2026-08-01T08:0{minute}")
    house.platform.down = False
    house.outbox.wake(house.chats["own"].key)
    await house.go("2026-08-01T08:05", seconds=50)
    await asyncio.sleep(0)
    assert house.platform.texts() == ["tick"]


@pytest.mark.rule("WD-137")
@pytest.mark.case("SC-03")
async def test_one_bad_stored_task_is_reported_and_the_others_run(house: Chores, caplog: pytest.LogCaptureFixture) -> None:
    first, bad, last = [await house.make(text, "0 9 * * *") for text in ("first", "bad", "last")]
    zone = await house.make("zone", "0 9 * * *")
    await house.set(bad, rule="61 9 * * *")
    await house.set(zone, timezone="Atlantis/Poseidonis")
    with caplog.at_level(logging.ERROR):
        assert [task.id for task in await house.loop.check()] == [bad.id, zone.id]
    assert "61 9 * * *" in caplog.text
    assert "Atlantis/Poseidonis" in caplog.text
    await house.go("2026-08-01T09:00")
    assert sorted(house.platform.texts()) == ["first", "last"]
    kept = await house.task(bad)
    assert (kept.state, kept.rule, kept.text) == ("bad", "61 9 * * *", "bad")
    assert "61" in kept.fault
    assert [(await house.task(task)).state for task in (first, last)] == ["active", "active"]


@pytest.mark.rule("WD-137")
async def test_a_task_that_turns_bad_while_the_gateway_runs_stops_only_itself(house: Chores) -> None:
    bad, _ = await house.make("bad", "0 9 * * *"), await house.make("good", "0 9 * * *")
    await house.set(bad, rule="nonsense", next_run=at("2026-08-01T09:00"))
    await house.go("2026-08-01T09:00")
    assert house.platform.texts() == ["good"]
    assert (await house.task(bad)).state == "bad"


@pytest.mark.rule("WD-130", "WD-134")
@pytest.mark.case("SC-04", "N28")
async def test_in_the_autumn_night_a_daily_task_runs_once_and_an_hourly_one_in_both_hours(house: Chores) -> None:
    house.clock.now = at("2026-10-24T23:30")
    house.settings["timezone"] = "Europe/Berlin"
    await house.make("daily", "30 2 * * *")
    await house.make("hourly", "30 * * * *")
    for _ in range(16):
        await house.go(minutes=15)
    shown = [(message.text, f"{message.at:%H:%M}") for message in house.platform.shown]
    assert [text for text in shown if text[0] == "daily"] == [("daily", "00:30")]
    assert [hour for text, hour in shown if text == "hourly"] == ["00:30", "01:30", "02:30", "03:30"]


@pytest.mark.rule("WD-129")
async def test_the_loop_sleeps_to_the_nearest_run_and_at_most_a_minute(house: Chores) -> None:
    assert await house.claim() == REST_MAX_S
    await house.make(when="0 9 * * *")
    assert await house.claim() == REST_MAX_S
    house.clock.now = at("2026-08-01T08:59:48")
    assert await house.claim() == 12


@pytest.mark.rule("WD-129")
async def test_a_running_loop_wakes_by_itself_by_the_clock_and_when_told(house: Chores) -> None:
    sleep = Sleeper(house.clock)
    woken: list[datetime] = []
    loop = TaskLoop(db=house.db, clock=house.clock, config=lambda: house.config, wake_jobs=lambda: woken.append(house.clock()), sleep=sleep)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(loop.run())
        await _until(lambda: len(sleep.asked) == 1)
        await house.make(when="0 9 * * *")
        loop.wake()
        await _until(lambda: len(sleep.asked) == 2)
        await sleep.advance(minutes=60)  # a machine that slept: its timer is late, its clock is not
        await _until(lambda: woken == [at("2026-08-01T09:00")])
        loop.close()
        await running


async def _until(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(patience(5)):
        while not look():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


# -- what runs leave behind --------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-136")
@pytest.mark.case("SC-15")
async def test_run_records_expire_by_age_and_count_and_the_talk_stays(house: Chores) -> None:
    task, other = await house.make(when="*/10 * * * *"), await house.make(when="0 9 * * *")
    now = house.clock()

    def job(connection: sa.Connection, key: str, when: datetime, *, state: str = "done", kind: str = "task") -> None:
        connection.execute(sa.insert(jobs).values(kind=kind, key=key, state=state, not_before=when, created_at=when, updated_at=when))

    def month(connection: sa.Connection) -> None:
        for number in range(4320):
            slot = now + timedelta(minutes=10 * number)
            job(connection, task_job(task, slot=slot, turn="t").key, slot)
        job(connection, f"{other.id}:a", now + timedelta(days=29))
        job(connection, f"{other.id}:b", now - timedelta(days=60), state="running")
        job(connection, f"{other.id}:c", now - timedelta(days=60), state="parked")
        job(connection, f"{task.id}:x", now - KEPT, kind="dream")

    await house.db.write(month)
    before = len(await house.log("own"))
    await house.db.write(lambda connection: sweep(connection, now + timedelta(days=30)))
    kept = await house.rows("jobs", "kind", "key")
    assert len([key for kind, key in kept if kind == "task" and key.startswith(f"{task.id}:")]) == KEPT_OF_ONE
    assert [key for kind, key in kept if kind == "task" and key.startswith(f"{other.id}:")] == [f"{other.id}:a", f"{other.id}:b"]
    assert ("dream", f"{task.id}:x") in kept
    assert len(await house.log("own")) == before
    assert await house.rows("tasks", "id") == [task.id, other.id]

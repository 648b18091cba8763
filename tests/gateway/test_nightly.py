"""Which dates are summarised, and when: no date lost by sleep, restart or a new zone, none run twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from gateway import nightly
from gateway.config import Config
from gateway.nightly import ScopeDays, daily_at, dates_due, plan
from memory.database import Database
from memory.file_schema import scope_settings
from memory.schedule import local_date, run_on
from memory.schema import jobs
from tests.conftest import FakeClock
from tests.gateway.nights import Night, utc

DAY = timedelta(days=1)
BERLIN = ZoneInfo("Europe/Berlin")


def days(*texts: str) -> frozenset[date]:
    return frozenset(map(date.fromisoformat, texts))


@pytest.fixture
async def night(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[Night]:
    clock.now = utc("2026-03-08T20:00")
    made = Night(database, tmp_path, clock)
    await made.person()
    yield made
    await made.close()


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[Night]:
    clock.now = utc("2026-03-08T20:00")
    made = Night(sqlite, tmp_path, clock)
    await made.person()
    yield made
    await made.close()


# -- decided purely ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-52", "WD-55", "WD-129")
@pytest.mark.parametrize(
    ("talk", "ledger", "files", "stale", "now", "runs"),
    [
        (days("2026-03-08"), (), (), False, "2026-03-08T22:54", []),
        (days("2026-03-08"), (), (), False, "2026-03-08T22:55", ["2026-03-08"]),
        (days("2026-03-08"), days("2026-03-08"), (), False, "2026-03-08T22:56", []),
        (days("2026-03-08"), days("2026-03-08"), (), False, "2026-03-09T22:55", ["2026-03-09"]),  # what was left over, with the next run
        ((), (), days("2026-03-08"), False, "2026-03-08T22:55", ["2026-03-08"]),
        ((), days("2026-03-07"), (), True, "2026-03-08T22:55", ["2026-03-08"]),
        ((), days("2026-03-08"), (), True, "2026-03-08T22:56", []),
        ((), (), (), False, "2026-03-08T22:55", []),
        (days("2026-03-05", "2026-03-06", "2026-03-08"), (), (), False, "2026-03-08T12:00", ["2026-03-05", "2026-03-06"]),
    ],
)
def test_what_is_due_depends_on_talk_and_ledger_alone(
    talk: frozenset[date], ledger: frozenset[date], files: frozenset[date], stale: bool, now: str, runs: list[str]
) -> None:
    found = ScopeDays(scope="root", zone=BERLIN, talk=frozenset(talk), files=frozenset(files), ledger=frozenset(ledger), stale=stale)
    assert [each.isoformat() for each in dates_due(found, daily_at("23:55", 0, "i", "root"), utc(now), catch_up_days=14).runs] == runs


@pytest.mark.rule("WD-55")
def test_the_newest_fourteen_missed_dates_run_oldest_first_and_six_are_listed() -> None:
    missed = frozenset(date(2026, 3, 1) + n * DAY for n in range(20))
    spec, now = daily_at("23:55", 0, "i", "root"), utc("2026-03-21T12:00")
    found = dates_due(ScopeDays(scope="root", zone=BERLIN, talk=missed), spec, now, catch_up_days=14)
    assert (len(found.runs), len(found.missed)) == (14, 6)
    assert list(found.runs) == sorted(missed)[6:]
    after = dates_due(ScopeDays(scope="root", zone=BERLIN, talk=missed - set(found.runs), ledger=frozenset(found.runs)), spec, now, catch_up_days=14)
    assert (after.runs, after.missed) == ((), found.missed)


@pytest.mark.rule("WD-58")
@pytest.mark.case("SC-10")
def test_three_hundred_installations_and_scopes_start_spread_and_each_the_same_every_night() -> None:
    """N27: not all in one second."""
    for starts in (
        [daily_at("23:55", 240, f"i-{n}", "root") for n in range(300)],
        [daily_at("23:55", 240, "i-1", f"people/p-{n}") for n in range(300)],
    ):
        seconds = [round(each.shift.total_seconds()) for each in starts]
        assert all(0 <= second <= 240 for second in seconds)
        assert max(Counter(seconds).values()) < 10
        assert len(set(seconds)) > 120
    assert daily_at("23:55", 240, "i-1", "root") == daily_at("23:55", 240, "i-1", "root")
    run = run_on(daily_at("23:59", 240, "i-7", "root"), date(2026, 3, 8), BERLIN)
    assert run is not None
    assert run.at.astimezone(BERLIN).date() == date(2026, 3, 8)


@pytest.mark.rule("WD-57", "WD-58", "WD-134")
@pytest.mark.parametrize(
    ("zone", "day", "instant"),
    [
        ("America/Santiago", "2026-04-04", "2026-04-05T02:55"),
        ("America/Santiago", "2026-09-06", "2026-09-07T02:55"),
        ("Africa/Cairo", "2026-10-29", "2026-10-29T20:55"),
        ("Africa/Cairo", "2026-04-24", "2026-04-24T20:55"),
        ("Europe/Berlin", "2026-10-25", "2026-10-25T22:55"),
        ("Europe/Berlin", "2027-03-28", "2027-03-28T21:55"),
        ("America/Nuuk", "2026-03-28", "2026-03-29T01:00"),
        ("Pacific/Apia", "2026-12-31", "2026-12-31T10:55"),
        ("Australia/Lord_Howe", "2026-04-05", "2026-04-05T13:25"),
        ("Asia/Kathmandu", "2026-06-01", "2026-06-01T18:10"),
        ("Pacific/Kiritimati", "2026-06-01", "2026-06-01T09:55"),
        ("Pacific/Pago_Pago", "2026-06-01", "2026-06-02T10:55"),
    ],
)
def test_the_default_time_falls_where_a_person_expects_it_in_every_kind_of_zone(zone: str, day: str, instant: str) -> None:
    where, own = ZoneInfo(zone), date.fromisoformat(day)
    found = ScopeDays(scope="root", zone=where, talk=frozenset({own}))
    spec = daily_at("23:55", 0, "i", "root")
    just_before = dates_due(found, spec, utc(instant) - timedelta(microseconds=1), catch_up_days=14)
    assert just_before.runs == ()
    assert dates_due(found, spec, utc(instant), catch_up_days=14).runs == (own,)


@pytest.mark.rule("WD-53", "WD-55", "WD-56", "WD-57")
@pytest.mark.parametrize("zone", ["UTC", "America/Santiago", "Africa/Cairo", "Europe/Berlin", "America/Nuuk", "Australia/Lord_Howe", "Pacific/Apia"])
def test_two_years_of_daily_talk_run_each_date_once(zone: str) -> None:
    """Looked at every 6 hours and at odd minutes, over all clock changes of two years."""
    where, spec = ZoneInfo(zone), daily_at("23:55", 240, "i", "root")
    now, ran, talk = utc("2025-12-31T12:00"), list[date](), set[date]()
    while now < utc("2028-01-02T00:00"):
        talk.add(local_date(now, where))
        found = dates_due(ScopeDays(scope="root", zone=where, talk=frozenset(talk), ledger=frozenset(ran)), spec, now, catch_up_days=14)
        ran += found.runs
        talk -= set(found.runs)
        now += timedelta(hours=6, minutes=7)
    year = [day for day in ran if date(2026, 1, 1) <= day <= date(2027, 12, 31)]
    assert year == [date(2026, 1, 1) + n * DAY for n in range(730)]


@pytest.mark.rule("WD-53", "WD-55")
@given(
    talk=st.frozensets(st.dates(date(2026, 1, 1), date(2026, 3, 31)), max_size=40),
    ledger=st.frozensets(st.dates(date(2026, 1, 1), date(2026, 3, 31)), max_size=40),
    now=st.datetimes(datetime(2026, 1, 1), datetime(2026, 4, 2)),  # noqa: DTZ001  # made UTC below
    most=st.integers(1, 60),
)
def test_no_date_of_the_ledger_is_ever_due_and_never_more_than_allowed(
    talk: frozenset[date], ledger: frozenset[date], now: datetime, most: int
) -> None:
    found = ScopeDays(scope="root", zone=BERLIN, talk=talk, ledger=ledger)
    due = dates_due(found, daily_at("23:55", 240, "i", "root"), utc(now.isoformat()), catch_up_days=most)
    assert not set(due.runs + due.missed) & ledger
    assert len(due.runs) <= most
    assert list(due.runs) == sorted(due.runs)
    assert not due.missed or not due.runs or max(due.missed) < min(due.runs)


@pytest.mark.rule("WD-87", "WD-99")
def test_at_night_the_owner_goes_first() -> None:
    scopes = [ScopeDays(scope=scope, zone=BERLIN, talk=days("2026-03-08")) for scope in ("people/p-aaaaaaaaaa", "root", "spaces/s-aaaaaaaaaa")]
    made = plan(utc("2026-03-08T23:30"), scopes, Config(), "i")
    assert [job.priority > 0 for job in sorted(made, key=lambda job: -job.priority)] == [True, False, False]
    assert max(made, key=lambda job: job.priority).scope == "root"


# -- against the ledger ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-55", "WD-61")
async def test_five_missed_days_make_five_dates_and_one_dream(night: Night) -> None:
    """A7, N1: down for five days, nobody writes after the start."""
    chat = await night.chat()
    for n in range(5):
        await night.says(chat, f"Day {'abcde'[n]}", at=utc("2026-03-03T10:00") + n * DAY)
    night.clock.now = utc("2026-03-08T12:00")
    await night.look()
    ran = await night.run()
    assert ran == [f"daily-summary root:2026-03-0{n}" for n in range(3, 8)] + ["dream root:2026-03-07"]
    assert night.dreams == [("root", "2026-03-07")]
    for n in range(5):
        assert night.bullets(f"2026-03-0{n + 3}") == [f"Said: Day {'abcde'[n]}"]
        assert "## Daily Summary\n" in night.day(f"2026-03-0{n + 3}")
    night.nightly = night.nightly_anew()
    assert await night.look() == 0


@pytest.mark.rule("WD-55")
async def test_of_twenty_missed_days_six_are_listed_and_a_backfill_runs_them(night: Night) -> None:
    chat = await night.chat()
    for n in range(20):
        await night.says(chat, f"Day {'abcdefghijklmnopqrst'[n]}", at=utc("2026-03-01T10:00") + n * DAY)
    night.clock.now = utc("2026-03-21T12:00")
    await night.look()
    assert len(await night.run("daily-summary")) == 14
    night.clock.advance(minutes=1)
    assert await night.look() == 0
    assert [night.bullets(f"2026-03-0{n}") for n in range(1, 7)] == [[]] * 6
    missing = await night.db.read(lambda c: nightly.missing_dates(c, "root", night.config, night.clock()))
    assert [day.day for day in missing] == [6, 5, 4, 3, 2, 1]
    chosen = await night.db.write(lambda c: nightly.backfill(c, "root", night.config, night.clock(), days=2))
    assert [day.day for day in chosen] == [6, 5]
    await night.run("daily-summary")
    assert night.bullets("2026-03-06") == ["Said: Day f"]
    assert len(await night.db.read(lambda c: nightly.missing_dates(c, "root", night.config, night.clock()))) == 4
    assert set((await night.times_covered()).values()) == {0, 1}


@pytest.mark.rule("WD-53", "WD-56")
async def test_a_zone_changed_at_noon_runs_no_date_twice_and_loses_nothing(night: Night) -> None:
    """A8: from Tokyo to Los Angeles, where it is yesterday again."""

    def settle(zone: str) -> sa.Executable:
        return sa.update(scope_settings).values(timezone=zone)

    values = {"scope": "root", "timezone": "Asia/Tokyo", "updated_at": night.clock()}
    await night.db.write(lambda c: c.execute(sa.insert(scope_settings), values))
    chat = await night.chat()
    await night.says(chat, "Tokyo, the tenth", at=utc("2026-06-10T12:00"))
    night.clock.now = utc("2026-06-10T14:59:50")
    await night.look()
    await night.run()
    assert night.bullets("2026-06-10") == ["Said: Tokyo, the tenth"]
    await night.db.write(lambda c: c.execute(settle("America/Los_Angeles")))
    await night.says(chat, "Los Angeles, the tenth again", at=utc("2026-06-11T03:00"))
    for hour in range(4, 12):
        night.clock.now = utc("2026-06-11T00:00") + timedelta(hours=hour)
        await night.look()
        await night.run()
    assert await night.job_keys("daily-summary") == ["root:2026-06-10"]
    night.clock.now = utc("2026-06-12T06:59:50")
    await night.look()
    await night.run()
    assert await night.job_keys("daily-summary") == ["root:2026-06-10", "root:2026-06-11"]
    assert night.bullets("2026-06-10") == ["Said: Tokyo, the tenth", "Said: Los Angeles, the tenth again"]
    assert "(late)" in night.day("2026-06-10")
    assert set((await night.times_covered()).values()) == {1}


@pytest.mark.rule("WD-130", "WD-136")
@pytest.mark.case("SC-08", "SC-09")
async def test_two_planners_and_many_looks_make_one_run(night: Night) -> None:
    await night.says(await night.chat(), "Once")
    night.clock.now = utc("2026-03-08T23:59:30")
    other = night.nightly_anew()
    async with asyncio.TaskGroup() as group:
        for each in (night.nightly, other, night.nightly, other):
            group.create_task(each.look())
    await night.run()
    assert await night.job_keys("daily-summary") == ["root:2026-03-08"]
    assert night.bullets("2026-03-08") == ["Said: Once"]


@pytest.mark.rule("WD-129", "WD-135")
@pytest.mark.case("SC-07")
@pytest.mark.parametrize("woken", ["2026-03-08T23:59:03", "2026-03-09T07:30"], ids=["a blocked loop", "a night asleep"])
async def test_a_blocked_loop_or_a_machine_asleep_loses_no_run(house: Night, woken: str) -> None:
    """N29."""
    await house.says(await house.chat(), "Once")
    house.clock.now = utc("2026-03-08T23:54:59")
    assert await house.look() == 0
    house.clock.now = utc(woken)
    await house.look()
    await house.run()
    assert house.bullets("2026-03-08") == ["Said: Once"]


@pytest.mark.rule("WD-129")
async def test_a_clock_set_back_runs_nothing_again(house: Night) -> None:
    await house.says(await house.chat(), "Once")
    house.clock.now = utc("2026-03-08T23:59:30")
    await house.look()
    await house.run()
    house.clock.now = utc("2026-03-08T23:50")
    await house.look()
    house.clock.now = utc("2026-03-08T23:59:31")
    await house.look()
    await house.run()
    assert house.calls == 1


@pytest.mark.rule("WD-61")
@pytest.mark.case("SC-17")
async def test_the_dream_follows_its_daily_summary_and_a_second_tick_does_nothing(house: Night) -> None:
    """What the night writes itself starts nothing: a file that changed is no reason, only its date without a run is."""
    await house.says(await house.chat(), "Once")
    house.clock.now = utc("2026-03-08T23:59:30")
    await house.look()
    await house.run()
    assert house.dreams == [("root", "2026-03-08")]
    for _ in range(3):
        house.nightly = house.nightly_anew()
        assert await house.look() == 0
        house.clock.advance(minutes=1)
    assert await house.run() == []


@pytest.mark.rule("WD-61")
@pytest.mark.parametrize(
    ("config", "scope", "dreams"),
    [
        ({"deep_dream_enabled": False}, "root", 0),
        ({"dream": {"scopes": "owner"}}, "root", 1),
        ({"dream": {"scopes": "owner"}}, "people/p-otheraaaaa", 0),
        ({}, "people/p-otheraaaaa", 1),
    ],
)
async def test_whose_memory_dreams_is_a_setting(
    sqlite: Database, tmp_path: Path, clock: FakeClock, config: dict[str, object], scope: str, dreams: int
) -> None:
    clock.now = utc("2026-03-08T20:00")
    night = Night(sqlite, tmp_path, clock, **config)
    await night.says(await night.chat(), "Once", scope=scope)
    clock.now = utc("2026-03-08T23:59:30")
    await night.look()
    await night.run()
    assert len(night.dreams) == dreams
    assert night.bullets("2026-03-08", scope) == ["Said: Once"]
    await night.close()


async def test_summaries_switched_off_plan_nothing(sqlite: Database, tmp_path: Path, clock: FakeClock) -> None:
    night = Night(sqlite, tmp_path, clock, summary={"enabled": False})
    await night.says(await night.chat(), "Once")
    clock.advance(days=3)
    assert await night.look() == 0
    await night.close()


@pytest.mark.rule("WD-130")
async def test_a_run_by_hand_takes_what_is_uncovered_up_to_now_and_leaves_the_night_its_own(house: Night) -> None:
    chat = await house.chat()
    await house.says(chat, "Before noon", at=utc("2026-03-07T09:00"))
    await house.says(chat, "Today", at=utc("2026-03-08T19:00"))
    await house.db.write(lambda c: nightly.summarise_now(c, "root", house.config, house.clock()))
    await house.run()
    assert (house.bullets("2026-03-07"), house.bullets("2026-03-08")) == (["Said: Before noon"], ["Said: Today"])
    assert house.dreams == []
    await house.says(chat, "Later", at=utc("2026-03-08T21:00"))
    house.clock.now = utc("2026-03-08T23:59:30")
    await house.look()
    await house.run()
    assert house.bullets("2026-03-08") == ["Said: Today", "Said: Later"]
    assert house.dreams == [("root", "2026-03-08")]


async def test_the_night_is_looked_at_once_at_the_start_and_then_every_minute(house: Night) -> None:
    asked: list[float] = []
    looks: list[int] = []

    async def sleep(seconds: float) -> None:
        asked.append(seconds)
        looks.append(await house.count(jobs))
        if len(asked) == 3:
            raise asyncio.CancelledError
        house.clock.advance(seconds=seconds)

    await house.says(await house.chat(), "Once")
    house.clock.now = utc("2026-03-08T23:59:30")
    woken: list[int] = []
    night = nightly.Nightly(
        db=house.db, files=house.files, config=lambda: house.config, clock=house.clock, on_enqueued=lambda: woken.append(1), sleep=sleep
    )
    with pytest.raises(asyncio.CancelledError):
        await night.run()
    assert (asked, looks, woken) == ([60.0, 60.0, 60.0], [1, 1, 1], [1])


@pytest.mark.rule("WD-58")
async def test_the_id_of_an_installation_is_made_once(night: Night) -> None:
    first = await night.db.write(lambda c: nightly.settle_instance(c, night.clock()))
    assert first
    assert await night.db.write(lambda c: nightly.settle_instance(c, night.clock())) == first
    assert await night.db.read(nightly.instance_id) == first


# -- shown to operators ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-58")
async def test_operators_see_when_each_memory_has_its_next_summary(house: Night) -> None:
    instance = await house.db.write(lambda connection: nightly.settle_instance(connection, house.clock()))
    runs = await house.db.read(lambda connection: nightly.next_runs(connection, Config(), house.clock(), most=50))
    assert runs
    for run in runs:
        spec = daily_at("23:55", Config().summary.jitter_seconds, instance, run.scope)
        planned = run_on(spec, local_date(run.at, ZoneInfo(run.zone)), ZoneInfo(run.zone))
        assert planned is not None
        assert run.at == planned.at
        assert house.clock() < run.at <= house.clock() + DAY
    off = Config.model_validate({"summary": {"enabled": False}})
    assert await house.db.read(lambda connection: nightly.next_runs(connection, off, house.clock(), most=50)) == ()

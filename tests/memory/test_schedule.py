"""Daily runs over every zone's clock changes: each local date has its one run, at the time a person would expect."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.schedule import Daily, due, local_date, next_run, run_on

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
FIRST, LAST = date(2026, 1, 1), date(2027, 12, 31)
ZONES = [
    *("UTC", "Asia/Tokyo", "Asia/Kolkata", "Europe/Berlin", "America/New_York", "America/Santiago", "America/Havana", "America/Nuuk"),
    *("Africa/Cairo", "Africa/Casablanca", "Asia/Beirut", "Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Apia"),
]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def days(first: date = FIRST, last: date = LAST) -> Iterator[date]:
    while first <= last:
        yield first
        first += DAY


@pytest.mark.rule("WD-57", "WD-134")
@pytest.mark.case("SC-04", "SC-05", "SC-06")
@pytest.mark.parametrize(
    ("zone", "day", "at", "expected"),
    [
        ("Asia/Shanghai", "2026-08-01", "09:00", "2026-08-01T01:00"),
        # twice: the first
        ("Europe/Berlin", "2026-10-25", "02:30", "2026-10-25T00:30"),
        ("America/New_York", "2026-11-01", "01:30", "2026-11-01T05:30"),
        ("America/Santiago", "2026-04-04", "23:55", "2026-04-05T02:55"),
        ("Africa/Cairo", "2026-10-29", "23:55", "2026-10-29T20:55"),
        # in a gap: the first valid minute after it
        ("America/New_York", "2026-03-08", "02:00", "2026-03-08T07:00"),
        ("America/New_York", "2026-03-08", "02:30", "2026-03-08T07:00"),
        ("America/New_York", "2026-03-08", "03:00", "2026-03-08T07:00"),
        ("America/Santiago", "2026-09-06", "00:00", "2026-09-06T04:00"),
        ("Africa/Cairo", "2026-04-24", "00:00", "2026-04-23T22:00"),
        ("Australia/Lord_Howe", "2026-10-04", "02:10", "2026-10-03T15:30"),
        ("America/Nuuk", "2026-03-28", "23:55", "2026-03-29T01:00"),  # pushed past midnight, and still the run of the 28th
        ("Pacific/Apia", "2011-12-29", "23:55", "2011-12-30T09:55"),
        ("Pacific/Apia", "2011-12-31", "00:00", "2011-12-30T10:00"),
    ],
)
def test_a_daily_time_runs_at_the_instant_a_person_expects(zone: str, day: str, at: str, expected: str) -> None:
    run = run_on(Daily(at=time.fromisoformat(at)), date.fromisoformat(day), ZoneInfo(zone))
    assert run is not None
    assert (run.at, run.local_date) == (utc(expected), date.fromisoformat(day))


@pytest.mark.rule("WD-57")
@pytest.mark.parametrize(("zone", "day"), [("Pacific/Apia", "2011-12-30"), ("Pacific/Fakaofo", "2011-12-30"), ("Pacific/Kwajalein", "1993-08-21")])
@pytest.mark.parametrize("at", [time(0), time(12), time(23, 55)])
def test_a_date_that_does_not_exist_has_no_run(zone: str, day: str, at: time) -> None:
    missing, where, spec = date.fromisoformat(day), ZoneInfo(zone), Daily(at=at)
    assert run_on(spec, missing, where) is None
    before, after = run_on(spec, missing - DAY, where), run_on(spec, missing + DAY, where)
    assert before is not None
    assert next_run(spec, before.at, where) == after
    assert after is not None
    assert [run.local_date for run in due(spec, after.at, where, since=missing - DAY)] == [missing - DAY, missing + DAY]


# -- against a clock on the wall, minute by minute -----------------------------------------------------------------------


@cache
def changes() -> tuple[tuple[str, date], ...]:
    """(zone, date) of every clock change of 2026 and 2027 in the world; zones that change alike are taken once."""
    found: dict[tuple[tuple[date, timedelta | None], ...], str] = {}
    for name in sorted(available_timezones() - {"localtime"}):
        zone = ZoneInfo(name)
        offsets = [(day, datetime(day.year, day.month, day.day, 12, tzinfo=zone).utcoffset()) for day in days()]
        changed = tuple(now for before, now in pairwise(offsets) if before[1] != now[1])
        found.setdefault(changed, name)
    return tuple((name, day) for changed, name in found.items() for day, _ in changed)


@pytest.mark.rule("WD-57", "WD-134")
def test_every_clock_change_of_two_years_is_as_the_wall_clock_shows_it() -> None:
    times = [time(hour, minute) for hour in (0, 1, 2, 3, 22, 23) for minute in (0, 10, 30, 55)]
    assert len(changes()) > 80
    for name, changed in changes():
        zone = ZoneInfo(name)
        start = datetime.combine(changed - 3 * DAY, time(), UTC)
        walls = [(start + n * MINUTE, (start + n * MINUTE).astimezone(zone).replace(tzinfo=None)) for n in range(6 * 1440)]
        for day in (changed - DAY, changed, changed + DAY):
            for at in times:
                wanted = datetime.combine(day, at)
                exact = next((instant for instant, wall in walls if wall == wanted), None)
                expected = exact or next(instant for instant, wall in walls if wall > wanted)
                run = run_on(Daily(at=at), day, zone)
                assert run is not None, (name, wanted)
                assert run.at == expected, (name, wanted)


@pytest.mark.rule("WD-53", "WD-57", "WD-134")
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("at", [time(0), time(2, 30), time(23, 55)])
def test_two_years_have_one_run_for_each_date(zone: str, at: time) -> None:
    spec, where = Daily(at=at), ZoneInfo(zone)
    now, seen = utc("2025-12-30T12:00"), list[date]()
    while (run := next_run(spec, now, where)).local_date <= LAST:
        assert run.at > now
        now = run.at
        seen.append(run.local_date)
    assert [day for day in seen if day >= FIRST] == list(days())
    assert [run.local_date for run in due(spec, utc("2028-01-02T12:00"), where, since=FIRST)][: len(list(days()))] == list(days())


@pytest.mark.rule("RL-50", "WD-57")
@settings(deadline=None)
@given(
    zone=st.sampled_from(sorted(available_timezones() - {"localtime"})).map(ZoneInfo),
    after=st.integers(0, 43 * 365 * 86_400).map(lambda seconds: datetime(1995, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)),
    at=st.times().map(lambda at: at.replace(second=0, microsecond=0, fold=0)),
    shift=st.integers(0, 240).map(lambda seconds: timedelta(seconds=seconds)),
)
def test_the_next_run_is_the_first_one_after_and_what_is_due_agrees(zone: ZoneInfo, after: datetime, at: time, shift: timedelta) -> None:
    spec = Daily(at=at, shift=shift)
    run = next_run(spec, after, zone)
    assert run.at > after
    assert run == run_on(spec, run.local_date, zone)
    assert next_run(spec, run.at - timedelta(microseconds=1), zone) == run
    assert next_run(spec, run.at, zone).local_date > run.local_date
    since = run.local_date - 3 * DAY
    assert run in due(spec, run.at, zone, since=since)
    assert run not in due(spec, run.at - timedelta(microseconds=1), zone, since=since)
    wall = run.at.astimezone(zone)
    if wall.date() == run.local_date and shift == timedelta():
        assert wall.time() >= at


# -- what is due -----------------------------------------------------------------------------------------------------------

NIGHTLY = Daily(at=time(23, 55))


@pytest.mark.rule("WD-55")
def test_missed_dates_are_due_oldest_first_and_those_in_the_ledger_are_not() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    missed = due(NIGHTLY, utc("2026-03-31T21:54:59"), berlin, since=date(2026, 3, 26), done={date(2026, 3, 28)})
    assert [run.local_date.day for run in missed] == [26, 27, 29, 30]
    assert [run.local_date.day for run in due(NIGHTLY, utc("2026-03-31T21:55"), berlin, since=date(2026, 3, 30))] == [30, 31]
    assert due(NIGHTLY, utc("2026-03-31T21:55"), berlin, since=date(2026, 4, 1)) == []


@pytest.mark.rule("WD-54", "WD-56")
def test_a_changed_zone_runs_no_date_twice_and_skips_none() -> None:
    """Noon in Tokyo is yesterday's evening in Los Angeles, where the 10th is not over yet, though Tokyo has done it."""
    tokyo, angeles = ZoneInfo("Asia/Tokyo"), ZoneInfo("America/Los_Angeles")
    since = date(2026, 6, 9)
    done = {run.local_date for run in due(NIGHTLY, utc("2026-06-11T03:00"), tokyo, since=since)}
    assert done == {date(2026, 6, 9), date(2026, 6, 10)}
    assert due(NIGHTLY, utc("2026-06-11T07:00"), angeles, since=since, done=done) == []
    later = due(NIGHTLY, utc("2026-06-12T07:00"), angeles, since=since, done=done)
    assert [(run.local_date, run.at) for run in later] == [(date(2026, 6, 11), utc("2026-06-12T06:55"))]


@pytest.mark.rule("WD-58")
@pytest.mark.parametrize(
    ("at", "shift_s", "wall"),
    [((23, 55), 0, "23:55:00"), ((23, 55), 240, "23:59:00"), ((23, 58), 240, "23:59:59"), ((0, 0), 240, "00:04:00")],
)
@pytest.mark.parametrize("day", ["2026-04-04", "2026-07-01"])
def test_a_shifted_start_never_passes_midnight(at: tuple[int, int], shift_s: int, wall: str, day: str) -> None:
    santiago = ZoneInfo("America/Santiago")
    run = run_on(Daily(at=time(*at), shift=timedelta(seconds=shift_s)), date.fromisoformat(day), santiago)
    assert run is not None
    assert run.at.astimezone(santiago).replace(tzinfo=None).isoformat() == f"{day}T{wall}"


@pytest.mark.rule("WD-57", "WD-58")
def test_a_run_that_a_clock_change_pushed_past_midnight_is_still_to_come_after_it() -> None:
    nuuk, spec = ZoneInfo("America/Nuuk"), Daily(at=time(23, 55), shift=timedelta(seconds=240))
    run = next_run(spec, utc("2026-03-29T01:00"), nuuk)  # 00:00 on the 29th
    assert (run.local_date, run.at) == (date(2026, 3, 28), utc("2026-03-29T01:04"))


@pytest.mark.rule("RS-158", "WD-53")
@pytest.mark.parametrize(
    ("instant", "hour", "owner"),
    [
        ("2026-03-08T07:59", 4, "2026-03-07"),  # 03:59 in New York, an hour after the change
        ("2026-03-08T08:30", 4, "2026-03-08"),
        ("2026-11-01T08:30", 4, "2026-10-31"),  # 03:30
        ("2026-11-01T09:00", 4, "2026-11-01"),  # 04:00
        ("2026-11-01T05:30", 1, "2026-11-01"),  # both 01:30
        ("2026-11-01T06:30", 1, "2026-11-01"),
        ("2026-11-01T04:30", 1, "2026-10-31"),  # 00:30
        ("2026-11-01T03:59", 0, "2026-10-31"),
        ("2026-11-01T04:00", 0, "2026-11-01"),
    ],
)
def test_an_instant_belongs_to_the_date_on_the_wall(instant: str, hour: int, owner: str) -> None:
    assert local_date(utc(instant), ZoneInfo("America/New_York"), hour) == date.fromisoformat(owner)

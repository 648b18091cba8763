"""Where days of a talk end: with every rollover hour, through both changes of the clock."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from memory.days import end_of, month_of, week_of, year_of
from memory.schedule import local_date

ZONES = ("America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Kolkata", "Asia/Kathmandu")
CHANGES = {
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "Australia/Lord_Howe": ("2026-04-05", "2026-10-04"),
}


@pytest.mark.rule("RS-158", "RS-56")
@pytest.mark.parametrize(
    ("instant", "hour", "owner"),
    [
        ("2026-03-08T03:59:00-04:00", 4, "2026-03-07"),
        ("2026-03-08T04:30:00-04:00", 4, "2026-03-08"),
        ("2026-11-01T03:30:00-05:00", 4, "2026-10-31"),
        ("2026-11-01T04:00:00-05:00", 4, "2026-11-01"),
        ("2026-11-01T01:30:00-04:00", 1, "2026-11-01"),
        ("2026-11-01T01:30:00-05:00", 1, "2026-11-01"),
    ],
)
def test_the_wall_clock_says_which_day_owns_an_instant(instant: str, hour: int, owner: str) -> None:
    assert local_date(datetime.fromisoformat(instant), ZoneInfo("America/New_York"), hour) == date.fromisoformat(owner)


@pytest.mark.rule("RS-158", "RS-159")
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("hour", range(12))
def test_a_day_ends_where_the_next_one_owns_what_is_said(zone: str, hour: int) -> None:
    there = ZoneInfo(zone)
    for around in CHANGES.get(zone, ("2026-06-15",)):
        for day in (date.fromisoformat(around) + timedelta(days=n) for n in (-2, -1, 0, 1)):
            end = end_of(day, there, hour)
            assert end.tzinfo is UTC
            assert local_date(end, there, hour) > day
            assert local_date(end - timedelta(minutes=1), there, hour) <= day


@pytest.mark.rule("RS-164")
def test_weeks_begin_on_monday_months_and_years_on_their_first_day() -> None:
    assert week_of(date(2026, 1, 1)) == date(2025, 12, 29)
    assert week_of(date(2026, 11, 30)) == date(2026, 11, 30)
    assert month_of(date(2026, 11, 30)) == date(2026, 11, 1)
    assert year_of(date(2026, 11, 30)) == date(2026, 1, 1)

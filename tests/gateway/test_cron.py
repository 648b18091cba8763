"""Cron rules mean what cron means, in every zone, on the nights when clocks change too."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tasks.cron import BadRule, newest_run, next_run, next_runs, parse, shortest_distance

DAY = timedelta(days=1)
ZONES = [
    *("UTC", "Asia/Tokyo", "Asia/Kolkata", "Europe/Berlin", "America/New_York", "America/Santiago", "America/Havana", "America/Nuuk"),
    *("Africa/Cairo", "Africa/Casablanca", "Asia/Beirut", "Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Apia"),
]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def runs(rule: str, after: str, count: int = 3, zone: str = "UTC") -> list[str]:
    return [f"{run:%Y-%m-%d %H:%M}" for run in next_runs(parse(rule), utc(after), ZoneInfo(zone), count)]


# -- what a rule says ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-131")
@pytest.mark.case("SC-01", "N28")
def test_monday_is_one_and_the_job_runs_on_monday() -> None:
    assert runs("0 9 * * 1", "2026-08-01T12:00", 2) == ["2026-08-03 09:00", "2026-08-10 09:00"]
    assert date(2026, 8, 3).strftime("%A") == "Monday"


@pytest.mark.rule("WD-131")
@pytest.mark.parametrize(
    ("written", "weekdays"),
    [
        ("0", [0]),
        ("7", [0]),
        ("1-5", [1, 2, 3, 4, 5]),
        ("5-7", [0, 5, 6]),
        ("fri-mon", [0, 1, 5, 6]),
        ("Fri-Mon", [0, 1, 5, 6]),
        ("7-2", [0, 1, 2]),
        ("0-7", [0, 1, 2, 3, 4, 5, 6]),
        ("*/2", [0, 2, 4, 6]),
        ("1-5/2", [1, 3, 5]),
        ("sun,wed", [0, 3]),
        ("*", [0, 1, 2, 3, 4, 5, 6]),
        ("１", [1]),
    ],
)
def test_weekdays_are_the_standard_ones(written: str, weekdays: list[int]) -> None:
    rule = parse(f"0 9 * * {written}")
    assert list(rule.weekdays) == weekdays
    days = {run.isoweekday() % 7 for run in next_runs(rule, utc("2026-08-01T00:00"), ZoneInfo("UTC"), 14)}
    assert days == set(weekdays)


@pytest.mark.rule("WD-132")
def test_if_both_day_fields_are_limited_either_one_matches() -> None:
    found = runs("0 0 13 * fri", "2026-08-01T00:00", 6)
    assert found == ["2026-08-07 00:00", "2026-08-13 00:00", "2026-08-14 00:00", "2026-08-21 00:00", "2026-08-28 00:00", "2026-09-04 00:00"]


@pytest.mark.rule("WD-132")
def test_a_field_with_a_star_is_not_limited_so_that_both_must_match() -> None:
    found = next_runs(parse("0 0 */2 * mon"), utc("2026-08-01T00:00"), ZoneInfo("UTC"), 5)
    assert all(run.isoweekday() == 1 and run.day % 2 for run in found)


@pytest.mark.rule("WD-132")
@pytest.mark.parametrize(
    ("macro", "first"),
    [
        ("@daily", "2026-08-06 00:00"),
        ("@midnight", "2026-08-06 00:00"),
        ("@hourly", "2026-08-05 11:00"),
        ("@weekly", "2026-08-09 00:00"),
        ("@MONTHLY", "2026-09-01 00:00"),
        ("@yearly", "2027-01-01 00:00"),
        ("@annually", "2027-01-01 00:00"),
    ],
)
def test_the_short_forms_are_understood(macro: str, first: str) -> None:
    assert runs(macro, "2026-08-05T10:20", 1) == [first]


def test_lists_steps_spans_and_names_of_months_are_understood() -> None:
    rule = parse("5/20,0 22-1 1,15 nov-feb *")
    assert (rule.minutes, rule.hours, rule.days, rule.months) == ((0, 5, 25, 45), (0, 1, 22, 23), (1, 15), (1, 2, 11, 12))


@pytest.mark.rule("WD-133")
@pytest.mark.parametrize(
    ("written", "key", "place"),
    [
        ("", "cron_fields", None),
        ("0 9 * *", "cron_fields", None),
        ("0 0 9 * * 1", "cron_fields", None),
        ("@reboot", "cron_fields", None),
        ("61 9 * * *", "cron_part", 1),
        ("0 24 * * *", "cron_part", 2),
        ("0 9 0 * *", "cron_part", 3),
        ("0 9 32 * *", "cron_part", 3),
        ("0 9 * 13 *", "cron_part", 4),
        ("0 9 * * 8", "cron_part", 5),
        ("0 9 * * mo", "cron_part", 5),
        ("0 9 * mon *", "cron_part", 4),
        ("*/0 * * * *", "cron_part", 1),
        ("50-10 * * * *", "cron_part", 1),
        ("0 9 L * *", "cron_part", 3),
        ("0 9 ? * 1", "cron_part", 3),
        ("0,, 9 * * *", "cron_part", 1),
        ("-5 9 * * *", "cron_part", 1),
        ("* * * * * ".replace("*", "**"), "cron_part", 1),
    ],
)
def test_a_part_that_makes_no_sense_is_named(written: str, key: str, place: int | None) -> None:
    with pytest.raises(BadRule) as refused:
        parse(written)
    assert refused.value.key == key
    assert refused.value.values.get("place") == place


@given(st.text(alphabet="0123456789*/,-@ monfrijan", max_size=30))
@settings(max_examples=300)
def test_whatever_is_written_is_a_rule_or_refused(written: str) -> None:
    try:
        rule = parse(written)
    except BadRule:
        return
    assert all((rule.minutes, rule.hours, rule.days, rule.months, rule.weekdays))
    assert shortest_distance(rule) >= timedelta(minutes=1)


@pytest.mark.rule("WD-133")
@pytest.mark.case("SC-02")
def test_a_date_that_never_comes_has_no_run_and_a_leap_day_has_the_next() -> None:
    assert next_run(parse("0 0 31 2 *"), utc("2026-08-01T00:00"), ZoneInfo("UTC")) is None
    assert runs("0 0 29 2 *", "2026-08-01T00:00", 2) == ["2028-02-29 00:00", "2032-02-29 00:00"]
    assert runs("0 0 29 2 *", "2096-03-01T00:00", 1) == ["2104-02-29 00:00"]  # 2100 is no leap year: the longest wait there is


@pytest.mark.rule("WD-133")
@pytest.mark.parametrize(
    ("written", "minutes"),
    [
        *(("* * * * *", 1), ("*/15 * * * *", 15), ("0,20 * * * *", 20), ("0 9 * * *", 1440), ("0 9,18 * * *", 540)),
        *(("50 23,0 * * *", 60), ("0,50 0,23 * * 1", 10)),
    ],
)
def test_the_shortest_distance_is_measured_over_midnight_too(written: str, minutes: int) -> None:
    assert shortest_distance(parse(written)) == timedelta(minutes=minutes)


# -- clocks that change ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-134")
@pytest.mark.case("SC-04", "SC-05", "SC-06", "N28")
@pytest.mark.parametrize(
    ("rule", "zone", "after", "expected"),
    [
        ("0 9 * * *", "Asia/Shanghai", "2026-08-01T00:00", ["2026-08-01 01:00", "2026-08-02 01:00"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", ["2026-10-25 00:30", "2026-10-26 01:30"]),  # twice: the first
        ("30 2,14 * * *", "Europe/Berlin", "2026-10-24T20:00", ["2026-10-25 00:30", "2026-10-25 13:30"]),
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", ["2026-03-29 01:00", "2026-03-30 00:30"]),  # in the gap: 03:00
        ("0,15,30,45 2 * * *", "Europe/Berlin", "2026-03-28T12:00", ["2026-03-29 01:00", "2026-03-30 00:00"]),  # all four at once
        ("0 0 * * *", "America/Santiago", "2026-09-05T12:00", ["2026-09-06 04:00", "2026-09-07 03:00"]),
        ("0 0 * * *", "Africa/Cairo", "2026-04-23T12:00", ["2026-04-23 22:00", "2026-04-24 21:00"]),
        ("55 23 * * *", "America/Santiago", "2026-04-04T12:00", ["2026-04-05 02:55", "2026-04-06 03:55"]),
        ("55 23 * * *", "America/Nuuk", "2026-03-28T12:00", ["2026-03-29 01:00", "2026-03-30 00:55"]),  # pushed past midnight
        ("0 0 * * sun", "America/Santiago", "2026-09-05T12:00", ["2026-09-06 04:00", "2026-09-13 03:00"]),
        ("0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00", ["2012-12-29 22:00", "2013-12-29 22:00"]),  # the zone left that date out
    ],
)
def test_a_time_of_the_day_runs_once_on_each_local_date(rule: str, zone: str, after: str, expected: list[str]) -> None:
    assert runs(rule, after, len(expected), zone) == expected


@pytest.mark.rule("WD-130", "WD-134")
def test_a_rule_for_every_hour_runs_in_both_hours_of_the_autumn_night() -> None:
    assert runs("0 * * * *", "2026-10-24T23:00", 4, "Europe/Berlin") == [
        "2026-10-25 00:00", "2026-10-25 01:00", "2026-10-25 02:00", "2026-10-25 03:00",
    ]  # fmt: skip
    assert runs("30 * * * *", "2026-03-29T00:00", 3, "Europe/Berlin") == ["2026-03-29 00:30", "2026-03-29 01:30", "2026-03-29 02:30"]
    assert runs("0 * * * *", "2026-10-03T14:00", 3, "Australia/Lord_Howe") == ["2026-10-03 14:30", "2026-10-03 16:00", "2026-10-03 17:00"]


@pytest.mark.rule("WD-134")
@pytest.mark.case("N28")
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("rule", ["0 0 * * *", "30 2 * * *", "55 23 * * *"])
def test_over_two_years_every_local_date_has_exactly_one_run(zone: str, rule: str) -> None:
    place = ZoneInfo(zone)
    found = next_runs(parse(rule), utc("2025-12-31T12:00"), place, 730)
    assert all(first < second for first, second in pairwise(found))
    dates = [run.astimezone(place).date() for run in found]
    pushed = {date(2026, 3, 29), date(2027, 3, 28)} if zone == "America/Nuuk" and rule.startswith("55") else set[date]()
    expected = [dates[0] + DAY * number for number in range(len(dates))]
    assert [day - DAY if day in pushed and found[at].astimezone(place).hour == 0 else day for at, day in enumerate(dates)] == expected


@pytest.mark.rule("WD-130")
@pytest.mark.parametrize("zone", ZONES)
def test_over_every_change_an_hourly_rule_keeps_to_the_clock_on_the_wall(zone: str) -> None:
    place = ZoneInfo(zone)
    start = utc("2026-01-01T12:00")
    days = [start + DAY * number for number in range(365)]
    changes = [day for day in days if day.astimezone(place).utcoffset() != (day + DAY).astimezone(place).utcoffset()]
    for day in changes:
        found = next_runs(parse("0 * * * *"), day, place, 26)
        assert {run.astimezone(place).minute for run in found} == {0}
        assert {second - first for first, second in pairwise(found)} <= {timedelta(minutes=minutes) for minutes in (30, 60, 90)}


RULES = ["0 9 * * *", "*/15 * * * *", "* * * * *", "* 0-22 * * *", "0 9,18 * * mon-fri", "0 0 29 2 *", "0 8 1 * *", "30 2 * * sun"]


@pytest.mark.rule("WD-135")
@given(rule=st.sampled_from(RULES), zone=st.sampled_from(ZONES), start=st.integers(0, 700 * 1440), minutes=st.integers(0, 600))
@settings(max_examples=60)
def test_the_newest_missed_run_is_the_last_of_all_missed_ones(rule: str, zone: str, start: int, minutes: int) -> None:
    place, spec = ZoneInfo(zone), parse(rule)
    after = utc("2026-01-01T00:00") + timedelta(minutes=start)
    by = after + timedelta(minutes=minutes)
    expected: datetime | None = None
    while (run := next_run(spec, expected or after, place)) is not None and run <= by:
        expected = run
    assert newest_run(spec, after, by, place) == expected

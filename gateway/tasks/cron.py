"""Cron rules: what they mean, and when they run next (WD-131 to WD-134). Pure.

A rule is read as cron means it (Sunday is 0 and 7). Its dates come from apscheduler's trigger, which is given names and explicit lists only, and is
asked in a calendar without clock changes; the instants of a date are ours (`schedule`). So none of the library's traps is reached.

A rule that names hours means the clock on the wall: each of its times has one run on each local date, after a gap when it does not exist, the first
time when it comes twice. A rule for every hour means the passing of time: it also runs in both hours of an autumn night (WD-130).
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

from gateway.language import Declined
from memory.schedule import DAY, Daily, local_date, run_on

HORIZON = timedelta(days=8 * 366)  # a rule without a run in eight years has none (WD-133)
MINUTE = timedelta(minutes=1)
HOURS = 24
DAY_MINUTES = HOURS * 60
MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_BACK = tuple(timedelta(hours=hours) for hours in (1, 24, 8 * 24, 32 * 24, 366 * 24))


class BadRule(Declined, ValueError):
    """What somebody wrote is no rule that can run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule as ascending numbers; weekdays count from Sunday, 0. `text`: as it was written.

    `either`: both day fields are limited, so that one of them is enough, as in cron (WD-132).
    """

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    either: bool

    @property
    def every_hour(self) -> bool:
        return len(self.hours) == HOURS

    @property
    def times(self) -> tuple[time, ...]:
        return tuple(time(hour, minute) for hour in self.hours for minute in self.minutes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """One of the five: the numbers it may hold. `most`: the highest that may be written. `wraps`: a span may pass its end, as fri-mon does."""

    low: int
    high: int
    most: int = 0
    names: tuple[str, ...] = ()
    wraps: bool = False


_FIELDS = (
    _Field(low=0, high=59),
    _Field(low=0, high=23, wraps=True),
    _Field(low=1, high=31),
    _Field(low=1, high=12, names=MONTHS, wraps=True),
    _Field(low=0, high=6, most=7, names=WEEKDAYS, wraps=True),
)
_ITEM = re.compile(r"(?:(?P<all>\*)|(?P<first>[a-z]+|\d{1,2})(?:-(?P<last>[a-z]+|\d{1,2}))?)(?:/(?P<step>\d{1,2}))?", re.ASCII)


def parse(text: str) -> Rule:
    """A rule of five fields, or `@daily` and its kind. Raises BadRule naming the part that is wrong."""
    written = " ".join(unicodedata.normalize("NFKC", text).split())
    parts = MACROS.get(written.lower(), written.lower()).split()
    if len(parts) != len(_FIELDS):
        raise BadRule("cron_fields")
    minutes, hours, days, months, weekdays = (_numbers(place, part) for place, part in enumerate(parts))
    return Rule(
        text=written,
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=weekdays,
        either="*" not in parts[2] and "*" not in parts[4],
    )


def next_run(rule: Rule, after: datetime, zone: ZoneInfo) -> datetime | None:
    """The first run later than `after`, in UTC; None when there is none within eight years."""
    day = local_date(after, zone) - DAY  # a run of yesterday may have been pushed past midnight
    last = day + HORIZON
    while (found := _next_date(rule, day, last)) is not None:
        at = _minute_of(rule, found, after, zone) if rule.every_hour else _time_of(rule, found, after, zone)
        if at is not None:
            return at
        day = found + DAY
    return None


def next_runs(rule: Rule, after: datetime, zone: ZoneInfo, count: int) -> list[datetime]:
    """Up to `count` runs later than `after`."""
    runs: list[datetime] = []
    while len(runs) < count and (run := next_run(rule, runs[-1] if runs else after, zone)) is not None:
        runs.append(run)
    return runs


def newest_run(rule: Rule, after: datetime, by: datetime, zone: ZoneInfo) -> datetime | None:
    """The last run later than `after` and not later than `by`: of several that were missed, the one that is made up for (WD-135)."""
    for back in (*_BACK, HORIZON):
        start = max(after, by - back)
        found: datetime | None = None
        while (run := next_run(rule, found or start, zone)) is not None and run <= by:
            found = run
        if found is not None or start == after:
            return found
    return None


def shortest_distance(rule: Rule) -> timedelta:
    """The least time on the clock between two runs, as if every date were one of the rule's."""
    marks = sorted(at.hour * 60 + at.minute for at in rule.times)
    ends = [*marks[1:], marks[0] + DAY_MINUTES]
    return timedelta(minutes=min(end - mark for mark, end in zip(marks, ends, strict=True)))


def _numbers(place: int, part: str) -> tuple[int, ...]:
    field = _FIELDS[place]
    cycle = field.high - field.low + 1
    found: set[int] = set()
    for item in part.split(","):
        match = _ITEM.fullmatch(item)
        step = int(match["step"] or 1) if match else 0
        if match is None or step == 0:
            raise BadRule("cron_part", place=place + 1, text=item)
        first = field.low if match["all"] else _number(place, match["first"])
        open_end = field.high if match["all"] or match["step"] else first
        last = _number(place, match["last"]) if match["last"] else open_end
        if first > last:
            if not field.wraps:
                raise BadRule("cron_part", place=place + 1, text=item)
            last += cycle
        found.update(field.low + (number - field.low) % cycle for number in range(first, last + 1, step))
    return tuple(sorted(found))


def _number(place: int, written: str) -> int:
    field = _FIELDS[place]
    if written in field.names:
        return field.low + field.names.index(written)
    if not written.isdigit() or not field.low <= int(written) <= max(field.high, field.most):
        raise BadRule("cron_part", place=place + 1, text=written)
    return int(written)


def _next_date(rule: Rule, first: date, last: date) -> date | None:
    """The first date from `first` that the rule names; None when there is none in the years up to that of `last`."""
    months = ",".join(str(month) for month in rule.months)
    days = ",".join(str(day) for day in rule.days)
    weekdays = ",".join(WEEKDAYS[day] for day in rule.weekdays)
    asked = [(days, None), (None, weekdays)] if rule.either else [(days, weekdays)]
    start = datetime.combine(first, time(), UTC)
    found = [_trigger(months, day, weekday, last.year).get_next_fire_time(None, start) for day, weekday in asked]
    return min((at.date() for at in found if at is not None), default=None)


@lru_cache(maxsize=256)
def _trigger(months: str, days: str | None, weekdays: str | None, last_year: int) -> CronTrigger:
    """Midnights of the dates that match, in a calendar without clock changes. It holds no state, and making it costs more than asking it."""
    end = datetime(last_year, 12, 31, tzinfo=UTC)
    return CronTrigger(month=months, day=days, day_of_week=weekdays, hour=0, minute=0, end_date=end, timezone=UTC)


def _time_of(rule: Rule, day: date, after: datetime, zone: ZoneInfo) -> datetime | None:
    """The first of the day's times later than `after`; None also for a date that the zone does not have."""
    times = rule.times
    if run_on(Daily(at=times[0]), day, zone) is None:
        return None
    place = bisect_right(times, after, key=lambda at: _instant(at, day, zone))
    return _instant(times[place], day, zone) if place < len(times) else None


def _minute_of(rule: Rule, day: date, after: datetime, zone: ZoneInfo) -> datetime | None:
    """The first minute of the day, later than `after`, whose number on the clock is one of the rule's."""
    begin = run_on(Daily(at=time()), day, zone)
    if begin is None:
        return None
    at = max(begin.at, after.astimezone(UTC).replace(second=0, microsecond=0) + MINUTE)
    while local_date(at, zone) == day:
        if at.astimezone(zone).minute in rule.minutes:
            return at
        at += MINUTE
    return None


def _instant(at: time, day: date, zone: ZoneInfo) -> datetime:
    run = run_on(Daily(at=at), day, zone)
    assert run is not None, "the zone has this date, so it has every time of it"
    return run.at

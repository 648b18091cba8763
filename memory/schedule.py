"""When something runs: pure functions from a rule, an instant and a zone to runs (WD-57, WD-129, WD-134).

A run belongs to a local date, and the ledger keeps one row per date; so these functions work date by date and never add 24 hours to anything.
Instants are aware and in UTC; wall-clock times are naive and meant in the zone.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Daily:
    """Each local date at `at` on the wall clock. `shift` delays the start, but never past midnight (WD-58)."""

    at: time
    shift: timedelta = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """`local_date` owns the run, also when a clock change pushes its instant `at` (UTC) past midnight, as in Nuuk on 2026-03-28."""

    at: datetime
    local_date: date


def local_date(instant: datetime, zone: ZoneInfo, rollover_hour: int = 0) -> date:
    """The date that owns `instant`: by the wall clock, never by subtracted seconds (RS-158). Files and their jobs have rollover hour 0."""
    wall = instant.astimezone(zone)
    return wall.date() - DAY if wall.hour < rollover_hour else wall.date()


def run_on(spec: Daily, day: date, zone: ZoneInfo) -> Run | None:
    """The run of one date. None when the zone has no such date, as Apia has no 2011-12-30.

    A time that does not exist runs at the first valid minute after the gap, one that exists twice at its first occurrence.
    """
    if not _exists(day, zone):
        return None
    until_midnight = datetime.combine(day + DAY, time()) - datetime.combine(day, spec.at)
    shift = max(min(spec.shift, until_midnight - timedelta(seconds=1)), timedelta())
    return Run(at=instant_of(datetime.combine(day, spec.at), zone) + shift, local_date=day)


def next_run(spec: Daily, after: datetime, zone: ZoneInfo) -> Run:
    """The first run later than `after`."""
    day = local_date(after, zone) - DAY  # yesterday's may have been pushed past midnight
    while True:
        run = run_on(spec, day, zone)
        if run is not None and run.at > after:
            return run
        day += DAY


def due(spec: Daily, now: datetime, zone: ZoneInfo, *, since: date, done: Collection[date] = ()) -> list[Run]:
    """What should have run by `now` and has no row in the ledger, oldest first (WD-55, WD-129).

    `since` is the first date that counts; `done` are the dates that the ledger has, whatever their zone was: a changed zone runs none twice (WD-56).
    """
    today = local_date(now, zone)
    days = (since + DAY * n for n in range((today - since).days + 1))
    runs = (run_on(spec, day, zone) for day in days if day not in done)
    return [run for run in runs if run is not None and run.at <= now]


def instant_of(wall: datetime, zone: ZoneInfo) -> datetime:
    """The UTC instant of a naive wall-clock time; in a gap, the first whole minute after it."""
    first, second = _readings(wall, zone)
    if first <= second:  # ordinary, or twice
        return first
    return _end_of_gap(second, first, zone)


def _exists(day: date, zone: ZoneInfo) -> bool:
    """Whether any instant has this local date. Midnight or noon may be in a gap; only a gap over the whole day takes the date away."""
    start, end = (datetime.combine(d, time()) for d in (day, day + DAY))
    return _wall(instant_of(start, zone), zone) < end


def _readings(wall: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """`wall` read with the offset in force before a change nearby and after it. Equal on ordinary days, the first later in a gap."""
    before, after = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return before, after


def _end_of_gap(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The change lies in (before, after] at a whole second: halve until it is found, then up to the next whole minute on the wall."""
    old = before.astimezone(zone).utcoffset()
    low, high = math.floor(before.timestamp()), math.ceil(after.timestamp())
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if datetime.fromtimestamp(middle, zone).utcoffset() == old else (low, middle)
    change = datetime.fromtimestamp(high, UTC)
    return change + timedelta(seconds=-_wall(change, zone).second % 60)


def _wall(instant: datetime, zone: ZoneInfo) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None)

"""Where the days, weeks, months and years of a talk begin and end. Pure; which day owns an instant is `memory.schedule.local_date` (RS-158)."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from memory.schedule import DAY, instant_of


def end_of(day: date, zone: ZoneInfo, rollover_hour: int = 0) -> datetime:
    """The UTC instant from which a later day owns what is said. In a gap of the clock, behind it; an hour that comes twice begins the day the first
    time. `rollover_hour`: 0 to 11."""
    return instant_of(datetime.combine(day + DAY, time(rollover_hour)), zone)


def week_of(day: date) -> date:
    """The Monday of its week (RS-164)."""
    return day - timedelta(days=day.weekday())


def month_of(day: date) -> date:
    return day.replace(day=1)


def year_of(day: date) -> date:
    return day.replace(month=1, day=1)

"""A cron rule in words, in three languages, and an instant as a person reads it (WD-132). Pure.

The sentences are built from pieces of the catalogue; which pieces depends on the numbers of the rule alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time
from functools import partial
from zoneinfo import ZoneInfo

from gateway.language import say
from gateway.tasks.cron import Rule

TIMES_LISTED = 6  # so many times of a day are named one by one
SPAN = 3  # so many neighbours are said as a span
_MONDAY_FIRST = (1, 2, 3, 4, 5, 6, 0)


def explain(rule: Rule, language: str) -> str:
    """`0 9 * * 1-5` is "every Monday to Friday at 09:00"."""
    by_name = len(rule.times) <= TIMES_LISTED or (len(rule.minutes) == 1 and len(_runs(rule.hours)) > 1)
    named = [f"{at:%H:%M}" for at in rule.times]
    times = say(language, "cron_at", times=_listed(named, language)) if by_name else _pattern(rule, language)
    days = _days(rule, language)
    if not by_name and days == say(language, "cron_every_day"):
        return times
    return say(language, "cron_rule", days=days, times=times)


def moment(at: datetime, zone: ZoneInfo, language: str) -> str:
    """`at` on the clock of `zone`: date, time and weekday."""
    wall = at.astimezone(zone)
    weekday = _names("cron_weekdays", language)[wall.isoweekday() % 7]
    return say(language, "cron_moment", date=f"{wall:%Y-%m-%d}", time=f"{wall:%H:%M}", weekday=weekday)


def _pattern(rule: Rule, language: str) -> str:
    """Times that are too many to name: by the minutes of an hour, and from when to when."""
    minutes = list(rule.minutes)
    step = 60 // len(minutes)
    if len(minutes) == 60:
        words = say(language, "cron_every_minute")
    elif minutes == [0]:
        words = say(language, "cron_every_hour")
    elif len(minutes) > 1 and minutes == list(range(0, 60, step)):
        words = say(language, "cron_every_minutes", n=step)
    else:
        words = say(language, "cron_hour_minutes", minutes=_listed([f"{minute}" for minute in minutes], language))
    if rule.every_hour:
        return words
    spans = [(time(run[0], minutes[0]), time(run[-1], minutes[-1])) for run in _runs(rule.hours)]
    said = [say(language, "cron_span", first=f"{first:%H:%M}", last=f"{last:%H:%M}") for first, last in spans]
    return say(language, "cron_during", times=words, spans=_listed(said, language))


def _days(rule: Rule, language: str) -> str:
    tell = partial(say, language)
    months = "" if len(rule.months) == 12 else _spoken(rule.months, _names("cron_months", language), language, first=1)
    ordered = [day for day in _MONDAY_FIRST if day in rule.weekdays]
    names = _names("cron_weekdays", language)
    weekdays = _spoken([_MONDAY_FIRST.index(day) for day in ordered], [names[day] for day in _MONDAY_FIRST], language)
    monthdays = _spoken(rule.days, _names("cron_monthdays", language), language, first=1)
    every_date, every_weekday = len(rule.days) == 31, len(rule.weekdays) == 7
    on_dates = tell("cron_on_dates", monthdays=monthdays, months=months) if months else tell("cron_on_monthdays", monthdays=monthdays)
    on_weekdays = tell("cron_on_weekdays", weekdays=weekdays)
    if months:
        on_weekdays = tell("cron_in_months", days=on_weekdays, months=months)
    if rule.either and not (every_date or every_weekday):
        return tell("cron_either", first=on_dates, second=on_weekdays)
    if (every_date and every_weekday) or rule.either:
        return tell("cron_in_months", days=tell("cron_every_day"), months=months) if months else tell("cron_every_day")
    if every_date:
        return on_weekdays
    return on_dates if every_weekday else tell("cron_both", first=on_dates, weekdays=weekdays)


def _spoken(numbers: Sequence[int], names: Sequence[str], language: str, *, first: int = 0) -> str:
    """Ascending numbers by their names, three and more neighbours as a span. `first`: the number of the first name."""
    said: list[str] = []
    for run in _runs(numbers):
        words = [names[number - first] for number in run]
        said += [say(language, "cron_span", first=words[0], last=words[-1])] if len(words) >= SPAN else words
    return _listed(said, language)


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Ascending numbers as stretches without a gap."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _listed(words: Sequence[str], language: str) -> str:
    if len(words) == 1:
        return words[0]
    whole = words[0]
    for word in words[1:-1]:
        whole = say(language, "cron_list", first=whole, second=word)
    return say(language, "cron_and", list=whole, last=words[-1])


def _names(key: str, language: str) -> list[str]:
    return say(language, key).split(",")

"""Dates as people say them, in digits and in words, in English, Japanese and Chinese: 2026-03-08, 8 March, 3月8日, 明日, next Tuesday (WD-70). Pure.

Two questions: which dates does a text name, and which follow from what it says when the day it was said on is known. Both lean towards yes where
a way of writing has two readings (3/8, 03/08/2026): they guard against invention, not against doubt.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

Unit = Literal["day", "month", "year"]

_MONTHS = {name: at for at in range(1, 13) for name in (calendar.month_name[at].lower(), calendar.month_abbr[at].lower())} | {"sept": 9}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_CHINESE_DAYS = ("一1", "二2", "三3", "四4", "五5", "六6", "日天")  # as they stand once Han numbers are digits, and before
_WEEKDAYS = {
    "monday": 0, "tuesday": 1, "wednesday": 2, "thursday": 3, "friday": 4, "saturday": 5, "sunday": 6,
    "月曜": 0, "火曜": 1, "水曜": 2, "木曜": 3, "金曜": 4, "土曜": 5, "日曜": 6,
    **{f"{week}{day}": at for week in ("周", "週", "星期", "礼拜", "禮拜") for at, days in enumerate(_CHINESE_DAYS) for day in days},
}  # fmt: skip
_WEEKDAY = re.compile("|".join(map(re.escape, _WEEKDAYS)))
_WEEKDAY_REACH = (-7, 14)

# What is named by a word, counted from the day it was said: from, until, in days, months or years.
_RELATIVE: tuple[tuple[str, int, int, Unit], ...] = (
    (r"day before yesterday|一昨日|おととい|前天", -2, -2, "day"),
    (r"yesterday|last night|昨日|きのう|昨夜|昨晩|昨天|昨晚", -1, -1, "day"),
    (r"tomorrow|明日|あした|明天|明晚|明早", 1, 1, "day"),
    (r"day after tomorrow|明後日|あさって|后天|後天", 2, 2, "day"),
    (r"大后天|大後天|しあさって", 3, 3, "day"),
    (r"this week(?!end)|今週|这周|這週|本周|本週|这个?星期|這個?星期|这礼拜", -6, 6, "day"),
    (r"next week(?!end)|来週|下周|下週|下个?星期|下個?星期|下个?礼拜", 1, 14, "day"),
    (r"last week(?!end)|先週|上周|上週|上个?星期|上個?星期|上个?礼拜", -14, -1, "day"),
    (r"再来週|下下周|下下週", 8, 21, "day"),
    (r"weekend|週末|周末", -8, 14, "day"),
    (r"this month|今月|这个?月|這個?月|本月", 0, 0, "month"),
    (r"next month|来月|下个?月|下個月", 1, 1, "month"),
    (r"last month|先月|上个?月|上個月", -1, -1, "month"),
    (r"this year|今年", 0, 0, "year"),
    (r"next year|来年|明年", 1, 1, "year"),
    (r"last year|去年|昨年", -1, -1, "year"),
)
_RELATIVE_FOUND: tuple[tuple[re.Pattern[str], int, int, Unit], ...] = tuple(
    (re.compile(words), first, last, unit) for words, first, last, unit in _RELATIVE
)
_UNITS = (("days?|日|天", 1, 0), ("weeks?|週間|周|週|个?星期|個星期", 7, 1), ("months?|[ヶか箇カケ]月|个月|個月", 30, 5), ("years?|年", 365, 6))
_BEHIND = r"(?:\s+(?:ago|before|earlier)|前|以前|之前)"
_AHEAD = r"(?:\s+(?:later|from now|after)|[後后]|以後|以后|之後|之后)"
_SMALL_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMBER_WORDS = {word: at for at, word in enumerate(_SMALL_NUMBERS, start=1)}
_COUNTS = NUMBER_WORDS | {"a": 1, "an": 1, "a couple of": 2}
_COUNTED = tuple(
    (re.compile(rf"(?P<ahead>\bin\s+)?(?P<count>[0-9]{{1,3}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))})\s*(?:{unit})"
                rf"(?:(?P<behind>{_BEHIND})|(?P<later>{_AHEAD}))?"), days, slack)
    for unit, days, slack in _UNITS
)  # fmt: skip

_HAN = "[〇零一二三四五六七八九十百]"
_HAN_NUMBER = re.compile(rf"(?<!{_HAN}){_HAN}+(?=[年月日号號時时点點歳才岁匹人個个只隻条本枚冊回次件円元块塊度名天周週番階层]|[ヶか]月|曜)")
_HAN_DIGITS = {"〇": 0, "零": 0, **{sign: at for at, sign in enumerate("一二三四五六七八九", start=1)}}


@dataclass(frozen=True, slots=True)
class Said:
    """A date as a text names it: what it leaves open is None. `start`, `end`: where it stands."""

    year: int | None
    month: int | None
    day: int | None
    start: int
    end: int


def with_digits(text: str) -> str:
    """`text` with Han numbers in front of a unit as digits: 三月八日 is 3月8日."""
    return _HAN_NUMBER.sub(lambda found: str(_han(found[0])), text)


_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<![0-9])(?P<year>[0-9]{4})[-/.](?P<month>[0-9]{1,2})[-/.](?P<day>[0-9]{1,2})(?![0-9])",
        r"(?<![0-9])(?P<first>[0-9]{1,2})[./-](?P<second>[0-9]{1,2})[./-](?P<year>[0-9]{4})(?![0-9])",
        r"(?:(?<![0-9])(?P<year>[0-9]{4})\s?年\s?)?(?<![0-9])(?P<month>[0-9]{1,2})\s?月\s?(?P<day>[0-9]{1,2})\s?[日号號]",
        r"(?<![0-9])(?P<year>[0-9]{4})\s?年\s?(?P<month>[0-9]{1,2})\s?月",
        r"(?<![0-9])(?P<month>[0-9]{1,2})\s?月(?!\s?[0-9])",
        r"(?<![0-9])(?P<year>[0-9]{4})\s?年",
        rf"(?<![0-9a-z])(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?(?P<name>{_MONTH})(?![a-z])\.?(?:,?\s+(?P<year>[0-9]{{4}})(?![0-9]))?",
        rf"(?<![a-z])(?P<name>{_MONTH})\.?\s+(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?(?![0-9a-z:])(?:,?\s+(?P<year>[0-9]{{4}})(?![0-9]))?",
        rf"(?<![a-z])(?P<name>{_MONTH})\.?,?\s+(?P<year>[0-9]{{4}})(?![0-9])",
    )
)
_SHORT = re.compile(r"(?<![0-9/.])(?P<first>[0-9]{1,2})/(?P<second>[0-9]{1,2})(?![0-9/])")
_DAY_ALONE = re.compile(r"(?<![0-9a-z月])(?P<day>[0-9]{1,2})(?:st|nd|rd|th|\s?日(?!間|前|後|后)|\s?[号號])")


def named(text: str) -> tuple[Said, ...]:
    """The dates that `text` (lower case, plain digits, `with_digits`) names for certain, in no order; a stretch is read once."""
    found: list[Said] = []
    read = bytearray(len(text))  # 1: a sign of a date that was found
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            start, end = match.span()
            if not any(read[start:end]) and (said := _readings(match)):
                found += said
                read[start:end] = b"\1" * (end - start)
    return tuple(found)


def mentioned(text: str) -> tuple[Said, ...]:
    """`named`, and what may be one: 3/8, the 8th, 8日."""
    short = [said for match in _SHORT.finditer(text) for said in _readings(match)]
    alone = [said for match in _DAY_ALONE.finditer(text) for said in _readings(match)]
    return (*named(text), *short, *alone)


@dataclass(frozen=True, slots=True)
class Reach:
    """Days that follow from a word, counted in `unit` from the day it was said; `weekday` 0 is Monday, None is any."""

    first: int
    last: int
    unit: Unit = "day"
    weekday: int | None = None

    def span(self, base: date) -> tuple[date, date]:
        match self.unit:
            case "day":
                return base + timedelta(days=self.first), base + timedelta(days=self.last)
            case "month":
                return _month(base, self.first)[0], _month(base, self.last)[1]
            case "year":
                return date(base.year + self.first, 1, 1), date(base.year + self.last, 12, 31)


def reaches(text: str) -> tuple[Reach, ...]:
    """What the words of `text` reach from the day they were said on."""
    found = [Reach(first, last, unit) for pattern, first, last, unit in _RELATIVE_FOUND if pattern.search(text)]
    found += [Reach(*_WEEKDAY_REACH, weekday=_WEEKDAYS[match[0]]) for match in _WEEKDAY.finditer(text)]
    for pattern, days, slack in _COUNTED:
        for match in pattern.finditer(text):
            count = _COUNTS[match["count"]] if match["count"] in _COUNTS else int(match["count"])
            away = count * days
            for sign in (1,) if match["ahead"] or match["later"] else (-1,) if match["behind"] else ():
                near, far = sign * (away - slack * count), sign * (away + slack * count)
                found.append(Reach(min(near, far), max(near, far)))
    return tuple(found)


def agrees(said: Said, other: Said, bases: Iterable[date]) -> bool:
    """Whether `said` says nothing that `other` does not: a year or month that `other` leaves open must be one near a day it was said on."""
    for field in ("day", "month", "year"):
        mine, theirs = getattr(said, field), getattr(other, field)
        if mine is not None and theirs is not None and mine != theirs:
            return False
    if (said.day is not None and other.day is None) or (said.month is not None and other.month is None and other.day is None):
        return False
    if (said.year is not None and other.year is None) or (said.month is not None and other.month is None):
        span = 31 if other.month is None else 366
        return any(_near(said, base, span) for base in bases)
    return True


def follows(said: Said, base: date, reaches: Iterable[Reach]) -> bool:
    """Whether `said` is the day `base` or one that a word reaches from it."""
    for reach in (Reach(0, 0), *reaches):
        earliest, latest = reach.span(base)
        for first, last in _spans(said, base):
            if first <= latest and earliest <= last and (reach.weekday is None or (first == last and first.weekday() == reach.weekday)):
                return True
    return False


def _near(said: Said, base: date, days: int) -> bool:
    return any(abs((first - base).days) <= days or abs((last - base).days) <= days for first, last in _spans(said, base))


def _month(base: date, away: int) -> tuple[date, date]:
    """The first and last day of the month that is `away` months from that of `base`."""
    year, month = divmod(base.year * 12 + base.month - 1 + away, 12)
    return date(year, month + 1, 1), date(year, month + 1, calendar.monthrange(year, month + 1)[1])


def _spans(said: Said, base: date) -> Iterator[tuple[date, date]]:
    """The days that `said` may mean, with the years around `base` where it names none."""
    for year in (said.year,) if said.year else (base.year - 1, base.year, base.year + 1):
        try:
            first = date(year, said.month or 1, said.day or 1)
        except ValueError:  # 30 February, year 0
            continue
        if said.month is None:
            yield first, date(year, 12, 31)
        elif said.day is None:
            yield first, date(year, said.month, calendar.monthrange(year, said.month)[1])
        else:
            yield first, first


def _readings(match: re.Match[str]) -> list[Said]:
    parts = {name: value for name, value in match.groupdict().items() if value is not None}
    year = int(parts["year"]) if "year" in parts else None
    if "first" in parts:
        first, second = int(parts["first"]), int(parts["second"])
        pairs = {(first, second), (second, first)}
    else:
        month = _MONTHS[parts["name"]] if "name" in parts else int(parts["month"]) if "month" in parts else None
        pairs = {(month, int(parts["day"]) if "day" in parts else None)}
    return [
        Said(year, month, day, match.start(), match.end())
        for month, day in pairs
        if (month is None or 1 <= month <= 12) and (day is None or 1 <= day <= 31)
    ]


def _han(number: str) -> int:
    if not set(number) & {"十", "百"}:
        return int("".join(str(_HAN_DIGITS[sign]) for sign in number))
    total, digit = 0, 0
    for sign in number:
        if sign in _HAN_DIGITS:
            digit = _HAN_DIGITS[sign]
        else:
            total += (digit or 1) * (10 if sign == "十" else 100)
            digit = 0
    return total + digit

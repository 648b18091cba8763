"""The days of a chat: which are due, which weeks, months and years are folded, what is sent raw (RS-51 to RS-61, RS-161 to RS-166).

Pure. Coverage is by the numbers of messages, so that another zone or hour sorts only what no row stands for yet (RS-159).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

from memory.days import end_of, month_of, week_of, year_of
from memory.recall.kinds import Kind
from memory.recall.summary_rows import Detail, Summary
from memory.schedule import local_date

WEEK = timedelta(days=7)
NEWEST_WEEKS, NEWEST_MONTHS = 4, 3  # that are never folded into a month or a year
QUARTER = 3  # months of a year that is not over, below which it is not folded: each time its row is written anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """A real message without its words: its number, when it was said, and the key of its audience (RS-186)."""

    seq: int
    at: datetime
    audience: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """How a chat counts its days. `idle`: silence after which a finished day is summarised; `latest`: after its end, in spite of talk (RS-161)."""

    zone: ZoneInfo
    rollover_hour: int = 4
    idle: timedelta = timedelta(minutes=15)
    latest: timedelta = timedelta(hours=3)

    def day_of(self, instant: datetime) -> date:
        return local_date(instant, self.zone, self.rollover_hour)

    def end_of(self, day: date) -> datetime:
        return end_of(day, self.zone, self.rollover_hour)


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """Messages of one logical day and audience that no row stands for, in order."""

    day: date
    audience: str
    seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Rows that become one row of `kind` for the period that begins at `day`. `failed`: days of it that have no row."""

    kind: Kind
    day: date
    audience: str
    inputs: tuple[Summary, ...]
    failed: tuple[str, ...] = ()

    def is_among(self, passed: Collection[int]) -> bool:
        """Whether all its rows are among those with these ids."""
        return all(row.id in passed for row in self.inputs)


def uncovered_days(waiting: Iterable[Stamp], clock: Clock) -> list[Day]:
    """The logical days of messages that no row stands for, the oldest first, each audience apart."""
    found: dict[tuple[date, str], list[int]] = defaultdict(list)
    for message in waiting:
        found[(clock.day_of(message.at), message.audience)].append(message.seq)
    return [Day(day=day, audience=audience, seqs=tuple(sorted(seqs))) for (day, audience), seqs in sorted(found.items())]


def is_over(day: date, clock: Clock, now: datetime, last_said: datetime | None) -> bool:
    """Whether a day may be summarised: it has ended, and the chat was silent for a while, or it ended long enough ago (RS-161)."""
    end = clock.end_of(day)
    silent_since = end if last_said is None else max(end, last_said)
    return now >= end + clock.latest or now >= silent_since + clock.idle


def next_look(day: date, clock: Clock, now: datetime, last_said: datetime | None) -> datetime:
    """When `is_over` may become true for a day that is not over yet, without more talk."""
    end = clock.end_of(day)
    return max(now, min(end + clock.latest, max(end, last_said or end) + clock.idle))


def weeks_to_fold(rows: Sequence[Summary], waiting: Sequence[Day], clock: Clock, now: datetime) -> list[Fold]:
    """Weeks that are over and whose days all have rows; a week later also without those that failed, which are named (RS-164).

    `rows`: the active day and week rows; `waiting`: days without a row. A week that was folded without a day is folded again with its row.
    """
    folds: list[Fold] = []
    weeks = {(row.audience, row.local_date): row for row in rows if row.kind is Kind.WEEK}
    days = _by_period(rows, Kind.DAY, week_of)
    missing: dict[tuple[str, date], list[str]] = defaultdict(list)
    for day in waiting:
        missing[(day.audience, week_of(day.day))].append(day.day.isoformat())
    for (audience, monday), inputs in sorted(days.items(), key=lambda item: (item[0][1], item[0][0])):
        over = clock.end_of(monday + WEEK - timedelta(days=1))
        failed = missing[(audience, monday)]
        if now < over or (failed and now < over + WEEK):
            continue
        before = weeks.get((audience, monday.isoformat()))
        if any(row.stale and not row.hand_edited for row in (*inputs, *([before] if before else []))):
            continue  # it is made anew first, or what it says now would be told for good (RS-166)
        folds.append(Fold(
            kind=Kind.WEEK, day=monday, audience=audience, inputs=(*([before] if before else []), *inputs), failed=tuple(sorted(set(failed))),
        ))  # fmt: skip
    return folds


def to_compress(rows: Sequence[Summary], passed: Collection[int] = ()) -> Fold | None:
    """What is folded next while standing text is above its share: the oldest month of weeks, then the oldest year of months, then what can be of
    one whose newest months stay, for its months alone may be more than the share (RS-164).

    None when nothing may be folded further; then the oldest year row is halved (see `to_halve`). `passed`: ids of rows of which nothing is to be made
    but together with others (RS-111).
    """
    return (
        _oldest(rows, Kind.WEEK, Kind.MONTH, month_of, passed, spared=NEWEST_WEEKS)
        or _oldest(rows, Kind.MONTH, Kind.YEAR, year_of, passed, spared=NEWEST_MONTHS)
        or _oldest(rows, Kind.MONTH, Kind.YEAR, year_of, passed, spared=NEWEST_MONTHS, part=QUARTER)
    )


def to_halve(rows: Sequence[Summary], passed: Collection[int] = ()) -> Summary | None:
    """The oldest year row that nobody wrote by hand, none of those `passed`, and of no year some months of which still stand: it is not what makes
    the text long."""
    unfinished = {year_of(date.fromisoformat(row.local_date)).isoformat() for row in rows if row.kind is Kind.MONTH}
    years = (row for row in rows if row.kind is Kind.YEAR and not row.hand_edited and row.id not in passed and row.local_date not in unfinished)
    return min(years, key=lambda row: row.local_date, default=None)


def raw(talk: Sequence[Stamp], covered: Collection[int], clock: Clock, now: datetime, *, tail: int) -> list[int]:
    """Numbers of the messages that are sent word for word: today's, those of days without a row, and the newest `tail` of summarised earlier days
    (RS-53, RS-57)."""
    today = clock.day_of(now)
    earlier = [message.seq for message in talk if message.seq in covered and clock.day_of(message.at) < today]
    kept = set(earlier[len(earlier) - tail :]) if tail else set[int]()
    return [message.seq for message in talk if message.seq in kept or message.seq not in covered or clock.day_of(message.at) >= today]


def backfill(waiting: Sequence[Day], clock: Clock, now: datetime, *, most: int) -> list[Day]:
    """The newest `most` days without a row that are past (RS-58, RS-167)."""
    today = clock.day_of(now)
    wanted = sorted({day.day for day in waiting if day.day < today}, reverse=True)[:most]
    return sorted((day for day in waiting if day.day in wanted), key=lambda day: (-day.day.toordinal(), day.audience))


class Detailed(Protocol):
    """A row, or what will become one."""

    @property
    def id(self) -> int: ...
    @property
    def last_seq(self) -> int: ...
    @property
    def details(self) -> tuple[Detail, ...]: ...


def remember(rows: Sequence[Detailed], *, room: int, size: Callable[[str], int]) -> tuple[Detail, ...]:
    """Key details of the sent rows within `room` tokens: open promises and plans by due date, then open questions, then the newest facts (RS-165).

    Equal details are one, in their newest state; a resolved one is told no more. `size`: tokens of a text.
    """
    newest: dict[str, tuple[int, Detail]] = {}
    for at, row in enumerate(sorted(rows, key=lambda row: (row.last_seq, row.id))):
        for detail in row.details:
            newest[detail.sense] = (at, detail)
    still = [(at, detail) for at, detail in newest.values() if detail.state == "open"]
    kept: list[Detail] = []
    for _, detail in sorted(still, key=lambda found: (_RANK.get(found[1].kind, 2), found[1].due or "9999", -found[0], found[1].text)):
        cost = size(detail.text)
        if cost <= room:
            kept.append(detail)
            room -= cost
    return tuple(kept)


_RANK = {"promise": 0, "plan": 0, "question": 1}


def _by_period(rows: Sequence[Summary], kind: Kind, period: Callable[[date], date]) -> dict[tuple[str, date], list[Summary]]:
    found: dict[tuple[str, date], list[Summary]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.local_date, row.part)):
        if row.kind is kind:
            found[(row.audience, period(date.fromisoformat(row.local_date)))].append(row)
    return found


def _oldest(
    rows: Sequence[Summary], kind: Kind, into: Kind, period: Callable[[date], date], passed: Collection[int], *, spared: int, part: int = 0
) -> Fold | None:
    """The oldest period of `kind` rows, none of which is among the newest `spared` dates; with `part`, at least so many rows of it that are not."""
    newest = set(sorted({row.local_date for row in rows if row.kind is kind}, reverse=True)[:spared])
    periods = _by_period(rows, kind, period)
    for (audience, first), found in sorted(periods.items(), key=lambda item: (item[0][1], item[0][0])):
        inputs = [row for row in found if row.local_date not in newest]
        if len(inputs) < (part or len(found)):
            continue
        before = [row for row in rows if row.kind is into and row.audience == audience and row.local_date == first.isoformat()]
        if any(row.stale and not row.hand_edited for row in (*before, *inputs)):
            continue  # as above
        fold = Fold(kind=into, day=first, audience=audience, inputs=(*before, *inputs))
        if not fold.is_among(passed):
            return fold
    return None

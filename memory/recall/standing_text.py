"""The standing summaries of a chat as its prompt shows them (RS-43, RS-53, RS-165, RS-170, RS-171). Pure: the same rows give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Protocol

from memory import tokens
from memory.blocks import HEAD
from memory.recall import calendar_plan
from memory.recall.fitting import LEFT_OUT, NOTHING, Piece, Standing, Stood, fit
from memory.recall.kinds import Kind
from memory.recall.summary_rows import Detail, Summary

EXTRACTS = "[not summarised yet]"
REMEMBER = "[to remember]"
_ORDER = {Kind.LONG_TERM: 0, Kind.CONSOLIDATED: 1, Kind.RECENT: 2, Kind.YEAR: 0, Kind.MONTH: 1, Kind.WEEK: 2, Kind.DAY: 3}


class Earlier(calendar_plan.Detailed, Protocol):
    """A summary of a part of a day that has no row yet (RS-162). `day`: YYYY-MM-DD; `begins`, `ends`: local times, HH:MM."""

    @property
    def day(self) -> str: ...
    @property
    def begins(self) -> str: ...
    @property
    def ends(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def first_seq(self) -> int: ...


def text_of(
    rows: Sequence[Summary],
    *,
    earlier: Sequence[Earlier] = (),
    today: str = "",
    extracts: Sequence[Piece] = (),
    remember_tokens: int = 0,
    most: int = 0,
) -> Standing:
    """Everything that stands for talk that is not sent, the oldest first, and what of it there is room for; nothing when nothing does.

    `earlier`: of days that have no row, in order, `today` (YYYY-MM-DD) among them; `extracts`: lines of turns that left and wait for their summary;
    `remember_tokens`: for the key details of the rows; `most`: tokens in all, 0 for no limit: then the oldest give way, the one at the edge down to
    an excerpt, and the text says so (RS-70).
    """
    details = calendar_plan.remember([*rows, *earlier], room=remember_tokens, size=_size) if remember_tokens else ()
    ordered = sorted(rows, key=lambda row: (_ORDER.get(row.kind, 4), row.local_date, row.first_seq, row.part, row.id))
    remembered = [REMEMBER, *map(_told, details)] if details else []
    pieces = [*(_row(row) for row in ordered if row.text), *(_part(part, today) for part in earlier)]
    if not pieces and not extracts and not remembered:
        return NOTHING
    around = [HEAD, LEFT_OUT, *([EXTRACTS] if extracts else []), *remembered]
    fitted = fit([*pieces, *extracts], most - tokens.count("\n".join(around)) if most else None)
    waiting = min(len(extracts), len(fitted.shown))  # the newest are those
    told, unsummarised = fitted.shown[: len(fitted.shown) - waiting], fitted.shown[len(fitted.shown) - waiting :]
    lines = [
        HEAD,
        *([] if fitted.whole else [LEFT_OUT]),
        *(piece.text for piece in told),
        *([EXTRACTS, *(piece.text for piece in unsummarised)] if unsummarised else []),
        *remembered,
    ]
    return Standing(text="\n".join(lines), stood=fitted.stood, left_out=fitted.left_out)


def _row(row: Summary) -> Piece:
    begin = label(row) + (f", without {', '.join(row.failed_days)}" if row.failed_days else "")
    first, last = days_of(row)
    of = Stood(id=row.id, kind=row.kind, begin=first, end=last, first=row.first_seq, last=row.last_seq)
    return Piece(of=of, label=f"{begin}: " if begin else "", words=row.text)


def _part(part: Earlier, today: str) -> Piece:
    day = "earlier today" if part.day == today else f"{part.day} {date.fromisoformat(part.day):%A}"
    of = Stood(kind="part", begin=part.day, end=part.day, first=part.first_seq, last=part.last_seq)
    return Piece(of=of, label=f"{day}, {part.begins} to {part.ends}: ", words=part.text)


def days_of(row: Summary) -> tuple[str, str]:
    """The first and the last local date that a row of days is about; empty for the others."""
    if not row.local_date:
        return "", ""
    day = date.fromisoformat(row.local_date)
    match row.kind:
        case Kind.YEAR:
            last = day.replace(month=12, day=31)
        case Kind.MONTH:
            last = (day.replace(day=1) + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        case Kind.WEEK:
            last = day + timedelta(days=6)
        case _:
            last = day
    return day.isoformat(), last.isoformat()


def label(row: Summary) -> str:
    """The time that a row of days stands for; empty for the others."""
    if not row.local_date:
        return ""
    day = date.fromisoformat(row.local_date)
    part = f" ({row.part})" if row.part else ""
    match row.kind:
        case Kind.YEAR:
            return f"{day:%Y}{part}"
        case Kind.MONTH:
            return f"{day:%Y-%m}{part}"
        case Kind.WEEK:
            return f"{day} to {day + timedelta(days=6)}{part}"
        case _:
            return f"{day} {day:%A}{part}"


def _told(detail: Detail) -> str:
    return f"- {detail.kind}{f' by {detail.due}' if detail.due else ''}: {detail.text}"


def _size(text: str) -> int:
    return tokens.count(text) + 6  # of the dash and the kind

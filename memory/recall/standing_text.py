"""The standing summaries of a chat as its prompt shows them (RS-43, RS-53, RS-165, RS-170, RS-171). Pure: the same rows give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Protocol

from memory import tokens
from memory.blocks import HEAD
from memory.recall import calendar_plan
from memory.recall.kinds import Kind
from memory.recall.summary_rows import Detail, Summary

LEFT_OUT = "[… older summaries left out: too long …]"
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


def text_of(
    rows: Sequence[Summary],
    *,
    earlier: Sequence[Earlier] = (),
    today: str = "",
    extracts: Sequence[str] = (),
    remember_tokens: int = 0,
    most: int = 0,
) -> str:
    """Everything that stands for talk that is not sent, the oldest first; empty when nothing does.

    `earlier`: of days that have no row, in order, `today` (YYYY-MM-DD) among them; `extracts`: of turns that left and wait for their summary, one
    bullet a line; `remember_tokens`: for the key details of the rows; `most`: tokens in all, 0 for no limit: then the oldest rows are left out, and
    the text says so.
    """
    details = calendar_plan.remember([*rows, *earlier], room=remember_tokens, size=_size) if remember_tokens else ()
    ordered = sorted(rows, key=lambda row: (_ORDER.get(row.kind, 4), row.local_date, row.first_seq, row.part, row.id))
    after = [
        *([EXTRACTS, *(f"- {line}" for text in extracts for line in text.split("\n") if line.strip())] if extracts else []),
        *([REMEMBER, *map(_told, details)] if details else []),
    ]
    shown = [*(_row(row) for row in ordered if row.text), *(_part(part, today) for part in earlier)]
    if not shown and not after:
        return ""
    kept = _newest(shown, most - tokens.count("\n".join([HEAD, LEFT_OUT, *after]))) if most else shown
    return "\n".join([HEAD, *([LEFT_OUT] if len(kept) < len(shown) else []), *kept, *after])


def _newest(shown: Sequence[str], room: int) -> list[str]:
    """The longest end of `shown` within `room` tokens: a row is whole or left out."""
    kept: list[str] = []
    for text in reversed(shown):
        room -= tokens.count(text) + 1
        if room < 0:
            break
        kept.append(text)
    return kept[::-1]


def _row(row: Summary) -> str:
    begin = label(row) + (f", without {', '.join(row.failed_days)}" if row.failed_days else "")
    return f"{begin}: {row.text}" if begin else row.text


def _part(part: Earlier, today: str) -> str:
    day = "earlier today" if part.day == today else f"{part.day} {date.fromisoformat(part.day):%A}"
    return f"{day}, {part.begins} to {part.ends}: {part.text}"


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

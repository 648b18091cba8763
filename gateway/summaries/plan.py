"""Which stretches of the log one summary job takes, settled in one transaction before any work (WD-49, WD-50, WD-53, WD-54).

The plan is kept with the job, so every later run of it takes the same stretches; and as long as the job is not ended, no other job takes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from memory import coverage
from memory.coverage import Range, Talk
from memory.schedule import local_date
from memory.schema import conversations, job_parts, jobs, spaces
from memory.scopes import space_scope

TRIM, DAILY, OVERFLOW = "trim-summary", "daily-summary", "overflow-summary"
PLAN = "plan"  # what the names of the parts begin with under which jobs keep their plans


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One conversation's talk of one local date. `section`: as in `coverage`; `at`: HH:MM of its last message; `file`: it is not covered yet, so it
    goes to the day's file; `character`: who answers there."""

    conversation_id: str
    label: str
    local_date: str
    section: str
    at: str
    ranges: tuple[Range, ...]
    character: str = ""
    file: bool = True

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "ranges": [list(each) for each in self.ranges]}

    @staticmethod
    def of_json(value: Mapping[str, Any]) -> Segment:
        known: dict[str, Any] = {**value, "ranges": tuple((int(first), int(last)) for first, last in value["ranges"])}
        return Segment(**known)


def daily(connection: sa.Connection, scope: str, day: date, zone: ZoneInfo, *, job_id: int, manual: bool = False) -> list[Segment]:
    """What the run of `day` takes: its own date, and what was left over of dates that had their run already, as late ones.

    Other dates wait for a run of their own; `manual`: they are taken too. Nothing after the end of `day`.
    """
    one_at_a_time(connection, scope)
    taken = reserved(connection, scope, job_id)
    ended = ledger(connection, scope, states=("done",))
    groups: dict[tuple[date, str], list[Talk]] = {}
    for message in coverage.uncovered(connection, scope):
        own = local_date(message.created_at, zone)
        wanted = own == day or (own < day and (manual or own.isoformat() in ended))
        if wanted and not coverage.within(message.seq, taken.get(message.conversation_id, ())):
            groups.setdefault((own, message.conversation_id), []).append(message)
        else:  # between two that are taken it must stay uncovered
            taken.setdefault(message.conversation_id, []).append((message.seq, message.seq))
    found: list[Segment] = []
    for (own, of), talk in sorted(groups.items(), key=lambda group: (group[0][0], group[1][0].seq)):
        others = [(message.seq, message.seq) for (date_, chat), theirs in groups.items() if chat == of and date_ != own for message in theirs]
        section = "late" if own < day and own.isoformat() in ended else "summary"
        found.append(_segment(connection, scope, talk, own, zone, section=section, borders=[*taken.get(of, ()), *others]))
    return found


def stretch(
    connection: sa.Connection, scope: str, conversation_id: str, first: int, last: int, zone: ZoneInfo, *, job_id: int, section: str
) -> list[Segment]:
    """What a stretch that left the context consists of, by date; what is covered already, or another job's, is marked and goes to no file."""
    one_at_a_time(connection, scope)
    taken = reserved(connection, scope, job_id).get(conversation_id, [])
    taken += [row.range for row in coverage.covered(connection, conversation_id, first, last)]
    groups: list[tuple[date, bool, list[Talk]]] = []
    for message in coverage.talk_in(connection, conversation_id, scope, [(first, last)]):
        own, open_ = local_date(message.created_at, zone), not coverage.within(message.seq, taken)
        if not groups or groups[-1][:2] != (own, open_):
            groups.append((own, open_, []))
        groups[-1][2].append(message)
    return [_segment(connection, scope, talk, own, zone, section=section, file=open_) for own, open_, talk in groups]


def reserved(connection: sa.Connection, scope: str, job_id: int) -> dict[str, list[Range]]:
    """Stretches by conversation that other summary jobs of the scope, not ended yet, have settled to take."""
    found: dict[str, list[Range]] = {}
    for plan in connection.execute(_PLANS, {"scope": scope, "me": job_id}).scalars():
        for value in plan:
            segment = Segment.of_json(value)
            if segment.file:
                found.setdefault(segment.conversation_id, []).extend(segment.ranges)
    return found


def ledger(connection: sa.Connection, scope: str, *, states: Sequence[str] = ()) -> set[str]:
    """The dates of a scope that have their row, in any state or in `states` (WD-53)."""
    rows = connection.execute(_LEDGER, {"scope": scope}).all()
    return {row.local_date for row in rows if not states or row.state in states}


def one_at_a_time(connection: sa.Connection, scope: str) -> None:
    """Two jobs of one scope never plan at once. SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK, {"scope": scope})


def _segment(
    connection: sa.Connection,
    scope: str,
    talk: Sequence[Talk],
    own: date,
    zone: ZoneInfo,
    *,
    section: str,
    file: bool = True,
    borders: Iterable[Range] = (),
) -> Segment:
    """`borders`: what no range may meet, beside what is covered."""
    of, seqs = talk[0].conversation_id, [message.seq for message in talk]
    if file:
        borders = [*borders, *(row.range for row in coverage.covered(connection, of, seqs[0], seqs[-1]))]
    row = connection.execute(_LABEL, {"of": of}).one_or_none()
    return Segment(
        conversation_id=of,
        label="" if row is None else _label(row, scope),
        character="" if row is None else row.character,
        local_date=own.isoformat(),
        section=section,
        at=f"{talk[-1].created_at.astimezone(zone):%H:%M}",
        ranges=tuple(coverage.runs(seqs, borders)),
        file=file,
    )


def _label(row: sa.Row[Any, Any, Any, Any, Any], scope: str) -> str:
    """What a chat is called in the notes of `scope`. One that has become a part of another place since is that place's to name (WD-12)."""
    moved = row.space_id is not None and str(space_scope(row.space_id)) != scope
    return row.channel if moved else row.title or row.space or row.channel


_LABEL = (
    sa.select(conversations.c.title, conversations.c.space_id, spaces.c.title.label("space"), conversations.c.channel, conversations.c.character)
    .outerjoin(spaces, spaces.c.id == conversations.c.space_id)
    .where(conversations.c.id == sa.bindparam("of"))
)
_PLANS = (
    sa.select(job_parts.c.output)
    .join(jobs, jobs.c.id == job_parts.c.job_id)
    .where(
        job_parts.c.part.startswith(PLAN),
        jobs.c.kind.in_([TRIM, DAILY, OVERFLOW]),
        jobs.c.scope == sa.bindparam("scope"),
        jobs.c.state.in_(["waiting", "running", "parked"]),
        jobs.c.id != sa.bindparam("me"),
    )
)
_LEDGER = sa.select(jobs.c.local_date, jobs.c.state).where(
    jobs.c.kind == DAILY, jobs.c.scope == sa.bindparam("scope"), jobs.c.local_date != ""
)
_LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtext('yumegate summaries'), hashtext(:scope))")

"""Rows of dreams: what is being written, what was decided (WD-81, WD-82, WD-86).

A dream's row goes `applying` (staged, the file perhaps not yet written) → `done` (booked); `ended_at` is set when its diary stands too. Plain
functions on a `Connection`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory import proposal_store, provenance
from memory.diary import Happened
from memory.file_schema import dreams
from memory.ids import opaque
from memory.layout import CURATED
from memory.proposal_store import Candidate
from memory.provenance import Change, ChangedLine, line_json, line_of_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """What is booked once the file stands: lines gone and new, each with its row; daily lines used; candidates; the proposal that this settles.

    `used`: hashes of the program's daily lines, by date; `human`: of people's, which have no row to be marked (WD-5), by date.
    """

    removed: tuple[ChangedLine, ...] = ()
    added: tuple[ChangedLine, ...] = ()
    used: tuple[str, ...] = ()
    human: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    candidates: tuple[Candidate, ...] = ()
    proposal_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dream:
    """`staged`: the new MEMORY.md while it is `applying`; `diary`: the section to be written, empty for none; hashes of MEMORY.md, empty for none."""

    id: str
    scope: str
    local_date: str
    state: str
    trigger: str
    batch_key: str = ""
    old_hash: str = ""
    new_hash: str = ""
    staged: str | None = None
    booking: Booking = Booking()
    changes: tuple[Happened, ...] = ()
    diary: str = ""
    reason: str = ""
    calls: int = 0
    created_at: datetime | None = None
    ended_at: datetime | None = None


_BY_SCOPE = dreams.c.scope == sa.bindparam("the_scope")
_LAST = sa.select(dreams).where(_BY_SCOPE).order_by(dreams.c.created_at.desc(), dreams.c.id).limit(1)
_ALL = sa.select(dreams).where(_BY_SCOPE).order_by(dreams.c.created_at.desc(), dreams.c.id)
_ONE = sa.select(dreams).where(dreams.c.id == sa.bindparam("the_id"))
_UNFINISHED = (
    sa.select(dreams)
    .where((dreams.c.state == "applying") | ((dreams.c.state == "done") & dreams.c.ended_at.is_(None)))
    .order_by(dreams.c.created_at, dreams.c.id)
)
_SUCCEEDED = sa.select(dreams.c.id).where(_BY_SCOPE, dreams.c.batch_key == sa.bindparam("the_key"), dreams.c.state.in_(["done", "undone"])).limit(1)
_HUMAN = sa.select(dreams.c.dates).where(_BY_SCOPE, dreams.c.state.in_(["done", "undone"]))
_TAKE = sa.update(dreams).where(dreams.c.id == sa.bindparam("the_id"), dreams.c.state == "applying").values(state="done", staged=None)


def new_id() -> str:
    return opaque("n")


def put(connection: sa.Connection, dream: Dream, now: datetime) -> None:
    """Store a new dream's row: staged, refused, or done at once when the file stays as it is."""
    booking = dream.booking
    plan = {
        "removed": list(map(line_json, booking.removed)),
        "added": list(map(line_json, booking.added)),
        "used": list(booking.used),
        "candidates": [each.as_json() for each in booking.candidates],
        "proposal": booking.proposal_id,
    }
    values = {
        "id": dream.id, "scope": dream.scope, "local_date": dream.local_date, "state": dream.state, "trigger": dream.trigger,
        "batch_key": dream.batch_key, "dates": {day: list(hashes) for day, hashes in booking.human.items()}, "old_hash": dream.old_hash,
        "new_hash": dream.new_hash, "staged": dream.staged, "plan": plan, "changes": [asdict(each) for each in dream.changes],
        "diary": dream.diary, "reason": dream.reason, "calls": dream.calls, "created_at": now, "ended_at": dream.ended_at,
    }  # fmt: skip
    connection.execute(sa.insert(dreams), values)


def book(connection: sa.Connection, dream: Dream, revision: str, now: datetime) -> bool:
    """All that follows from the file being as it is now, in one transaction (WD-82, WD-85). False when it was booked before."""
    if connection.execute(_TAKE, {"the_id": dream.id}).rowcount == 0:
        return False
    settle(connection, dream, now)
    booking = dream.booking
    if not booking.added and not booking.removed:
        return True
    known = provenance.lines_of(connection, dream.scope, CURATED)
    removed = tuple(ChangedLine(text=line.text, section=line.section, row=known.get(_hash(line))) for line in booking.removed)
    provenance.put_lines(connection, dream.scope, CURATED, [line.row for line in booking.added if line.row], now)
    new = {_hash(line) for line in booking.added}
    provenance.drop_lines(connection, dream.scope, CURATED, [_hash(line) for line in booking.removed if _hash(line) not in new])
    change = Change(
        scope=dream.scope,
        path=CURATED,
        cause="accepted" if dream.trigger == "accepted" else "dream",
        cause_id=dream.id,
        before_hash=dream.old_hash,
        after_hash=dream.new_hash,
        revision=revision,
        removed=removed,
        added=booking.added,
    )
    provenance.record_change(connection, change, now)
    return True


def settle(connection: sa.Connection, dream: Dream, now: datetime) -> None:
    """What a dream leaves beside the file: used lines, candidates, a decided proposal."""
    booking = dream.booking
    provenance.mark_used(connection, dream.scope, booking.used, dream.id)
    for each in booking.candidates:
        until = now + proposal_store.KEPT
        proposal_store.propose(connection, dream.scope, "candidate", each.as_json(), run_id=dream.id, now=now, expires_at=until)
    if booking.proposal_id:
        proposal_store.decide(connection, dream.scope, booking.proposal_id, "applied", now)


def finish(connection: sa.Connection, dream_id: str, now: datetime) -> None:
    """The diary stands too, or cannot."""
    connection.execute(sa.update(dreams).where(dreams.c.id == dream_id, dreams.c.ended_at.is_(None)).values(ended_at=now))


def throw_away(connection: sa.Connection, dream_id: str) -> None:
    """A staged dream that somebody else's edit overtook: as if it had not been (WD-83, WD-84)."""
    connection.execute(sa.delete(dreams).where(dreams.c.id == dream_id, dreams.c.state == "applying"))


def mark_undone(connection: sa.Connection, dream_id: str) -> None:
    connection.execute(sa.update(dreams).where(dreams.c.id == dream_id).values(state="undone"))


def unfinished(connection: sa.Connection, scope: str | None = None) -> list[Dream]:
    """Dreams that a crash cut short, oldest first; of one scope, or of all."""
    return [dream for dream in map(_dream, connection.execute(_UNFINISHED)) if scope in (None, dream.scope)]


def read(connection: sa.Connection, dream_id: str) -> Dream | None:
    row = connection.execute(_ONE, {"the_id": dream_id}).one_or_none()
    return None if row is None else _dream(row)


def last(connection: sa.Connection, scope: str) -> Dream | None:
    row = connection.execute(_LAST, {"the_scope": scope}).one_or_none()
    return None if row is None else _dream(row)


def all_of(connection: sa.Connection, scope: str) -> list[Dream]:
    """Every dream of a scope, newest first."""
    return [_dream(row) for row in connection.execute(_ALL, {"the_scope": scope})]


def rewrite(connection: sa.Connection, dream_id: str, *, changes: Sequence[Happened], diary: str) -> None:
    """Store what a dream did anew, and nothing of its plan: forgetting takes words out (WD-92)."""
    values = {"changes": [asdict(each) for each in changes], "diary": diary, "plan": None, "staged": None}
    connection.execute(sa.update(dreams).where(dreams.c.id == dream_id).values(**values))


def succeeded(connection: sa.Connection, scope: str, batch_key: str) -> bool:
    """Whether this very batch was dreamt before (WD-86); undoing it does not make it new."""
    return connection.execute(_SUCCEEDED, {"the_scope": scope, "the_key": batch_key}).one_or_none() is not None


def used_human_lines(connection: sa.Connection, scope: str) -> dict[str, set[str]]:
    """Hashes of people's daily lines that a dream has taken in, by date."""
    found: dict[str, set[str]] = {}
    for row in connection.execute(_HUMAN, {"the_scope": scope}):
        dates: Mapping[str, Sequence[str]] = row.dates or {}
        for day, hashes in dates.items():
            found.setdefault(day, set()).update(hashes)
    return found


# -- rows and values ------------------------------------------------------------------------------------------------------


def _hash(line: ChangedLine) -> str:
    return line.row.hash if line.row else ""


def _booking(plan: Mapping[str, Any] | None, human: Mapping[str, Any] | None) -> Booking:
    if plan is None:
        return Booking(human=human or {})
    return Booking(
        removed=tuple(map(line_of_json, plan["removed"])),
        added=tuple(map(line_of_json, plan["added"])),
        used=tuple(plan["used"]),
        human=human or {},
        candidates=tuple(map(Candidate.of_json, plan["candidates"])),
        proposal_id=plan["proposal"],
    )


def _happened(values: Mapping[str, Any]) -> Happened:
    lists: dict[str, Any] = {**values, "old": tuple(values["old"]), "hashes": tuple(values["hashes"])}
    return Happened(**lists)


def _dream(row: sa.Row[Any]) -> Dream:
    return Dream(
        id=row.id,
        scope=row.scope,
        local_date=row.local_date,
        state=row.state,
        trigger=row.trigger,
        batch_key=row.batch_key,
        old_hash=row.old_hash,
        new_hash=row.new_hash,
        staged=row.staged,
        booking=_booking(row.plan, row.dates),
        changes=tuple(map(_happened, row.changes or ())),
        diary=row.diary,
        reason=row.reason,
        calls=row.calls,
        created_at=row.created_at,
        ended_at=row.ended_at,
    )

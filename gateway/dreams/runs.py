"""Dreams in the job table: which one is at work, how the last one went, one asked for by hand (WD-63, WD-64). Plain functions on a `Connection`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import sqlalchemy as sa

from gateway.config import Config
from gateway.dreams.job import KIND
from gateway.jobs.table import Job, enqueue
from gateway.zones import zone_of
from memory.schedule import local_date
from memory.schema import jobs

DAYS, DAYS_MAX = 3, 30  # of a dream by hand (WD-63)

_JOBS = sa.select(jobs).where(jobs.c.kind == KIND, jobs.c.scope == sa.bindparam("the_scope"))
_AT_WORK = _JOBS.where(jobs.c.state.in_(["running", "waiting"])).order_by(jobs.c.state, jobs.c.id).limit(1)  # running before waiting
_ENDED = (
    _JOBS.where(jobs.c.state.in_(sa.bindparam("states", expanding=True))).order_by(jobs.c.updated_at.desc(), jobs.c.id.desc()).limit(1)
)
_BY_HAND = (
    sa.select(jobs.c.payload)
    .where(jobs.c.kind == KIND, jobs.c.scope == sa.bindparam("the_scope"), jobs.c.local_date == "")
    .order_by(jobs.c.id.desc())
    .limit(sa.bindparam("most"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtWork:
    """A dream that runs or waits. `since`: when it began, or was asked for."""

    job_id: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """`skipped`: why it did nothing, else empty (`gateway.dreams.night`)."""

    at: datetime
    state: str
    skipped: str


def at_work(connection: sa.Connection, scope: str) -> AtWork | None:
    row = connection.execute(_AT_WORK, {"the_scope": scope}).first()
    return None if row is None else AtWork(job_id=row.id, since=row.not_before if row.state == "running" else row.created_at)


def last_ended(connection: sa.Connection, scope: str, states: Sequence[str] = ("done", "parked")) -> Ended | None:
    """The newest job that is in one of `states`."""
    row = connection.execute(_ENDED, {"the_scope": scope, "states": list(states)}).first()
    if row is None:
        return None
    result: Mapping[str, Any] = row.result or {}
    return Ended(at=row.updated_at, state=row.state, skipped=str(result.get("skipped", "")))


def asked_for(connection: sa.Connection, scope: str, today: date, most: int) -> int:
    """How many dreams were asked for by hand today; counted up to `most`."""
    made = connection.execute(_BY_HAND, {"the_scope": scope, "most": most}).scalars()
    return sum(payload.get("date") == today.isoformat() for payload in made)


def ask(connection: sa.Connection, scope: str, today: date, now: datetime, *, days: int, force: bool = False, person: str = "") -> int:
    """Enqueue a dream over the last `days` local dates with `today`; returns its id."""
    payload = {"days": days, "force": force, "person": person, "date": today.isoformat()}
    return enqueue(connection, Job(kind=KIND, key=f"{scope}:manual:{now.isoformat()}", scope=scope, payload=payload))


def clamped(days: int) -> int:
    return max(1, min(DAYS_MAX, days))


def dream_now(connection: sa.Connection, scope: str, config: Config, now: datetime, *, day: date | None = None) -> int:
    """`job run dream`: a dream of its own over the last days, or over those since `day`; returns its id."""
    today = local_date(now, zone_of(connection, scope, config.timezone))
    return ask(connection, scope, today, now, days=DAYS if day is None else clamped((today - day).days + 1))

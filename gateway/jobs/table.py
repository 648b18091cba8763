"""The job table: what is to be done, and what came of it (WD-98). Plain functions on a `Connection`.

A job is written in the transaction that makes it necessary. Each function takes `now` to stand in for the database's clock in tests; None asks the
database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from gateway.leases import NOW, PAST
from memory.schema import jobs

State = Literal["waiting", "running", "done", "parked", "cancelled"]

AT_ONCE = PAST


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work to be done. `kind` names the handler; `kind` and `key` together are unique for ever, so the key of a dated job holds its scope and date.

    `scope`: whom it works for; scopes take turns, and jobs of one kind and scope run one at a time (WD-64, WD-99, RS-190). Those of the empty scope
    take turns as if they had one in common, and run side by side.
    `local_date`: YYYY-MM-DD for a dated job, whose row is the ledger (WD-53). `payload`: JSON. `priority`: the higher goes first.
    """

    kind: str
    key: str
    scope: str = ""
    local_date: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict[str, Any])
    priority: int = 0
    not_before: datetime = AT_ONCE


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job as stored. `result` of a done one: its output, or `{"skipped": reason}`. Of a running one, `job.not_before` is when it began (WD-64)
    and `result` is `{"again": true}` if it was enqueued again since.

    `attempts`: runs that failed; `lost_leases`: workers that vanished; `error_class` and `error`: the last failure, kept until the job is done.
    """

    id: int
    job: Job
    state: State
    attempts: int
    lost_leases: int
    result: Mapping[str, Any] | None
    error_class: str
    error: str
    lease_owner: str
    lease_until: datetime | None
    created_at: datetime
    updated_at: datetime


def enqueue(connection: sa.Connection, job: Job, *, again: bool = False, now: datetime | None = None) -> int:
    """Make sure that `job` is in the table and return its id. One of that kind and key that is there already stays as it is.

    `again`: there is new work for it. A done or cancelled one waits anew; a running one goes back to waiting when it has finished, for it may have
    read what was before. A waiting one takes the payload and priority of now and keeps its time, so that a back-off stays one; a parked one likewise.
    """
    values = {**_columns(job), "now": now}
    made = connection.execute(_MAKE[connection.dialect.name], values).scalar()
    if made is not None:
        return made
    named = {"the_kind": job.kind, "the_key": job.key}
    if again:
        new = {"new_payload": values["payload"], "new_priority": job.priority, "new_time": job.not_before, "mark": {"again": True}}
        return connection.execute(_AGAIN, {**named, **new, "now": now}).scalar_one()
    return connection.execute(_FIND, named).one().id


def find_job(connection: sa.Connection, kind: str, key: str) -> JobRow | None:
    row = connection.execute(_FIND, {"the_kind": kind, "the_key": key}).one_or_none()
    return None if row is None else job_row(row)


def read_job(connection: sa.Connection, job_id: int) -> JobRow | None:
    row = connection.execute(_READ, {"the_id": job_id}).one_or_none()
    return None if row is None else job_row(row)


def list_jobs(connection: sa.Connection, state: State | None = None, limit: int = 200) -> list[JobRow]:
    """The jobs in `state` (None: in any), last changed first."""
    rows = connection.execute(_LIST, {"the_state": state, "most": limit})
    return [job_row(row) for row in rows]


def run_now(connection: sa.Connection, job_id: int, *, now: datetime | None = None) -> bool:
    """By hand (WD-100): a waiting, parked or cancelled job runs next, all its attempts before it again.

    False for one that runs already, is done (a date runs once, WD-130) or is unknown.
    """
    return connection.execute(_RUN_NOW, {"the_id": job_id, "now": now}).one_or_none() is not None


def run_parked(connection: sa.Connection, *, now: datetime | None = None) -> int:
    """Every parked job runs next: their model or its key has changed (WD-100). Returns how many."""
    return len(connection.execute(_RUN_PARKED, {"now": now}).all())


def cancel_job(connection: sa.Connection, job_id: int, *, now: datetime | None = None) -> bool:
    """Nobody wants it any more. A running one is stopped at its worker's next renewal and changes nothing; what it has paid for is kept (RS-191)."""
    return connection.execute(_CANCEL, {"the_id": job_id, "now": now}).one_or_none() is not None


# -- rows and values ----------------------------------------------------------------------------------------------------


def _columns(job: Job) -> dict[str, Any]:
    return {
        "kind": job.kind,
        "key": job.key,
        "scope": job.scope,
        "local_date": job.local_date,
        "payload": dict(job.payload),
        "priority": job.priority,
        "not_before": job.not_before,
    }


def job_row(row: sa.Row[Any]) -> JobRow:
    job = Job(
        kind=row.kind,
        key=row.key,
        scope=row.scope,
        local_date=row.local_date,
        payload=row.payload or {},
        priority=row.priority,
        not_before=row.not_before,
    )
    return JobRow(
        id=row.id,
        job=job,
        state=row.state,
        attempts=row.attempts,
        lost_leases=row.lost_leases,
        result=row.result,
        error_class=row.error_class,
        error=row.error,
        lease_owner=row.lease_owner,
        lease_until=row.lease_until,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


# -- statements, built once ----------------------------------------------------------------------------------------------

_COLUMN = jobs.c
_NEW_RUN = {"attempts": 0, "lost_leases": 0, "lease_owner": "", "lease_until": None, "updated_at": NOW}


def _make(insert: Any) -> Any:
    return insert(jobs).values(created_at=NOW, updated_at=NOW).on_conflict_do_nothing(index_elements=["kind", "key"]).returning(_COLUMN.id)


_MAKE = {"sqlite": _make(sqlite.insert), "postgresql": _make(postgresql.insert)}
_NAMED = (_COLUMN.kind == sa.bindparam("the_kind")) & (_COLUMN.key == sa.bindparam("the_key"))
_FIND = sa.select(jobs).where(_NAMED)
_READ = sa.select(jobs).where(_COLUMN.id == sa.bindparam("the_id"))
_RUNS = _COLUMN.state == "running"
_ENDED = _COLUMN.state.in_(["done", "cancelled"])
_AGAIN = (
    sa.update(jobs)
    .where(_NAMED)
    .values(
        payload=sa.bindparam("new_payload", type_=_COLUMN.payload.type),
        priority=sa.bindparam("new_priority", type_=sa.BigInteger),
        state=sa.case((_ENDED, "waiting"), else_=_COLUMN.state),
        not_before=sa.case((_ENDED | _RUNS, sa.bindparam("new_time", type_=_COLUMN.not_before.type)), else_=_COLUMN.not_before),
        attempts=sa.case((_ENDED, 0), else_=_COLUMN.attempts),
        lost_leases=sa.case((_ENDED, 0), else_=_COLUMN.lost_leases),
        result=sa.case((_RUNS, sa.bindparam("mark", type_=_COLUMN.result.type)), else_=sa.null()),
        updated_at=sa.case((_ENDED, NOW), else_=_COLUMN.updated_at),  # who waits keeps the place in the queue
    )
    .returning(_COLUMN.id)
)
_THE_STATE = sa.bindparam("the_state", type_=sa.Text)
_LIST = (
    sa.select(jobs)
    .where(_THE_STATE.is_(None) | (_COLUMN.state == _THE_STATE))
    .order_by(_COLUMN.updated_at.desc(), _COLUMN.id.desc())
    .limit(sa.bindparam("most", type_=sa.Integer))
)
_RUN_NOW = (
    sa.update(jobs)
    .where(_COLUMN.id == sa.bindparam("the_id"), _COLUMN.state.in_(["waiting", "parked", "cancelled"]))
    .values(state="waiting", not_before=AT_ONCE, **_NEW_RUN)
    .returning(_COLUMN.id)
)
_RUN_PARKED = sa.update(jobs).where(_COLUMN.state == "parked").values(state="waiting", not_before=AT_ONCE, **_NEW_RUN).returning(_COLUMN.id)
_CANCEL = (  # the token stays, so that what the worker has just paid for still finds its place
    sa.update(jobs)
    .where(_COLUMN.id == sa.bindparam("the_id"), _COLUMN.state.in_(["waiting", "running", "parked"]))
    .values(state="cancelled", updated_at=NOW)
    .returning(_COLUMN.id)
)

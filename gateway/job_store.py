"""The job table: what is to be done, who is doing it, what came of it (WD-98). Plain functions on a `Connection`.

A job is written in the transaction that makes it necessary and claimed by one conditional update on the database's clock. Its claim is a lease with a
token of its own; every change by the worker names that token, so a worker that lost the lease changes nothing.

Each function takes `now` to stand in for the database's clock in tests; None asks the database.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from gateway.leases import LEASE, NOW, PAST, LeaseLost, later
from memory.schema import job_parts, jobs

State = Literal["waiting", "running", "done", "parked", "cancelled"]
Turn = tuple[int, str]  # priority and scope of a job that had its turn

LOST_LEASES = 5  # so many workers died or hung over it: it is parked (WD-100)
PARKED_FOR = timedelta(hours=24)
AT_ONCE = PAST
PROGRESS = "progress"
TOLD = "told"  # the hash of parts that tell others of paid work


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


# -- for those who need work done, and those who look after it ----------------------------------------------------------


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
    return None if row is None else _job_row(row)


def read_job(connection: sa.Connection, job_id: int) -> JobRow | None:
    row = connection.execute(_READ, {"the_id": job_id}).one_or_none()
    return None if row is None else _job_row(row)


def list_jobs(connection: sa.Connection, state: State | None = None, limit: int = 200) -> list[JobRow]:
    """The jobs in `state` (None: in any), last changed first."""
    rows = connection.execute(_LIST, {"the_state": state, "most": limit})
    return [_job_row(row) for row in rows]


def run_now(connection: sa.Connection, job_id: int, *, now: datetime | None = None) -> bool:
    """By hand (WD-100): a waiting, parked or cancelled job runs next, all its attempts before it again.

    False for one that runs already, is done (a date runs once, WD-130) or is unknown.
    """
    return connection.execute(_RUN_NOW, {"the_id": job_id, "now": now}).one_or_none() is not None


def run_parked(connection: sa.Connection, *, now: datetime | None = None) -> int:
    """Every parked job runs next: their model or its key has changed (WD-100). Returns how many."""
    return len(connection.execute(_RUN_PARKED, {"now": now}).all())


def cancel(connection: sa.Connection, job_id: int, *, now: datetime | None = None) -> bool:
    """Nobody wants it any more. A running one is stopped at its worker's next renewal and changes nothing; what it has paid for is kept (RS-191)."""
    return connection.execute(_CANCEL, {"the_id": job_id, "now": now}).one_or_none() is not None


def input_hash(*inputs: Any) -> str:
    """What a paid part is found by: all that its answer depends on, sources, model, options and instruction, as JSON values (RS-191)."""
    return hashlib.sha256(json.dumps(inputs, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


# -- for the runner -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A running job and the token that proves whose it is."""

    row: JobRow
    token: str


def claim(
    connection: sa.Connection,
    token: str,
    kinds: Collection[str],
    served: Collection[Turn] = (),
    lease: timedelta = LEASE,
    *,
    now: datetime | None = None,
) -> Claim | None:
    """The next job of these `kinds` that is due, or whose worker vanished; None when there is none.

    `token` must be new each time. Who is in `served` goes behind the others of that priority. A job that has lost its last lease is parked instead.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_ONE_CLAIMER)
    connection.execute(_PARK_LOST, {"most": LOST_LEASES, "parked_for": PARKED_FOR, "now": now})
    values = {"token": token, "kinds": list(kinds), "served": list(served), "lease": lease, "now": now}
    row = connection.execute(_CLAIM, values).one_or_none()
    return None if row is None else Claim(row=_job_row(row), token=token)


def renew(connection: sa.Connection, claim: Claim, lease: timedelta = LEASE, *, now: datetime | None = None) -> None:
    """Raises LeaseLost, as the two below do: taken over, cancelled or gone."""
    _held(connection.execute(_RENEW, {**_shown(claim), "lease": lease, "now": now}), claim)


def finish(connection: sa.Connection, claim: Claim, result: Mapping[str, Any], *, now: datetime | None = None) -> State:
    """Done, or `waiting` when it was enqueued again during the run."""
    return _held(connection.execute(_FINISH, {**_shown(claim), "outcome": dict(result), "now": now}), claim)


def fail(
    connection: sa.Connection, claim: Claim, *, state: State, wait: timedelta, error_class: str, error: str, now: datetime | None = None
) -> None:
    """One more failed attempt: `waiting` or `parked`, to be tried again after `wait`."""
    values = {**_shown(claim), "new_state": state, "wait": wait, "class": error_class, "text": error, "now": now}
    _held(connection.execute(_FAIL, values), claim)


def check(connection: sa.Connection, claim: Claim) -> None:
    """Raises LeaseLost unless the job is still the worker's. First in a fenced transaction: nobody takes it over before that commits."""
    _held(connection.execute(_CHECK, _shown(claim)), claim)


def read_part(connection: sa.Connection, job_id: int, part: str, hashed: str) -> Any | None:
    """The kept output of this part for these inputs (`input_hash`), None when there is none."""
    return connection.execute(_READ_PART, {"the_job": job_id, "the_part": part, "the_hash": hashed}).scalar()


def keep_part(connection: sa.Connection, claim: Claim, part: str, hashed: str, output: Any, *, now: datetime | None = None) -> None:
    """Keep a paid output (JSON, not null), also of a job that was just cancelled. Raises LeaseLost when another worker has the job."""
    _held(connection.execute(_CHECK_OWNER, _shown(claim)), claim)
    values = {"job_id": claim.row.id, "part": part, "input_hash": hashed, "output": output, "now": now}
    connection.execute(_KEEP_PART[connection.dialect.name], values)


def told(connection: sa.Connection, kind: str, keys: Collection[str], part: str) -> dict[str, Any]:
    """What jobs tell others of their paid work so far (`JobContext.tell`), by their keys; dropped with what was paid."""
    return {row.key: row.output for row in connection.execute(_TOLD, {"the_kind": kind, "keys": list(keys), "the_part": part})}


def note_progress(connection: sa.Connection, job_id: int, done: int, total: int) -> None:
    """How far a job has come, in a transaction of its holder; it goes with what was paid for."""
    values = {"job_id": job_id, "part": PROGRESS, "input_hash": PROGRESS, "output": {"done": done, "total": total}, "now": None}
    connection.execute(_KEEP_PART[connection.dialect.name], values)


def progress_of(connection: sa.Connection, job_id: int) -> Mapping[str, int] | None:
    """`done` and `total`, None where nothing was noted."""
    return read_part(connection, job_id, PROGRESS, PROGRESS)


def drop_progress(connection: sa.Connection, job_id: int) -> None:
    """It begins anew; what was paid for stays."""
    connection.execute(sa.delete(job_parts).where(job_parts.c.job_id == job_id, job_parts.c.part == PROGRESS))


def drop_paid(connection: sa.Connection, job_id: int) -> None:
    """What was paid for may not be kept, for it tells of something forgotten (WD-92). What was settled stays."""
    connection.execute(sa.delete(job_parts).where(job_parts.c.job_id == job_id, job_parts.c.input_hash != ""))


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


def _job_row(row: sa.Row[Any]) -> JobRow:
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


def _shown(claim: Claim) -> dict[str, Any]:
    return {"the_id": claim.row.id, "the_token": claim.token}


def _held(changed: sa.CursorResult[Any], claim: Claim) -> Any:
    row = changed.one_or_none()
    if row is None:
        raise LeaseLost(f"job {claim.row.id} ({claim.row.job.kind}) is no longer held by {claim.token}")
    return row[0]


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

# Claims are serialised, or two at once could take two jobs of one kind and scope. SQLite has one writer anyway.
_ONE_CLAIMER = sa.text("SELECT pg_advisory_xact_lock(hashtext('yumegate claim'), hashtext(current_schema()))")
_PARK_LOST = (
    sa.update(jobs)
    .where(_RUNS, _COLUMN.lease_until < NOW, _COLUMN.lost_leases + 1 >= sa.bindparam("most", type_=sa.BigInteger))
    .values(
        state="parked",
        lost_leases=_COLUMN.lost_leases + 1,
        not_before=later("parked_for"),
        error_class="LeaseLost",
        error="its workers stopped without a word, again and again",
        lease_owner="",
        lease_until=None,
        updated_at=NOW,
    )
)


def _claim() -> Any:
    due, rival = jobs.alias("due"), jobs.alias("rival")
    ready = due.c.state.in_(["waiting", "parked"]) & (due.c.not_before <= NOW)
    abandoned = (due.c.state == "running") & (due.c.lease_until < NOW)
    rival_runs = (
        sa.exists().where(rival.c.state == "running", rival.c.kind == due.c.kind, rival.c.scope == due.c.scope, rival.c.id != due.c.id).correlate(due)
    )
    had_its_turn = sa.case((sa.tuple_(due.c.priority, due.c.scope).in_(sa.bindparam("served", expanding=True)), 1), else_=0)
    chosen = (
        sa.select(due.c.id)
        .where(ready | abandoned, due.c.kind.in_(sa.bindparam("kinds", expanding=True)), (due.c.scope == "") | ~rival_runs)
        .order_by(due.c.priority.desc(), had_its_turn, due.c.updated_at, due.c.id)
        .limit(1)
        .with_for_update(skip_locked=True, of=due)  # PostgreSQL only; silently nothing on SQLite
        .scalar_subquery()
    )
    return (
        sa.update(jobs)
        .where(_COLUMN.id == chosen)
        .values(
            state="running",
            lost_leases=_COLUMN.lost_leases + sa.case((_RUNS, 1), else_=0),
            not_before=NOW,
            result=None,
            lease_owner=sa.bindparam("token"),
            lease_until=later("lease"),
            updated_at=NOW,
        )
        .returning(jobs)
    )


_CLAIM = _claim()
_OWNED = (_COLUMN.id == sa.bindparam("the_id")) & (_COLUMN.lease_owner == sa.bindparam("the_token"))
_RUNNING = _OWNED & _RUNS
_RENEW = sa.update(jobs).where(_RUNNING).values(lease_until=later("lease")).returning(_COLUMN.id)
_CHECK = sa.update(jobs).where(_RUNNING).values(state="running").returning(_COLUMN.id)  # an update, for its row lock
_CHECK_OWNER = sa.update(jobs).where(_OWNED).values(state=_COLUMN.state).returning(_COLUMN.id)
_ONCE = _COLUMN.result.is_(sa.null())  # not enqueued again during the run
_FINISH = (
    sa.update(jobs)
    .where(_RUNNING)
    .values(
        state=sa.case((_ONCE, "done"), else_="waiting"),
        attempts=sa.case((_ONCE, _COLUMN.attempts), else_=0),
        lost_leases=sa.case((_ONCE, _COLUMN.lost_leases), else_=0),
        result=sa.bindparam("outcome", type_=_COLUMN.result.type),
        error_class="",
        error="",
        lease_owner="",
        lease_until=None,
        updated_at=NOW,
    )
    .returning(_COLUMN.state)
)
_FAIL = (
    sa.update(jobs)
    .where(_RUNNING)
    .values(
        state=sa.bindparam("new_state"),
        attempts=_COLUMN.attempts + 1,
        not_before=later("wait"),
        result=None,
        error_class=sa.bindparam("class"),
        error=sa.bindparam("text"),
        lease_owner="",
        lease_until=None,
        updated_at=NOW,
    )
    .returning(_COLUMN.id)
)

_READ_PART = sa.select(job_parts.c.output).where(
    job_parts.c.job_id == sa.bindparam("the_job"), job_parts.c.part == sa.bindparam("the_part"), job_parts.c.input_hash == sa.bindparam("the_hash")
)

_TOLD = (
    sa.select(_COLUMN.key, job_parts.c.output)
    .join(jobs, jobs.c.id == job_parts.c.job_id)
    .where(
        _COLUMN.kind == sa.bindparam("the_kind"),
        _COLUMN.key.in_(sa.bindparam("keys", expanding=True)),
        job_parts.c.part == sa.bindparam("the_part"),
        job_parts.c.input_hash == TOLD,
    )
)


def _keep_part(insert: Any) -> Any:
    statement = insert(job_parts).values(created_at=NOW)
    new = statement.excluded
    changes = {"input_hash": new.input_hash, "output": new.output, "created_at": new.created_at}
    return statement.on_conflict_do_update(index_elements=["job_id", "part"], set_=changes)


_KEEP_PART = {"sqlite": _keep_part(sqlite.insert), "postgresql": _keep_part(postgresql.insert)}

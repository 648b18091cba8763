"""Who does a job (WD-98, RS-190): claimed by one conditional update on the database's clock, for as long as the lease is renewed.

A claim has a token of its own and every change by the worker names it, so a worker that lost the lease changes nothing. `now` is as in `table`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from gateway.jobs.table import JobRow, State, job_row
from gateway.leases import LEASE, NOW, LeaseLost, later
from memory.schema import jobs

Turn = tuple[int, str]  # priority and scope of a job that had its turn

LOST_LEASES = 5  # so many workers died or hung over it: it is parked (WD-100)
PARKED_FOR = timedelta(hours=24)


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
    *,
    now: datetime | None = None,
) -> Claim | None:
    """The next job of these `kinds` that is due, or whose worker vanished; None when there is none.

    `token` must be new each time. Who is in `served` goes behind the others of that priority. A job that has lost its last lease is parked instead.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_ONE_CLAIMER)
    connection.execute(_PARK_LOST, {"most": LOST_LEASES, "parked_for": PARKED_FOR, "now": now})
    values = {"token": token, "kinds": list(kinds), "served": list(served), "lease": LEASE, "now": now}
    row = connection.execute(_CLAIM, values).one_or_none()
    return None if row is None else Claim(row=job_row(row), token=token)


def renew(connection: sa.Connection, claim: Claim, *, now: datetime | None = None) -> None:
    """Raises LeaseLost, as those below do: taken over, cancelled or gone."""
    _held(connection.execute(_RENEW, {**_shown(claim), "lease": LEASE, "now": now}), claim)


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


def check_owner(connection: sa.Connection, claim: Claim) -> None:
    """Raises LeaseLost when another worker has the job; nobody else has one that was just cancelled."""
    _held(connection.execute(_CHECK_OWNER, _shown(claim)), claim)


def _shown(claim: Claim) -> dict[str, Any]:
    return {"the_id": claim.row.id, "the_token": claim.token}


def _held(changed: sa.CursorResult[Any], claim: Claim) -> Any:
    row = changed.one_or_none()
    if row is None:
        raise LeaseLost(f"job {claim.row.id} ({claim.row.job.kind}) is no longer held by {claim.token}")
    return row[0]


# -- statements, built once ----------------------------------------------------------------------------------------------

_COLUMN = jobs.c
_RUNS = _COLUMN.state == "running"
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

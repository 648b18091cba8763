"""What is kept beside a job: paid answers, what it settled at its first look, what it tells others, how far it has come (RS-191)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from gateway.jobs.claims import Claim, check_owner
from gateway.leases import NOW
from memory.schema import job_parts, jobs

PROGRESS = "progress"
TOLD = "told"  # the hash of parts that tell others of paid work


def input_hash(*inputs: Any) -> str:
    """What a paid part is found by: all that its answer depends on, sources, model, options and instruction, as JSON values (RS-191)."""
    return hashlib.sha256(json.dumps(inputs, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def read_part(connection: sa.Connection, job_id: int, part: str, hashed: str) -> Any | None:
    """The kept output of this part for these inputs (`input_hash`), None when there is none."""
    return connection.execute(_READ_PART, {"the_job": job_id, "the_part": part, "the_hash": hashed}).scalar()


def keep_part(connection: sa.Connection, claim: Claim, part: str, hashed: str, output: Any, *, now: datetime | None = None) -> None:
    """Keep a paid output (JSON, not null), also of a job that was just cancelled. Raises LeaseLost when another worker has the job."""
    check_owner(connection, claim)
    values = {"job_id": claim.row.id, "part": part, "input_hash": hashed, "output": output, "now": now}
    connection.execute(_KEEP_PART[connection.dialect.name], values)


def read_told(connection: sa.Connection, kind: str, keys: Collection[str], part: str) -> dict[str, Any]:
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


_READ_PART = sa.select(job_parts.c.output).where(
    job_parts.c.job_id == sa.bindparam("the_job"), job_parts.c.part == sa.bindparam("the_part"), job_parts.c.input_hash == sa.bindparam("the_hash")
)

_TOLD = (
    sa.select(jobs.c.key, job_parts.c.output)
    .join(jobs, jobs.c.id == job_parts.c.job_id)
    .where(
        jobs.c.kind == sa.bindparam("the_kind"),
        jobs.c.key.in_(sa.bindparam("keys", expanding=True)),
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

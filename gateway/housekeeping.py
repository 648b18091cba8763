"""What is swept away with time, once a day: rows that served their purpose, uploads that never joined a message (CH-51)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from gateway.arrivals import early_edits, inbox
from gateway.delivery.rules import OPEN
from gateway.jobs.handling import JobContext, JobResult
from gateway.jobs.table import Job
from gateway.tasks import jobs as task_jobs
from memory.database import Database
from memory.file_schema import proposals
from memory.saved import journal
from memory.schema import attachments, errors, job_parts, jobs, messages, model_calls, outbox

KIND = "housekeeping"
INBOX_KEPT = timedelta(days=7)  # and with it the keys by which a repeated delivery is known
OUTBOX_KEPT = timedelta(days=30)  # `/last` and the operators' page look this far back
ERRORS_KEPT = timedelta(days=30)
CALLS_KEPT = timedelta(days=400)
UPLOADS_KEPT = timedelta(days=1)
RUNS_KEPT = timedelta(days=30)  # of jobs without a date; a row with one is the ledger and is kept for good (WD-53)
RUNS_MOST = 5_000  # of each kind, however young
PAID_KEPT = timedelta(days=7)  # what a finished job had paid for: nobody asks for it again

_OLD_PARTS = sa.delete(outbox).where(outbox.c.updated_at < sa.bindparam("before"), outbox.c.state.not_in([state.value for state in OPEN]))
_OLD_ERRORS = sa.delete(errors).where(errors.c.at < sa.bindparam("before"))
_OLD_CALLS = sa.delete(model_calls).where(model_calls.c.at < sa.bindparam("before"))
_OLD_SWEEPS = sa.delete(jobs).where(jobs.c.kind == KIND, jobs.c.state == "done", jobs.c.updated_at < sa.bindparam("before"))
_OVER = sa.and_(jobs.c.state.in_(["done", "cancelled"]), jobs.c.local_date == "")
_OLD_RUNS = sa.delete(jobs).where(_OVER, jobs.c.updated_at < sa.bindparam("before"))
_PLACES = sa.select(jobs.c.id, sa.func.row_number().over(partition_by=jobs.c.kind, order_by=jobs.c.id.desc()).label("place")).where(_OVER).subquery()
_SURPLUS_RUNS = sa.delete(jobs).where(jobs.c.id.in_(sa.select(_PLACES.c.id).where(_PLACES.c.place > RUNS_MOST)))
_OLD_PAID = sa.delete(job_parts).where(
    job_parts.c.job_id.in_(sa.select(jobs.c.id).where(jobs.c.state.in_(["done", "cancelled"]), jobs.c.updated_at < sa.bindparam("before")))
)
_OLD_PROPOSALS = (  # nobody can say yes any more: their words go
    sa.update(proposals)
    .where(proposals.c.expires_at < sa.bindparam("now", type_=proposals.c.expires_at.type), proposals.c.payload.is_not(None))
    .values(payload=sa.null())
)
_UPLOADS = sa.select(attachments.c.id, attachments.c.path).where(attachments.c.created_at < sa.bindparam("before"))
_ATTACHED = sa.select(messages.c.attachments).where(messages.c.attachments.is_not(None))
_DROP_UPLOADS = sa.delete(attachments).where(attachments.c.id.in_(sa.bindparam("ids", expanding=True)))


def daily(now: datetime) -> Job:
    """The job of the day of `now`, in UTC; enqueueing it again changes nothing."""
    return Job(kind=KIND, key=f"{now:%Y-%m-%d}", local_date=f"{now:%Y-%m-%d}", priority=-1)


class Housekeeping:
    """The job's handler. `journal_days`: for how long what a program did to saved memories can be taken back."""

    def __init__(self, *, db: Database, attachments_folder: Path, clock: Callable[[], datetime], journal_days: Callable[[], int]) -> None:
        self._db = db
        self._folder = attachments_folder
        self._clock = clock
        self._journal_days = journal_days

    async def run(self, _job: Job, context: JobContext) -> JobResult:
        now = self._clock()
        counts: dict[str, int] = {"inbox": await context.write(lambda connection: inbox.prune(connection, now - INBOX_KEPT))}
        for name, statement, kept in (
            ("outbox", _OLD_PARTS, OUTBOX_KEPT),
            ("errors", _OLD_ERRORS, ERRORS_KEPT),
            ("model_calls", _OLD_CALLS, CALLS_KEPT),
            ("sweeps", _OLD_SWEEPS, ERRORS_KEPT),
            ("paid", _OLD_PAID, PAID_KEPT),
            ("jobs", _OLD_RUNS, RUNS_KEPT),
        ):
            counts[name] = await context.write(
                lambda connection, statement=statement, kept=kept: connection.execute(statement, {"before": now - kept}).rowcount
            )
        counts["jobs"] += await context.write(lambda connection: connection.execute(_SURPLUS_RUNS).rowcount)
        counts["proposals"] = await context.write(lambda connection: connection.execute(_OLD_PROPOSALS, {"now": now}).rowcount)
        oldest = now - timedelta(days=self._journal_days())
        counts["memory_journal"] = await context.write(lambda connection: journal.sweep(connection, oldest))
        await context.write(_merge_words)
        await context.write(lambda connection: early_edits.sweep(connection, now))
        counts["tasks"] = await context.write(lambda connection: task_jobs.sweep(connection, now))
        counts["uploads"] = await self._sweep_uploads(context, now - UPLOADS_KEPT)
        return JobResult(output=counts)

    async def _sweep_uploads(self, context: JobContext, before: datetime) -> int:
        """Files that no message holds: the rows first, so that a kill in between leaves a file without a row, never a row without a file."""

        def drop(connection: sa.Connection) -> list[str]:
            held = {item.get("fetch_ref") for row in connection.execute(_ATTACHED).scalars() for item in row}
            loose = {row.id: row.path for row in connection.execute(_UPLOADS, {"before": before}) if row.id not in held}
            connection.execute(_DROP_UPLOADS, {"ids": list(loose)})
            return list(loose.values())

        paths = await context.write(drop)
        await asyncio.to_thread(self._remove, paths)
        return len(paths)

    def _remove(self, paths: list[str]) -> None:
        for path in paths:
            (self._folder / path).unlink(missing_ok=True)


def _merge_words(connection: sa.Connection) -> None:
    """SQLite's word index keeps deleted words in its segments until they are merged (WD-92)."""
    if connection.dialect.name == "sqlite":
        connection.execute(sa.text("INSERT INTO file_words(file_words) VALUES ('optimize')"))

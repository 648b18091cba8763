"""What is swept away with time, once a day: rows that served their purpose, uploads that never joined a message (CH-51)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from gateway import inbox
from gateway.job_store import Job
from gateway.jobs import JobContext, JobResult
from gateway.outbox_rules import OPEN
from memory.database import Database
from memory.schema import attachments, errors, jobs, messages, model_calls, outbox

KIND = "housekeeping"
INBOX_KEPT = timedelta(days=7)  # and with it the keys by which a repeated delivery is known
OUTBOX_KEPT = timedelta(days=30)  # `/last` and the operators' page look this far back
ERRORS_KEPT = timedelta(days=30)
CALLS_KEPT = timedelta(days=400)
UPLOADS_KEPT = timedelta(days=1)

_OLD_PARTS = sa.delete(outbox).where(outbox.c.updated_at < sa.bindparam("before"), outbox.c.state.not_in([state.value for state in OPEN]))
_OLD_ERRORS = sa.delete(errors).where(errors.c.at < sa.bindparam("before"))
_OLD_CALLS = sa.delete(model_calls).where(model_calls.c.at < sa.bindparam("before"))
_OLD_SWEEPS = sa.delete(jobs).where(jobs.c.kind == KIND, jobs.c.state == "done", jobs.c.updated_at < sa.bindparam("before"))
_UPLOADS = sa.select(attachments.c.id, attachments.c.path).where(attachments.c.created_at < sa.bindparam("before"))
_ATTACHED = sa.select(messages.c.attachments).where(messages.c.attachments.is_not(None))
_DROP_UPLOADS = sa.delete(attachments).where(attachments.c.id.in_(sa.bindparam("ids", expanding=True)))


def daily(now: datetime) -> Job:
    """The job of the day of `now`, in UTC; enqueueing it again changes nothing."""
    return Job(kind=KIND, key=f"{now:%Y-%m-%d}", local_date=f"{now:%Y-%m-%d}", priority=-1)


class Housekeeping:
    """The job's handler."""

    def __init__(self, *, db: Database, attachments_folder: Path, clock: Callable[[], datetime]) -> None:
        self._db = db
        self._folder = attachments_folder
        self._clock = clock

    async def run(self, _job: Job, context: JobContext) -> JobResult:
        now = self._clock()
        counts: dict[str, int] = {"inbox": await context.write(lambda connection: inbox.prune(connection, now - INBOX_KEPT))}
        for name, statement, kept in (
            ("outbox", _OLD_PARTS, OUTBOX_KEPT),
            ("errors", _OLD_ERRORS, ERRORS_KEPT),
            ("model_calls", _OLD_CALLS, CALLS_KEPT),
            ("jobs", _OLD_SWEEPS, ERRORS_KEPT),
        ):
            counts[name] = await context.write(
                lambda connection, statement=statement, kept=kept: connection.execute(statement, {"before": now - kept}).rowcount
            )
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

"""The job of one run of a task, and how long its row stays (WD-136, SC-15)."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import sqlalchemy as sa

from gateway.jobs.table import Job
from memory import tasks
from memory.schema import jobs
from memory.tasks import Task

KIND = "task"
KEPT = timedelta(days=30)
KEPT_OF_ONE = 100  # rows of ended jobs of one task
PRIORITY = 10  # a reminder is short, and somebody waits for it

_BY_HAND = ":now:"
_ENDED = ("done", "cancelled", "parked")
_OLD = sa.delete(jobs).where(jobs.c.kind == KIND, jobs.c.state.in_(_ENDED), jobs.c.updated_at < sa.bindparam("before", type_=jobs.c.updated_at.type))
_KEYS = sa.select(jobs.c.id, jobs.c.key).where(jobs.c.kind == KIND, jobs.c.state.in_(_ENDED)).order_by(jobs.c.id.desc())
_DROP = sa.delete(jobs).where(jobs.c.id.in_(sa.bindparam("ids", expanding=True)))


def task_job(task: Task, *, slot: datetime, turn: str, manual: bool = False) -> Job:
    """The job of the run that was due at `slot` (UTC). Its key is unique for ever, so that a slot runs once on any number of machines (WD-130).

    `turn`: the run's id in outbox and usage. Runs of one memory that ask a model follow each other; a plain text waits for none of them.
    """
    return Job(
        kind=KIND,
        key=f"{task.id}{_BY_HAND}{slot:%Y-%m-%dT%H:%M:%S.%fZ}" if manual else f"{task.id}:{slot:%Y-%m-%dT%H:%MZ}",
        scope=(task.scope or task.person_id) if task.kind == "ask" else "",
        payload={"task": task.id, "slot": slot.isoformat(), "turn": turn, "manual": manual},
        priority=PRIORITY,
    )


def is_manual(key: str) -> bool:
    return _BY_HAND in key


def sweep(connection: sa.Connection, now: datetime) -> int:
    """Delete what runs left behind: ended jobs above the age or the count, and tasks that ended long ago; the log of chats stays untouched."""
    before = now - KEPT
    swept = connection.execute(_OLD, {"before": before}).rowcount + tasks.sweep(connection, before)
    seen: Counter[str] = Counter()
    extra: list[int] = []
    for row in connection.execute(_KEYS):
        task_id = row.key.partition(":")[0]
        seen[task_id] += 1
        if seen[task_id] > KEPT_OF_ONE:
            extra.append(row.id)
    for start in range(0, len(extra), 500):
        swept += connection.execute(_DROP, {"ids": extra[start : start + 500]}).rowcount
    return swept

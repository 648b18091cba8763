"""Wakes when a task is due and at least every minute, and decides by the wall clock and the stored plan alone (WD-129, WD-135, WD-136).

So a machine that slept, a clock that was set and a timer that was lost do no harm. A run is claimed in one transaction, which plans the next one and
enqueues the job; two loops on one store claim it once. The loop also writes down what became of runs, from outbox and job table.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa

from gateway.config import Config
from gateway.delivery.rules import PartState
from gateway.jobs.table import cancel_job, enqueue, find_job
from gateway.language import say
from gateway.tasks import rules as task_rules
from gateway.tasks.cron import BadRule
from gateway.tasks.jobs import KIND, is_manual, task_job
from gateway.tasks.parts import RunPart, add_late_note, parts_of_run
from memory import tasks
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.ids import new_turn
from memory.tasks import Task

REST_MAX_S = 60.0
REST_MIN_S = 1.0  # between two looks, whatever is due: a claim that another process won must not make us spin

log = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[object]]


class TaskLoop:
    """`wake_jobs`: the job runner has work. `sleep`: as `asyncio.sleep`; time is asked of `clock` alone."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        wake_jobs: Callable[[], None],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._wake_jobs = wake_jobs
        self._sleep = sleep
        self._wake = asyncio.Event()
        self._closed = False

    def wake(self) -> None:
        """Look now: plans have changed, or a part of a run was sent. Called on the event loop."""
        self._wake.set()

    def close(self) -> None:
        """Claim nothing more."""
        self._closed = True
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled or closed."""
        checked = False
        while not self._closed:
            self._wake.clear()
            try:
                if not checked:
                    await self.check()
                    checked = True
                rest = await self.tick()
            except StoreUnavailable as error:
                log.warning("tasks wait: %s", error)
                rest = REST_MAX_S
            async with asyncio.TaskGroup() as group:
                timer = group.create_task(self._ring(rest))
                await self._wake.wait()
                timer.cancel()

    async def _ring(self, seconds: float) -> None:
        await self._sleep(seconds)
        self._wake.set()

    async def check(self) -> list[Task]:
        """Read every plan once; one that cannot be read is kept, marked and reported, and the others run (WD-137). Returns the bad ones."""
        now = self._clock()
        return await self._db.write(lambda connection: [task for task in tasks.planned(connection) if not _sound(connection, task, now)])

    async def tick(self) -> float:
        """Settle what has ended, claim what is due. Returns for how many seconds nothing is planned, at most a minute."""
        now = self._clock()
        late = timedelta(hours=self._config().scheduler.late_hours)
        grace = timedelta(seconds=self._config().scheduler.misfire_grace_seconds)
        await self._db.write(lambda connection: _settle(connection, now, grace))
        seen = await self._db.read(lambda connection: tasks.due(connection, now))
        claimed = [await self._db.write(lambda connection, task=task: _claim(connection, task, now, late)) for task in seen]
        if any(claimed):
            self._wake_jobs()
        nearest = await self._db.read(tasks.nearest)
        if nearest is None:
            return REST_MAX_S
        return max(REST_MIN_S, min(REST_MAX_S, (nearest - self._clock()).total_seconds()))


def _sound(connection: sa.Connection, task: Task, now: datetime) -> bool:
    try:
        task_rules.timing_of(task)
    except BadRule as error:
        _mark_bad(connection, task, error, now)
        return False
    return True


def _mark_bad(connection: sa.Connection, task: Task, error: BadRule, now: datetime) -> None:
    log.error("task %d cannot run: %s; its rule: %r, its zone: %r", task.id, say("en", error.key, **error.values), task.rule, task.timezone)
    tasks.change(connection, task.id, now, state="bad", next_run=None, fault=say(task.language, error.key, **error.values))


def _claim(connection: sa.Connection, task: Task, now: datetime, late: timedelta) -> bool:
    """Whether a job was enqueued. Nothing happens when another process was first."""
    try:
        timing, zone = task_rules.timing_of(task)
    except BadRule as error:
        _mark_bad(connection, task, error, now)
        return False
    due = task_rules.due(task, timing, zone, now, late=late)
    match due.doing:
        case "skip":
            log.warning("task %d: the run of %s is left out, the one before is still going on", task.id, due.slot)
            tasks.change_if_same(connection, task, now, next_run=due.next_run, skipped=task.skipped + 1)
            return False
        case "miss":
            log.warning("task %d: the run of %s is missed", task.id, due.slot)
            ended = {"state": "failed", "ended_at": now} if due.next_run is None else {}
            missed = {"last_run": due.slot, "last_result": "missed", "last_error": "", "missed": task.missed + 1}
            tasks.change_if_same(connection, task, now, next_run=due.next_run, **missed, **ended)
            return False
        case "run":
            turn = new_turn()
            job = task_job(task, slot=due.slot, turn=turn)
            plan = {"next_run": due.next_run, "run_slot": due.slot, "run_turn": turn, "run_key": job.key, "run_stored": False}
            if not tasks.change_if_same(connection, task, now, runs=task.runs + 1, **plan):
                return False
            enqueue(connection, job)
            return True


def _settle(connection: sa.Connection, now: datetime, grace: timedelta) -> None:
    """Write down what became of runs: from the state of their parts, or of the job that did not come so far."""
    for task in tasks.running(connection):
        job = find_job(connection, KIND, task.run_key)
        parts = parts_of_run(connection, task.run_turn)
        outcome = task_rules.settled([(part.state, part.reason) for part in parts], job.state if job else None)
        if outcome is None:
            _note_late(connection, task, parts, now, grace)
            continue
        result, error = outcome
        if result == "failed" and not error and job is not None:
            error = job.error_class or "nothing_left"
        if job is not None and job.state == "parked":
            cancel_job(connection, job.id)
        tasks.end_run(connection, task, now, result=result, error=error)


def _note_late(connection: sa.Connection, task: Task, parts: Sequence[RunPart], now: datetime, grace: timedelta) -> None:
    """A reminder that still waits for its platform when the grace is over is followed by the note, once (WD-135)."""
    waits = bool(parts) and all(part.state == PartState.QUEUED and not part.is_note for part in parts)
    if not waits or task.run_slot is None or is_manual(task.run_key):
        return
    if task_rules.lies_too_long(task.run_slot, parts[0].stored_at, now, grace=grace):
        _, zone = task_rules.timing_of(task)
        add_late_note(connection, task.run_turn, task_rules.late_note(task.run_slot, now, zone, task.language, grace=grace), now)

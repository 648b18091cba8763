"""The job runner: claims jobs, runs their handlers beside the replies, and stores what came of each (WD-97 to WD-101)."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from functools import partial

import sqlalchemy as sa

from gateway.jobs import claims
from gateway.jobs.claims import Claim, Turn
from gateway.jobs.failures import after_failure, cause_of, public_text, tell_failure
from gateway.jobs.handling import Handler, JobContext, JobResult
from gateway.jobs.table import State
from gateway.leases import RENEW_EVERY, Clock, LeaseLost
from memory.database import Database
from memory.errors import StoreUnavailable

POLL_S = 5.0  # how late a job may start that another process enqueued, or whose time has come (DL-17)
STORE_AGAIN_S = (1.0, 5.0, 15.0)  # pauses before storing an outcome again; with the busy time-outs well below a lease
GRACE_S = 20.0
_TURNS_KEPT = 500

log = logging.getLogger(__name__)


class JobRunner:
    """Runs the jobs of the kinds it has handlers for, `concurrency` at a time. Two runners with other kinds each have their own limit.

    `grace_s`: how long running jobs may go on after `run` is cancelled. `database_clock` stands in for the database's clock and is for tests alone:
    the clocks of two machines differ, and leases end by the database's. `sleep`: as `asyncio.sleep`.
    """

    def __init__(
        self,
        db: Database,
        handlers: Mapping[str, Handler],
        *,
        concurrency: int = 2,
        grace_s: float = GRACE_S,
        database_clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._db = db
        self._handlers = dict(handlers)
        self._concurrency = concurrency
        self._grace_s = grace_s
        self._now = database_clock or _database_time
        self._sleep = sleep
        self._owner = f"{socket.gethostname()}:{os.getpid()}"
        self._closed = False
        self._wake = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        self._served: set[Turn] = set()

    def wake(self) -> None:
        """Look at the table now: call it on the event loop after a transaction that enqueued something. Without it the job waits up to POLL_S."""
        self._wake.set()

    def close(self) -> None:
        """Claim nothing more. The grace begins now and `run` ends by itself; so jobs can use the time in which answers finish too."""
        self._closed = True
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled or closed. Then no job is claimed, running ones get their grace, and the rest is left to its leases (WD-101).

        Cancelled once more, or when closed already, it ends without the grace.
        """
        async with asyncio.TaskGroup() as group:
            ticking = group.create_task(self._tick())
            try:
                await self._claim_and_start(group)
            finally:
                await self._drain(group)
            for task in (ticking, *self._running):
                task.cancel()

    async def _tick(self) -> None:
        while True:
            await self._sleep(POLL_S)
            self._wake.set()

    async def _claim_and_start(self, group: asyncio.TaskGroup) -> None:
        while not self._closed:
            claim = await self._claim() if len(self._running) < self._concurrency else None
            if claim is None:
                await self._wake.wait()  # every end of a job wakes us too: a place is free, and perhaps its rival may run
                self._wake.clear()
                continue
            task = group.create_task(self._work(claim))
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._wake.set()

    async def _claim(self) -> Claim | None:
        token = f"{self._owner}:{secrets.token_hex(8)}"
        served = sorted(self._served)
        try:
            claim = await self._db.write(lambda connection: claims.claim(connection, token, self._handlers, served, now=self._now()))
        except StoreUnavailable as error:
            log.warning("no job can be claimed: %s", error)
            return None
        if claim is not None:
            self._take_turn((claim.row.job.priority, claim.row.job.scope))
        return claim

    def _take_turn(self, turn: Turn) -> None:
        if turn in self._served:  # nobody of this priority waits who had no turn: a new round
            self._served = {other for other in self._served if other[0] != turn[0]}
        elif len(self._served) >= _TURNS_KEPT:
            self._served.clear()
        self._served.add(turn)

    async def _work(self, claim: Claim) -> None:
        """One run of one job, to its stored outcome. Raises nothing but cancellation: one sick job never takes another down."""
        try:
            result = await self._attempt(claim)
            await self._store(partial(self._finish, claim, result))
        except LeaseLost as lost:
            log.warning("%s: what this run made is thrown away", lost)
        except Exception as error:
            state, wait = after_failure(claim.row.attempts, error)
            tell_failure(claim, error, state, wait)
            await self._record(claim, error, state, wait)

    async def _attempt(self, claim: Claim) -> JobResult:
        """Run the handler while its lease is renewed. Raises what the handler raises; LeaseLost, having stopped it, when the lease is lost."""
        handler = self._handlers[claim.row.job.kind]
        try:
            async with asyncio.TaskGroup() as group:
                keeper = group.create_task(self._keep_lease(claim))
                result = await handler(claim.row.job, JobContext(self._db, claim, self._now))
                keeper.cancel()
                return result
        except BaseExceptionGroup as several:
            failure = cause_of(several)
        raise failure  # here, outside of the except, so that its own causes stay what they are

    async def _keep_lease(self, claim: Claim) -> None:
        while True:
            await self._sleep(RENEW_EVERY.total_seconds())
            try:
                await self._db.write(lambda connection: claims.renew(connection, claim, now=self._now()))
            except StoreUnavailable as error:
                log.warning("the lease of job %s cannot be renewed now: %s", claim.row.id, error)

    def _finish(self, claim: Claim, result: JobResult, connection: sa.Connection) -> None:
        outcome = {"skipped": result.skipped} if result.skipped else result.output
        claims.finish(connection, claim, outcome, now=self._now())
        if result.commit is not None:
            result.commit(connection)

    async def _record(self, claim: Claim, error: Exception, state: State, wait: timedelta) -> None:
        name, text = type(error).__name__, public_text(error)
        try:
            await self._store(
                lambda connection: claims.fail(connection, claim, state=state, wait=wait, error_class=name, error=text, now=self._now())
            )
        except (LeaseLost, StoreUnavailable) as unstored:
            log.warning("the failure of job %s is not stored, its lease will end: %s", claim.row.id, unstored)

    async def _store(self, work: Callable[[sa.Connection], None]) -> None:
        """An outcome is worth some patience, for it may have been paid for. Raises StoreUnavailable in the end."""
        for pause in STORE_AGAIN_S:
            try:
                return await self._db.write(work)
            except StoreUnavailable as error:
                log.warning("the outcome of a job cannot be stored now: %s", error)
                await self._sleep(pause)
        return await self._db.write(work)

    async def _drain(self, group: asyncio.TaskGroup) -> None:
        if not self._running:
            return
        timer = group.create_task(_asleep(self._sleep, self._grace_s))
        while self._running and not timer.done():
            await asyncio.wait({timer, *self._running}, return_when=asyncio.FIRST_COMPLETED)
        timer.cancel()
        if self._running:
            log.warning("%s jobs did not end within %s s and are left to their leases", len(self._running), self._grace_s)


def _database_time() -> datetime | None:
    """None: the statements ask the database."""
    return None


async def _asleep(sleep: Callable[[float], Awaitable[object]], seconds: float) -> None:
    await sleep(seconds)

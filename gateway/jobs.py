"""The job runner: claims jobs, runs their handlers beside the replies, and decides what a failure means (WD-97 to WD-101).

The table and its rules are in `job_store`. A handler is a coroutine per kind of job; what it wants to change it hands back in its `JobResult`, to be
committed together with the end of the job, so that after a kill at any point each job has had its effect once.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy import exc

from agent.llm.masking import MASK, mask
from gateway import job_store
from gateway.job_store import PARKED_FOR, Claim, Job, State, Turn
from gateway.leases import LEASE, RENEW_EVERY, Clock, LeaseLost
from memory.database import Database
from memory.errors import StoreUnavailable

T = TypeVar("T")

ATTEMPTS = 8
WAITS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60))  # the last one from then on
LONGEST_WAIT = timedelta(hours=24)  # whatever a provider asks for
POLL_S = 5.0  # how late a job may start that another process enqueued, or whose time has come (DL-17)
STORE_AGAIN_S = (1.0, 5.0, 15.0)  # pauses before storing an outcome again; with the busy time-outs well below a lease
GRACE_S = 20.0
_TURNS_KEPT = 500
_TEXT_KEPT = 500

log = logging.getLogger(__name__)


class PermanentJobError(Exception):
    """Trying again cannot help: the job is parked at once (WD-100).

    Errors of other packages say the same by an attribute `permanent = True`, that they know when to come back by `retry_after_s`, in seconds, and
    that they belong to the ordinary course of things by `foreseen = True`. Any of the three is told in one line of the log, without a stack.
    """

    permanent = True


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """`output`: JSON, kept with the job. `skipped`: why there was nothing to do; then `output` is not kept (WD-98).

    `commit` runs in the transaction that ends the job, if the lease is still held: the job's effect and its follow-up jobs belong there. It may
    enqueue this very job again. What it raises counts as a failed attempt and nothing of it stays.
    """

    output: Mapping[str, Any] = field(default_factory=dict[str, Any])
    skipped: str = ""
    commit: Callable[[sa.Connection], object] | None = None


class JobContext:
    """What a handler may ask of the runner. `attempts`: failed runs before this one."""

    def __init__(self, db: Database, claim: Claim, clock: Clock | None) -> None:
        self.id = claim.row.id
        self.attempts = claim.row.attempts
        self._db = db
        self._claim = claim
        self._clock = clock

    async def paid(self, part: str, hashed: str, make: Callable[[], Awaitable[T]]) -> T:
        """The output of one paid step: kept from an earlier run with the same `hashed` (`job_store.input_hash`), or made and kept (WD-60, RS-191).

        Only what is good may be returned by `make`: JSON, not null, with the types it was made of. Raises what it raises, and LeaseLost.
        """
        kept = await self._db.read(lambda connection: job_store.read_part(connection, self.id, part, hashed))
        if kept is not None:
            return kept
        output = await make()
        await self._db.write(lambda connection: job_store.keep_part(connection, self._claim, part, hashed, output, now=_now(self._clock)))
        return output

    async def settled(self, part: str, make: Callable[[sa.Connection], T]) -> T:
        """What `make` (JSON, not null) found in the database at the job's first look, kept in that very transaction: every later run sees the same.

        Raises LeaseLost.
        """

        def work(connection: sa.Connection) -> T:
            job_store.check(connection, self._claim)
            kept = job_store.read_part(connection, self.id, part, "")
            if kept is not None:
                return kept
            output = make(connection)
            job_store.keep_part(connection, self._claim, part, "", output, now=_now(self._clock))
            return output

        return await self._db.write(work)

    async def tell(self, part: str, output: object) -> None:
        """What others may know of the paid work so far (`job_store.told`), in place of what was told before. Raises LeaseLost."""
        await self._db.write(lambda connection: job_store.keep_part(connection, self._claim, part, job_store.TOLD, output, now=_now(self._clock)))

    async def write(self, work: Callable[[sa.Connection], T]) -> T:
        """Commit a step in the middle of a job, by the job's holder only. Raises LeaseLost: let it pass, the runner knows what to do."""

        def fenced(connection: sa.Connection) -> T:
            job_store.check(connection, self._claim)
            return work(connection)

        return await self._db.write(fenced)


Handler = Callable[[Job, JobContext], Awaitable[JobResult]]


def after_failure(attempts: int, error: Exception) -> tuple[State, timedelta]:
    """What becomes of a job that failed `attempts` times before and now with `error`: its state, and when it is tried again (WD-100)."""
    if getattr(error, "permanent", False) is True or attempts + 1 >= ATTEMPTS:
        return "parked", PARKED_FOR
    return "waiting", max(WAITS[min(attempts, len(WAITS) - 1)], _asked_for(error))


def is_foreseen(error: Exception) -> bool:
    """Whether a failure is one of the ordinary course of things, whose reason says all: no stack helps with it (WD-100)."""
    return any(hasattr(error, mark) for mark in ("permanent", "retry_after_s", "foreseen"))


def _tell_failure(claim: Claim, error: Exception, state: State, wait: timedelta) -> None:
    """One line with the job, the reason and what comes next; the stack of what nobody foresaw as well."""
    row = claim.row
    following = f"{'parked, ' if state == 'parked' else ''}tried again in {wait}"
    words = (
        "job %s (%s) failed, attempt %s: %s: %s; %s",
        row.id,
        row.job.kind,
        row.attempts + 1,
        type(error).__name__,
        public_text(error),
        following,
    )
    if is_foreseen(error):
        log.warning(*words)
    else:
        log.error(*words, exc_info=error)


def _asked_for(error: Exception) -> timedelta:
    seconds = getattr(error, "retry_after_s", None)
    if not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds <= 0:
        return timedelta()
    return min(timedelta(seconds=min(seconds, LONGEST_WAIT.total_seconds())), LONGEST_WAIT)


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
        lease: timedelta = LEASE,
        renew_every: timedelta = RENEW_EVERY,
        database_clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._db = db
        self._handlers = dict(handlers)
        self._concurrency = concurrency
        self._grace_s = grace_s
        self._lease = lease
        self._renew_every = renew_every
        self._clock = database_clock
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
            claim = await self._db.write(
                lambda connection: job_store.claim(connection, token, self._handlers, served, self._lease, now=_now(self._clock))
            )
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
            _tell_failure(claim, error, state, wait)
            await self._record(claim, error, state, wait)

    async def _attempt(self, claim: Claim) -> JobResult:
        """Run the handler while its lease is renewed. Raises what the handler raises; LeaseLost, having stopped it, when the lease is lost."""
        handler = self._handlers[claim.row.job.kind]
        try:
            async with asyncio.TaskGroup() as group:
                keeper = group.create_task(self._keep_lease(claim))
                result = await handler(claim.row.job, JobContext(self._db, claim, self._clock))
                keeper.cancel()
                return result
        except BaseExceptionGroup as several:
            failure = _cause(several)
        raise failure  # here, outside of the except, so that its own causes stay what they are

    async def _keep_lease(self, claim: Claim) -> None:
        while True:
            await self._sleep(self._renew_every.total_seconds())
            try:
                await self._db.write(lambda connection: job_store.renew(connection, claim, self._lease, now=_now(self._clock)))
            except StoreUnavailable as error:
                log.warning("the lease of job %s cannot be renewed now: %s", claim.row.id, error)

    def _finish(self, claim: Claim, result: JobResult, connection: sa.Connection) -> None:
        outcome = {"skipped": result.skipped} if result.skipped else result.output
        job_store.finish(connection, claim, outcome, now=_now(self._clock))
        if result.commit is not None:
            result.commit(connection)

    async def _record(self, claim: Claim, error: Exception, state: State, wait: timedelta) -> None:
        name, text = type(error).__name__, public_text(error)
        try:
            await self._store(
                lambda connection: job_store.fail(connection, claim, state=state, wait=wait, error_class=name, error=text, now=_now(self._clock))
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


# Beside what providers' keys look like: a signed query, the value of something named like a secret, a bot's token, a long word of letters and digits.
_SECRETS = tuple(
    (re.compile(pattern, re.IGNORECASE), shown)
    for pattern, shown in (
        (r"(?<=\S)\?[^\s\"'<>]*=[^\s\"'<>]*", f"?{MASK}"),
        (r"((?:authorization|token|secret|password|api[-_ ]?key)\w*[\"']?\s*[:=]\s*[\"']?)(?:bearer\s+)?[^\s\"',;]+", rf"\1{MASK}"),
        (r"\d{6,}:[\w-]{20,}", MASK),
        (r"\b(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{24,}", MASK),
    )
)


def public_text(error: Exception) -> str:
    """What operators see of an error: at most 500 characters, without secrets, statement parameters, or characters that a database refuses."""
    text = mask(str(error.orig if isinstance(error, exc.StatementError) else error)[: 4 * _TEXT_KEPT])
    for pattern, shown in _SECRETS:
        text = pattern.sub(shown, text)
    return text.replace("\0", "").encode("utf-8", "replace").decode()[:_TEXT_KEPT]


def _cause(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error behind a task group's: a lost lease before all else; a handler's own group only if it holds more than one."""
    leaves = list(_leaves(several))
    lost = next((leaf for leaf in leaves if isinstance(leaf, LeaseLost)), None)
    return lost or (leaves[0] if len(leaves) == 1 else several.exceptions[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inside in cast(BaseExceptionGroup[BaseException], error).exceptions:
            yield from _leaves(inside)
    else:
        yield error


def _now(clock: Clock | None) -> datetime | None:
    return None if clock is None else clock()


async def _asleep(sleep: Callable[[float], Awaitable[object]], seconds: float) -> None:
    await sleep(seconds)

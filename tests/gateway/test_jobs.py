"""Durable jobs on both databases: each has its effect once, whatever is killed, late, busy or broken."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from gateway.jobs import claims
from gateway.jobs.claims import Claim, Turn
from gateway.jobs.failures import ATTEMPTS, after_failure, public_text
from gateway.jobs.handling import Handler, JobContext, JobResult
from gateway.jobs.parts import input_hash, read_part
from gateway.jobs.runner import POLL_S, JobRunner
from gateway.jobs.table import AT_ONCE, Job, JobRow, State, cancel_job, enqueue, find_job, list_jobs, read_job, run_now, run_parked
from gateway.leases import LEASE, RENEW_EVERY, LeaseLost
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.schema import audit
from tests.conftest import FakeClock
from tests.patience import patience

T = TypeVar("T")
MINUTES = [1, 5, 15, 60, 60, 60, 60]

# -- tools -------------------------------------------------------------------------------------------------------------


class Sleeper:
    """`asyncio.sleep` on the fake clock: whoever sleeps wakes in `advance`. Remembers what was asked for."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.asked: list[float] = []
        self._beds: list[tuple[datetime, asyncio.Event]] = []

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        if seconds <= 0:
            return
        bed = (self.clock() + timedelta(seconds=seconds), asyncio.Event())
        self._beds.append(bed)
        await bed[1].wait()

    async def advance(self, *, seconds: float = 0, minutes: float = 0) -> None:
        self.clock.advance(seconds=seconds, minutes=minutes)
        for due, event in self._beds:
            if due <= self.clock():
                event.set()
        self._beds = [bed for bed in self._beds if bed[0] > self.clock()]
        await asyncio.sleep(0)


@pytest.fixture
def sleep(clock: FakeClock) -> Sleeper:
    return Sleeper(clock)


class Desk:
    """The store's functions against one database and the fake clock."""

    def __init__(self, database: Database, clock: FakeClock) -> None:
        self.database, self.clock = database, clock
        self._tokens = iter(range(1_000_000))

    async def enqueue(self, kind: str = "note", key: str = "1", *, again: bool = False, **more: Any) -> int:
        return await self.database.write(lambda c: enqueue(c, Job(kind=kind, key=key, **more), again=again, now=self.clock()))

    async def claim(self, *kinds: str, served: tuple[Turn, ...] = ()) -> Claim | None:
        token = f"worker:{next(self._tokens)}"
        return await self.database.write(lambda c: claims.claim(c, token, kinds or ("note",), served, now=self.clock()))

    async def claimed(self, *kinds: str) -> Claim:
        claim = await self.claim(*kinds)
        assert claim is not None
        return claim

    async def finish(self, claim: Claim, output: Mapping[str, Any] | None = None) -> State:
        return await self.database.write(lambda c: claims.finish(c, claim, output or {}, now=self.clock()))

    async def fail(self, claim: Claim, error: Exception) -> None:
        state, wait = after_failure(claim.row.attempts, error)
        await self.database.write(
            lambda c: claims.fail(c, claim, state=state, wait=wait, error_class=type(error).__name__, error=str(error), now=self.clock())
        )

    async def row(self, kind: str = "note", key: str = "1") -> JobRow:
        row = await self.database.read(lambda c: find_job(c, kind, key))
        assert row is not None
        return row

    async def state(self, kind: str = "note", key: str = "1") -> State:
        return (await self.row(kind, key)).state

    async def effects(self) -> list[str]:
        return await self.database.read(lambda c: list(c.execute(sa.select(audit.c.action).order_by(audit.c.id)).scalars()))

    async def becomes(self, state: State, kind: str = "note", key: str = "1") -> JobRow:
        await eventually(lambda: self._is(state, kind, key))
        return await self.row(kind, key)

    async def _is(self, state: State, kind: str, key: str) -> bool:
        row = await self.database.read(lambda c: find_job(c, kind, key))
        return row is not None and row.state == state


@pytest.fixture
def desk(database: Database, clock: FakeClock) -> Desk:
    return Desk(database, clock)


async def eventually(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(patience(20)):
        while not await true():  # noqa: ASYNC110 - a database sends no events
            await asyncio.sleep(0.005)


def effect(action: str) -> Callable[[sa.Connection], None]:
    """A change in the database that tests can count."""
    return lambda c: void(c.execute(sa.insert(audit).values(at=datetime.now(UTC), action=action)))


def void(_: object) -> None:
    return None


@asynccontextmanager
async def running(desk: Desk, sleep: Sleeper, handlers: Mapping[str, Handler], **more: Any) -> AsyncGenerator[JobRunner]:
    """A runner that leaves at the end what it has not finished."""
    runner = JobRunner(more.pop("database", desk.database), handlers, grace_s=0, database_clock=desk.clock, sleep=sleep, **more)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(runner.run())
        try:
            yield runner
        finally:
            task.cancel()


class Gate:
    """A handler that waits inside until told, and says who is in."""

    def __init__(self, result: JobResult | None = None) -> None:
        self.inside: list[str] = []
        self.began: list[str] = []
        self.stopped: list[str] = []
        self.opened = asyncio.Event()
        self.result = result or JobResult()

    async def __call__(self, job: Job, context: JobContext) -> JobResult:
        self.inside.append(job.key)
        self.began.append(job.key)
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.stopped.append(job.key)
            raise
        finally:
            self.inside.remove(job.key)
        return self.result

    async def holds(self, *keys: str) -> None:
        async def there() -> bool:
            return sorted(self.inside) == sorted(keys)

        await eventually(there)


def returning(result: JobResult) -> Handler:
    async def handler(job: Job, context: JobContext) -> JobResult:
        return result

    return handler


def raising(*errors: Exception) -> Handler:
    """Raises each error in turn, then succeeds."""
    left = list(errors)

    async def handler(job: Job, context: JobContext) -> JobResult:
        if left:
            raise left.pop(0)
        return JobResult()

    return handler


# -- written with what makes it necessary ---------------------------------------------------------------------------------


@pytest.mark.rule("WD-98")
async def test_a_job_stands_or_falls_with_the_transaction_that_needs_it(desk: Desk) -> None:
    def undone(connection: sa.Connection) -> None:
        enqueue(connection, Job(kind="note", key="1"))
        raise KeyError("the message could not be stored")

    with pytest.raises(KeyError):
        await desk.database.write(undone)
    assert await desk.database.read(lambda c: find_job(c, "note", "1")) is None
    job = Job(kind="note", key="1", scope="root", local_date="2026-03-14", payload={"名": ["値", 1, None]}, priority=3, not_before=AT_ONCE)
    first = await desk.database.write(lambda c: enqueue(c, job))
    row = await desk.row()
    assert (row.id, row.state, row.job) == (first, "waiting", job)
    assert await desk.database.read(lambda c: read_job(c, first)) == row
    assert await desk.database.read(lambda c: read_job(c, first + 1)) is None


@pytest.mark.rule("WD-98", "WD-130")
async def test_a_kind_and_key_are_one_job_however_often_and_by_how_many_it_is_enqueued(desk: Desk) -> None:
    async with asyncio.TaskGroup() as group:
        tries = [group.create_task(desk.enqueue(payload={"n": n})) for n in range(20)]
    assert len({attempt.result() for attempt in tries}) == 1
    first = await desk.row()
    assert await desk.enqueue(payload={"n": 99}) == first.id
    assert await desk.row() == first
    await desk.finish(await desk.claimed(), {"done": True})
    await desk.enqueue(payload={"n": 100})
    assert await desk.state() == "done"
    assert await desk.claim() is None


@pytest.mark.rule("WD-98")
async def test_again_revives_a_done_or_cancelled_job_as_new(desk: Desk) -> None:
    job = await desk.enqueue()
    await desk.fail(await desk.claimed(), ValueError("once"))
    desk.clock.advance(minutes=1)
    await desk.finish(await desk.claimed(), {"n": 1})
    assert await desk.enqueue(again=True, payload={"n": 2}) == job
    row = await desk.row()
    assert (row.state, row.attempts, row.result, row.job.payload) == ("waiting", 0, None, {"n": 2})
    assert await desk.database.write(lambda c: cancel_job(c, job))
    assert await desk.claim() is None
    await desk.enqueue(again=True)
    assert (await desk.claimed()).row.id == job


@pytest.mark.rule("WD-98")
async def test_again_during_a_run_is_not_lost(desk: Desk) -> None:
    await desk.enqueue(payload={"upto": 1})
    claim = await desk.claimed()
    await desk.enqueue(payload={"upto": 1})  # without `again` it is a no-op now too
    await desk.enqueue(again=True, payload={"upto": 2})
    assert await desk.state() == "running"
    assert await desk.claim() is None
    assert await desk.finish(claim) == "waiting"
    second = await desk.claimed()
    assert second.row.job.payload == {"upto": 2}
    await desk.enqueue(again=True, payload={"upto": 3})
    desk.clock.advance(seconds=121)  # the worker vanishes; the one that takes over reads what is new
    third = await desk.claimed()
    assert third.row.job.payload == {"upto": 3}
    assert await desk.finish(third) == "done"


@pytest.mark.rule("WD-100")
async def test_again_shortens_neither_a_back_off_nor_a_parking(desk: Desk) -> None:
    await desk.enqueue()
    await desk.fail(await desk.claimed(), ValueError("busy"))
    await desk.enqueue(again=True, payload={"n": 2})
    assert await desk.claim() is None
    desk.clock.advance(minutes=1)
    claim = await desk.claimed()
    assert claim.row.job.payload == {"n": 2}
    await desk.fail(claim, WrongKey("no key"))
    await desk.enqueue(again=True, payload={"n": 3})
    assert await desk.state() == "parked"
    assert await desk.claim() is None


async def test_a_job_waits_for_its_time(desk: Desk) -> None:
    await desk.enqueue(not_before=desk.clock() + timedelta(hours=2))
    desk.clock.advance(minutes=119, seconds=59.999999)
    assert await desk.claim() is None
    desk.clock.advance(microseconds=1)
    assert (await desk.claimed()).row.job.not_before == desk.clock()


# -- who goes first ----------------------------------------------------------------------------------------------------------


async def order_of(desk: Desk, sleep: Sleeper, count: int, **more: Any) -> list[str]:
    """The keys in the order in which one worker runs them."""
    seen: list[str] = []

    async def handler(job: Job, context: JobContext) -> JobResult:
        seen.append(job.key)
        return JobResult()

    async def all_seen() -> bool:
        return len(seen) >= count

    async with running(desk, sleep, {"note": handler, "other": handler}, concurrency=1, **more):
        await eventually(all_seen)
    return seen


@pytest.mark.rule("WD-99", "RS-190")
async def test_a_busy_scope_does_not_starve_the_others(desk: Desk, sleep: Sleeper) -> None:
    for n in range(5):
        await desk.enqueue(key=f"busy{n}", scope="busy")
    for name in ("b", "c"):
        await desk.enqueue(key=f"{name}0", scope=name)
        await desk.enqueue(key=f"{name}1", scope=name)
    assert await order_of(desk, sleep, 9) == ["busy0", "b0", "c0", "busy1", "b1", "c1", "busy2", "busy3", "busy4"]


@pytest.mark.rule("WD-99")
async def test_a_job_that_is_enqueued_again_and_again_keeps_its_place_and_one_that_was_revived_goes_behind(desk: Desk) -> None:
    for key in ("1", "2", "3"):
        await desk.enqueue(key=key)
        desk.clock.advance(seconds=1)
    await desk.enqueue(key="1", again=True)
    first = await desk.claimed()
    assert first.row.job.key == "1"
    await desk.finish(first)
    desk.clock.advance(seconds=1)
    await desk.enqueue(key="1", again=True)
    assert [(await desk.claimed()).row.job.key for _ in range(3)] == ["2", "3", "1"]


@pytest.mark.rule("WD-87", "WD-99")
async def test_priority_comes_before_turns_and_starves_none_of_its_own_rank(desk: Desk, sleep: Sleeper) -> None:
    await desk.enqueue(key="a0", scope="a")
    await desk.enqueue(key="a1", scope="a")
    await desk.enqueue(key="b0", scope="b")
    for n in range(3):
        await desk.enqueue(key=f"owner{n}", scope="root", priority=1)
    assert await order_of(desk, sleep, 6) == ["owner0", "owner1", "owner2", "a0", "b0", "a1"]


@pytest.mark.rule("WD-99")
async def test_one_who_always_goes_first_does_not_upset_the_turns_of_those_behind(desk: Desk, sleep: Sleeper) -> None:
    seen: list[str] = []

    async def handler(job: Job, context: JobContext) -> JobResult:
        seen.append(job.key)
        owner = Job(kind="note", key="owner", scope="root", priority=1)
        return JobResult(commit=None if job.key == "owner" else lambda c: void(enqueue(c, owner, again=True, now=desk.clock())))

    for key in ("busy0", "busy1", "busy2", "c0"):
        await desk.enqueue(key=key, scope=key[:-1])
    await desk.enqueue(key="owner", scope="root", priority=1)
    async with running(desk, sleep, {"note": handler}, concurrency=1):
        await desk.becomes("done", key="busy2")
    assert seen[:7] == ["owner", "busy0", "owner", "c0", "owner", "busy1", "owner"]


@pytest.mark.rule("WD-64", "RS-190")
async def test_jobs_of_one_kind_and_scope_run_one_at_a_time_and_others_beside_them(desk: Desk, sleep: Sleeper) -> None:
    gate = Gate()
    for key in ("1", "2"):
        await desk.enqueue(key=key, scope="root")
    await desk.enqueue("other", "3", scope="root")
    await desk.enqueue(key="4", scope="people/p-1")
    await desk.enqueue(key="5")
    await desk.enqueue(key="6")
    async with running(desk, sleep, {"note": gate, "other": gate}, concurrency=9):
        await gate.holds("1", "3", "4", "5", "6")
        gate.opened.set()
        await desk.becomes("done", key="2")


@pytest.mark.rule("WD-99", "RS-190")
async def test_no_more_run_at_once_than_is_set(desk: Desk, sleep: Sleeper) -> None:
    gate = Gate()
    for n in range(5):
        await desk.enqueue(key=str(n))
    async with running(desk, sleep, {"note": gate}):
        await gate.holds("0", "1")
        gate.opened.set()
        for n in range(5):
            await desk.becomes("done", key=str(n))
    assert gate.began == ["0", "1", "2", "3", "4"]


async def test_a_kind_without_a_handler_here_is_left_to_others(desk: Desk, sleep: Sleeper) -> None:
    await desk.enqueue("from a newer version")
    await desk.enqueue()
    async with running(desk, sleep, {"note": returning(JobResult())}):
        await desk.becomes("done")
    assert await desk.state("from a newer version") == "waiting"


@pytest.mark.rule("RS-190", "WD-98")
async def test_two_processes_worth_of_runners_do_two_hundred_jobs_once_each(desk: Desk, sleep: Sleeper) -> None:
    done: Counter[str] = Counter()

    async def handler(job: Job, context: JobContext) -> JobResult:
        done[job.key] += 1
        return JobResult(commit=effect(job.key))

    async def all_done() -> bool:
        return len(await desk.effects()) >= 200

    def fill(connection: sa.Connection) -> None:
        for n in range(200):
            enqueue(connection, Job(kind="note", key=str(n), scope=f"chat{n % 7}" if n % 2 else ""), now=desk.clock())

    await desk.database.write(fill)
    elsewhere = Database(desk.database.url.render_as_string(hide_password=False))
    async with running(desk, sleep, {"note": handler}, concurrency=3), running(desk, sleep, {"note": handler}, concurrency=3, database=elsewhere):
        await eventually(all_done)
    await elsewhere.close()
    assert set(done.values()) == {1}
    assert len(done) == 200
    assert Counter(await desk.effects()) == done
    assert len(await desk.database.read(lambda c: list_jobs(c, "done"))) == 200


@pytest.mark.rule("WD-64", "WD-98")
async def test_claimers_at_the_same_instant_never_take_one_job_or_two_rivals(desk: Desk) -> None:
    for n in range(8):
        await desk.enqueue(key=str(n), scope=f"chat{n % 4}")
    together = threading.Barrier(8)
    machines = [Database(desk.database.url.render_as_string(hide_password=False)) for _ in range(8)]

    def one(machine: Database) -> Claim | None:
        machine.write_now(sa.inspect)  # connected, so that all start alike
        together.wait()
        return machine.write_now(lambda c: claims.claim(c, f"worker:{id(machine)}", ["note"], now=desk.clock()))

    def all_of_them() -> list[Claim]:
        with ThreadPoolExecutor(8) as pool:
            return [claim for claim in pool.map(one, machines) if claim]

    taken = await asyncio.to_thread(all_of_them)
    for machine in machines:
        await machine.close()
    assert sorted(claim.row.job.scope for claim in taken) == ["chat0", "chat1", "chat2", "chat3"]


# -- what comes of it ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-98")
@pytest.mark.parametrize(
    ("result", "stored"),
    [
        (JobResult(), {}),
        (JobResult(output={"lines": 3, "名": "値"}), {"lines": 3, "名": "値"}),
        (JobResult(skipped="unchanged"), {"skipped": "unchanged"}),
    ],
)
async def test_a_done_job_says_what_came_of_it_or_why_nothing_did(desk: Desk, sleep: Sleeper, result: JobResult, stored: dict[str, Any]) -> None:
    await desk.enqueue()
    async with running(desk, sleep, {"note": returning(result)}):
        row = await desk.becomes("done")
    assert (row.result, row.error, row.lease_owner, row.lease_until) == (stored, "", "", None)


@pytest.mark.rule("WD-98", "WD-100")
async def test_an_effect_that_cannot_be_committed_is_a_failed_attempt_and_leaves_nothing(desk: Desk, sleep: Sleeper) -> None:
    def broken(connection: sa.Connection) -> None:
        effect("half")(connection)
        enqueue(connection, Job(kind="other", key="follow-up"))
        raise ValueError("the other half")

    await desk.enqueue()
    async with running(desk, sleep, {"note": returning(JobResult(commit=broken))}):
        await eventually(lambda: attempts_are(desk, 1))
    assert await desk.effects() == []
    assert await desk.database.read(lambda c: find_job(c, "other", "follow-up")) is None
    row = await desk.row()
    assert (row.state, row.error_class, row.error) == ("waiting", "ValueError", "the other half")


async def attempts_are(desk: Desk, count: int, key: str = "1") -> bool:
    return (await desk.row(key=key)).attempts == count


@pytest.mark.rule("WD-98")
async def test_a_job_may_enqueue_its_followers_and_itself(desk: Desk, sleep: Sleeper) -> None:
    def more(connection: sa.Connection) -> None:
        enqueue(connection, Job(kind="other", key="after"), now=desk.clock())
        enqueue(connection, Job(kind="note", key="1", not_before=desk.clock() + timedelta(hours=6)), again=True, now=desk.clock())

    await desk.enqueue()
    async with running(desk, sleep, {"note": returning(JobResult(commit=more)), "other": returning(JobResult())}):
        await desk.becomes("done", "other", "after")
        assert await desk.state() == "waiting"
        assert (await desk.row()).job.not_before == desk.clock() + timedelta(hours=6)


@pytest.mark.rule("WD-100")
@pytest.mark.case("DL-17")
async def test_eight_failures_with_growing_waits_then_parked_and_tried_again_each_day(desk: Desk) -> None:
    await desk.enqueue()
    for n, minutes in enumerate(MINUTES, 1):
        await desk.fail(await desk.claimed(), ConnectionError(f"attempt {n}"))
        row = await desk.row()
        assert (row.state, row.attempts, row.error_class, row.error) == ("waiting", n, "ConnectionError", f"attempt {n}")
        desk.clock.advance(minutes=minutes, microseconds=-1)
        assert await desk.claim() is None
        desk.clock.advance(microseconds=1)
    assert len(MINUTES) + 1 == ATTEMPTS
    for _ in range(3):
        await desk.fail(await desk.claimed(), ConnectionError("again"))
        assert await desk.state() == "parked"
        assert [row.id for row in await desk.database.read(lambda c: list_jobs(c, "parked"))] == [(await desk.row()).id]
        desk.clock.advance(hours=24, microseconds=-1)
        assert await desk.claim() is None
        desk.clock.advance(microseconds=1)
    await desk.finish(await desk.claimed())
    row = await desk.row()
    assert (row.state, row.error_class, row.error) == ("done", "", "")


class Busy(Exception):
    def __init__(self, retry_after_s: object) -> None:
        self.retry_after_s = retry_after_s


class WrongKey(Exception):
    permanent = True


@pytest.mark.rule("WD-100", "RS-192")
@pytest.mark.parametrize(
    ("attempts", "error", "state", "wait"),
    [
        (0, ValueError(), "waiting", timedelta(minutes=1)),
        (0, ValueError("404 Not Found, invalid key"), "waiting", timedelta(minutes=1)),  # words are not a class
        (0, Busy(30), "waiting", timedelta(minutes=1)),
        (0, Busy(90.5), "waiting", timedelta(seconds=90.5)),
        (2, Busy(90), "waiting", timedelta(minutes=15)),
        (6, Busy(7_200), "waiting", timedelta(hours=2)),
        (0, Busy(1e300), "waiting", timedelta(hours=24)),
        *((0, Busy(odd), "waiting", timedelta(minutes=1)) for odd in (None, -5, float("nan"), float("inf"), "soon")),
        (7, Busy(60), "parked", timedelta(hours=24)),
        (7, ValueError(), "parked", timedelta(hours=24)),
        (40, ValueError(), "parked", timedelta(hours=24)),
        (0, WrongKey(), "parked", timedelta(hours=24)),
    ],
)
def test_what_a_failure_means(attempts: int, error: Exception, state: str, wait: timedelta) -> None:
    assert after_failure(attempts, error) == (state, wait)


@pytest.mark.rule("WD-100")
async def test_a_failing_job_is_logged_stored_and_harms_no_other(desk: Desk, sleep: Sleeper, caplog: pytest.LogCaptureFixture) -> None:
    await desk.enqueue()
    await desk.enqueue(key="2")
    await desk.enqueue("other", "3")
    with caplog.at_level(logging.WARNING, "gateway.jobs"):
        async with running(desk, sleep, {"note": raising(WrongKey("the key was refused"), TypeError("'x'")), "other": returning(JobResult())}):
            await desk.becomes("done", "other", "3")
            parked = await desk.becomes("parked")
            await eventually(lambda: attempts_are(desk, 1, "2"))
            await desk.becomes("waiting", key="2")
            await sleep.advance(minutes=1)
            await desk.becomes("done", key="2")
    assert (parked.error_class, parked.error) == ("WrongKey", "the key was refused")
    foreseen, unforeseen = [record for record in caplog.records if "failed, attempt 1" in record.message]
    assert (foreseen.levelname, foreseen.exc_info) == ("WARNING", None)
    assert foreseen.message.endswith("(note) failed, attempt 1: WrongKey: the key was refused; parked, tried again in 1 day, 0:00:00")
    assert unforeseen.levelname == "ERROR" and unforeseen.exc_info and unforeseen.exc_info[0] is TypeError
    assert unforeseen.message.endswith("(note) failed, attempt 1: TypeError: 'x'; tried again in 0:01:00")


@pytest.mark.rule("WD-100")
async def test_an_error_inside_a_handler_s_own_task_group_keeps_its_class(desk: Desk, sleep: Sleeper) -> None:
    async def fail() -> None:
        raise WrongKey("deep inside") from OSError("the cause")

    async def handler(job: Job, context: JobContext) -> JobResult:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
        return JobResult()

    await desk.enqueue()
    async with running(desk, sleep, {"note": handler}):
        row = await desk.becomes("parked")
    assert (row.error_class, row.error) == ("WrongKey", "deep inside")


@pytest.mark.rule("RL-32", "WD-100")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the model m-1 is not there", "the model m-1 is not there"),
        ("Incorrect API key provided: sk-proj-abc123def456ghi789jkl012", "Incorrect API key provided: ***"),
        ("the API key was refused: ask for a new token", "the API key was refused: ask for a new token"),
        ("header Authorization: Bearer abcdefgh1234", "header Authorization: ***"),
        ("sent 'Bearer abcdefgh1234'", "sent 'Bearer ***'"),
        (
            "POST https://api.telegram.org/bot123456789:AAE-xyz_ABCDEFGHIJKLMNOPQRSTUVW/sendMessage",
            "POST https://api.telegram.org/bot***/sendMessage",
        ),
        ("no answer from https://user:hunter2secret@example.test/v1", "no answer from https://***@example.test/v1"),
        ("GET https://cdn.test/file?X-Amz-Signature=abc&Expires=1", "GET https://cdn.test/file?***"),
        ("token=tok_12345678 refused", "token=*** refused"),
        ('{"password": "hunter2secret"}', '{"password": "***"}'),
        ("no file /data/people/p-abcdefghij/memory/2026-03-14.md", "no file /data/people/p-abcdefghij/memory/2026-03-14.md"),
        ("nul \0 and half a pair \ud83d", "nul  and half a pair ?"),
        ("x" * 600, "x" * 500),
    ],
)
def test_what_operators_read_of_an_error_holds_no_secret(text: str, shown: str) -> None:
    assert public_text(ValueError(text)) == shown


@pytest.mark.rule("WD-100")
async def test_an_error_text_that_the_database_would_refuse_is_stored_all_the_same(desk: Desk, sleep: Sleeper) -> None:
    await desk.enqueue()
    async with running(desk, sleep, {"note": raising(WrongKey("nul \0, lone \ud83d"))}):
        assert (await desk.becomes("parked")).error == "nul , lone ?"


@pytest.mark.rule("RL-32")
async def test_a_database_error_is_shown_without_what_was_to_be_stored(desk: Desk) -> None:
    def clash(connection: sa.Connection) -> None:
        connection.execute(sa.insert(audit).values(id=1, at=desk.clock(), action="private words"))
        connection.execute(sa.insert(audit).values(id=1, at=desk.clock(), action="private words"))

    with pytest.raises(exc.IntegrityError) as caught:
        await desk.database.write(clash)
    assert "private" not in public_text(caught.value)
    assert public_text(caught.value) != ""


# -- leases ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-98", "WD-136")
async def test_a_job_whose_worker_vanished_is_taken_over_after_two_minutes_and_the_late_worker_changes_nothing(desk: Desk) -> None:
    await desk.enqueue()
    old = await desk.claimed()
    desk.clock.advance(seconds=120)
    assert await desk.claim() is None
    desk.clock.advance(microseconds=1)
    new = await desk.claimed()
    assert (new.row.lost_leases, new.row.attempts) == (1, 0)
    before = await desk.row()
    late_writer = JobContext(desk.database, old, desk.clock)
    for late in (
        desk.finish(old, {"by": "the late one"}),
        desk.fail(old, ValueError("late")),
        desk.database.write(lambda c: claims.renew(c, old, now=desk.clock())),
        late_writer.write(effect("late")),
        late_writer.paid("part", "hash", paying("late")),
    ):
        with pytest.raises(LeaseLost, match="worker:0"):
            await late
    assert await desk.row() == before
    assert await desk.effects() == []
    assert await desk.database.read(lambda c: read_part(c, old.row.id, "part", "hash")) is None
    await JobContext(desk.database, new, desk.clock).write(effect("in time"))
    assert await desk.finish(new) == "done"
    assert await desk.effects() == ["in time"]


def paying(answer: T) -> Callable[[], Awaitable[T]]:
    async def make() -> T:
        return answer

    return make


@pytest.mark.rule("WD-100")
async def test_five_lost_leases_park_a_job_that_kills_its_workers(desk: Desk) -> None:
    await desk.enqueue()
    for lost in range(5):
        assert (await desk.claimed()).row.lost_leases == lost
        desk.clock.advance(seconds=121)
    assert await desk.claim() is None
    row = await desk.row()
    assert (row.state, row.lost_leases, row.attempts, row.error_class) == ("parked", 5, 0, "LeaseLost")
    desk.clock.advance(hours=24)
    await desk.claimed()
    desk.clock.advance(seconds=121)
    assert await desk.claim() is None
    assert await desk.state() == "parked"


@pytest.mark.rule("WD-136", "RS-190")
async def test_a_long_job_keeps_its_lease(desk: Desk, sleep: Sleeper) -> None:
    gate = Gate()
    await desk.enqueue()
    async with running(desk, sleep, {"note": gate}):
        await gate.holds("1")
        for _ in range(10):
            await sleep.advance(seconds=RENEW_EVERY.total_seconds())
            await eventually(lambda: lease_ends(desk, desk.clock() + LEASE))
            assert await desk.claim() is None
        gate.opened.set()
        row = await desk.becomes("done")
    assert (row.lost_leases, gate.began) == (0, ["1"])


async def lease_ends(desk: Desk, when: datetime) -> bool:
    return (await desk.row()).lease_until == when


@pytest.mark.rule("WD-98", "WD-136")
async def test_a_handler_is_stopped_once_its_lease_is_lost(desk: Desk, sleep: Sleeper, caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate(JobResult(commit=effect("late")))
    await desk.enqueue()
    async with running(desk, sleep, {"note": gate}, concurrency=1):  # with a place free it might take the job again itself
        await gate.holds("1")
        desk.clock.advance(seconds=121)  # the machine slept: no renewal ran
        new = await desk.claimed()
        await sleep.advance(seconds=0)
        await gate.holds()
        assert gate.stopped == ["1"]
        await desk.finish(new, {"by": "the other"})
    assert (await desk.row()).result == {"by": "the other"}
    assert await desk.effects() == []
    assert "no longer held" in caplog.text


@pytest.mark.rule("WD-98")
async def test_a_cancelled_job_is_stopped_and_has_no_effect(desk: Desk, sleep: Sleeper) -> None:
    gate = Gate(JobResult(commit=effect("unwanted")))
    job = await desk.enqueue()
    async with running(desk, sleep, {"note": gate}):
        await gate.holds("1")
        assert await desk.database.write(lambda c: cancel_job(c, job))
        await sleep.advance(seconds=RENEW_EVERY.total_seconds())
        await gate.holds()
    assert await desk.state() == "cancelled"
    assert await desk.effects() == []


# -- paid parts ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-191", "WD-60")
async def test_a_retry_pays_only_for_what_it_does_not_have(desk: Desk, sleep: Sleeper) -> None:
    paid: Counter[str] = Counter()
    faults = iter([OSError("cut off"), None])

    async def handler(job: Job, context: JobContext) -> JobResult:
        async def answer(name: str) -> dict[str, str]:
            paid[name] += 1
            if name == "two" and (fault := next(faults)):
                raise fault
            return {"text": name}

        one = await context.paid("1", input_hash("chunk", "model-a", [1, 2]), lambda: answer("one"))
        two = await context.paid("2", input_hash("chunk", "model-a", [3]), lambda: answer("two"))
        return JobResult(output={"joined": one["text"] + two["text"]})

    await desk.enqueue()
    async with running(desk, sleep, {"note": handler}):
        await eventually(lambda: attempts_are(desk, 1))
        await desk.becomes("waiting")
        await sleep.advance(minutes=1)
        assert (await desk.becomes("done")).result == {"joined": "onetwo"}
    assert paid == {"one": 1, "two": 2}


@pytest.mark.rule("RS-191")
async def test_a_part_is_found_by_what_went_into_it_and_belongs_to_its_job(desk: Desk) -> None:
    await desk.enqueue()
    await desk.enqueue(key="2")
    first, second = await desk.claimed(), await desk.claimed()
    context, other = JobContext(desk.database, first, desk.clock), JobContext(desk.database, second, desk.clock)
    assert await context.paid("p", input_hash("a", 1), paying("old")) == "old"
    assert await context.paid("p", input_hash("a", 1), paying("not asked")) == "old"
    assert await context.paid("q", input_hash("a", 1), paying("another part")) == "another part"
    assert await other.paid("p", input_hash("a", 1), paying("another job")) == "another job"
    assert await context.paid("p", input_hash("a", 2), paying("new")) == "new"
    assert await context.paid("p", input_hash("a", 2), paying("not asked")) == "new"
    assert len({input_hash(), input_hash(1), input_hash("1"), input_hash([1]), input_hash(1, 2), input_hash("ü")}) == 6
    assert input_hash({"a": 1, "b": 2}) == input_hash({"b": 2, "a": 1})


@pytest.mark.rule("RS-191")
async def test_an_answer_that_arrives_after_a_cancel_is_kept(desk: Desk) -> None:
    job = await desk.enqueue()
    claim = await desk.claimed()
    await desk.database.write(lambda c: cancel_job(c, job))
    await JobContext(desk.database, claim, desk.clock).paid("p", "hash", paying([1, "二"]))
    await desk.enqueue(again=True)
    assert await JobContext(desk.database, await desk.claimed(), desk.clock).paid("p", "hash", paying([])) == [1, "二"]


# -- start, idle, stop ---------------------------------------------------------------------------------------------------------------


async def test_a_job_of_this_process_starts_at_once_and_one_from_elsewhere_at_the_next_look(desk: Desk, sleep: Sleeper) -> None:
    written = 0

    class Counted(Database):
        async def write(self, work: Callable[[sa.Connection], T]) -> T:
            nonlocal written
            result = await super().write(work)
            written += 1
            return result

    async def at_rest(count: int) -> bool:
        return written == count

    database = Counted(desk.database.url.render_as_string(hide_password=False))
    async with running(desk, sleep, {"note": returning(JobResult())}, database=database) as runner:
        await eventually(lambda: at_rest(1))
        await desk.enqueue()
        runner.wake()
        await desk.becomes("done")
        await eventually(lambda: at_rest(5))  # claimed, finished, and each time looked for another in vain
        await desk.enqueue(key="2")
        await asyncio.sleep(0.05)
        assert await desk.state(key="2") == "waiting"
        await sleep.advance(seconds=POLL_S)
        await desk.becomes("done", key="2")
    await database.close()


async def asked(sleep: Sleeper, seconds: float) -> bool:
    return seconds in sleep.asked


@pytest.mark.rule("WD-101")
@pytest.mark.case("DL-17")
async def test_an_idle_runner_has_one_timer_of_seconds_and_looks_once_for_each(sqlite: Database, clock: FakeClock, sleep: Sleeper) -> None:
    looks = 0

    class Counted(Database):
        async def write(self, work: Callable[[sa.Connection], T]) -> T:
            nonlocal looks
            looks += 1
            return await super().write(work)

    async def looked(count: int) -> bool:
        return looks == count and len(sleep.asked) == count

    database = Counted(sqlite.url.render_as_string())
    async with running(Desk(database, clock), sleep, {"note": returning(JobResult())}):
        for count in range(1, 13):  # a minute
            await eventually(lambda count=count: looked(count))
            await asyncio.sleep(0.01)
            assert looks == count
            await sleep.advance(seconds=POLL_S)
    await database.close()
    assert min(sleep.asked) >= 1


@pytest.mark.rule("WD-101", "RL-2")
async def test_a_stop_lets_jobs_finish_and_starts_no_others(desk: Desk, sleep: Sleeper) -> None:
    gate = Gate(JobResult(commit=effect("finished")))
    await desk.enqueue(key="1")
    await desk.enqueue(key="2")
    async with asyncio.TaskGroup() as group:
        runner = JobRunner(desk.database, {"note": gate}, concurrency=1, grace_s=20, database_clock=desk.clock, sleep=sleep)
        task = group.create_task(runner.run())
        await gate.holds("1")
        task.cancel()
        await eventually(lambda: asked(sleep, 20))
        await sleep.advance(seconds=19)
        assert not task.done()
        gate.opened.set()
    assert task.cancelled()
    assert (await desk.state(key="1"), await desk.state(key="2")) == ("done", "waiting")
    assert await desk.effects() == ["finished"]


@pytest.mark.rule("WD-101", "RL-2")
@pytest.mark.parametrize("how", ["grace over", "second signal"])
async def test_what_does_not_finish_in_time_is_left_to_its_lease(desk: Desk, sleep: Sleeper, how: str) -> None:
    gate = Gate(JobResult(commit=effect("too late")))
    await desk.enqueue()
    async with asyncio.TaskGroup() as group:
        runner = JobRunner(desk.database, {"note": gate}, grace_s=20, database_clock=desk.clock, sleep=sleep)
        task = group.create_task(runner.run())
        await gate.holds("1")
        task.cancel()
        await eventually(lambda: asked(sleep, 20))
        if how == "second signal":
            task.cancel()
        else:
            await sleep.advance(seconds=20)
    assert task.cancelled()
    assert gate.stopped == ["1"]
    row = await desk.row()
    assert (row.state, row.attempts, await desk.effects()) == ("running", 0, [])
    desk.clock.advance(seconds=121)
    async with running(desk, sleep, {"note": returning(JobResult(commit=effect("by the next one")))}):
        await desk.becomes("done")
    assert await desk.effects() == ["by the next one"]


@pytest.mark.rule("WD-101", "RL-2")
@pytest.mark.parametrize("in_time", [True, False])
async def test_closed_it_claims_nothing_more_and_ends_by_itself_after_the_grace_at_the_latest(desk: Desk, sleep: Sleeper, in_time: bool) -> None:
    gate = Gate()
    await desk.enqueue()
    async with asyncio.TaskGroup() as group:
        runner = JobRunner(desk.database, {"note": gate}, grace_s=20, database_clock=desk.clock, sleep=sleep)
        task = group.create_task(runner.run())
        await gate.holds("1")
        runner.close()
        await eventually(lambda: asked(sleep, 20))
        await desk.enqueue(key="2")
        runner.wake()
        if in_time:
            gate.opened.set()
        else:
            await sleep.advance(seconds=20)
    assert not task.cancelled()
    assert (await desk.state(key="1"), await desk.state(key="2")) == ("done" if in_time else "running", "waiting")


async def test_an_idle_runner_stops_at_once(desk: Desk, sleep: Sleeper) -> None:
    async with asyncio.timeout(patience(5)), running(desk, sleep, {"note": Gate()}):
        await eventually(lambda: asked(sleep, POLL_S))
    assert 20.0 not in sleep.asked


class Flaky(Database):
    """A database that cannot be written for a while: `down` counts the attempts it will refuse."""

    down = 0

    async def write(self, work: Callable[[sa.Connection], T]) -> T:
        if self.down > 0:
            self.down -= 1
            raise StoreUnavailable("the database is locked")
        return await super().write(work)


@pytest.mark.rule("RL-4", "WD-98")
async def test_a_database_that_is_away_for_a_while_costs_no_job_and_no_run(sqlite: Database, clock: FakeClock, sleep: Sleeper) -> None:
    database = Flaky(sqlite.url.render_as_string())
    desk = Desk(sqlite, clock)
    gate = Gate(JobResult(commit=effect("once")))
    await desk.enqueue()
    database.down = 2
    async with running(desk, sleep, {"note": gate}, database=database, concurrency=1):
        for left in (1, 0):
            await eventually(lambda left=left: is_down(database, left))
            await asyncio.sleep(0.02)
            await sleep.advance(seconds=POLL_S)
        await gate.holds("1")
        database.down = 1
        await asyncio.sleep(0.02)
        await sleep.advance(seconds=RENEW_EVERY.total_seconds())
        await eventually(lambda: is_down(database, 0))  # a missed renewal is no lost lease
        database.down = 3
        gate.opened.set()
        for left, pause in ((2, 1), (1, 5), (0, 15)):
            await eventually(lambda left=left: is_down(database, left))
            await asyncio.sleep(0.02)
            await sleep.advance(seconds=pause)
        row = await desk.becomes("done")
    await database.close()
    assert (row.attempts, gate.began, await desk.effects()) == (0, ["1"], ["once"])


async def is_down(database: Flaky, count: int) -> bool:
    return database.down == count


# -- for operators ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-100")
async def test_by_hand_a_parked_job_runs_at_once_with_all_its_attempts(desk: Desk) -> None:
    job = await desk.enqueue()
    await desk.fail(await desk.claimed(), WrongKey("no key"))
    assert await desk.claim() is None
    assert await desk.database.write(lambda c: run_now(c, job))
    claim = await desk.claimed()
    assert (claim.row.attempts, claim.row.lost_leases) == (0, 0)
    assert not await desk.database.write(lambda c: run_now(c, job))  # it runs
    await desk.finish(claim)
    assert not await desk.database.write(lambda c: run_now(c, job))  # a date runs once
    assert not await desk.database.write(lambda c: run_now(c, 12_345))
    assert await desk.state() == "done"


@pytest.mark.rule("WD-100")
async def test_a_new_key_brings_back_all_parked_jobs_and_nothing_else(desk: Desk) -> None:
    for n in range(3):
        await desk.enqueue(key=str(n))
        await desk.fail(await desk.claimed(), WrongKey("no key") if n else ValueError("busy"))
    assert await desk.database.write(run_parked) == 2
    assert await desk.database.write(run_parked) == 0
    assert {(await desk.claimed()).row.job.key, (await desk.claimed()).row.job.key} == {"1", "2"}
    assert await desk.claim() is None


@pytest.mark.rule("WD-98", "WD-100")
async def test_jobs_are_listed_by_state_the_last_changed_first(desk: Desk) -> None:
    for key in ("a", "b", "c"):
        await desk.enqueue(key=key)
        desk.clock.advance(seconds=1)
    await desk.finish(await desk.claimed(), {"n": 1})

    async def keys(state: State | None = None, limit: int = 200) -> list[str]:
        return [row.job.key for row in await desk.database.read(lambda c: list_jobs(c, state, limit))]

    assert await keys() == ["a", "c", "b"]
    assert await keys(limit=1) == ["a"]
    assert await keys("waiting") == ["c", "b"]
    assert await keys("done") == ["a"]
    assert await keys("parked") == []


# -- kill -9 ---------------------------------------------------------------------------------------------------------------------------

WORKER = """
import asyncio, os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
import sqlalchemy as sa
from gateway.jobs.handling import JobResult
from gateway.jobs.runner import JobRunner
from memory.database import Database
from memory.schema import audit

url, ledger, point = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
database = Database(url)

def reached(here):
    if here == point:
        os.kill(os.getpid(), signal.SIGKILL)

async def pay():
    with ledger.open("a") as file:
        file.write("paid ")
    return {"answer": 42}

async def handler(job, context):
    reached("claimed")
    await context.paid("step", "hash", pay)
    reached("paid")
    def commit(connection):
        connection.execute(sa.insert(audit).values(at=datetime.now(UTC), action="effect"))
        reached("in the transaction")
    return JobResult(commit=commit)

class Watched(Database):
    async def write(self, work):
        result = await super().write(work)
        if isinstance(getattr(work, "args", None), tuple) and work.func.__name__ == "_finish":
            reached("committed")
        return result

asyncio.run(JobRunner(Watched(url), {"note": handler}).run())
"""


@pytest.mark.rule("WD-98", "RL-1", "RS-75", "RS-191")
@pytest.mark.parametrize("point", ["claimed", "paid", "in the transaction", "committed"])
async def test_a_kill_at_any_point_leaves_one_effect_and_pays_once(desk: Desk, sleep: Sleeper, tmp_path: Path, point: str) -> None:
    await desk.database.write(lambda c: enqueue(c, Job(kind="note", key="1")))
    bill = tmp_path / "bill"
    command = [sys.executable, "-c", WORKER, desk.database.url.render_as_string(hide_password=False), str(bill), point]
    killed = await asyncio.to_thread(subprocess.run, command, timeout=30, check=False)
    assert killed.returncode == -9
    assert await desk.state() == ("done" if point == "committed" else "running")

    async def pay() -> dict[str, int]:
        bill.write_text((bill.read_text() if bill.exists() else "") + "paid ")
        return {"answer": 42}

    async def handler(job: Job, context: JobContext) -> JobResult:
        answer = await context.paid("step", "hash", pay)
        return JobResult(output=answer, commit=effect("effect"))

    desk.clock.now = datetime.now(UTC)  # the child's lease runs on the database's own clock
    async with running(desk, sleep, {"note": handler}):
        if point != "committed":
            await asyncio.sleep(0.05)
            assert await desk.state() == "running"
            await sleep.advance(seconds=121)
        row = await desk.becomes("done")
    assert row.lost_leases == (0 if point == "committed" else 1)
    assert await desk.effects() == ["effect"]
    assert bill.read_text() == "paid "


@pytest.mark.rule("WD-98")
async def test_without_a_test_clock_jobs_run_on_the_database_s_clock(database: Database) -> None:
    started, went = datetime.now(UTC), Gate()
    await database.write(lambda c: enqueue(c, Job(kind="note", key="1")))
    await database.write(lambda c: enqueue(c, Job(kind="note", key="2", not_before=started + timedelta(hours=1))))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(JobRunner(database, {"note": went}, grace_s=5).run())
        await went.holds("1")
        row = await database.read(lambda c: find_job(c, "note", "1"))
        assert row is not None
        assert row.lease_until is not None
        assert abs(row.lease_until - started - LEASE) < timedelta(seconds=20)
        went.opened.set()
        task.cancel()
    row = await database.read(lambda c: find_job(c, "note", "1"))
    assert row is not None
    assert row.state == "done"

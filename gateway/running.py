"""One run of the gateway: start everything in order, serve until told to stop, drain (CH-100 to CH-102, WO-31)."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

from gateway import adoption, housekeeping, lifecycle, model_probe
from gateway.app import Choices, Parts, build, plans
from gateway.arrivals import inbox
from gateway.audit import CONSOLE
from gateway.config import Config, secret_values
from gateway.config.load import Loaded
from gateway.error_log import ErrorLog
from gateway.http.health import Phase
from gateway.http.reach import check_bind
from gateway.jobs.table import enqueue
from gateway.log_tail import LogTail
from gateway.logs import Redactor
from gateway.person import Person
from gateway.reloading import Reloading, grave, overridden
from gateway.standing import Standing
from gateway.starting import CannotStart, prepare_folders, take_over
from gateway.wiring.channels import needs_webhooks
from gateway.wiring.controls import Controls
from memory.database import Database
from memory.errors import StoreError, StoreUnavailable
from memory.instance_lock import InstanceLock
from memory.migrate import migrate

log = logging.getLogger(__name__)

HOUSEKEEPING_EVERY_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """Where the gateway can be reached, told once it is ready."""

    page: str
    login_link: str


class Gateway:
    """A gateway with a valid configuration, to be run once."""

    def __init__(self, loaded: Loaded, *, load: Callable[[], Loaded], redactor: Redactor, choices: Choices | None = None) -> None:
        """`loaded` has a configuration; `load` reads the files again."""
        assert loaded.config is not None, "the caller has reported the faults and left"
        self._redactor = redactor
        self._choices = choices or Choices()
        self._standing = Standing(
            config=loaded.config,
            config_path=str(loaded.file),
            loaded_at=self._choices.clock(),
            faults=grave(loaded),
        )
        self._reloading = Reloading(self._standing, self._choices, load=load, redactor=redactor)
        redactor.know(secret_values(loaded.config))
        self.restarting = False  # whoever runs us is to begin again once we have ended
        self._logs = LogTail()
        self._logs.addFilter(redactor)

    async def run(self, stop: asyncio.Event, ready: Callable[[Started], None] = lambda _started: None) -> None:
        """Until `stop` is set and everything is drained. Raises CannotStart or StoreError when it cannot begin."""
        config = self._standing.config
        offered = _offers_cowagent(config)
        prepare_folders(config)
        async with AsyncExitStack() as stack:
            _log_to(self._logs, stack)
            lock = stack.enter_context(InstanceLock(config.data_dir))
            await asyncio.to_thread(take_over, config)
            db = self._choices.open_database(config)
            stack.push_async_callback(db.close)
            await asyncio.to_thread(migrate, db, config.data_dir / "backups")
            self._standing.config = await overridden(config, db)
            controls = Controls(
                reload=lambda: self._reloading.reload(parts),
                release=lambda: self._release(parts),
                restart=lambda: self._restart(stop),
                probe=partial(model_probe.probe, self._choices.make_model),
                secret=secrets.token_urlsafe(24),
                logs=self._logs,
            )
            try:
                async with asyncio.TaskGroup() as group:
                    parts = build(group, stack, db, self._standing, self._choices, controls)
                    await self._reloading.learn_name(parts.memory.files)
                    await self._reloading.keep_cast(db)
                    await self._reloading.free_parked(db)
                    await parts.memory.dreams.adoption.begin(offered=offered)
                    await parts.memory.dreams.dreaming.recover()
                    owner = await parts.around.people.ensure_owner()
                    await self._open(parts, stack)
                    lock.write_info({"url": parts.site.local, "secret": controls.secret})
                    await self._take_up(parts)
                    jobs = self._start(parts, group, stack)
                    ready(await self._started(parts, owner))
                    await stop.wait()
                    await self._drain(parts, jobs)
                    raise _Drained
            except* _Drained:
                await _say_goodbye(db, self._choices.clock())
            except* (CannotStart, StoreError) as faults:
                raise _first(faults) from None

    def _restart(self, stop: asyncio.Event) -> None:
        self.restarting = True
        stop.set()

    async def _open(self, parts: Parts, stack: AsyncExitStack) -> None:
        """The page and the port for webhooks listen. Raises CannotStart."""
        people, web, hooks = parts.around.people, self._standing.config.channels.web, self._standing.config.webhooks
        if refusal := check_bind(web, await people.has_accounts()):
            raise CannotStart(refusal)
        stack.callback(parts.around.streams.close)
        try:
            await stack.enter_async_context(parts.site)
        except OSError as error:
            raise CannotStart(f"cannot listen on {web.host}, port {web.port} ({error.strerror}): set another channels.web.port") from error
        stack.push_async_callback(parts.webhooks.close)
        if needs_webhooks(self._standing.config):
            try:
                await parts.webhooks.listen()
            except OSError as error:
                raise CannotStart(f"cannot listen on {hooks.host}, port {hooks.port} ({error.strerror}): set another webhooks.port") from error

    async def _take_up(self, parts: Parts) -> None:
        """What earlier runs left goes first; then the channels bring what is new."""
        await parts.budgets.load()
        parked = await parts.around.db.write(lambda connection: lifecycle.start(connection, self._choices.clock()))
        self._standing.parked = parked
        await parts.delivery.channels.apply(plans(self._standing.config, parts, self._choices))
        if parked:
            log.error("the gateway ended badly several times: unfinished deliveries wait for `yumegate release`")
        await parts.delivery.outbox.recover(parked=parked)
        await parts.dispatcher.begin(parked=parked)

    def _start(self, parts: Parts, group: asyncio.TaskGroup, stack: AsyncExitStack) -> Sequence[asyncio.Task[None]]:
        """What runs beside everything. Returns the tasks of the job runners."""
        memory, runners = parts.memory, parts.runners
        jobs = group.create_task(runners.jobs.run(), name="jobs"), group.create_task(runners.errands.run(), name="errands")
        errors = ErrorLog()
        errors.addFilter(self._redactor)
        _log_to(errors, stack)
        for name, work in (
            ("model", self._reloading.warm(parts.around.models)),
            ("heartbeat", parts.delivery.tally.beat(parts.turns.lanes)),
            ("configuration watch", self._reloading.watch(parts)),
            ("housekeeping", self._each_day(parts)),
            ("search index", memory.indexing.run()),
            ("vectors of saved memories", memory.saved.vectors.run()),
            ("index of the talk", memory.recall.indexing.run()),
            ("night", memory.nightly.run()),
            ("days of chats", memory.chats.look.run()),
            ("scheduled tasks", parts.tasks.loop.run()),
            ("error log", errors.run(parts.reports)),
        ):
            group.create_task(work, name=name)
        return jobs

    async def _started(self, parts: Parts, owner: Person) -> Started:
        self._standing.phase = Phase.RUNNING
        code = await parts.links.make(CONSOLE, owner.id)
        return Started(page=parts.site.page, login_link=f"{parts.site.page}/login/{code}")

    async def _drain(self, parts: Parts, jobs: Sequence[asyncio.Task[None]]) -> None:
        """Intake stops with cursors kept; running turns, commands and jobs get their time, the outbox flushes in the same time (CH-100)."""
        self._standing.phase = Phase.DRAINING
        limit = self._standing.config.delivery.drain_s
        log.info("stopping: running answers get %g s", limit)
        parts.dispatcher.close()
        parts.turns.lanes.close()
        parts.stateless.close()
        parts.runners.close()
        parts.tasks.loop.close()
        try:
            async with asyncio.timeout(limit):
                await parts.dispatcher.quiet()
                await parts.turns.lanes.quiet()
                await parts.stateless.quiet()
                await parts.delivery.outbox.drained()
                await asyncio.wait(jobs)
        except TimeoutError:
            await self._checkpoint(parts)
        parts.delivery.outbox.close()
        parts.stateless.end()
        parts.around.streams.close()
        await parts.delivery.channels.stop()

    async def _checkpoint(self, parts: Parts) -> None:
        """The time is up: turns that still run are taken up at the next start, and this try does not count."""
        turns = parts.turns.lanes.turns
        rows = [item.row_id for turn in turns for item in turn.items]
        if not rows:
            return
        log.warning("%d answers were cut short; they are taken up at the next start", len(turns))
        try:
            await parts.around.db.write(lambda connection: inbox.checkpoint(connection, rows))
        except StoreUnavailable as error:
            log.warning("that they were cut short cannot be stored, so this try counts: %s", error)

    async def _release(self, parts: Parts) -> int:
        """The operator lets go on what was parked; returns how many messages that were."""
        await parts.around.db.write(lambda connection: lifecycle.release(connection, self._choices.clock()))
        self._standing.parked = False
        parts.delivery.outbox.release()
        return await parts.dispatcher.resume()

    async def _each_day(self, parts: Parts) -> None:
        """Makes sure that today's housekeeping is in the job table; asking again within the day changes nothing."""
        while True:
            now = self._choices.clock()
            try:
                await parts.around.db.write(lambda connection, now=now: enqueue(connection, housekeeping.daily(now)))
                parts.runners.jobs.wake()
            except StoreUnavailable as error:
                log.warning("housekeeping waits: %s", error)
            await asyncio.sleep(HOUSEKEEPING_EVERY_S)


class _Drained(Exception):
    """Ends the task group after the drain."""


async def _say_goodbye(db: Database, now: datetime) -> None:
    try:
        await db.write(lambda connection: lifecycle.stop(connection, now))
    except StoreUnavailable as error:
        log.warning("the clean end cannot be stored, so the next start counts it as a crash: %s", error)


def _first(faults: BaseExceptionGroup[Any]) -> BaseException:
    """The first single error of nested groups: what the operator is told."""
    first: BaseException = faults.exceptions[0]
    return _first(cast("BaseExceptionGroup[Any]", first)) if isinstance(first, BaseExceptionGroup) else first


def _offers_cowagent(config: Config) -> bool:
    """Before our own folder is made: whether there is a CowAgent folder to be told of (WD-27)."""
    return adoption.offer(config.agent_workspace != Path("~/yumegate").expanduser(), Path.home())


def _log_to(handler: logging.Handler, stack: AsyncExitStack) -> None:
    """Until the stack is closed."""
    logging.getLogger().addHandler(handler)
    stack.callback(logging.getLogger().removeHandler, handler)

"""One run of the gateway: start everything in order, serve until told to stop, drain (CH-100 to CH-102, WO-31)."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from agent.errors import ModelError
from agent.llm.port import ModelMessage, ModelRequest, Role
from agent.llm.whole import whole
from gateway import adoption, cast_changes, housekeeping, inbox, job_store, lifecycle, overrides, restore
from gateway.app import Choices, Parts, build, plans
from gateway.app_channels import needs_webhooks
from gateway.audit import CONSOLE
from gateway.config import Config, ModelAccount, changed_sections, secret_values
from gateway.config_env import SECRETS_FILE
from gateway.config_load import Loaded
from gateway.config_walk import restart_keys
from gateway.error_log import ErrorLog
from gateway.http.health import Phase
from gateway.http.model_setup import Endpoint
from gateway.http.reach import check_bind
from gateway.http.views import FaultView
from gateway.log_tail import LogTail
from gateway.logs import Redactor
from gateway.standing import Standing
from memory.database import Database
from memory.errors import StoreError, StoreUnavailable
from memory.instance_lock import InstanceLock
from memory.migrate import migrate

log = logging.getLogger(__name__)

WATCH_EVERY_S = 2.0
HOUSEKEEPING_EVERY_S = 3600.0


class CannotStart(Exception):
    """A sentence for the operator: why the gateway does not start, and what to do."""


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
        self._load = load
        self._redactor = redactor
        self._choices = choices or Choices()
        self._standing = Standing(
            config=loaded.config,
            config_path=str(loaded.file),
            loaded_at=self._choices.clock(),
            faults=_grave(loaded),
        )
        redactor.know(secret_values(loaded.config))
        self.restarting = False  # whoever runs us is to begin again once we have ended
        self._logs = LogTail()
        self._logs.addFilter(redactor)

    async def run(self, stop: asyncio.Event, ready: Callable[[Started], None] = lambda _started: None) -> None:
        """Until `stop` is set and everything is drained. Raises CannotStart or StoreError when it cannot begin."""
        config, clock = self._standing.config, self._choices.clock
        offered = _offers_cowagent(config)
        _prepare_folders(config)
        async with AsyncExitStack() as stack:
            logging.getLogger().addHandler(self._logs)
            stack.callback(logging.getLogger().removeHandler, self._logs)
            lock = stack.enter_context(InstanceLock(config.data_dir))
            await asyncio.to_thread(_take_over, config)
            db = self._choices.open_database(config)
            stack.push_async_callback(db.close)
            await asyncio.to_thread(migrate, db, config.data_dir / "backups")
            self._standing.config = await _overridden(config, db)
            secret = secrets.token_urlsafe(24)
            try:
                async with asyncio.TaskGroup() as group:
                    parts = build(
                        group,
                        stack,
                        db,
                        self._standing,
                        self._choices,
                        reload=lambda: self._reload(parts),
                        release=lambda: self._release(parts),
                        probe=self._probe_model,
                        control_secret=secret,
                        logs=self._logs,
                        restart=lambda: self._restart(stop),
                    )
                    await self._keep_cast(db)
                    await parts.memory.adoption.begin(offered=offered)
                    await parts.memory.dreaming.recover()
                    jobs = await self._start(parts, group, stack, ready, lock, secret)
                    await stop.wait()
                    await self._drain(parts, jobs)
                    raise _Drained
            except* _Drained:
                await _say_goodbye(db, clock())
            except* (CannotStart, StoreError) as faults:
                raise _first(faults) from None

    def _restart(self, stop: asyncio.Event) -> None:
        self.restarting = True
        stop.set()

    async def _start(
        self,
        parts: Parts,
        group: asyncio.TaskGroup,
        stack: AsyncExitStack,
        ready: Callable[[Started], None],
        lock: InstanceLock,
        secret: str,
    ) -> Sequence[asyncio.Task[None]]:
        """Everything in order: what earlier runs left goes first. Returns the tasks of the job runners."""
        owner = await parts.people.ensure_owner()
        if refusal := check_bind(self._standing.config.channels.web, await parts.people.has_accounts()):
            raise CannotStart(refusal)
        stack.callback(parts.streams.close)
        try:
            await stack.enter_async_context(parts.site)
        except OSError as error:
            web = self._standing.config.channels.web
            raise CannotStart(f"cannot listen on {web.host}, port {web.port} ({error.strerror}): set another channels.web.port") from error
        stack.push_async_callback(parts.webhooks.close)
        if needs_webhooks(self._standing.config):
            hooks = self._standing.config.webhooks
            try:
                await parts.webhooks.listen()
            except OSError as error:
                raise CannotStart(f"cannot listen on {hooks.host}, port {hooks.port} ({error.strerror}): set another webhooks.port") from error
        lock.write_info({"url": parts.site.local, "secret": secret})
        await parts.budgets.load()
        parked = await parts.db.write(lambda connection: lifecycle.start(connection, self._choices.clock()))
        self._standing.parked = parked
        await parts.channels.apply(plans(self._standing.config, parts, self._choices))
        if parked:
            log.error("the gateway ended badly several times: unfinished deliveries wait for `yumegate release`")
        await parts.outbox.recover(parked=parked)
        await parts.dispatcher.begin(parked=parked)
        jobs = (group.create_task(parts.jobs.run(), name="jobs"), group.create_task(parts.errands.run(), name="errands"))
        group.create_task(self._warm(parts), name="model")
        group.create_task(parts.tally.beat(parts.lanes), name="heartbeat")
        group.create_task(self._watch(parts), name="configuration watch")
        group.create_task(self._each_day(parts), name="housekeeping")
        group.create_task(parts.memory.indexing.run(), name="search index")
        group.create_task(parts.memory.saved.vectors.run(), name="vectors of saved memories")
        group.create_task(parts.memory.recall.indexing.run(), name="index of the talk")
        group.create_task(parts.memory.nightly.run(), name="night")
        group.create_task(parts.memory.chats.look.run(), name="days of chats")
        group.create_task(parts.tasks.loop.run(), name="scheduled tasks")
        errors = ErrorLog()
        errors.addFilter(self._redactor)
        logging.getLogger().addHandler(errors)
        stack.callback(logging.getLogger().removeHandler, errors)
        group.create_task(errors.run(parts.reports), name="error log")
        self._standing.phase = Phase.RUNNING
        code = await parts.links.make(CONSOLE, owner.id)
        ready(Started(page=parts.site.page, login_link=f"{parts.site.page}/login/{code}"))
        return jobs

    async def _drain(self, parts: Parts, jobs: Sequence[asyncio.Task[None]]) -> None:
        """Intake stops with cursors kept; running turns, commands and jobs get their time, the outbox flushes in the same time (CH-100)."""
        self._standing.phase = Phase.DRAINING
        limit = self._standing.config.delivery.drain_s
        log.info("stopping: running answers get %g s", limit)
        parts.dispatcher.close()
        parts.lanes.close()
        parts.stateless.close()
        parts.jobs.close()
        parts.errands.close()
        parts.tasks.loop.close()
        try:
            async with asyncio.timeout(limit):
                await parts.dispatcher.quiet()
                await parts.lanes.quiet()
                await parts.stateless.quiet()
                await parts.outbox.drained()
                await asyncio.wait(jobs)
        except TimeoutError:
            await self._checkpoint(parts)
        parts.outbox.close()
        parts.stateless.end()
        parts.streams.close()
        await parts.channels.stop()

    async def _checkpoint(self, parts: Parts) -> None:
        """The time is up: turns that still run are taken up at the next start, and this try does not count."""
        rows = [item.row_id for turn in parts.lanes.turns for item in turn.items]
        if not rows:
            return
        log.warning("%d answers were cut short; they are taken up at the next start", len(parts.lanes.turns))
        try:
            await parts.db.write(lambda connection: inbox.checkpoint(connection, rows))
        except StoreUnavailable as error:
            log.warning("that they were cut short cannot be stored, so this try counts: %s", error)

    async def _release(self, parts: Parts) -> int:
        """The operator lets go on what was parked; returns how many messages that were."""
        await parts.db.write(lambda connection: lifecycle.release(connection, self._choices.clock()))
        self._standing.parked = False
        parts.outbox.release()
        return await parts.dispatcher.resume()

    async def _each_day(self, parts: Parts) -> None:
        """Makes sure that today's housekeeping is in the job table; asking again within the day changes nothing."""
        while True:
            now = self._choices.clock()
            try:
                await parts.db.write(lambda connection, now=now: job_store.enqueue(connection, housekeeping.daily(now)))
                parts.jobs.wake()
            except StoreUnavailable as error:
                log.warning("housekeeping waits: %s", error)
            await asyncio.sleep(HOUSEKEEPING_EVERY_S)

    async def _warm(self, parts: Parts) -> None:
        """Make the default model before somebody waits for it; one that cannot be made is shown, not fatal: people are told when they ask."""
        try:
            await parts.models.warm()
            self._standing.model_fault = ""
        except ModelError as error:
            log.error("the model cannot be used: %s", error)
            self._standing.model_fault = str(error)

    async def _watch(self, parts: Parts) -> None:
        """Reads the configuration again whenever its files change."""
        path = Path(self._standing.config_path)
        files = (path, path.parent / SECRETS_FILE)
        seen = await asyncio.to_thread(_marks, files)
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            now = await asyncio.to_thread(_marks, files)
            if now != seen:
                seen = now
                try:
                    await self._reload(parts)
                except Exception:  # a home of its own: whatever a file holds, the running gateway goes on (invariant 11)
                    log.exception("the changed configuration could not be taken over")

    async def _reload(self, parts: Parts) -> tuple[list[str], list[str]]:
        """Take a valid configuration over, section by section; an invalid one leaves everything as it is and is shown (WO-31, WO-32)."""
        loaded = await asyncio.to_thread(self._load)
        self._standing.faults = _grave(loaded)
        if loaded.config is None or not loaded.accepted:
            for fault in loaded.errors:
                log.error("configuration not taken: %s", fault)
            return [], [str(fault) for fault in loaded.errors]
        for fault in loaded.faults:
            log.log(logging.INFO if fault.severity == "note" else logging.WARNING, "configuration: %s", fault)
        config = await _overridden(loaded.config, parts.db)
        if waiting := restart_keys(self._standing.config, config):
            log.warning("these keys take effect with the next start: %s", ", ".join(sorted(waiting)))
        changed = sorted(changed_sections(self._standing.config, config))
        self._redactor.know(secret_values(config))
        logging.getLogger().setLevel(config.log.level.upper())
        self._standing.config, self._standing.loaded_at = config, self._choices.clock()
        await parts.models.reload(config)
        if needs_webhooks(config):
            try:
                await parts.webhooks.listen()
            except OSError as error:
                log.error("nobody can call: the webhook port is taken (%s); set another webhooks.port and start again", error.strerror)
        await self._keep_cast(parts.db)
        await parts.channels.apply(plans(config, parts, self._choices))
        await self._warm(parts)
        log.info("configuration read again, changed: %s", ", ".join(changed) or "nothing")
        return changed, []

    async def _keep_cast(self, db: Database) -> None:
        """The lineages of characters follow the configuration; who left it keeps memories until an admin says otherwise (SM-92)."""
        config, now = self._standing.config, self._choices.clock()
        gone = await db.write(lambda connection: cast_changes.keep_in_step(connection, config, now))
        for name in gone:
            log.warning("the character %s is no longer in the configuration; its memories wait: put it back, or confirm its deletion", name)

    async def _probe_model(self, endpoint: Endpoint) -> str:
        """One small request to an endpoint that is being set up (WO-3)."""
        account = ModelAccount.model_validate(
            {"provider": "openai", "base_url": endpoint.base_url, "api_key": endpoint.api_key, "name": endpoint.name}
        )
        model = await asyncio.to_thread(self._choices.make_model, account)
        hello = ModelMessage(role=Role.USER, text="Say hello in one short sentence.")
        try:
            text, _ = await whole(model, ModelRequest(messages=(hello,), max_output_tokens=200, purpose="test"))
            return text
        finally:
            await model.close()


async def _overridden(config: Config, db: Database) -> Config:
    """The file's values with those set by `/config` over them; one that does not fit any more is left out and said (WD-119)."""
    config, left_out = overrides.applied(config, await db.read(overrides.stored))
    for key, reason in left_out.items():
        log.warning("the value of %s set by /config is left out: %s", key, reason)
    return config


def _offers_cowagent(config: Config) -> bool:
    """Before our own folder is made: whether there is a CowAgent folder to be told of (WD-27)."""
    return adoption.offer(config.agent_workspace != Path("~/yumegate").expanduser(), Path.home())


def _first(faults: BaseExceptionGroup[Any]) -> BaseException:
    """The first single error of nested groups: what the operator is told."""
    first: BaseException = faults.exceptions[0]
    return _first(cast("BaseExceptionGroup[Any]", first)) if isinstance(first, BaseExceptionGroup) else first


def _grave(loaded: Loaded) -> tuple[FaultView, ...]:
    """The faults that `check` would fail for; advice (an empty time zone) is said at the start and by `doctor`."""
    return tuple(FaultView.of(fault) for fault in loaded.faults if fault.fails_check or fault.severity == "error")


class _Drained(Exception):
    """Ends the task group after the drain."""


async def _say_goodbye(db: Database, now: datetime) -> None:
    try:
        await db.write(lambda connection: lifecycle.stop(connection, now))
    except StoreUnavailable as error:
        log.warning("the clean end cannot be stored, so the next start counts it as a crash: %s", error)


def _prepare_folders(config: Config) -> None:
    """Both folders exist, private to us, and can be written (WD-1); CannotStart with one line naming the one that cannot."""
    for folder in (config.agent_workspace, config.data_dir):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            probe = folder / ".write-test"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise CannotStart(f"{folder} cannot be written ({error.strerror}): change its rights, or set another folder in config.json") from error


def _take_over(config: Config) -> None:
    """What `yumegate restore` laid ready takes the place of everything, before the store is opened (WO-39)."""
    try:
        done = restore.take_over(config)
    except (restore.ArchiveRefused, StoreError, OSError) as error:
        stage = config.data_dir / restore.STAGE
        raise CannotStart(
            f"what was to be restored cannot be put in place ({error}): mend that and start again; or remove {stage}, "
            f"and restore the newest archive in {config.data_dir / 'backups'}, which holds what was there before"
        ) from error
    if done is not None:
        log.warning("restored as it was at %s; what was there before lies in %s", done.made_at, done.before or "no archive, for nothing was there")


def _marks(files: Sequence[Path]) -> list[tuple[int, int]]:
    """When each file was last changed, and its size; zeros for one that is not there."""
    marks: list[tuple[int, int]] = []
    for file in files:
        try:
            stat = file.stat()
            marks.append((stat.st_mtime_ns, stat.st_size))
        except OSError:
            marks.append((0, 0))
    return marks

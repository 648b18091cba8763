"""The running gateway as pages, commands and health checks see it: read-only looks at what the parts know."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from channels.message import Account
from channels.web.adapter import TEXT_MAX
from gateway import channel_words, nightly
from gateway.arrivals.inbox import UNFINISHED
from gateway.channel_set import ChannelSet
from gateway.commands import usable_by
from gateway.config import Config, masked
from gateway.delivery.gate import Gates
from gateway.http.health import Dependency, Readiness
from gateway.http.views import (
    About,
    ChannelView,
    CharacterFacts,
    CommandFacts,
    ConfigReport,
    ConfigView,
    InboxCounts,
    JobCounts,
    JobsView,
    JobView,
    Limits,
    ModelFacts,
    ModelHealth,
    OutboxCounts,
    Overview,
    ScheduleView,
)
from gateway.jobs.table import JobRow, list_jobs, read_job, run_now
from gateway.lanes import Lanes
from gateway.language import say
from gateway.metrics import Metrics
from gateway.models import name_of
from gateway.overrides import Overrides, settled
from gateway.person import Person
from gateway.reports import Reports
from gateway.standing import Standing
from gateway.summaries.plan import DAILY
from gateway.supervise import ChannelStatus
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.schema import inbox

ERRORS_SHOWN = 20
NIGHTS_SHOWN = 50


class House:
    def __init__(
        self,
        *,
        version: str,
        started_at: datetime,
        clock: Callable[[], datetime],
        db: Database,
        standing: Standing,
        channels: ChannelSet,
        lanes: Lanes,
        gates: Gates,
        reports: Reports,
        wake_jobs: Callable[[], None],
        read_again: Callable[[], Awaitable[tuple[list[str], list[str]]]],
        logs_in: Callable[[Account], bool],
    ) -> None:
        """`logs_in`: whether an account is logged in by scanning a code."""
        self.version = version
        self.started_at = started_at
        self._clock = clock
        self._db = db
        self._standing = standing
        self._channels = channels
        self._lanes = lanes
        self._gates = gates
        self._reports = reports
        self._wake_jobs = wake_jobs
        self._read_again = read_again
        self._logs_in = logs_in

    # -- for commands -----------------------------------------------------------------------------------------------

    def config(self) -> Config:
        return self._standing.named

    def channel_states(self) -> list[ChannelStatus]:
        return self._channels.statuses()

    def model_name(self) -> str:
        return name_of(self._standing.config.model)

    async def job_counts(self) -> dict[str, int]:
        return (await self._reports.counts())["jobs"]

    async def job_rows(self, limit: int) -> list[JobRow]:
        rows = await self._db.read(partial(list_jobs, limit=limit))
        return [row for row in rows if row.state != "done"]

    async def reload(self) -> tuple[list[str], list[str]]:
        return await self._read_again()

    # -- for the page -----------------------------------------------------------------------------------------------

    def about(self, person: Person | None, language: str) -> About:
        config = self._standing.named
        model = config.model
        demo = model.provider == "demo"
        prefix = config.command_prefixes[0]
        return About(
            guests=config.channels.web.guests,
            model=ModelFacts(name=name_of(model), provider=model.provider, demo=demo, sees_images=model.sees_images and not demo),
            limits=Limits(
                text_max=TEXT_MAX,
                attachments_max=config.channels.web.attachments_max,
                attachment_bytes=config.channels.web.attachment_bytes,
            ),
            version=self.version,
            commands=tuple(
                CommandFacts(name=f"{prefix}{command.name}", args=command.args, help=say(language, command.help))
                for command in usable_by(person.role if person else "guest")
            ),
            characters=tuple(CharacterFacts(id=name, name=character.name or name) for name, character in config.characters.items()),
            inspects=person is not None and person.may(config.inspector.role),
        )

    # -- for operators ------------------------------------------------------------------------------------------------

    async def overview(self, language: str = "en") -> Overview:
        counts = await self._reports.counts()
        model = self._standing.config.model
        return Overview(
            version=self.version,
            uptime_s=(self._clock() - self.started_at).total_seconds(),
            ready=(await self.readiness()).ready,
            channels=await self._channel_views(language),
            model=ModelHealth(name=name_of(model), provider=model.provider, ok=not self._standing.model_fault, reason=self._standing.model_fault),
            jobs=JobCounts(**counts["jobs"]),
            inbox=InboxCounts(**counts["inbox"]),
            outbox=OutboxCounts(**counts["outbox"]),
            config=ConfigView(path=self._standing.config_path, loaded_at=self._standing.loaded_at, faults=self._standing.faults),
            errors=tuple(await self._reports.recent_errors(ERRORS_SHOWN)),
        )

    async def jobs(self, state: str) -> JobsView:
        wanted: Any = state or None
        rows = await self._db.read(partial(list_jobs, state=wanted))
        config, now = self._standing.config, self._clock()
        runs = await self._db.read(lambda connection: nightly.next_runs(connection, config, now, most=NIGHTS_SHOWN))
        nights = tuple(ScheduleView(kind=DAILY, scope=run.scope, next_run=run.at, zone=run.zone) for run in runs)
        names = await self._reports.scope_names({*(row.job.scope for row in rows), *(run.scope for run in runs)})
        return JobsView(jobs=tuple(map(_job_view, rows)), schedule=nights, names=names)

    async def run_job(self, job_id: int) -> JobView | None:
        now = self._clock()

        def work(connection: sa.Connection) -> JobRow | None:
            run_now(connection, job_id, now=now)
            return read_job(connection, job_id)

        row = await self._db.write(work)
        self._wake_jobs()
        return _job_view(row) if row else None

    async def config_report(self) -> ConfigReport:
        standing, overrides = self._standing, await Overrides(self._db).all()
        return ConfigReport(
            path=standing.config_path,
            loaded_at=standing.loaded_at,
            faults=standing.faults,
            effective=masked(standing.config),
            settled=settled(standing.config, overrides),
        )

    async def measure(self, counted: Metrics) -> None:
        """Bring the gauges that are read from the store up to date; they keep their last values while it cannot be read."""
        try:
            counts, backlog = await self._reports.counts(), await self._db.read(_backlog)
        except StoreUnavailable:
            return
        for state in ("waiting", "running", "parked"):
            counted.jobs.labels(state).set(counts["jobs"].get(state, 0))
        oldest = min((oldest for _, oldest in backlog.values()), default=None)
        counted.oldest_waiting_seconds.set((self._clock() - oldest).total_seconds() if oldest else 0)

    # -- for health ---------------------------------------------------------------------------------------------------

    async def readiness(self) -> Readiness:
        try:
            views = await self._channel_views()
            database_ok = True
        except StoreUnavailable:
            views, database_ok = tuple(map(self._channel_view, self._channels.statuses())), False
        standing = self._standing
        dependencies = [Dependency(name="model", ok=not standing.model_fault, reason=standing.model_fault)]
        if standing.parked:
            reason = "several unclean ends: unfinished deliveries wait; `yumegate release` takes them up"
            dependencies.append(Dependency(name="deliveries", ok=False, reason=reason))
        return Readiness(
            phase=standing.phase,
            database_ok=database_ok,
            channels=views,
            dependencies=tuple(dependencies),
            config_faults=standing.faults,
        )

    async def _channel_views(self, language: str = "en") -> tuple[ChannelView, ...]:
        backlog = await self._db.read(_backlog)
        return tuple(self._channel_view(status, backlog, language) for status in self._channels.statuses())

    def _channel_view(
        self, status: ChannelStatus, backlog: Mapping[str, tuple[int, datetime]] | None = None, language: str = "en"
    ) -> ChannelView:
        now = self._clock()
        waiting, oldest = (backlog or {}).get(str(status.account), (0, None))
        return ChannelView(
            channel=status.account.channel,
            account=status.account.name,
            state=status.state.value,
            reason=channel_words.reason(status.account.channel, status.code, status.reason, language),
            proven_at=status.proven_at,
            last_in=status.last_in,
            last_out=status.last_out,
            backlog=waiting,
            oldest_waiting_s=(now - oldest).total_seconds() if oldest else None,
            gate_until=self._gates.account_closed_until(status.account, now),
            last_error=channel_words.reason(status.account.channel, status.last_error_code, status.last_error, language),
            last_error_delivery=status.last_error_delivery,
            login=self._logs_in(status.account),
        )


_BACKLOG = (
    sa.select(inbox.c.channel, inbox.c.account, sa.func.count(), sa.func.min(inbox.c.received_at))
    .where(inbox.c.state.in_(UNFINISHED))
    .group_by(inbox.c.channel, inbox.c.account)
)


def _backlog(connection: sa.Connection) -> dict[str, tuple[int, datetime]]:
    return {f"{channel}:{account}": (count, oldest) for channel, account, count, oldest in connection.execute(_BACKLOG)}


def _job_view(row: JobRow) -> JobView:
    return JobView(
        id=row.id,
        kind=row.job.kind,
        key=row.job.key,
        scope=row.job.scope,
        state=row.state,
        attempts=row.attempts,
        not_before=row.job.not_before,
        error_class=row.error_class,
        result=row.result,
        updated_at=row.updated_at,
    )

"""Which scopes and dates are to be summarised (WD-48, WD-52 to WD-58, WD-129): decided purely, once a minute, against the ledger and the wall clock.

No timer decides anything, so sleep, restarts and clock steps lose no date and run none twice: a date has its run when its time has passed, there is
something to do, and no row in the job table says that it had one.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from gateway.config import Config
from gateway.jobs.table import Job, enqueue
from gateway.summaries.plan import DAILY, ledger
from gateway.summaries.summarizing import NIGHT_PRIORITY
from gateway.zones import zone_of, zones
from memory import coverage
from memory.database import Database
from memory.errors import StoreError, StoreUnavailable
from memory.file_errors import PathRefused
from memory.ids import opaque
from memory.layout import daily_path
from memory.schedule import Daily, due, local_date, next_run, run_on
from memory.schema import people, settings, spaces
from memory.scopes import Kind, scope_or_none
from memory.upserts import insert_or_keep
from memory.workspace_threads import WorkspaceThreads

EVERY_S = 60.0
INSTANCE = "instance_id"  # the row of `settings` that holds it

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeDays:
    """What there is to do in one scope. `talk`: local dates of its uncovered messages; `files`: dates that have a daily file; `ledger`: dates that
    had, or have, their run; `stale`: something covered was edited or deleted."""

    scope: str
    zone: ZoneInfo
    talk: frozenset[date] = frozenset()
    files: frozenset[date] = frozenset()
    ledger: frozenset[date] = frozenset()
    stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """`runs`: dates to be run now, oldest first; `missed`: older ones, which wait for `/summary backfill` (WD-55)."""

    runs: tuple[date, ...] = ()
    missed: tuple[date, ...] = ()


# -- deciding, pure --------------------------------------------------------------------------------------------------------


def daily_at(wall: str, jitter_seconds: int, instance: str, scope: str) -> Daily:
    """When a scope runs: the same shift each night, another in each scope and each installation (WD-58)."""
    digest = hashlib.blake2b(f"{instance}\x1f{scope}".encode(), digest_size=8).digest()
    return Daily(at=time.fromisoformat(wall), shift=timedelta(seconds=int.from_bytes(digest) % (jitter_seconds + 1)))


def dates_due(days: ScopeDays, spec: Daily, now: datetime, *, catch_up_days: int) -> Due:
    """The dates of a scope whose time has passed without a run, and that have something to do.

    Of all dates that had or should have a run the newest `catch_up_days` count; what is missed before them is listed only. What was left over of a
    date after its run, and what is stale, is taken by the newest date that is due (WD-54, WD-59).
    """
    today = local_date(now, days.zone)
    wanted = set((days.talk | days.files) - days.ledger)
    if days.stale or days.talk & days.ledger:
        newest = due(spec, now, days.zone, since=today - timedelta(days=2))
        wanted |= {newest[-1].local_date} - days.ledger if newest else set()
    missed = [day for day in sorted(wanted) if (run := run_on(spec, day, days.zone)) is not None and run.at <= now]
    newest_of_all = set(sorted({*missed, *days.ledger})[-catch_up_days:])
    return Due(runs=tuple(day for day in missed if day in newest_of_all), missed=tuple(day for day in missed if day not in newest_of_all))


def plan(now: datetime, scopes: Sequence[ScopeDays], config: Config, instance: str) -> list[Job]:
    """The jobs that `now` makes necessary, those of one scope oldest first."""
    found: list[Job] = []
    for days in scopes:
        spec = daily_at(config.summary.time, config.summary.jitter_seconds, instance, days.scope)
        runs = dates_due(days, spec, now, catch_up_days=config.summary.catch_up_days).runs
        found += [daily_job(days.scope, day, days.zone) for day in runs]
    return found


def daily_job(scope: str, day: date, zone: ZoneInfo) -> Job:
    """The one run of a date; its row is the ledger (WD-53). The zone in which the date is meant is settled with it."""
    text = day.isoformat()
    return Job(
        kind=DAILY, key=f"{scope}:{text}", scope=scope, local_date=text, payload={"date": text, "zone": _name(zone)},
        priority=NIGHT_PRIORITY.get(scope, 0),
    )  # fmt: skip


def _name(zone: ZoneInfo) -> str:
    """Empty for the system's zone when it has no name."""
    return "" if zone.key in (None, "localtime") else zone.key


# -- shown to operators ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRun:
    """The next daily summary of a scope. `zone`: the name of the one in which its day begins; empty for a nameless one of the system."""

    scope: str
    at: datetime
    zone: str


def next_runs(connection: sa.Connection, config: Config, now: datetime, *, most: int) -> tuple[NextRun, ...]:
    """The `most` soonest, one for each scope; none where days are not summarised."""
    if not config.summary.enabled:
        return ()
    instance, zone_for = instance_id(connection), zones(connection, config.timezone)
    found: list[NextRun] = []
    for scope in _everybody(connection):
        zone, spec = zone_for(scope), daily_at(config.summary.time, config.summary.jitter_seconds, instance, scope)
        found.append(NextRun(scope=scope, at=next_run(spec, now, zone).at, zone=_name(zone)))
    return tuple(sorted(found, key=lambda run: (run.at, run.scope))[:most])


# -- asked for by people ---------------------------------------------------------------------------------------------------


def missing_dates(connection: sa.Connection, scope: str, config: Config, now: datetime) -> tuple[date, ...]:
    """Dates with talk that stands in no daily file and whose time has passed without a run, newest first, for `/memory status`."""
    days = days_of(connection, scope, config.timezone)
    spec = daily_at(config.summary.time, config.summary.jitter_seconds, instance_id(connection), scope)
    found = dates_due(days, spec, now, catch_up_days=config.summary.catch_up_days)
    return tuple(sorted(found.missed + found.runs, reverse=True))


def backfill(connection: sa.Connection, scope: str, config: Config, now: datetime, *, days: int = 14) -> tuple[date, ...]:
    """`/summary backfill [N]`: the newest `days` (1 to 60) missing dates get their run; returns them, newest first."""
    chosen = missing_dates(connection, scope, config, now)[: max(1, min(60, days))]
    zone = zone_of(connection, scope, config.timezone)
    for day in sorted(chosen):
        enqueue(connection, daily_job(scope, day, zone))
    return chosen


def summarise_now(connection: sa.Connection, scope: str, config: Config, now: datetime, *, day: date | None = None) -> int:
    """`/summary now` and `job run daily-summary`: a run of its own of all that is uncovered up to now, or up to the end of `day`; returns its id."""
    zone = zone_of(connection, scope, config.timezone)
    wanted = day or local_date(now, zone)
    payload = {"date": wanted.isoformat(), "zone": _name(zone), "manual": True}
    return enqueue(connection, Job(kind=DAILY, key=f"{scope}:manual:{now.isoformat()}", scope=scope, payload=payload))


def days_of(connection: sa.Connection, scope: str, default_zone: str, *, files: Collection[date] = (), stale: bool | None = None) -> ScopeDays:
    """What the database says of one scope."""
    zone = zone_of(connection, scope, default_zone)
    return ScopeDays(
        scope=scope,
        zone=zone,
        talk=frozenset(local_date(at, zone) for at in coverage.uncovered_times(connection, scope)),
        files=frozenset(files),
        ledger=frozenset(map(date.fromisoformat, ledger(connection, scope))),
        stale=bool(coverage.stale(connection, scope)) if stale is None else stale,
    )


def instance_id(connection: sa.Connection) -> str:
    """The random id of this installation; empty before `settle_instance`."""
    return connection.execute(_INSTANCE).scalar() or ""


def settle_instance(connection: sa.Connection, now: datetime) -> str:
    """The id of this installation, made once and kept."""
    connection.execute(_SETTLE[connection.dialect.name], {"key": INSTANCE, "value": opaque("i"), "updated_at": now})
    return instance_id(connection)


# -- doing -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """`newest`: its newest date whose time has passed; `waits`: talk of that date or an earlier one is uncovered."""

    scope: str
    newest: date
    waits: bool
    stale: bool

    def days(self, default_zone: str, files: Collection[date], connection: sa.Connection) -> ScopeDays:
        return days_of(connection, self.scope, default_zone, files=files, stale=self.stale)


class Nightly:
    """Looks every minute, and at once at the start. `on_enqueued` wakes the job runner; `sleep` as `asyncio.sleep`."""

    def __init__(
        self,
        *,
        db: Database,
        files: WorkspaceThreads,
        config: Callable[[], Config],
        clock: Callable[[], datetime],
        on_enqueued: Callable[[], None],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._db = db
        self._files = files
        self._config = config
        self._clock = clock
        self._on_enqueued = on_enqueued
        self._sleep = sleep
        self._instance = ""
        self._seen = 0  # messages up to this number need no second look
        self._newest = 0  # as of the last look: numbers below it can still appear, of transactions that ended late
        self._looked: dict[str, tuple[date, frozenset[date]]] = {}  # by scope: the newest date that was due, and the dates with files then

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.look()
            except StoreUnavailable as error:
                log.warning("what the night has to do cannot be read now: %s", error)
            await self._sleep(EVERY_S)

    async def look(self) -> int:
        """Enqueue what is due; returns how many jobs that were. Raises StoreUnavailable."""
        config, now = self._config(), self._clock()
        if not config.summary.enabled:
            return 0
        self._instance = instance = self._instance or await self._db.write(lambda connection: settle_instance(connection, now))
        newest, seen, scopes = await self._db.read(lambda connection: self._overview(connection, config, instance, now))
        jobs: list[Job] = []
        for each in scopes:
            files = await self._file_dates(each.scope, each.newest)
            if each.waits or each.stale or files:
                jobs += plan(now, [await self._db.read(partial(each.days, config.timezone, files))], config, instance)
        if jobs:
            await self._db.write(lambda connection: [enqueue(connection, job) for job in jobs])
            self._on_enqueued()
        self._seen, self._newest = min(self._newest, seen), newest
        return len(jobs)

    def _overview(self, connection: sa.Connection, config: Config, instance: str, now: datetime) -> tuple[int, int, list[_Scope]]:
        """The newest number of the log, up to which number nothing waits, and the scopes in which a date is due, the owner's first."""
        newest, waiting, stale = coverage.last_seq(connection), coverage.waiting(connection, self._seen), coverage.stale_scopes(connection)
        firsts = {each.scope: each.first_at for each in waiting}
        zone_for = zones(connection, config.timezone)
        found: list[_Scope] = []
        for scope in sorted(_everybody(connection) | set(firsts) | stale, key=lambda scope: (-NIGHT_PRIORITY.get(scope, 0), scope)):
            zone, spec = zone_for(scope), daily_at(config.summary.time, config.summary.jitter_seconds, instance, scope)
            if passed := due(spec, now, zone, since=local_date(now, zone) - timedelta(days=2)):
                day, first = passed[-1].local_date, firsts.get(scope)
                found.append(_Scope(scope=scope, newest=day, waits=first is not None and local_date(first, zone) <= day, stale=scope in stale))
        return newest, min((each.first_seq - 1 for each in waiting), default=newest), found

    async def _file_dates(self, scope: str, newest: date) -> frozenset[date]:
        """Dates with a daily file that no run has seen to: of the newest date that is due, looked at once."""
        known = self._looked.get(scope)
        if known is not None and known[0] == newest:
            return known[1]
        found = scope_or_none(scope)
        if found is None:
            return frozenset()
        try:
            listed = await self._files.read(lambda workspace: workspace.files(found))
        except (PathRefused, StoreError) as error:
            log.warning("the files of %s cannot be listed: %s", scope, error)
            return frozenset()
        dates = frozenset({newest} if any(file.path == daily_path(newest) for file in listed) else ())
        self._looked[scope] = (newest, dates)
        return dates


def _everybody(connection: sa.Connection) -> set[str]:
    """Every scope of a person or a space."""
    return {row.scope for row in connection.execute(_PEOPLE)} | {f"{Kind.SPACE}/{row.id}" for row in connection.execute(_SPACES)}


_INSTANCE = sa.select(settings.c.value).where(settings.c.key == INSTANCE)
_SETTLE = insert_or_keep(settings, ["key"])
_PEOPLE = sa.select(people.c.scope).where(people.c.scope != "")
_SPACES = sa.select(spaces.c.id)

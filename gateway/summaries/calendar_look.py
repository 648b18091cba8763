"""Looks which chats have days to summarise, weeks to fold or rows to make anew (RS-58, RS-59, RS-161, RS-166, RS-167).

Once a minute, and at the start. No timer decides anything: what is due is read from the log, the rows and the wall clock, so a server that was down
for days makes up for all of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import sqlalchemy as sa

from gateway import windows
from gateway.config import Config
from gateway.jobs.table import enqueue, find_job, run_now
from gateway.summaries import calendar_state
from gateway.summaries.calendar_days import NOT_OVER
from gateway.summaries.calendar_state import ChatDays, day_job, fold_job
from gateway.summaries.restating import restate_job
from gateway.summaries.summarist import NO_MODEL, RULE, Summarist
from memory import conversations as log_rows
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.recall import calendar_plan, stale_rows, uncovered
from memory.recall.kinds import CALENDAR
from memory.schema import conversations

EVERY_S = 60.0
AGAIN = timedelta(hours=1)  # a chat in which nothing happens is looked at again, for weeks end without a word

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A day without a row, and why: `waiting`, or one of the reasons of RS-167."""

    day: date
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What the last look saw of a chat, and when the next one is due."""

    last_seq: int
    again: datetime


class CalendarLook:
    """`on_enqueued` wakes the job runner."""

    def __init__(
        self,
        *,
        db: Database,
        summarist: Summarist,
        config: Callable[[], Config],
        clock: Callable[[], datetime],
        on_enqueued: Callable[[], None],
    ) -> None:
        self._db = db
        self._summarist = summarist
        self._config = config
        self._clock = clock
        self._on_enqueued = on_enqueued
        self._seen: dict[str, _Seen] = {}

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.look()
            except StoreUnavailable as error:
                log.warning("the days that wait for a summary cannot be read now: %s", error)
            await asyncio.sleep(EVERY_S)

    async def look(self) -> int:
        """Enqueue what is due; returns how many jobs that were. Raises StoreUnavailable."""
        now = self._clock()
        found = await self._db.read(lambda connection: self._chats(connection, now))
        count = 0
        for chat_id in found:
            count += await self._db.write(lambda connection, chat_id=chat_id: self._plan(connection, chat_id, now))
        stale = await self._db.read(lambda connection: self._stale(connection, now))
        for chat_id, scope in stale:
            await self._db.write(lambda connection, chat_id=chat_id, scope=scope: enqueue(connection, restate_job(chat_id, scope), again=True))
        if count or stale:
            self._on_enqueued()
        return count + len(stale)

    def _chats(self, connection: sa.Connection, now: datetime) -> list[str]:
        """Chats whose days are summarised and of which something may be new."""
        config = self._config()
        if not any(windows.stands(profile, CALENDAR) for profile in windows.known(config).values()):
            return []
        found: list[str] = []
        for row in connection.execute(_CHATS).mappings():
            seen = self._seen.get(str(row["id"]))
            if seen is not None and seen.last_seq == row["last_seq"] and now < seen.again:
                continue
            chat = log_rows.conversation_of(row)
            if windows.stands(windows.profile_of(config, chat), CALENDAR) and not self._summarist.why_not(chat):
                found.append(chat.id)
        return found

    def _plan(self, connection: sa.Connection, chat_id: str, now: datetime) -> int:
        days = calendar_state.read(connection, self._config(), chat_id)
        if days is None:
            return 0
        jobs = [day_job(days, day) for day in days.due(now)]
        if days.fold(now) is not None:
            jobs.append(fold_job(chat_id, days.scope))
        for job in jobs:
            enqueue(connection, job, again=True)
        self._seen[chat_id] = _Seen(last_seq=days.chat.last_seq, again=min(now + AGAIN, days.next_look(now) or now + AGAIN))
        return len(jobs)

    def _stale(self, connection: sa.Connection, now: datetime) -> list[tuple[str, str]]:
        shortest = now - timedelta(minutes=self._config().days.stale_delay_minutes)
        found: list[tuple[str, str]] = []
        for chat_id in stale_rows.due(connection, shortest):
            chat = log_rows.conversation(connection, chat_id)
            if not self._summarist.why_not(chat):
                found.append((chat_id, uncovered.scope_of(connection, chat_id)))
        return found


# -- by hand ---------------------------------------------------------------------------------------------------------------


def missing(connection: sa.Connection, config: Config, summarist: Summarist, chat_id: str, now: datetime) -> list[Missing]:
    """The days of a chat that are past or today and have no row, the newest first, each with its reason (RS-58, RS-167)."""
    days = calendar_state.read(connection, config, chat_id)
    if days is None:
        return []
    found = {day.day: Missing(day=day.day, reason=_reason(connection, summarist, days, day, now)) for day in days.waiting}
    return [found[day] for day in sorted(found, reverse=True)]


def backfill(
    connection: sa.Connection, config: Config, summarist: Summarist, chat_id: str, now: datetime, *, most: int | None = None
) -> list[Missing]:
    """Have the newest missing days made now, in spite of back-off; returns them with what is in the way of each, `waiting` for nothing."""
    days = calendar_state.read(connection, config, chat_id)
    if days is None:
        return []
    found: list[Missing] = []
    for day in calendar_plan.backfill(days.waiting, days.clock, now, most=most or config.days.backfill_days):
        reason = _reason(connection, summarist, days, day, now)
        if reason not in (RULE, NO_MODEL, NOT_OVER):
            number = enqueue(connection, day_job(days, day, manual=True), again=True, now=now)
            run_now(connection, number, now=now)
            reason = "waiting"
        found.append(Missing(day=day.day, reason=reason))
    return found


def _reason(connection: sa.Connection, summarist: Summarist, days: ChatDays, day: calendar_plan.Day, now: datetime) -> str:
    if reason := summarist.why_not(days.chat):
        return reason
    if not calendar_plan.is_over(day.day, days.clock, now, days.last_said):
        return NOT_OVER
    job = day_job(days, day)
    row = find_job(connection, job.kind, job.key)
    return f"failed: {row.error_class}" if row is not None and row.error_class else "waiting"


_CHATS = sa.select(*(conversations.c[name] for name in log_rows.Conversation.__dataclass_fields__)).where(conversations.c.deleted_at.is_(None))

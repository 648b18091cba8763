"""Scheduled tasks as people have them: made, listed, paused, deleted, run by hand. What runs them is in `task_loop` and `task_runner`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import sqlalchemy as sa

from channels.message import Account, Address, is_blank
from channels.port import Capabilities
from gateway.access import includes
from gateway.config import Config
from gateway.jobs.table import enqueue
from gateway.language import Declined
from gateway.tasks import rules as task_rules
from gateway.tasks.cron import BadRule, Rule
from gateway.tasks.jobs import task_job
from gateway.tasks.rules import TASKS_MAX, TEXT_MAX, timing_of
from gateway.zones import zone_of
from memory import tasks
from memory.conversations import Conversation
from memory.database import Database
from memory.ids import new_turn
from memory.schema import people
from memory.scopes import space_scope
from memory.tasks import NewTask, Task

LISTED = 20
PLACES = ("dm", "group", "web")  # kinds of conversation that can be written to at any time

_PERSON = sa.select(people.c.role, people.c.scope, people.c.timezone).where(people.c.id == sa.bindparam("id"))


class TaskRefused(Declined):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a person, or a model for them, asks for. `when`: as `task_rules.read_when` takes it. `scope`: whose memory the chat has, or empty.
    `waits`: it begins paused, until a person lets it go on."""

    chat: Conversation
    person_id: str
    scope: str
    text: str
    when: str
    language: str
    kind: str = "say"
    silent: bool = False
    waits: bool = False


class Tasks:
    """The service. `wake` tells the loop that plans have changed, `wake_jobs` the job runner that there is work."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        can: Callable[[Account], Capabilities | None],
        wake: Callable[[], None],
        wake_jobs: Callable[[], None],
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._can = can
        self._wake = wake
        self._wake_jobs = wake_jobs

    async def create(self, wanted: Wanted) -> Task:
        """Store a task. Raises TaskRefused."""
        chat = wanted.chat
        if chat.kind not in PLACES:
            raise TaskRefused("task_chat")
        can = self._can(Address.parse(chat.key).account)
        if can is None or not can.proactive:
            raise TaskRefused("task_no_push" if can else "task_chat")
        if is_blank(wanted.text) or len(wanted.text) > TEXT_MAX:
            raise TaskRefused("task_text", limit=TEXT_MAX)
        now, default = self._clock(), self._config().timezone

        def work(connection: sa.Connection) -> Task:
            return _create(connection, wanted, now, default)

        try:
            task = await self._db.write(work)
        except BadRule as error:
            raise TaskRefused(error.key, **error.values) from error
        self._wake()
        return task

    async def of_chat(self, chat: Conversation) -> list[Task]:
        """The tasks of a chat, the next first. Ends that are listed count as seen (WD-135)."""
        now = self._clock()
        found = await self._db.read(lambda connection: tasks.of_chat(connection, chat.key, LISTED))
        ended = [task.id for task in found if task.ended_at is not None]
        if ended:
            await self._db.write(lambda connection: tasks.mark_seen(connection, ended, now))
        return found

    async def find(self, chat: Conversation, task_id: int) -> Task:
        """A task of this chat. Raises TaskRefused for any other."""
        found = await self._db.read(lambda connection: tasks.read(connection, task_id))
        if found is None or found.address != chat.key:
            raise TaskRefused("task_unknown", id=task_id)
        return found

    async def pause(self, task: Task) -> None:
        """Raises TaskRefused, as the three below do."""
        if task.state != "active":
            raise _unfit(task)
        await self._set(task, state="paused")

    async def resume(self, task: Task) -> datetime | None:
        """Goes on from now, and makes up for nothing; a task for one time that is over is told late or shown as missed. Returns its next run."""
        if task.state != "paused":
            raise _unfit(task)
        now = self._clock()
        timing, zone = timing_of(task)
        following = task_rules.first_run(timing, now, zone)
        await self._set(task, state="active", next_run=following)
        return following

    async def delete(self, task: Task) -> None:
        await self._db.write(lambda connection: tasks.delete(connection, task.id))
        self._wake()

    async def run_now(self, task: Task) -> None:
        """Once more, by hand; the plan stays as it is (WD-130)."""
        if task.state not in ("active", "paused"):
            raise _unfit(task)
        now = self._clock()
        turn = new_turn()
        job = task_job(task, slot=now, turn=turn, manual=True)

        def work(connection: sa.Connection) -> bool:
            begun = not task.running and tasks.change_if_same(
                connection, task, now, run_slot=now, run_turn=turn, run_key=job.key, run_stored=False, runs=task.runs + 1
            )
            if begun:
                enqueue(connection, job)
            return begun

        if not await self._db.write(work):
            raise TaskRefused("task_busy", id=task.id)
        self._wake_jobs()

    async def _set(self, task: Task, **values: object) -> None:
        now = self._clock()
        busy = task.running and task.next_run is None  # its only run is going on
        if busy or not await self._db.write(lambda connection: tasks.change_if_same(connection, task, now, **values)):
            raise TaskRefused("task_busy", id=task.id)
        self._wake()


def _create(connection: sa.Connection, wanted: Wanted, now: datetime, default: str) -> Task:
    """Raises BadRule and TaskRefused."""
    person = connection.execute(_PERSON, {"id": wanted.person_id}).one_or_none()
    if person is None:
        raise TaskRefused("task_chat")
    if tasks.count_of(connection, wanted.person_id) >= TASKS_MAX:
        raise TaskRefused("task_limit", limit=TASKS_MAX)
    zone, name = _zone(connection, wanted.chat, person, default)
    timing = task_rules.read_when(wanted.when, now, zone)
    task_rules.check(timing, now, zone, wanted.language, owner=includes(person.role, "owner"))
    rule = timing.text if isinstance(timing, Rule) else ""
    new = NewTask(
        person_id=wanted.person_id,
        address=wanted.chat.key,
        scope=wanted.scope,
        kind=wanted.kind,
        text=wanted.text.strip(),
        silent=wanted.silent,
        language=wanted.language,
        timezone=name,
        rule=rule,
        once_at=None if isinstance(timing, Rule) else timing.at,
        next_run=task_rules.first_run(timing, now, zone),
        state="paused" if wanted.waits else "active",
    )
    return tasks.add(connection, new, now)


def _zone(connection: sa.Connection, chat: Conversation, person: sa.Row[Any, Any, Any], default: str) -> tuple[ZoneInfo, str]:
    """The clock that a person means here, and the name to store for it: the chat's, the place's, the person's, the configured one (SC-06)."""
    zone = _named(chat.timezone)
    if zone is None and chat.space_id:
        theirs = person.timezone if _named(person.timezone) else default
        zone = zone_of(connection, str(space_scope(chat.space_id)), theirs)
    elif zone is None:
        zone = zone_of(connection, person.scope, default)
    return zone, zone.key if _named(zone.key) else ""


def _named(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _unfit(task: Task) -> TaskRefused:
    """Why a task of this state is not changed like that."""
    if task.state == "bad":
        return TaskRefused("task_unusable", id=task.id, fault=task.fault)
    return TaskRefused("task_over" if task.ended_at else "task_same", id=task.id)

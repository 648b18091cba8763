"""One run of a task, as a job: the text, or the model's answer to it, joins the log and the outbox in one transaction (WD-138, CH-84).

The row of the task is enough to run it; no message has to arrive first (SC-13). What became of it is written by the loop, from the outbox.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from agent.errors import BudgetExceeded
from channels.message import Address, is_blank
from channels.render import is_silent
from gateway import live_window, windows
from gateway.chat_scope import access_in
from gateway.config import Config
from gateway.delivery import outbox_store
from gateway.delivery.replies import Replies, Reply
from gateway.jobs.handling import JobContext, JobResult
from gateway.jobs.parts import input_hash
from gateway.jobs.table import Job
from gateway.shapes import message_json, prepare
from gateway.streams import Streams
from gateway.tasks import rules as task_rules
from gateway.tasks.asking import Asking, BudgetUsed
from gateway.tasks.cron import BadRule
from gateway.turn_store import TurnStart
from memory import conversations, scope_switches, tasks
from memory.conversations import Conversation, Message
from memory.database import Database
from memory.recall.fitting import NOTHING
from memory.schema import people
from memory.scopes import scope_of_task
from memory.tasks import Task

_PERSON = sa.select(people.c.id, people.c.name, people.c.role, people.c.scope, people.c.language, people.c.timezone, people.c.blocked).where(
    people.c.id == sa.bindparam("id")
)


class ChannelAbsent(Exception):
    """The account of the chat is not configured just now: the job comes back in a while."""

    retry_after_s = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A run that may go ahead: its task, where it speaks, and the turn of whoever made it."""

    task: Task
    chat: Conversation
    start: TurnStart
    zone: ZoneInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """A run that sends nothing (more): what its task's row says of it; `result` empty when the row is another run's by now.

    `for_good`: the chat is gone, so that the task ends with it, and nobody is left to be shown that.
    """

    result: str
    error: str = ""
    for_good: bool = False


class TaskRuns:
    """The job's handler. `wake_outbox`: something was stored for this address; `wake`: the loop may write down how a run went."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        replies: Replies,
        streams: Streams,
        asking: Asking,
        wake_outbox: Callable[[str], None],
        wake: Callable[[], None],
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._replies = replies
        self._streams = streams
        self._asking = asking
        self._wake_outbox = wake_outbox
        self._wake = wake

    async def run(self, job: Job, context: JobContext) -> JobResult:
        now = self._clock()
        late = timedelta(hours=self._config().scheduler.late_hours)
        found = await self._db.read(lambda connection: look(connection, job.payload, now, late=late, config=self._config()))
        if isinstance(found, Over):
            return self._ended(job, found, now)
        task = found.task
        if task.run_stored:  # a kill came between the message and the end of this job
            self._wake_outbox(task.address)
            return JobResult(output={"stored": True})
        text = task.text
        if task.kind == "ask":
            try:
                text = await context.paid("answer", input_hash(task.text, task.run_turn), lambda: self._asked(found))
            except (BudgetUsed, BudgetExceeded) as error:
                return self._ended(job, Over(result="failed", error=type(error).__name__), now)
            if is_silent(text):
                return self._ended(job, Over(result="silent"), now)
            if is_blank(text):
                return self._ended(job, Over(result="failed", error="nothing"), now)
        return await self._say(job, context, found, text)

    async def _asked(self, run: Ready) -> str:
        return await self._asking.answer(run.task, run.start, run.zone, run.task.created_at)

    async def _say(self, job: Job, context: JobContext, run: Ready, text: str) -> JobResult:
        """Store what is said, unless the task was changed while the model thought."""
        config, task = self._config(), run.task
        grace, late = timedelta(seconds=config.scheduler.misfire_grace_seconds), timedelta(hours=config.scheduler.late_hours)
        keeps = timedelta(seconds=config.delivery.reminder_expires_s)
        now, slot = self._clock(), datetime.fromisoformat(job.payload["slot"])
        note = "" if job.payload["manual"] else task_rules.late_note(slot, now, run.zone, task.language, grace=grace)
        words = "\n\n".join(filter(None, (text.strip(), note)))

        def work(connection: sa.Connection) -> tuple[Message, Reply] | Over:
            again = look(connection, job.payload, now, late=late, config=self._config())
            if isinstance(again, Over):
                return again
            message = conversations.add_message(
                connection, now=now, conversation_id=run.chat.id, role="assistant", origin="scheduled", text=words,
                author_character=run.chat.character, foreign_text=any(said.foreign_text for said in run.start.history),
            )  # fmt: skip
            reply = self._replies.reminder(
                Address.parse(task.address), words, part_id=task.run_turn, expires_at=max(slot + keeps, now + grace), turn_id=task.run_turn,
                message=message,
            )  # fmt: skip
            if reply is None:
                raise ChannelAbsent(f"there is no channel for {task.address}")
            outbox_store.put(connection, reply.parts, now)
            tasks.change(connection, task.id, now, run_stored=True)
            return message, reply

        stored = await context.write(work)
        if isinstance(stored, Over):
            return self._ended(job, stored, now)
        message, reply = stored
        await prepare([message])
        self._streams.publish(run.chat.id, "message", message_json(message))
        self._wake_outbox(task.address)
        self._wake()
        return JobResult(output={"parts": len(reply.parts)})

    def _ended(self, job: Job, over: Over, now: datetime) -> JobResult:
        """The end of a run that sent nothing, written with the end of its job."""
        if not over.result:
            return JobResult(skipped="the task was changed meanwhile")

        def commit(connection: sa.Connection) -> None:
            task = tasks.read(connection, int(job.payload["task"]))
            if task is not None and task.run_turn == job.payload["turn"]:
                missed = {"missed": task.missed + 1} if over.result == "missed" else {}
                ended = {"state": "failed", "next_run": None, "ended_at": now, "seen_at": now} if over.for_good else {}
                tasks.end_run(connection, task, now, result=over.result, error=over.error, **missed, **ended)

        return JobResult(output={"result": over.result, "error": over.error}, commit=commit)


def look(connection: sa.Connection, payload: Any, now: datetime, *, late: timedelta, config: Config) -> Ready | Over:
    """Whether the run of a job may still go ahead, by what is stored now (WD-9, CH-83)."""
    task = tasks.read(connection, int(payload["task"]))
    if task is None or task.run_turn != payload["turn"]:
        return Over(result="")
    try:
        _, zone = task_rules.timing_of(task)
    except BadRule:
        return Over(result="failed", error="unusable")
    if task.state == "paused" and not payload["manual"]:
        return Over(result="stopped")
    if not task.run_stored and not payload["manual"] and now - datetime.fromisoformat(payload["slot"]) > late:
        return Over(result="missed")
    chat = conversations.conversation_by_key(connection, task.address)
    person = connection.execute(_PERSON, {"id": task.person_id}).mappings().one_or_none()
    if chat is None:
        return Over(result="failed", error="chat_gone", for_good=True)
    if person is None or person["blocked"] or (chat.space_id is None and chat.person_id != task.person_id):
        return Over(result="revoked")
    scope = _readable(task, chat, str(person["scope"]))
    profile = windows.profile_of(config, chat)
    live = live_window.window(connection, chat, profile, config, now) if task.kind == "ask" else live_window.Window(log=[])
    start = TurnStart(
        conversation=chat,
        person=dict(person),
        questions=(),
        history=tuple(live.log),
        dates=live.dates,
        attempt=1,
        scope=scope,
        standing=live_window.standing(connection, chat, profile, config, now) if scope else NOTHING,
        knowledge=scope_switches.knowledge_of(connection, scope) if scope else None,
    )
    return Ready(task=task, chat=chat, start=start, zone=zone)


def _readable(task: Task, chat: Conversation, person_scope: str) -> str:
    """The scope of the run: that of the chat it speaks in, if it is still the one that its maker set it for and may read; empty for none."""
    here = access_in(chat, person_scope, known=bool(task.scope))
    access = scope_of_task(here, creator_may_read=str(here.scope or "") == task.scope)
    return str(access.scope or "")

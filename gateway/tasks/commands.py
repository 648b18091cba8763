"""What `/tasks` and its sub-commands answer, and the same for the model's tools: the tasks of one chat, in the reader's language (section 9)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from agent.tools.port import Tool, ToolFailed
from agent.tools.tasks import TaskCancel, TaskCreate, TaskList
from gateway.access import includes
from gateway.job_words import failure
from gateway.language import say
from gateway.tasks.cron import BadRule
from gateway.tasks.cron_words import moment
from gateway.tasks.desk import PLACES, TaskRefused, Tasks, Wanted
from gateway.tasks.rules import confirmation, in_words, timing_of
from gateway.turn_store import TurnStart
from memory.conversations import Conversation
from memory.errors import StoreUnavailable
from memory.scopes import Access
from memory.tasks import Task

SHOWN_CHARACTERS = 80
NUMBER = re.compile(r"\d{1,15}", re.ASCII)
RESULTS: Mapping[str, str] = {
    "sent": "task_sent",
    "silent": "task_silent",
    "missed": "task_missed",
    "revoked": "task_revoked",
    "failed": "task_failed",
    "stopped": "task_stopped",
}
STATES: Mapping[str, str] = {"paused": "task_is_paused", "bad": "task_is_bad", "done": "task_is_done", "failed": "task_is_failed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, and where. `manages`: asks the platform whether they manage the place; called only when it matters."""

    chat: Conversation
    person_id: str
    role: str
    language: str
    manages: Callable[[], Awaitable[bool]]


async def overview(tasks: Tasks, caller: Caller) -> str:
    """`/tasks`: id, rule in words, zone, next run and last result of at most 20 tasks of this chat."""
    found = await tasks.of_chat(caller.chat)
    if not found:
        return say(caller.language, "tasks_none")
    return "\n".join([say(caller.language, "tasks_head"), *(line(task, caller.language) for task in found)])


async def pause(tasks: Tasks, caller: Caller, rest: str) -> str:
    return await _changed(tasks, caller, rest, _pause)


async def resume(tasks: Tasks, caller: Caller, rest: str) -> str:
    return await _changed(tasks, caller, rest, _resume)


async def delete(tasks: Tasks, caller: Caller, rest: str) -> str:
    return await _changed(tasks, caller, rest, _delete)


async def run(tasks: Tasks, caller: Caller, rest: str) -> str:
    """Accepted at once; what it says follows in the chat (lane B)."""
    return await _changed(tasks, caller, rest, _run)


def line(task: Task, language: str) -> str:
    """One task as a person reads it."""
    text = " ".join(task.text.split())
    shown = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
    try:
        timing, zone = timing_of(task)
    except BadRule:  # kept and shown with what was written, for it was a person's wish (WD-137)
        head = say(language, "task_line", id=task.id, rule=task.rule, zone=task.timezone, text=shown)
        return f"{head}\n  {say(language, 'task_is_bad', fault=task.fault)}"
    head = say(language, "task_line", id=task.id, rule=in_words(timing, zone, language), zone=zone.key, text=shown)
    facts: list[str] = []
    if task.state in STATES:
        facts.append(say(language, STATES[task.state], fault=task.fault))
    if task.state == "active" and task.next_run is not None:
        facts.append(say(language, "task_next", at=moment(task.next_run, zone, language)))
    if task.running:
        facts.append(say(language, "task_on_its_way"))
    if task.last_result and task.last_run is not None:
        result = say(language, RESULTS[task.last_result], error=failure(language, task.last_error))
        facts.append(say(language, "task_last", result=result, at=moment(task.last_run, zone, language)))
    if task.skipped:
        facts.append(say(language, "task_skips", count=task.skipped))
    if task.missed:
        facts.append(say(language, "task_misses", count=task.missed))
    return "\n  ".join([head, " · ".join(facts)])


Change = Callable[[Tasks, Task, str], Awaitable[str]]


async def _changed(tasks: Tasks, caller: Caller, rest: str, change: Change) -> str:
    """Only its maker, an admin, or a manager of the place; and only from the chat that it belongs to."""
    if not NUMBER.fullmatch(rest.strip()):
        return say(caller.language, "task_usage")
    try:
        task = await tasks.find(caller.chat, int(rest))
        if task.person_id != caller.person_id and not includes(caller.role, "admin") and not await caller.manages():
            return say(caller.language, "task_not_yours")
        return await change(tasks, task, caller.language)
    except TaskRefused as refused:
        return say(caller.language, refused.key, **refused.values)


async def _pause(tasks: Tasks, task: Task, language: str) -> str:
    await tasks.pause(task)
    return say(language, "task_paused", id=task.id)


async def _resume(tasks: Tasks, task: Task, language: str) -> str:
    following = await tasks.resume(task)
    _, zone = timing_of(task)
    return say(language, "task_resumed", id=task.id, at=moment(following, zone, language) if following else "–")


async def _delete(tasks: Tasks, task: Task, language: str) -> str:
    await tasks.delete(task)
    return say(language, "task_deleted", id=task.id)


async def _run(tasks: Tasks, task: Task, language: str) -> str:
    await tasks.run_now(task)
    return say(language, "task_started", id=task.id)


class TaskTools:
    """The model's tools for tasks, for the chat and the person of one turn. None for a chat that cannot be written to at any time, or for nobody."""

    def __init__(self, tasks: Tasks, clock: Callable[[], datetime]) -> None:
        self._tasks = tasks
        self._clock = clock

    def __call__(self, start: TurnStart, access: Access, foreign: Callable[[], bool]) -> list[Tool]:
        person = start.person
        if start.conversation.kind not in PLACES or not person:
            return []
        language = start.language
        caller = Caller(chat=start.conversation, person_id=person["id"], role=person["role"], language=language, manages=_unasked)
        return ChatTasks(self._tasks, caller, str(access.scope or ""), self._clock, foreign).tools


async def _unasked() -> bool:
    """A manager of the place has the command for the tasks of others."""
    return False


class ChatTasks:
    """The tasks of one chat for one turn, as the model's tools reach them: made for its person, in its chat and scope. `foreign()`: whether text of
    others has entered the turn (WD-67); a model that obeys it sets nothing that runs, and takes nothing away (RL-31)."""

    def __init__(self, tasks: Tasks, caller: Caller, scope: str, now: Callable[[], datetime], foreign: Callable[[], bool]) -> None:
        self._tasks = tasks
        self._caller = caller
        self._scope = scope
        self._now = now
        self._foreign = foreign

    @property
    def tools(self) -> list[Tool]:
        return [TaskCreate(self), TaskList(self), TaskCancel(self)]

    async def create(self, *, text: str, kind: str, when: str, silent: bool) -> str:
        caller = self._caller
        wanted = Wanted(
            chat=caller.chat, person_id=caller.person_id, scope=self._scope, text=text, when=when, language=caller.language, kind=kind, silent=silent,
            waits=self._foreign(),
        )  # fmt: skip
        try:
            return confirmation(await self._tasks.create(wanted), self._now())
        except (TaskRefused, StoreUnavailable) as error:
            raise _failure(error) from error

    async def listed(self) -> str:
        try:
            return await overview(self._tasks, self._caller)
        except StoreUnavailable as error:
            raise _failure(error) from error

    async def cancel(self, number: int) -> str:
        if self._foreign():
            raise ToolFailed(say("en", "task_kept", id=number))
        try:
            return await delete(self._tasks, self._caller, str(number))
        except StoreUnavailable as error:
            raise _failure(error) from error


def _failure(error: TaskRefused | StoreUnavailable) -> ToolFailed:
    if isinstance(error, TaskRefused):
        return ToolFailed(say("en", error.key, **error.values))
    return ToolFailed("nothing can be stored just now, so no task was set or changed: tell the person, and try again later")

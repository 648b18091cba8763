"""The results of work that a command began: told in the chat where it was asked for, when the jobs behind it are done (section 9, lane B).

A job of its own waits for them, so that no restart loses the answer; the words are stored and queued in one transaction, so nobody hears them twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import sqlalchemy as sa

from channels.message import Action, Address, Attachment
from gateway import buttons
from gateway.buttons import Question
from gateway.delivery import outbox_store
from gateway.delivery.replies import Replies, Reply
from gateway.jobs.handling import JobContext, JobResult
from gateway.jobs.table import Job, JobRow, enqueue, read_job
from gateway.shapes import message_json
from gateway.streams import Streams
from memory import conversations
from memory.conversations import Message
from memory.database import Database
from memory.schema import jobs

KIND = "command-result"
ENDED = ("done", "parked", "cancelled")
LONG = ("dream", "summary")  # a failed attempt is told at once: the next ones may take hours (WD-100)
FIRST_LOOK = timedelta(seconds=1)
LOOKS_APART = timedelta(seconds=30)  # at most
KEPT = timedelta(minutes=15)  # for so long a result may wait to be sent, as an answer does (CH-82)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a result says, and a file that comes with it. `questions`: what `person` can answer to it by a button."""

    text: str
    file: Attachment | None = None
    questions: tuple[Question, ...] = ()
    person: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Whom a result is for: the chat where it was asked for, its language, and what `words` need beside the jobs."""

    what: str
    conversation_id: str
    language: str
    values: Mapping[str, Any]


Words: TypeAlias = Callable[[Wanted, Sequence[JobRow]], Awaitable[Told]]


def await_results(
    connection: sa.Connection, job_ids: Sequence[int], wanted: Wanted, *, scope: str, key: str, now: datetime
) -> None:
    """Tell it when all these jobs have ended. `key`: of the command, so that asking twice is two answers and a repeated command one."""
    payload = {
        "jobs": list(job_ids), "what": wanted.what, "conversation": wanted.conversation_id, "language": wanted.language, "round": 0,
        "values": dict(wanted.values), "for": scope,
    }  # fmt: skip
    enqueue(connection, Job(kind=KIND, key=key, payload=payload, priority=1, not_before=now + FIRST_LOOK))


def awaited(connection: sa.Connection, scope: str, what: str) -> bool:
    """Whether somebody waits in a chat for the result of this kind of work in a scope: then they are told there, and need no notice."""
    waiting = connection.execute(_WAITING).scalars()
    return any(payload.get("what") == what and payload.get("for") == scope for payload in waiting)


class Followups:
    """The handler. `words` says each kind of result, by its name."""

    def __init__(
        self, *, db: Database, clock: Callable[[], datetime], replies: Replies, streams: Streams, words: Mapping[str, Words]
    ) -> None:
        self._db = db
        self._clock = clock
        self._replies = replies
        self._streams = streams
        self._words = words

    async def run(self, job: Job, context: JobContext) -> JobResult:
        rows = await self._db.read(lambda connection: [read_job(connection, number) for number in job.payload["jobs"]])
        known = [row for row in rows if row is not None]
        wanted = Wanted(
            what=job.payload["what"], conversation_id=job.payload["conversation"], language=job.payload["language"], values=job.payload["values"]
        )
        if going_on := [row for row in known if row.state not in ENDED]:
            if wanted.what in LONG and all(row.state == "waiting" and row.attempts for row in going_on):
                await self._tell(context, wanted, await self._words[wanted.what](wanted, known), part="delayed")
            return self._later(job)
        await self._tell(context, wanted, await self._words[wanted.what](wanted, known))
        return JobResult(output={"told": wanted.what})

    def _later(self, job: Job) -> JobResult:
        """Look again, less and less often."""
        round_ = int(job.payload["round"]) + 1
        again = replace(
            job, payload={**job.payload, "round": round_}, not_before=self._clock() + min(LOOKS_APART, FIRST_LOOK * 1.5 ** min(round_, 20))
        )
        return JobResult(skipped="not yet", commit=lambda connection: enqueue(connection, again, again=True))

    async def _tell(self, context: JobContext, wanted: Wanted, told: Told, *, part: str = "told") -> None:
        """Once: what is stored is settled in the very transaction that remembers it."""
        added: list[tuple[Message, str, Reply]] = []

        def store(connection: sa.Connection) -> dict[str, Any]:
            added.clear()
            chat = conversations.conversation(connection, wanted.conversation_id)
            if chat is None:  # deleted meanwhile
                return {"told": False}
            now = self._clock()
            address = chat.key.removesuffix(f"#{chat.id}")  # `/new` put the conversation aside meanwhile; its chat is where it was
            drawn, name = buttons.draw(told.questions), f"result-{context.id}" if part == "told" else f"result-{context.id}-{part}"
            reply = self._reply(address, chat.id, told, name, now, actions=buttons.rows(drawn))
            outbox_store.put(connection, reply.parts, now)
            if reply.has_buttons:
                buttons.keep(connection, drawn, person_id=told.person, conversation_id=chat.id, now=now)
            message = conversations.add_message(connection, now=now, conversation_id=chat.id, role="notice", origin="command", text=told.text)
            added.append((message, address, reply))
            return {"told": True}

        await context.settled(part, store)
        for message, address, reply in added:
            self._streams.publish(message.conversation_id, "message", message_json(message))
            self._replies.stored(address, reply)

    def _reply(
        self, address: str, conversation_id: str, told: Told, part_id: str, now: datetime, *, actions: tuple[tuple[Action, ...], ...]
    ) -> Reply:
        reply = self._replies.notice(
            Address.parse(address), told.text, part_id=part_id, now=now, conversation_id=conversation_id, actions=actions
        )
        parts = [replace(part, expires_at=now + KEPT) for part in reply.parts]
        if parts and told.file is not None:
            parts[-1] = replace(parts[-1], part=replace(parts[-1].part, attachments=(told.file,)))
        return Reply(parts=tuple(parts))


_WAITING = sa.select(jobs.c.payload).where(jobs.c.kind == KIND, jobs.c.state.in_(["waiting", "running"]))

"""Entries of a chat made by the model: asked for, by themselves, for a whole old chat, and many old ones merged into one (RS-82, RS-86, RS-87,
RS-95).

One kind of job, so that a chat's entries are made one after the other; each is saved as soon as it is there, and only if its messages read as they
did when it was asked for (RS-194). Nothing of it is ever in the way of a reply: an automatic one is a job, written with the end of a turn (RS-193).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from gateway import windows
from gateway.config import Config
from gateway.entries import asking as entry_asking
from gateway.entries import live as live_entries
from gateway.entries import settings as entry_settings
from gateway.entries.refused_merges import merge_next
from gateway.jobs.handling import JobContext, JobResult
from gateway.jobs.parts import drop_paid, note_progress, progress_of
from gateway.jobs.table import Job, enqueue
from gateway.summaries.chat_summaries import ChatSummaries
from gateway.summaries.summarist import NO_MODEL, RULE, Wish
from memory import conversations
from memory.conversations import Conversation
from memory.recall import entry_plan, entry_rows, real_talk, summary_rows, uncovered
from memory.recall.chunk_views import may_hear
from memory.recall.chunks import Spoken, fingerprint_of
from memory.recall.entry_plan import Batch
from memory.recall.kinds import Kind
from memory.recall.summary_rows import NewSummary, State, Summary

KIND = "chat-entries"
ASKED, AUTOMATIC, BACKFILL, MERGE = "asked", entry_rows.AUTOMATIC, "backfill", "merge"
MERGES_PER_RUN = 16


def job_of(what: str, conversation_id: str, scope: str, **payload: object) -> Job:
    """Payload: `what`, `conversation`; of what a person asked for also `person`, `first` and `last`, numbers of messages in the log."""
    key = ":".join([conversation_id, what, *map(str, payload.values())])
    return Job(kind=KIND, key=key, scope=scope, payload={"what": what, "conversation": conversation_id, **payload})


def after_turn(connection: sa.Connection, config: Config, chat_id: str, scope: str) -> None:
    """In the transaction that ends a turn: an automatic entry that is due becomes a job (RS-86). A chat that nothing was counted for yet begins with
    the newest message of a person."""
    chat = conversations.conversation(connection, chat_id)
    if chat is None or not scope or not windows.keeps_summaries(config, chat):
        return
    own = entry_settings.of_chat(config, chat)
    if not own.automatic:
        return
    since = entry_settings.counted_from(chat)
    if since is None:
        since = entry_rows.newest_own(connection, chat.id) - 1
        entry_settings.count_from(connection, chat, since)
    if _due(connection, chat, since, own.every):
        enqueue(connection, job_of(AUTOMATIC, chat.id, scope), again=True)


def _due(connection: sa.Connection, chat: Conversation, since: int, every: int) -> bool:
    ever = entry_rows.own_since(connection, chat.id, windows.cleared(chat), most=2)
    return entry_plan.due(entry_rows.own_since(connection, chat.id, since, most=every), every, own_ever=ever)


def merge_if_many(connection: sa.Connection, config: Config, chat: Conversation, scope: str) -> None:
    """More automatic entries are in force than there may be, or than there is room for: a job merges the oldest (RS-95)."""
    if entry_plan.to_merge(entry_rows.mergeable(connection, chat.id), room=live_entries.room(config, chat)):
        enqueue(connection, job_of(MERGE, chat.id, scope), again=True)


class EntryJobs(ChatSummaries):
    kind = KIND

    async def _made(self, job: Job, context: JobContext, chat: Conversation) -> JobResult:
        match job.payload["what"]:
            case "asked":
                return await self._asked(job, context, chat)
            case "automatic":
                return await self._automatic(job, context, chat)
            case "backfill":
                return await self._backfill(job, context, chat)
            case _:
                return await self._merges(job, context, chat)

    def _why_not(self, chat: Conversation) -> str:
        if not windows.keeps_summaries(self._config(), chat):
            return RULE
        return "" if self._summarist.entry_account(chat) else NO_MODEL

    async def _asked(self, job: Job, context: JobContext, chat: Conversation) -> JobResult:
        """Of the messages that a person named, each audience apart, those that they may read (RS-82, RS-188)."""
        first, last, person = int(job.payload["first"]), int(job.payload["last"]), str(job.payload["person"])

        def look(connection: sa.Connection) -> list[Batch]:
            talk = [each for each in entry_rows.real(connection, chat.id, after=first - 1) if each.seq <= last]
            heard = [each for each in talk if may_hear(each.audience, chat.id, person)]
            return entry_plan.batches(heard, (), entry_plan.MOST)

        made = [await self._entry(context, chat, job.scope, batch, ASKED) for batch in await self._db.read(look)]
        return JobResult(output={"entries": sum(made)}, commit=lambda connection: drop_paid(connection, context.id))

    async def _automatic(self, job: Job, context: JobContext, chat: Conversation) -> JobResult:
        """Of all since the last one that no entry stands for. What was switched off meanwhile makes none."""

        def look(connection: sa.Connection) -> list[Batch]:
            fresh = conversations.conversation(connection, chat.id) or chat
            own, since = entry_settings.of_chat(self._config(), fresh), entry_settings.counted_from(fresh)
            if not own.automatic or since is None or not _due(connection, fresh, since, own.every):
                return []
            return _left(connection, fresh, after=since, size=entry_plan.MOST)

        batches = await self._db.read(look)
        last = max((batch.seqs[-1] for batch in batches), default=0)
        made = [await self._entry(context, chat, job.scope, batch, AUTOMATIC) for batch in batches]

        def commit(connection: sa.Connection) -> None:
            drop_paid(connection, context.id)
            if last and all(made):
                entry_settings.count_from(connection, chat, last)
            if last:
                after_turn(connection, self._config(), chat.id, job.scope)
                merge_if_many(connection, self._config(), chat, job.scope)

        return JobResult(output={"entries": sum(made)}, commit=commit)

    async def _backfill(self, job: Job, context: JobContext, chat: Conversation) -> JobResult:
        """Of all that no entry stands for, batch after batch; what is saved stays, whatever comes (RS-87)."""
        size = entry_settings.of_chat(self._config(), chat).last_n

        def look(connection: sa.Connection) -> tuple[list[Batch], int]:
            return _left(connection, chat, after=0, size=size), (progress_of(connection, context.id) or {"done": 0})["done"]

        batches, before = await self._db.read(look)
        total = before + len(batches)
        await context.write(lambda connection: note_progress(connection, context.id, before, total))
        for done, batch in enumerate(batches, start=before + 1):
            await self._entry(context, chat, job.scope, batch, AUTOMATIC, done=done, total=total)

        def commit(connection: sa.Connection) -> None:
            drop_paid(connection, context.id)
            merge_if_many(connection, self._config(), chat, job.scope)

        return JobResult(output={"done": total, "total": total}, commit=commit)

    async def _merges(self, job: Job, context: JobContext, chat: Conversation) -> JobResult:
        """The oldest automatic entries become one, until there are few enough; they stay stored, switched off (RS-95)."""
        merged = 0
        while merged < MERGES_PER_RUN and await merge_next(partial(self._next, chat), _ids, partial(self._merge, context, chat)):
            merged += 1

        def commit(connection: sa.Connection) -> None:
            drop_paid(connection, context.id)
            if merged == MERGES_PER_RUN:
                merge_if_many(connection, self._config(), chat, job.scope)

        return JobResult(output={"merged": merged}, commit=commit)

    async def _next(self, chat: Conversation, passed: Collection[int]) -> list[Summary] | None:
        room = live_entries.room(self._config(), chat)

        def look(connection: sa.Connection) -> list[Summary]:
            found = entry_plan.to_merge(entry_rows.mergeable(connection, chat.id), room=room, passed=passed)
            return [row for each in found if (row := summary_rows.one(connection, each)) is not None]

        return await self._db.read(look) or None

    async def _merge(self, context: JobContext, chat: Conversation, inputs: list[Summary]) -> bool:
        wish = await self._db.read(lambda connection: entry_asking.wish(connection, self._config(), self._summarist, chat))
        answer = await entry_asking.merged(self._summarist, context, chat, [row.text for row in inputs if row.text], wish)

        def save(connection: sa.Connection) -> bool:
            if not summary_rows.unchanged(connection, inputs):
                return False
            ids = [row.id for row in inputs]
            summary_rows.add(connection, NewSummary(
                conversation_id=chat.id, kind=Kind.ENTRY, text=answer.text, title=answer.title, inputs=ids,
                sources=summary_rows.union_of(connection, ids), audience=inputs[0].audience, model=wish.account, origin=AUTOMATIC,
            ), self._clock())  # fmt: skip
            return True

        return await context.write(save)

    async def _entry(self, context: JobContext, chat: Conversation, scope: str, batch: Batch, origin: str, *, done: int = 0, total: int = 0) -> bool:
        """One entry, saved. False when its messages changed while the model was asked, or another entry stands for them now: the next run sees."""
        config = self._config()

        def look(connection: sa.Connection) -> tuple[list[Spoken], dict[int, str], ZoneInfo, Wish]:
            return (
                *uncovered.talk(connection, chat.id, batch.seqs),
                windows.clock_of(connection, config, chat, scope).zone,
                entry_asking.wish(connection, config, self._summarist, chat),
            )

        talk, authors, zone, wish = await self._db.read(look)
        if not talk:  # pictures alone: there is nothing to tell of
            return True
        answer = await self._summarist.of_talk(context, chat, talk, authors, zone, prompt=entry_asking.PROMPT, merge=entry_asking.MERGE, wish=wish)
        asked = fingerprint_of(talk)

        def save(connection: sa.Connection) -> bool:
            if total:
                note_progress(connection, context.id, done, total)
            if fingerprint_of(real_talk.by_seq(connection, chat.id, batch.seqs)) != asked:
                return False
            if origin != ASKED and not entry_rows.stood(connection, chat.id).isdisjoint(batch.seqs):
                return False
            now = conversations.conversation(connection, chat.id)
            if now is None or not windows.keeps_summaries(config, now):
                return False
            summary_rows.add(connection, NewSummary(
                conversation_id=chat.id, kind=Kind.ENTRY, text=answer.text, title=answer.title, sources=batch.seqs, audience=batch.audience,
                fingerprint=asked, model=wish.account, origin=origin,
                state=State.WAITING if entry_settings.of_chat(config, now).review else State.ACTIVE,
            ), self._clock())  # fmt: skip
            return True

        return await context.write(save)


def _ids(rows: Sequence[Summary]) -> list[int]:
    return [row.id for row in rows]


def _left(connection: sa.Connection, chat: Conversation, *, after: int, size: int) -> list[Batch]:
    talk = entry_rows.real(connection, chat.id, after=max(after, windows.cleared(chat)))
    return entry_plan.batches(talk, entry_rows.stood(connection, chat.id), size)

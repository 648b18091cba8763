"""The jobs of a chat's days: one row for each day, weeks, months and years folded from them (RS-51 to RS-61, RS-161 to RS-164)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from gateway.config import Config
from gateway.entries.refused_merges import merge_next
from gateway.jobs.handling import Handler, JobContext, JobResult
from gateway.jobs.parts import drop_paid
from gateway.jobs.table import Job, enqueue
from gateway.summaries import calendar_state, day_pieces
from gateway.summaries import shape as summary_shape
from gateway.summaries.calendar_state import FOLD, ChatDays, fold_job
from gateway.summaries.day_pieces import DAY, PART
from gateway.summaries.summarist import Summarist, half_in_words
from memory.database import Database
from memory.recall import calendar_plan, real_talk, summary_rows, uncovered
from memory.recall.answers import Answer
from memory.recall.calendar_plan import Fold
from memory.recall.chunks import Spoken, fingerprint_of
from memory.recall.kinds import CALENDAR, Kind
from memory.recall.summary_rows import NewSummary, State, Summary

ORIGIN = "calendar"
FOLDS_PER_RUN = 12
YEAR_LEAST = 20  # words below which no year is halved

NO_MESSAGES, NOT_OVER = "no real messages", "not over yet"


@dataclass(frozen=True, slots=True)
class _Next:
    """What is folded next, or the year row that is halved."""

    days: ChatDays
    what: Fold | Summary


class CalendarDays:
    def __init__(self, *, db: Database, summarist: Summarist, config: Callable[[], Config], clock: Callable[[], datetime]) -> None:
        self._db = db
        self._summarist = summarist
        self._config = config
        self._clock = clock

    @property
    def handlers(self) -> dict[str, Handler]:
        return {DAY: self.day, FOLD: self.fold}

    async def day(self, job: Job, context: JobContext) -> JobResult:
        """The row of one day and audience. Payload: `conversation`, `date`, `audience`; `ahead`: of a day that is not over, the pieces up to this
        message alone (RS-162)."""
        date_, audience = date.fromisoformat(job.payload["date"]), str(job.payload["audience"])
        days = await self._read(job)
        if reason := self._summarist.why_not(days.chat if days else None):
            return JobResult(skipped=reason)
        assert days is not None
        found = next((each for each in days.waiting if (each.day, each.audience) == (date_, audience)), None)
        if found is None:
            return JobResult(skipped=NO_MESSAGES)
        ahead = 0
        if not calendar_plan.is_over(found.day, days.clock, self._clock(), days.last_said):
            ahead = int(job.payload.get("ahead", 0))
            if not ahead:
                return JobResult(skipped=NOT_OVER)
        chat, joins = days.chat, days.part_of(date_, audience)

        def look(connection: sa.Connection) -> tuple[int, ...]:
            before = summary_rows.sources_of(connection, [joins.id])[joins.id] if joins else []
            return tuple(sorted({*found.seqs, *before}))

        seqs = await self._db.read(look)
        talk, authors = await self._db.read(lambda connection: uncovered.talk(connection, chat.id, seqs))
        if ahead:
            return JobResult(output={"pieces": await self._pieces(context, days, talk, authors, ahead)})
        answer = await self._summarist.of_talk(context, chat, talk, authors, days.clock.zone, prompt="day_summary", merge="day_merge")
        asked = fingerprint_of(talk)

        def commit(connection: sa.Connection) -> None:
            waits = {message.seq for message in uncovered.waiting(connection, chat.id, CALENDAR)}
            same = fingerprint_of(real_talk.by_seq(connection, chat.id, seqs)) == asked and waits.issuperset(found.seqs)
            if not same or (joins is not None and not summary_rows.unchanged(connection, [joins])):
                enqueue(connection, job, again=True)  # what was paid for pieces that did not change is kept (RS-194)
                return
            now = self._clock()
            if joins is not None:
                summary_rows.set_state(connection, [joins.id], State.INACTIVE, now)
            summary_rows.add(connection, NewSummary(
                conversation_id=chat.id, kind=Kind.DAY, text=answer.text, details=answer.details, sources=seqs, audience=audience,
                local_date=date_.isoformat(), zone=days.clock.zone.key or "", rollover_hour=days.clock.rollover_hour, fingerprint=asked,
                model=self._summarist.model_of(chat), origin=ORIGIN,
            ), now)  # fmt: skip
            drop_paid(connection, context.id)
            after = calendar_state.read(connection, self._config(), chat.id)
            if after is not None and (after.fold(now) or after.halve()):
                enqueue(connection, fold_job(chat.id, job.scope), again=True)

        return JobResult(output={"messages": len(talk), "details": len(answer.details)}, commit=commit)

    async def _pieces(self, context: JobContext, days: ChatDays, talk: Sequence[Spoken], authors: Mapping[int, str], last: int) -> int:
        """The pieces of a day that is not over, told as soon as each is made."""
        told: list[dict[str, Any]] = []

        async def made(messages: Sequence[Spoken], answer: Answer) -> None:
            told.append(day_pieces.as_json(messages, answer))
            await context.tell(PART, told)

        await self._summarist.ahead(context, days.chat, talk, authors, days.clock.zone, prompt="day_summary", last=last, made=made)
        return len(told)

    async def fold(self, job: Job, context: JobContext) -> JobResult:
        """Everything that is to be folded in a chat, one row after the other. Payload: `conversation`."""
        days = await self._read(job)
        if reason := self._summarist.why_not(days.chat if days else None):
            return JobResult(skipped=reason)
        folded = 0
        while folded < FOLDS_PER_RUN and await merge_next(partial(self._next, job), _rows, partial(self._make, context)):
            folded += 1

        def commit(connection: sa.Connection) -> None:
            drop_paid(connection, context.id)
            if folded == FOLDS_PER_RUN:
                enqueue(connection, job, again=True)

        return JobResult(output={"folded": folded}, commit=commit)

    async def _next(self, job: Job, passed: Collection[int]) -> _Next | None:
        days = await self._read(job)
        if days is None or self._summarist.why_not(days.chat):
            return None
        found = days.fold(self._clock(), passed) or days.halve(passed)
        return None if found is None else _Next(days, found)

    async def _make(self, context: JobContext, found: _Next) -> bool:
        match found.what:
            case Fold():
                return await self._folded(context, found.days, found.what)
            case Summary():
                return await self._halved(context, found.days, found.what)

    async def _folded(self, context: JobContext, days: ChatDays, fold: Fold) -> bool:
        """A row that a person wrote is not rewritten: what came later stands beside it, as a second row (RS-166)."""
        inputs = tuple(row for row in fold.inputs if not (row.kind is fold.kind and row.hand_edited))
        fold = replace(fold, inputs=inputs)
        answer = await summary_shape.joined(self._summarist, context, days.chat, fold.kind, inputs)
        return await self._save(context, days, fold, answer.text, answer.details)

    async def _halved(self, context: JobContext, days: ChatDays, year: Summary) -> bool:
        words = half_in_words(year.tokens)
        if words < YEAR_LEAST:
            return False
        answer = await summary_shape.joined(self._summarist, context, days.chat, Kind.YEAR, [year], most=words)
        half = Fold(kind=Kind.YEAR, day=date.fromisoformat(year.local_date), audience=year.audience, inputs=(year,), failed=year.failed_days)
        return await self._save(context, days, half, answer.text, answer.details)

    async def _save(self, context: JobContext, days: ChatDays, fold: Fold, text: str, details: tuple[summary_rows.Detail, ...]) -> bool:
        def save(connection: sa.Connection) -> bool:
            if not summary_rows.unchanged(connection, fold.inputs):
                return False
            now, ids = self._clock(), [row.id for row in fold.inputs]
            sources = summary_rows.union_of(connection, ids)
            summary_rows.set_state(connection, ids, State.INACTIVE, now)  # before the new one, so that it is no second row of its date
            summary_rows.add(connection, NewSummary(
                conversation_id=days.chat.id, kind=fold.kind, text=text, details=details, sources=sources, inputs=ids,
                audience=fold.audience, local_date=fold.day.isoformat(), zone=days.clock.zone.key or "",
                rollover_hour=days.clock.rollover_hour, failed_days=fold.failed, model=self._summarist.model_of(days.chat), origin=ORIGIN,
            ), now)  # fmt: skip
            return True

        return await context.write(save)

    async def _read(self, job: Job) -> ChatDays | None:
        chat_id = str(job.payload["conversation"])
        return await self._db.read(lambda connection: calendar_state.read(connection, self._config(), chat_id))


def _rows(found: _Next) -> list[int]:
    return [row.id for row in (found.what.inputs if isinstance(found.what, Fold) else (found.what,))]

"""Summaries of a chat whose messages were edited or taken away, made anew from the bottom up (RS-166, RS-189). What a person wrote by hand is never
rewritten: it stays stale, which is the review list."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from gateway import windows
from gateway.entries import asking as entry_asking
from gateway.entries.refused_merges import MergeRefused
from gateway.jobs.handling import JobContext, JobResult
from gateway.jobs.parts import drop_paid
from gateway.jobs.table import Job, enqueue
from gateway.summaries import shape as summary_shape
from gateway.summaries.chat_summaries import ChatSummaries
from gateway.summaries.summarist import Wish
from memory.conversations import Conversation
from memory.recall import real_talk, stale_rows, summary_rows, uncovered
from memory.recall.answers import Answer
from memory.recall.chunks import fingerprint_of
from memory.recall.kinds import Kind
from memory.recall.summary_rows import NewSummary, State, Summary

KIND = "restate-summaries"


def restate_job(conversation_id: str, scope: str) -> Job:
    return Job(kind=KIND, key=conversation_id, scope=scope, payload={"conversation": conversation_id})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remade:
    """A row and what is to stand in its place. `inputs`: of the rows it was made from, those that still say something, each remade or as it is;
    `answer`: None where it could not be said shorter than those (RS-111): they stand in its place; `fresh`: it says something new; `fingerprint`: of
    the messages of one that was made from messages."""

    row: Summary
    answer: Answer | None
    inputs: tuple[_Remade, ...] = ()
    sources: tuple[int, ...] = ()
    fresh: bool = True
    fingerprint: str = ""

    @property
    def standing(self) -> tuple[_Remade, ...]:
        """What says something in the end: this, or what stands in its place."""
        return (self,) if self.answer is not None else tuple(each for below in self.inputs for each in below.standing)


class Restating(ChatSummaries):
    kind = KIND

    async def _made(self, job: Job, context: JobContext, chat: Conversation) -> JobResult:
        """Every row of a chat that is due, the withheld ones first."""
        before = self._clock() - timedelta(minutes=windows.setting(self._config(), chat, "days.stale_delay_minutes"))
        ids = await self._db.read(lambda connection: stale_rows.due(connection, before, conversation_id=chat.id).get(chat.id, []))
        remade = 0
        for row_id in ids:
            remade += await self._restate(context, chat, job.scope, row_id)

        def commit(connection: sa.Connection) -> None:
            drop_paid(connection, context.id)  # of words that may have been taken away
            if remade < len(ids):
                enqueue(connection, restate_job(chat.id, job.scope), again=True)

        return JobResult(output={"restated": remade}, commit=commit)

    async def _restate(self, context: JobContext, chat: Conversation, scope: str, row_id: int) -> bool:
        row = await self._db.read(lambda connection: summary_rows.one(connection, row_id))
        if row is None or row.hand_edited or not row.stale or row.state not in (State.ACTIVE, State.WITHHELD):
            return True
        remade = await self._remake(context, chat, scope, row, forgotten=row.state is State.WITHHELD)

        def save(connection: sa.Connection) -> bool:
            if not summary_rows.unchanged(connection, [row]) or (remade is not None and not self._as_asked(connection, chat, remade)):
                return False
            if remade is None:
                _erase(connection, row, (), self._clock())
            else:
                self._store(connection, chat, remade, State.ACTIVE)
            return True

        return await context.write(save)

    async def _remake(self, context: JobContext, chat: Conversation, scope: str, row: Summary, *, forgotten: bool) -> _Remade | None:
        """What `row` says of what is left of its sources; None when nothing is. Rows below it that are not stale stay as they are."""
        as_it_is = _Remade(row=row, answer=Answer(text=row.text, details=row.details), fresh=False)
        if not row.stale:
            return as_it_is
        if row.hand_edited:  # an input: what a person wrote holds, but not what may tell of something forgotten
            return None if forgotten else as_it_is
        below, sources = await self._db.read(
            lambda connection: (summary_rows.inputs_of(connection, row.id), tuple(summary_rows.sources_of(connection, [row.id])[row.id]))
        )
        if below:
            found = [await self._remake(context, chat, scope, each, forgotten=forgotten) for each in below]
            inputs = tuple(each for each in found if each is not None)
            if not inputs:
                return None
            told = [_as_it_will_read(each.row, each.answer) for of in inputs for each in of.standing if each.answer is not None]
            try:
                answer = await self._joined(context, chat, row.kind, told)
            except MergeRefused:
                answer = None
            return _Remade(row=row, answer=answer, inputs=inputs)
        talk, authors = await self._db.read(lambda connection: uncovered.talk(connection, chat.id, sources))
        if not talk:
            return None
        zone = await self._db.read(lambda connection: windows.clock_of(connection, self._config(), chat, scope).zone)
        prompt, merge = summary_shape.prompts(row.kind)
        wish = await self._wish(chat) if row.kind is Kind.ENTRY else None
        answer = await self._summarist.of_talk(context, chat, talk, authors, zone, prompt=prompt, merge=merge, wish=wish)
        seqs = tuple(message.seq for message in talk)
        return _Remade(row=row, answer=answer, sources=seqs, fingerprint=fingerprint_of(talk))

    async def _joined(self, context: JobContext, chat: Conversation, kind: Kind, inputs: Sequence[Summary]) -> Answer:
        if kind is not Kind.ENTRY:
            return await summary_shape.joined(self._summarist, context, chat, kind, inputs)
        return await entry_asking.merged(self._summarist, context, chat, [each.text for each in inputs if each.text], await self._wish(chat))

    async def _wish(self, chat: Conversation) -> Wish:
        return await self._db.read(lambda connection: entry_asking.wish(connection, self._config(), self._summarist, chat))

    def _as_asked(self, connection: sa.Connection, chat: Conversation, remade: _Remade) -> bool:
        if remade.sources:
            return fingerprint_of(real_talk.by_seq(connection, chat.id, remade.sources)) == remade.fingerprint
        return all(self._as_asked(connection, chat, each) for each in remade.inputs)

    def _store(self, connection: sa.Connection, chat: Conversation, remade: _Remade, state: State) -> list[int]:
        """The new rows, each in the place of its old one, which keeps no words. Returns the ids of what stands for it now."""
        row, answer, now = remade.row, remade.answer, self._clock()
        if not remade.fresh:
            if state is State.ACTIVE:
                summary_rows.set_state(connection, [row.id], state, now)
            return [row.id]
        below = [each for of in remade.inputs for each in self._store(connection, chat, of, state if answer is None else State.INACTIVE)]
        _erase(connection, row, [each.row.id for each in remade.inputs], now)
        if answer is None:
            return below
        made = summary_rows.add(connection, NewSummary(
            conversation_id=chat.id, kind=row.kind, text=answer.text, details=answer.details, title=answer.title,
            sources=remade.sources or summary_rows.union_of(connection, below), inputs=below, audience=row.audience, state=state,
            local_date=row.local_date, zone=row.zone, rollover_hour=row.rollover_hour, failed_days=row.failed_days,
            fingerprint=remade.fingerprint, model=self._summarist.model_of(chat), origin=row.origin,
        ), now)  # fmt: skip
        return [made]


def _erase(connection: sa.Connection, row: Summary, kept: Collection[int], now: datetime) -> None:
    """A row that is made anew or of which nothing is left keeps no words, nor do those below it that have no place in the new one (RS-189)."""
    for each in summary_rows.inputs_of(connection, row.id):
        if each.stale and not each.hand_edited and each.id not in kept:
            _erase(connection, each, (), now)
    summary_rows.erase(connection, [row.id], now)


def _as_it_will_read(row: Summary, answer: Answer) -> Summary:
    return replace(row, text=answer.text, details=answer.details, tokens=summary_rows.size(answer.text, answer.details))

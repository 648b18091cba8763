"""Rolling summaries: what left the window of a chat, in three levels (RS-43 to RS-50). The job is written in the transaction that moves the edge.

Each row is saved as soon as it is made. Until then the extract stands in its place, so that no reply has a hole (RS-44).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import sqlalchemy as sa

from gateway import windows
from gateway.entries.refused_merges import merge_next
from gateway.jobs.handling import JobContext, JobResult
from gateway.jobs.parts import drop_paid
from gateway.jobs.table import Job, enqueue
from gateway.saved import deep_gate
from gateway.summaries import shape as summary_shape
from gateway.summaries.chat_summaries import ChatSummaries
from gateway.summaries.summarist import HALF_LEAST, half_in_words
from gateway.trimming import ROLLING as KIND
from gateway.trimming import rolling_job
from memory import conversations
from memory.conversations import Conversation
from memory.recall import real_talk, rolling_plan, summary_rows, uncovered
from memory.recall.chunks import fingerprint_of
from memory.recall.kinds import ROLLING, Kind
from memory.recall.rolling_plan import Block, Left, Merge
from memory.recall.summary_rows import NewSummary, Summary

ORIGIN = "rolling"
MERGES_PER_RUN = 8


class Rolling(ChatSummaries):
    kind = KIND

    async def _made(self, job: Job, context: JobContext, chat: Conversation) -> JobResult:
        """At most three blocks, then what merges."""
        if not windows.stands(windows.profile_of(self._config(), chat), ROLLING):
            return JobResult(skipped="another profile")
        waiting = await self._db.read(lambda connection: _left(connection, chat))
        made = [await self._block(context, chat, job.scope, block) for block in rolling_plan.blocks_to_summarise(waiting, self._size(chat))]
        merged = 0
        while merged < MERGES_PER_RUN and await merge_next(partial(self._next, chat), _inputs, partial(self._merge, context, chat)):
            merged += 1

        def commit(connection: sa.Connection) -> None:
            drop_paid(connection, context.id)
            if _left(connection, chat) or merged == MERGES_PER_RUN:
                enqueue(connection, rolling_job(chat.id, job.scope), again=True)

        return JobResult(output={"blocks": sum(made), "merged": merged}, commit=commit)

    def _size(self, chat: Conversation) -> int:
        return windows.profile_of(self._config(), chat).block

    async def _block(self, context: JobContext, chat: Conversation, scope: str, block: Block) -> bool:
        """False when the messages changed while the model was asked: then they wait for the next run (RS-194)."""
        talk, authors = await self._db.read(lambda connection: uncovered.talk(connection, chat.id, block.seqs))
        zone = await self._db.read(lambda connection: windows.clock_of(connection, self._config(), chat, scope).zone)
        answer = await self._summarist.of_talk(context, chat, talk, authors, zone, prompt="rolling_summary", merge="rolling_merge")
        asked = fingerprint_of(talk)

        def save(connection: sa.Connection) -> bool:
            waits = {message.seq for message in _left(connection, chat)}
            if fingerprint_of(real_talk.by_seq(connection, chat.id, block.seqs)) != asked or not waits.issuperset(block.seqs):
                return False
            now = self._clock()
            summary_rows.add(connection, NewSummary(
                conversation_id=chat.id, kind=Kind.RECENT, text=answer.text, sources=block.seqs, audience=block.audience,
                fingerprint=asked, model=self._summarist.model_of(chat), origin=ORIGIN,
            ), now)  # fmt: skip
            deep_gate.queue(connection, chat, scope, block.seqs[-1], now)  # the block is compacted, once (RS-43)
            return True

        return await context.write(save)

    async def _next(self, chat: Conversation, passed: Collection[int]) -> Merge | None:
        room = windows.standing_room(self._config(), chat)
        return await self._db.read(lambda connection: rolling_plan.next_merge(_rows(connection, chat), room=room, passed=passed))

    async def _merge(self, context: JobContext, chat: Conversation, merge: Merge) -> bool:
        """False when its rows changed meanwhile."""
        half = max(HALF_LEAST, half_in_words(sum(row.tokens for row in merge.inputs))) if merge.halve else 0
        text = (await summary_shape.joined(self._summarist, context, chat, merge.kind, merge.inputs, most=half)).text

        def save(connection: sa.Connection) -> bool:
            if not summary_rows.unchanged(connection, merge.inputs):
                return False
            ids = [row.id for row in merge.inputs]
            summary_rows.add(connection, NewSummary(
                conversation_id=chat.id, kind=merge.kind, text=text, sources=summary_rows.union_of(connection, ids), inputs=ids,
                audience=merge.inputs[0].audience, model=self._summarist.model_of(chat), origin=ORIGIN,
            ), self._clock())  # fmt: skip
            return True

        return await context.write(save)


def _inputs(merge: Merge) -> list[int]:
    return [row.id for row in merge.inputs]


def _left(connection: sa.Connection, chat: Conversation) -> list[Left]:
    """Messages behind the edge as it is now that wait for their summary."""
    now = conversations.conversation(connection, chat.id) or chat
    found = uncovered.waiting(connection, chat.id, ROLLING, after=windows.cleared(now), last=now.window_edge)
    return [Left(seq=each.seq, audience=each.audience) for each in found]


def _rows(connection: sa.Connection, chat: Conversation) -> list[Summary]:
    after = windows.cleared(chat)
    return [row for row in summary_rows.of_chat(connection, chat.id, kinds=ROLLING) if row.first_seq > after]

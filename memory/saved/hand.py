"""What a program does to saved memories: the AI saves, updates and deletes in a turn or in deep memory, journalled, never a pin.

Each function is one transaction's work (SM-45 to SM-54, SM-82). An eviction counts with its save.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from memory.saved import decay_store, journal, stored
from memory.saved.journal import Entry, Op, Writer
from memory.saved.rows import ListKey, ListKind, Memory, clean, content_hash, norm_hash
from memory.saved.store import candidate, insert_new
from memory.saved.writing import Limits, New, Outcome, Result, text_fault
from memory.saved_schema import memories


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """The AI in one attempt of a turn, or in one run of deep memory.

    `lists`: those whose rows it may make and touch (SM-51, SM-52). `sent`: revision of every row it was shown, by id; what it wrote itself counts
    along. `visible`: ids of the rows that count as originals of a duplicate (SM-4). `search_ok`: a search succeeded in this reply; of deep memory,
    the candidate could be embedded (SM-83). `private`: not in a place that others share, so what it edits is private-origin now (SM-15). `author_id`:
    the model, or the job.
    """

    writer: Writer
    lists: frozenset[ListKey]
    sent: Mapping[int, str]
    visible: Collection[int]
    search_ok: bool
    ageing_on: bool
    private: bool
    operations_max: int
    limits: Limits
    author_id: str = ""


def save(connection: sa.Connection, hand: Hand, new: New, now: datetime) -> Result:
    """`saved`, with the `victim` that made room; `unchanged` with the row that says the same; or why not.

    Into a list with exactly as many unpinned rows as it may have, one sleeping row is forgotten (SM-46); SM-47 says when it is not.
    """
    content = clean(new.content)
    journal.hold(connection, hand.writer)
    if refused := _refused(connection, hand):
        return refused
    if new.key not in hand.lists:
        return Result(outcome=Outcome.LIST_NOT_ALLOWED)
    if fault := text_fault(content, hand.limits):
        return fault
    stored.lock(connection, [new.key])
    if standing := _standing(connection, hand, new.key, content):
        if standing.dormant and hand.ageing_on:
            decay_store.use(connection, standing.id, now)
        return Result(outcome=Outcome.UNCHANGED, memory=stored.row(connection, standing.id))
    held = stored.count(connection, new.key, pinned=False)
    victim = None
    if held >= hand.limits.unpinned:
        if held > hand.limits.unpinned or not hand.ageing_on or new.key.kind is ListKind.GLOBAL:
            return Result(outcome=Outcome.LIST_FULL)
        if not hand.search_ok:
            return Result(outcome=Outcome.SEARCH_UNAVAILABLE)
        victim = candidate(connection, new.key)
        if victim is None:
            return Result(outcome=Outcome.LIST_FULL)
        stored.delete(connection, [victim])
    plain = replace(new, content=content, pinned=False, protected=False, tags=(), author_id=new.author_id or hand.author_id)
    memory = insert_new(connection, plain, now)
    seq = journal.record(connection, hand.writer, Op.CREATE, before=None, after=memory, now=now)
    if victim is not None:
        journal.record(connection, hand.writer, Op.EVICT, before=victim, after=None, now=now, cause_seq=seq)
    return Result(outcome=Outcome.SAVED, memory=memory, victim=victim, seq=seq)


def update(connection: sa.Connection, hand: Hand, memory_id: int, content: str, now: datetime) -> Result:
    """`updated` (a protected row stays protected), `unchanged`, or why not; with `changed`, `present_text` is what stands there (SM-53)."""
    text = clean(content)
    found = _touchable(connection, hand, memory_id)
    if isinstance(found, Result):
        return found
    if fault := text_fault(text, hand.limits):
        return fault
    if text == found.content:
        return Result(outcome=Outcome.UNCHANGED, memory=found)
    new = replace(
        found,
        content=text,
        content_hash=content_hash(text),
        updated_at=now,
        updated_by=hand.author_id,
        private_origin=found.key.kind is not ListKind.SPACE and (found.private_origin or hand.private),
        revision=stored.new_revision(),
    )
    stored.write(connection, new)
    seq = journal.record(connection, hand.writer, Op.UPDATE, before=found, after=new, now=now)
    return Result(outcome=Outcome.UPDATED, memory=new, seq=seq)


def delete(connection: sa.Connection, hand: Hand, memory_id: int, now: datetime) -> Result:
    """`deleted` with the row as it was, or why not."""
    found = _touchable(connection, hand, memory_id)
    if isinstance(found, Result):
        return found
    stored.delete(connection, [found])
    seq = journal.record(connection, hand.writer, Op.DELETE, before=found, after=None, now=now)
    return Result(outcome=Outcome.DELETED, memory=found, seq=seq)


def _refused(connection: sa.Connection, hand: Hand) -> Result | None:
    done = [entry for entry in journal.of_writer(connection, hand.writer) if entry.op is not Op.EVICT and not entry.undone]
    return Result(outcome=Outcome.TOO_MANY_OPERATIONS) if len(done) >= hand.operations_max else None


def _touchable(connection: sa.Connection, hand: Hand, memory_id: int) -> Memory | Result:
    """The row, held, as the AI knows it; or why it may not touch it."""
    journal.hold(connection, hand.writer)
    if refused := _refused(connection, hand):
        return refused
    known = _written(journal.of_writer(connection, hand.writer)).get(memory_id) or hand.sent.get(memory_id)
    seen = stored.row(connection, memory_id) if known else None
    if seen is None:
        return Result(outcome=Outcome.UNKNOWN_ID)
    if seen.key not in hand.lists:
        return Result(outcome=Outcome.LIST_NOT_ALLOWED)
    stored.lock(connection, [seen.key])
    held = stored.row(connection, memory_id, lock=True)
    if held is None:
        return Result(outcome=Outcome.UNKNOWN_ID)
    if held.pinned:
        return Result(outcome=Outcome.PINNED)
    if held.revision != known or held.key != seen.key:
        return Result(outcome=Outcome.CHANGED, memory=held, present_text=held.content)
    return held


def _written(entries: list[Entry]) -> dict[int, str]:
    """Revisions of the rows that this attempt made or changed and that it did not delete."""
    return {entry.memory_id: entry.after_revision for entry in entries if not entry.undone}


def _standing(connection: sa.Connection, hand: Hand, key: ListKey, content: str) -> Memory | None:
    seen = {*hand.visible, *_written(journal.of_writer(connection, hand.writer))}
    same = stored.rows_where(connection, stored.in_list(key) & (memories.c.norm_hash == norm_hash(content)))
    return next((memory for memory in same if memory.id in seen), None)

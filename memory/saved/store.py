"""Saved memories as people manage them: add, edit, pin, wake, remove, each one function of one transaction (SM-1 to SM-6, SM-56, SM-60, SM-74).

Whoever calls has checked the rights. What a program may do is in `hand`. Every function locks the lists it changes, so counting, choosing,
removing and inserting are one step (SM-48).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory.saved import journal, stored
from memory.saved.rows import ListKey, ListKind, Memory, clean, content_hash, distinct, norm_hash
from memory.saved.writing import Batch, Limits, New, Outcome, Result, text_fault
from memory.saved_schema import memories, memory_decay


def add(connection: sa.Connection, new: New, now: datetime, *, limits: Limits, ageing_on: bool = True, evict: int | None = None) -> Result:
    """A person's new row. `saved`, `empty`, `too_long`, `unchanged` with the row that says the same already, or `list_full`.

    A full list evicts nothing by itself: the answer names the candidate in `victim`, and only a second call with its id as `evict` acts, if it
    still is the candidate (SM-49).
    """
    content = clean(new.content)
    if fault := text_fault(content, limits):
        return fault
    stored.lock(connection, [new.key])
    if standing := duplicate(connection, new.key, content):
        return Result(outcome=Outcome.UNCHANGED, memory=standing)
    held, most = _room(connection, new.key, new.pinned, limits)
    victim = None
    if held >= most:
        victim = candidate(connection, new.key) if held == most and ageing_on and not new.pinned else None
        if victim is None or victim.id != evict:
            return Result(outcome=Outcome.LIST_FULL, victim=victim)
        _remove(connection, victim, now)
    return Result(outcome=Outcome.SAVED, memory=insert_new(connection, replace(new, content=content), now), victim=victim)


def add_all(connection: sa.Connection, news: Sequence[New], now: datetime, *, limits: Limits) -> Batch:
    """A person's drafts, all of them or none. Never evicts (SM-49). `saved`, `list_full` with `fits`, `empty` or `too_long` with `fault`.

    A draft that says exactly what a row says already, or an earlier draft, takes no place.
    """
    drafts = [replace(new, content=clean(new.content)) for new in news]
    for at, draft in enumerate(drafts):
        if fault := text_fault(draft.content, limits):
            return Batch(outcome=fault.outcome, fault=at)
    stored.lock(connection, {draft.key for draft in drafts})
    different: dict[tuple[ListKey, str], New] = {}
    for draft in drafts:
        different.setdefault((draft.key, norm_hash(draft.content)), draft)
    standing = [duplicate(connection, draft.key, draft.content) for draft in different.values()]
    wanted = [draft for draft, old in zip(different.values(), standing, strict=True) if old is None]
    sides = Counter((draft.key, draft.pinned) for draft in wanted)
    free = {side: max(0, most - held) for side in sides for held, most in [_room(connection, *side, limits)]}
    if any(number > free[side] for side, number in sides.items()):
        return Batch(outcome=Outcome.LIST_FULL, fits=sum(min(number, free[side]) for side, number in sides.items()))
    added = tuple(insert_new(connection, draft, now) for draft in wanted)
    return Batch(outcome=Outcome.SAVED, added=added, standing=tuple(filter(None, standing)))


def change(connection: sa.Connection, memory_id: int, content: str, now: datetime, *, by: str, limits: Limits, based_on: str = "") -> Result:
    """A person's edit, pins too: the row is protected from now on, also by a save that changes nothing (SM-45), and does not wake (SM-44).

    `based_on`: the revision the person saw; another one is `changed` with the present text. Else `updated`, `unchanged`, `unknown_id`, `empty` or
    `too_long`.
    """
    text = clean(content)
    if fault := text_fault(text, limits):
        return fault
    old = _locked(connection, memory_id)
    if old is None:
        return Result(outcome=Outcome.UNKNOWN_ID)
    if based_on and based_on != old.revision:
        return Result(outcome=Outcome.CHANGED, memory=old, present_text=old.content)
    if text == old.content:
        return Result(outcome=Outcome.UNCHANGED, memory=old if old.protected else _put(connection, replace(old, protected=True)))
    new = replace(old, content=text, content_hash=content_hash(text), protected=True, updated_at=now, updated_by=by)
    return Result(outcome=Outcome.UPDATED, memory=_put(connection, new))


def remove(connection: sa.Connection, memory_id: int, now: datetime) -> Result:
    """A person's deletion, for good: no undo of a program's work brings the row back (SM-78). `deleted` or `unknown_id`."""
    old = _locked(connection, memory_id)
    if old is None:
        return Result(outcome=Outcome.UNKNOWN_ID)
    _remove(connection, old, now)
    return Result(outcome=Outcome.DELETED, memory=old)


def pin(connection: sa.Connection, memory_id: int, now: datetime, *, by: str, limits: Limits) -> Result:
    """`updated`, and the row is awake; `list_full` when no place for a pin is free; `unchanged`, `unknown_id`."""
    old = _locked(connection, memory_id)
    if old is None or old.pinned:
        return _untouched(old)
    held, most = _room(connection, old.key, True, limits)
    if held >= most:
        return Result(outcome=Outcome.LIST_FULL, memory=old)
    _start_again(connection, old, now)
    _put(connection, replace(old, pinned=True, protected=True, updated_at=now, updated_by=by))
    return Result(outcome=Outcome.UPDATED, memory=stored.row(connection, memory_id))


def unpin(connection: sa.Connection, memory_id: int, now: datetime, *, by: str, limits: Limits) -> Result:
    """`updated`: protected still, with a counter of 0 that does not tick today; `list_full` into a full list; `unchanged`, `unknown_id`."""
    old = _locked(connection, memory_id)
    if old is None or not old.pinned:
        return _untouched(old)
    held, most = _room(connection, old.key, False, limits)
    if held >= most:
        return Result(outcome=Outcome.LIST_FULL, memory=old)
    _start_again(connection, old, now)
    _put(connection, replace(old, pinned=False, updated_at=now, updated_by=by))
    return Result(outcome=Outcome.UPDATED, memory=stored.row(connection, memory_id))


def wake(connection: sa.Connection, memory_id: int, now: datetime) -> Result:
    """The person's button: counter 0, active; the text is as young as before (SM-5, SM-44). `updated`, `unchanged` when awake, `unknown_id`."""
    old = _locked(connection, memory_id)
    if old is None or not old.dormant:
        return _untouched(old)
    _start_again(connection, old, now)
    return Result(outcome=Outcome.UPDATED, memory=stored.row(connection, memory_id))


def set_tags(connection: sa.Connection, memory_id: int, tags: Sequence[str]) -> Result:
    """Words of which one must occur in the talk; none = always (SM-18). The caller has checked how many."""
    return _set(connection, memory_id, tags=distinct(tags))


def set_channels(connection: sa.Connection, memory_id: int, channel_ids: Sequence[str]) -> Result:
    """The only channels where the row counts; none = everywhere (SM-17)."""
    return _set(connection, memory_id, channel_ids=distinct(channel_ids))


def set_private(connection: sa.Connection, memory_id: int, private: bool) -> Result:
    """Whether the row stays out of shared places (SM-15). A space's row has no such mark: `unchanged`."""
    return _set(connection, memory_id, private_origin=private)


def duplicate(connection: sa.Connection, key: ListKey, content: str) -> Memory | None:
    """The oldest row of the list that says exactly the same but for case, width and blanks (SM-4)."""
    found = stored.rows_where(connection, stored.in_list(key) & (memories.c.norm_hash == norm_hash(content)))
    return found[0] if found else None


def candidate(connection: sa.Connection, key: ListKey) -> Memory | None:
    """The row that a full list would forget first, held until this transaction ends, so that no search wakes it meanwhile (SM-45, SM-46).

    Dormant, unpinned, unprotected; never matched before matched, then the longest ago. None in GLOBAL, or when none may go.
    """
    if key.kind is ListKind.GLOBAL:
        return None
    may_go = stored.in_list(key) & ~memories.c.pinned & ~memories.c.protected & memory_decay.c.dormant
    matched = memory_decay.c.last_matched_at
    order = (matched.is_not(None), matched, sa.case((matched.is_(None), memories.c.created_at)), memories.c.id)
    statement = sa.select(memories.c.id).join(memory_decay, memory_decay.c.memory_id == memories.c.id).where(may_go).order_by(*order)
    for memory_id in connection.execute(statement.limit(1).with_for_update()).scalars():
        return stored.row(connection, memory_id)
    return None


def insert_new(connection: sa.Connection, new: New, now: datetime) -> Memory:
    """The row of `new`, whose text is clean and has a place: active, counter 0, no tick today (SM-38). The caller holds the list."""
    return stored.insert(
        connection,
        Memory(
            id=0,
            key=new.key,
            content=new.content,
            content_hash=content_hash(new.content),
            pinned=new.pinned,
            protected=new.protected or new.pinned,
            origin=new.origin,
            author_kind=new.author_kind,
            author_id=new.author_id,
            created_at=now,
            updated_at=now,
            updated_by=new.author_id,
            revision=stored.new_revision(),
            tags=new.tags,
            channel_ids=new.channel_ids,
            private_origin=new.private_origin and new.key.kind is not ListKind.SPACE,
            source=new.source,
            last_tick_day=now.date(),
        ),
    )


def _locked(connection: sa.Connection, memory_id: int) -> Memory | None:
    """The row under the lock of its list. A forced move may have changed its list while we waited."""
    seen = stored.row(connection, memory_id)
    while seen is not None:
        stored.lock(connection, [seen.key])
        held = stored.row(connection, memory_id, lock=True)
        if held is None or held.key == seen.key:
            return held
        seen = held
    return None


def _untouched(old: Memory | None) -> Result:
    return Result(outcome=Outcome.UNKNOWN_ID) if old is None else Result(outcome=Outcome.UNCHANGED, memory=old)


def _room(connection: sa.Connection, key: ListKey, pinned: bool, limits: Limits) -> tuple[int, int]:
    """How many rows this side of the list has, and how many it may have."""
    return stored.count(connection, key, pinned=pinned), limits.pinned if pinned else limits.unpinned


def _put(connection: sa.Connection, new: Memory) -> Memory:
    new = replace(new, revision=stored.new_revision())
    stored.write(connection, new)
    return new


def _set(connection: sa.Connection, memory_id: int, **values: Any) -> Result:
    old = _locked(connection, memory_id)
    if old is None:
        return _untouched(old)
    new = replace(old, **values)
    if new.key.kind is ListKind.SPACE:
        new = replace(new, private_origin=False)
    return _untouched(old) if new == old else Result(outcome=Outcome.UPDATED, memory=_put(connection, new))


def _start_again(connection: sa.Connection, memory: Memory, now: datetime) -> None:
    """Awake, unused for no day, and today counts as ticked; a clock that went back moves no day back."""
    stored.set_decay(connection, memory.id, unused_days=0, dormant=False, last_tick_day=max(memory.last_tick_day, now.date()))


def _remove(connection: sa.Connection, memory: Memory, now: datetime) -> None:
    stored.delete(connection, [memory])
    journal.void_row(connection, memory.id, now)

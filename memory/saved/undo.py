"""Taking back what a program did: the last attempt before a new one, a rewind, one operation from the panel (SM-65 to SM-73).

Each function is one transaction's work and happens once: what was taken back is marked, and a second call finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from memory.saved import journal, stored
from memory.saved.journal import Entry, Op, Writer
from memory.saved.rows import Memory
from memory.saved.undo_plan import plan
from memory.saved.writing import Limits
from memory.schema import messages, turns

JOURNAL_DAYS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """`removed` rows the AI had made; `rewritten` ones have their old text; `restored` ones are back. `skipped`: ids that stay as they are (SM-66);
    `forgotten`: ids of evicted rows that found no place (SM-67)."""

    removed: tuple[Memory, ...] = ()
    rewritten: tuple[Memory, ...] = ()
    restored: tuple[Memory, ...] = ()
    skipped: tuple[int, ...] = ()
    forgotten: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        """Whether any row changed."""
        return bool(self.removed or self.rewritten or self.restored)

    def __add__(self, other: Undone) -> Undone:
        return Undone(
            removed=self.removed + other.removed,
            rewritten=self.rewritten + other.rewritten,
            restored=self.restored + other.restored,
            skipped=self.skipped + other.skipped,
            forgotten=self.forgotten + other.forgotten,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewound:
    """`stays`: turns so old that their journal has ended; if they wrote anything, memory stays as it is (SM-73)."""

    undone: Undone
    stays: tuple[str, ...] = ()


def undo_attempt(connection: sa.Connection, turn_id: str, attempt: int, now: datetime, *, limits: Limits) -> Undone:
    """Before a regenerate, after a turn without a stored reply, and before a message is answered again after a crash (SM-65, SM-71)."""
    return _undo(connection, [Writer(actor="tool", turn_id=turn_id, attempt=attempt)], now, limits)


def undo_operation(connection: sa.Connection, entry_id: int, now: datetime, *, limits: Limits) -> Undone | None:
    """One operation, from the panel; of a save, the row that it evicted returns with it (SM-72). None: its entry has ended, is void or undone."""
    seen = journal.entry(connection, entry_id)
    if seen is None:
        return None
    journal.hold(connection, seen.writer)
    together = [
        each
        for each in journal.of_writer(connection, seen.writer)
        if _counts(each) and (each.id == entry_id or (each.op is Op.EVICT and each.cause_seq == seen.seq))
    ]
    if not any(each.id == entry_id for each in together):
        return None
    stored.lock(connection, {each.key for each in together})
    return _apply(connection, together, now, limits)


def rewind(
    connection: sa.Connection,
    conversation_id: str,
    turn_ids: Sequence[str],
    removed_messages: Collection[str],
    now: datetime,
    *,
    limits: Limits,
    journal_days: int = JOURNAL_DAYS,
) -> Rewound:
    """Messages left the end of a chat: the work of their turns goes, the newest first.

    Runs of deep memory go too whose source messages are all gone now (SM-69): `removed_messages`, with those that were hidden or deleted before.
    """
    of_deep = journal.deep_of_chat(connection, conversation_id)
    gone = {writer.name for writer in _writers(of_deep) if _all_gone(connection, writer, removed_messages)}
    of_turns = [entry for turn_id in turn_ids for entry in journal.of_turn(connection, turn_id)]
    works = [*of_turns, *(entry for entry in of_deep if entry.writer.name in gone)]
    writers = _writers(sorted(works, key=lambda entry: entry.id, reverse=True))
    oldest = now - timedelta(days=journal_days)
    started = sa.select(turns.c.id).where(turns.c.id.in_(list(turn_ids)), turns.c.started_at < oldest)
    stays = set(connection.execute(started).scalars())
    return Rewound(undone=_undo(connection, writers, now, limits), stays=tuple(turn for turn in turn_ids if turn in stays))


def _undo(connection: sa.Connection, writers: Sequence[Writer], now: datetime, limits: Limits) -> Undone:
    """In the order given; every lock is taken before the first row changes."""
    journal.hold(connection, *writers)
    works = [[each for each in journal.of_writer(connection, writer) if _counts(each)] for writer in writers]
    stored.lock(connection, {each.key for work in works for each in work})
    undone = Undone()
    for work in works:
        undone += _apply(connection, work, now, limits)
    return undone


def _apply(connection: sa.Connection, entries: Sequence[Entry], now: datetime, limits: Limits) -> Undone:
    rows = stored.rows_by_id(connection, {each.memory_id for each in entries})
    free = {key: limits.unpinned - stored.count(connection, key, pinned=False) for key in {each.key for each in entries}}
    what = plan(entries, rows, free)
    stored.delete(connection, what.remove)
    for memory in what.rewrite:
        stored.write(connection, memory)
    for memory in what.restore:
        stored.insert(connection, memory)
    journal.mark_undone(connection, entries, now)
    return Undone(removed=what.remove, rewritten=what.rewrite, restored=what.restore, skipped=what.skipped, forgotten=what.forgotten)


def _counts(entry: Entry) -> bool:
    return not entry.undone and not entry.void


def _writers(entries: Iterable[Entry]) -> list[Writer]:
    """Each once, in the order of the entries."""
    return list({each.writer.name: each.writer for each in entries}.values())


def _all_gone(connection: sa.Connection, writer: Writer, removed: Collection[str]) -> bool:
    left = set(writer.source_messages) - set(removed)
    if not writer.source_messages or not left:
        return bool(writer.source_messages)
    live = sa.select(messages.c.id).where(messages.c.id.in_(left), messages.c.state == "live").limit(1)
    return connection.execute(live).first() is None

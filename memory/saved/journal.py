"""What programs did to saved memories: one entry for each operation, written in its transaction, with the row before and after (SM-64, section 6.3).

An entry ends with its chat or after some days (SM-73). It is void once a person deleted the row or cleared the list: its texts are gone then (SM-78).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from memory.saved.rows import ListKey, ListKind, Memory
from memory.saved.stored import as_json, from_json, lock_writers
from memory.saved_schema import memory_journal


class Op(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    EVICT = "evict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Whose operations belong together: an attempt of a turn (`tool`) or a run of deep memory (`deep`) in a chat, that read `source_messages`."""

    actor: str
    turn_id: str = ""
    attempt: int = 0
    run_id: str = ""
    conversation_id: str = ""
    source_messages: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.turn_id}/{self.attempt}/{self.run_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """`before` and `after` are None where there was no row, and in a void entry. `cause_seq`: of an eviction, the save that needed the place."""

    id: int
    turn_id: str
    attempt: int
    run_id: str
    seq: int
    actor: str
    op: Op
    memory_id: int
    key: ListKey
    cause_seq: int | None
    before: Memory | None
    after: Memory | None
    after_revision: str
    source_messages: tuple[str, ...]
    conversation_id: str
    created_at: datetime
    undone: bool
    void: bool

    @property
    def writer(self) -> Writer:
        return Writer(
            actor=self.actor,
            turn_id=self.turn_id,
            attempt=self.attempt,
            run_id=self.run_id,
            conversation_id=self.conversation_id,
            source_messages=self.source_messages,
        )


_j = memory_journal.c
_LIVE = _j.undone_at.is_(None) & _j.void_at.is_(None)
_ENTRIES = sa.select(memory_journal).order_by(_j.id)
_BY_ID = _ENTRIES.where(_j.id == sa.bindparam("id"))
_OF_WRITER = _ENTRIES.where(_j.turn_id == sa.bindparam("turn_id"), _j.attempt == sa.bindparam("attempt"), _j.run_id == sa.bindparam("run_id"))
_NOW = sa.bindparam("now", type_=_j.created_at.type)
_ERASED = {"before": sa.null(), "after": sa.null(), "void_at": _NOW}
_VOID_ROW = sa.update(memory_journal).where(_j.memory_id == sa.bindparam("of"), _j.void_at.is_(None)).values(_ERASED)
_VOID_LIST = sa.update(memory_journal).where(_j.list_key == sa.bindparam("of"), _j.void_at.is_(None)).values(_ERASED)
_VOID = sa.update(memory_journal).where(_j.id.in_(sa.bindparam("ids", expanding=True))).values(_ERASED)
_UNDONE = sa.update(memory_journal).where(_j.id.in_(sa.bindparam("ids", expanding=True))).values(undone_at=_NOW)
_SWEEP = sa.delete(memory_journal).where(_j.created_at < sa.bindparam("before_time", type_=_j.created_at.type))


def record(
    connection: sa.Connection,
    writer: Writer,
    op: Op,
    *,
    before: Memory | None,
    after: Memory | None,
    now: datetime,
    cause_seq: int | None = None,
) -> int:
    """Returns the place of the operation in its attempt or run, from 1. The caller holds the writer (`hold`)."""
    row = after or before
    assert row is not None
    seq = 1 + max((entry.seq for entry in of_writer(connection, writer)), default=0)
    values = {
        "turn_id": writer.turn_id,
        "attempt": writer.attempt,
        "run_id": writer.run_id,
        "conversation_id": writer.conversation_id,
        "actor": writer.actor,
        "source_messages": list(writer.source_messages) or None,
        "seq": seq,
        "op": op.value,
        "memory_id": row.id,
        "list_key": str(row.key),
        "cause_seq": cause_seq,
        "before": None if before is None else as_json(before),
        "after": None if after is None else as_json(after),
        "after_revision": "" if after is None else after.revision,
        "created_at": now,
    }
    connection.execute(sa.insert(memory_journal), values)
    return seq


def of_writer(connection: sa.Connection, writer: Writer) -> list[Entry]:
    """Everything an attempt or run did, in order, undone and void entries too."""
    values = {"turn_id": writer.turn_id, "attempt": writer.attempt, "run_id": writer.run_id}
    return [_entry(row) for row in connection.execute(_OF_WRITER, values)]


def of_turn(connection: sa.Connection, turn_id: str) -> list[Entry]:
    """Everything all attempts of a turn did, in order."""
    return [_entry(row) for row in connection.execute(_ENTRIES.where(_j.turn_id == turn_id))] if turn_id else []


def of_lists(connection: sa.Connection, keys: Collection[ListKey], *, limit: int) -> list[Entry]:
    """The latest operations on these lists that can still be undone, newest first, for the panel (SM-72)."""
    names = [str(key) for key in keys]
    newest = sa.select(memory_journal).where(_j.list_key.in_(names), _LIVE).order_by(_j.id.desc()).limit(limit)
    return [_entry(row) for row in connection.execute(newest)] if names else []


def deep_of_chat(connection: sa.Connection, conversation_id: str) -> list[Entry]:
    """What deep memory did from this chat and can still be undone, in order."""
    mine = (_j.conversation_id == conversation_id) & (_j.actor == "deep") & _LIVE
    return [_entry(row) for row in connection.execute(_ENTRIES.where(mine))]


def entry(connection: sa.Connection, entry_id: int) -> Entry | None:
    row = connection.execute(_BY_ID, {"id": entry_id}).one_or_none()
    return None if row is None else _entry(row)


def mark_undone(connection: sa.Connection, entries: Collection[Entry], now: datetime) -> None:
    """These happen no second time (SM-68)."""
    if entries:
        connection.execute(_UNDONE, {"ids": [each.id for each in entries], "now": now})


def void_row(connection: sa.Connection, memory_id: int, now: datetime) -> None:
    """A person deleted the row: the copies of its texts are erased, and no undo brings it back (SM-78)."""
    connection.execute(_VOID_ROW, {"of": memory_id, "now": now})


def void_list(connection: sa.Connection, key: ListKey, now: datetime) -> None:
    """A person cleared the list: likewise for every entry so far."""
    connection.execute(_VOID_LIST, {"of": str(key), "now": now})


def void_texts(connection: sa.Connection, keys: Collection[ListKey], holds: Callable[[str], bool], now: datetime) -> int:
    """Likewise for entries of these lists whose text before or after is to be forgotten (WD-92); how many."""
    names = [str(key) for key in keys]
    if not names:
        return 0
    rows = connection.execute(_ENTRIES.where(_j.list_key.in_(names), _j.void_at.is_(None))).all()
    ids = [row.id for row in rows if any(copy is not None and holds(copy["content"]) for copy in (row.before, row.after))]
    if ids:
        connection.execute(_VOID, {"ids": ids, "now": now})
    return len(ids)


def lists_of(connection: sa.Connection, owner: str) -> set[ListKey]:
    """The lists of a person or space that entries name."""
    names = [f"{ListKind.GLOBAL}:{owner}"]
    starts = [_j.list_key.startswith(f"{kind}:{owner}:", autoescape=True) for kind in (ListKind.CHARACTER, ListKind.SPACE)]
    found = connection.execute(sa.select(_j.list_key).where(sa.or_(_j.list_key.in_(names), *starts)).distinct()).scalars()
    return {ListKey.parse(name) for name in found}


def rename_list(connection: sa.Connection, old: ListKey, new: ListKey, *, only: Collection[int] | None = None) -> None:
    """A list's rows moved, or `only` those of these ids: what can be undone goes on in the new one. The copies of the rows name it too."""
    mine = _j.list_key == str(old)
    for row in connection.execute(_ENTRIES.where(mine if only is None else mine & _j.memory_id.in_(list(only)))).all():
        copies = {name: None if copy is None else copy | {"key": str(new)} for name, copy in (("before", row.before), ("after", row.after))}
        connection.execute(sa.update(memory_journal).where(_j.id == row.id).values(list_key=str(new), **copies))


def delete_lists(connection: sa.Connection, keys: Collection[ListKey]) -> None:
    """The owner of these lists is removed (SM-90)."""
    if names := [str(key) for key in keys]:
        connection.execute(sa.delete(memory_journal).where(_j.list_key.in_(names)))


def sweep(connection: sa.Connection, before: datetime) -> int:
    """Entries older than `journal_days` end (SM-73); how many."""
    return connection.execute(_SWEEP, {"before_time": before}).rowcount


def hold(connection: sa.Connection, *writers: Writer) -> None:
    """Only one transaction writes or undoes operations of these attempts and runs at a time."""
    lock_writers(connection, [writer.name for writer in writers])


def _entry(row: sa.Row[Any]) -> Entry:
    return Entry(
        id=row.id,
        turn_id=row.turn_id,
        attempt=row.attempt,
        run_id=row.run_id,
        seq=row.seq,
        actor=row.actor,
        op=Op(row.op),
        memory_id=row.memory_id,
        key=ListKey.parse(row.list_key),
        cause_seq=row.cause_seq,
        before=None if row.before is None else from_json(row.before),
        after=None if row.after is None else from_json(row.after),
        after_revision=row.after_revision,
        source_messages=tuple(row.source_messages or ()),
        conversation_id=row.conversation_id,
        created_at=row.created_at,
        undone=row.undone_at is not None,
        void=row.void_at is not None,
    )

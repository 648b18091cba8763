"""How saved memories lie in the database: a row and its ageing, read and written as one value, and the lock of a list.

Plain functions on a `Connection` without any rule of their own; the rules are in `store` (people) and `hand` (programs).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import sqlalchemy as sa

from memory import vectors
from memory.ids import opaque
from memory.saved.rows import ListKey, ListKind, Memory, content_hash, norm_hash
from memory.saved_schema import memories, memory_decay

_BOTH = sa.join(memories, memory_decay, memory_decay.c.memory_id == memories.c.id)
_COLUMNS = (
    *memories.c,
    memory_decay.c.unused_days,
    memory_decay.c.dormant,
    memory_decay.c.last_tick_day,
    memory_decay.c.last_matched_at,
)
_ROWS = sa.select(*_COLUMNS).select_from(_BOTH)
_BY_ID = _ROWS.where(memories.c.id == sa.bindparam("id"))
_BY_IDS = _ROWS.where(memories.c.id.in_(sa.bindparam("ids", expanding=True))).order_by(memories.c.id)
_ADVISORY = sa.text("select pg_advisory_xact_lock(:key)")
_INSERT = sa.insert(memories).returning(memories.c.id)
# In the order in which a search takes them, so that neither waits for the other for ever.
_HOLD = (
    sa.select(memory_decay.c.memory_id)
    .where(memory_decay.c.memory_id.in_(sa.bindparam("ids", expanding=True, type_=sa.BigInteger)))
    .order_by(memory_decay.c.memory_id)
    .with_for_update()
)
_DELETE = sa.delete(memories).where(memories.c.id.in_(sa.bindparam("ids", expanding=True)))


def new_revision() -> str:
    return opaque("r")


def in_list(key: ListKey) -> sa.ColumnElement[bool]:
    """The condition of a row to stand in this list."""
    owner = memories.c.space_id if key.kind is ListKind.SPACE else memories.c.person_id
    character = memories.c.character_id.is_(None) if key.kind is ListKind.GLOBAL else memories.c.character_id == key.character
    return (memories.c.list_kind == key.kind.value) & (owner == key.owner) & character


def rows_of(connection: sa.Connection, keys: Sequence[ListKey]) -> list[Memory]:
    """Every row of these lists by id: dormant, hidden and archived ones too. No list, no rows."""
    if not keys:
        return []
    here = sa.or_(*(in_list(key) for key in keys))
    return [_memory(row) for row in connection.execute(_ROWS.where(here).order_by(memories.c.id))]


def row(connection: sa.Connection, memory_id: int, *, lock: bool = False) -> Memory | None:
    """One row, or None. `lock`: nobody else changes it or its ageing before this transaction ends."""
    statement = _BY_ID.with_for_update() if lock else _BY_ID
    found = connection.execute(statement, {"id": memory_id}).one_or_none()
    return None if found is None else _memory(found)


def rows_by_id(connection: sa.Connection, ids: Collection[int]) -> dict[int, Memory]:
    """Those of `ids` that exist."""
    return {found.id: _memory(found) for found in connection.execute(_BY_IDS, {"ids": list(ids)})} if ids else {}


def rows_where(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> list[Memory]:
    """The rows that a condition over `memories` or `memory_decay` chooses, by id."""
    return [_memory(found) for found in connection.execute(_ROWS.where(condition).order_by(memories.c.id))]


def lock(connection: sa.Connection, keys: Iterable[ListKey]) -> None:
    """Nobody else changes these lists before this transaction ends (SM-48). Ask for all of a transaction's lists at once: the order is fixed here,
    so that two who want the same never wait for each other. SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        for number in sorted({_number(key) for key in keys}):
            connection.execute(_ADVISORY, {"key": number})


def lock_writers(connection: sa.Connection, names: Iterable[str]) -> None:
    """The attempts or runs of these names write and undo one operation at a time. Ask before any list, and once."""
    if connection.dialect.name == "postgresql":
        for number in sorted({_number(f"writer {name}") for name in names}):
            connection.execute(_ADVISORY, {"key": number})


def _number(key: ListKey | str) -> int:
    return int.from_bytes(hashlib.sha256(f"memories {key}".encode()).digest()[:8], "big", signed=True)


def count(connection: sa.Connection, key: ListKey, *, pinned: bool) -> int:
    """Rows of one side of a list; dormant, hidden and archived ones count (SM-2)."""
    statement = sa.select(sa.func.count()).select_from(memories).where(in_list(key), memories.c.pinned == pinned)
    return connection.execute(statement).scalar_one()


def insert(connection: sa.Connection, memory: Memory) -> Memory:
    """A new row; `memory.id` 0 asks for a new id, any other is given again (an undone deletion). Returns it with its id."""
    values = _values(memory) | {"archived_at": memory.updated_at if memory.archived else None}
    if memory.id:
        values["id"] = memory.id
    memory_id = connection.execute(_INSERT, values).scalar_one()
    decay = {
        "unused_days": memory.unused_days,
        "dormant": memory.dormant,
        "last_tick_day": memory.last_tick_day,
        "last_matched_at": memory.last_matched_at,
    }
    connection.execute(sa.insert(memory_decay), {"memory_id": memory_id, **decay})
    return replace(memory, id=memory_id)


def write(connection: sa.Connection, memory: Memory) -> None:
    """The row becomes this value, its ageing excepted (SM-5). Vectors that nothing needs any more go."""
    old = connection.execute(sa.select(memories.c.content_hash).where(memories.c.id == memory.id)).scalar()
    connection.execute(sa.update(memories).where(memories.c.id == memory.id).values(**_values(memory)))
    if old is not None and old != memory.content_hash:
        vectors.drop_orphans(connection, [old])


def set_decay(connection: sa.Connection, memory_id: int, **values: Any) -> None:
    connection.execute(sa.update(memory_decay).where(memory_decay.c.memory_id == memory_id).values(**values))


def delete(connection: sa.Connection, gone: Collection[Memory]) -> None:
    """Rows, their ageing, and vectors that nothing needs any more."""
    if gone:
        ids = [each.id for each in gone]
        connection.execute(_HOLD, {"ids": ids})
        connection.execute(_DELETE, {"ids": ids})
        vectors.drop_orphans(connection, {each.content_hash for each in gone})


# -- as JSON: the journal's copy of a row ------------------------------------------------------------------------------

_TIMES = ("created_at", "updated_at", "last_matched_at")


def as_json(memory: Memory) -> dict[str, Any]:
    """A whole row with its ageing; `from_json` is its reverse."""
    values = {name: getattr(memory, name) for name in Memory.__dataclass_fields__}
    values |= {name: each.isoformat() for name in _TIMES if (each := values[name]) is not None}
    return values | {
        "key": str(memory.key),
        "tags": list(memory.tags),
        "channel_ids": list(memory.channel_ids),
        "source": None if memory.source is None else dict(memory.source),
        "last_tick_day": memory.last_tick_day.isoformat(),
    }


def from_json(value: Mapping[str, Any]) -> Memory:
    times: dict[str, Any] = {name: datetime.fromisoformat(value[name]) for name in _TIMES if value[name] is not None}
    read: dict[str, Any] = {
        "key": ListKey.parse(value["key"]),
        "tags": tuple(value["tags"]),
        "channel_ids": tuple(value["channel_ids"]),
        "last_tick_day": date.fromisoformat(value["last_tick_day"]),
    }
    return Memory(**{**value, **times, **read})


def _memory(found: sa.Row[Any]) -> Memory:
    space = found.list_kind == ListKind.SPACE
    return Memory(
        id=found.id,
        key=ListKey(ListKind(found.list_kind), found.space_id if space else found.person_id, found.character_id or ""),
        content=found.content,
        content_hash=found.content_hash,
        pinned=found.pinned,
        protected=found.protected,
        origin=found.origin,
        author_kind=found.author_kind,
        author_id=found.author_id,
        created_at=found.created_at,
        updated_at=found.updated_at,
        updated_by=found.updated_by,
        revision=found.revision,
        tags=tuple(found.tags or ()),
        channel_ids=tuple(found.channel_ids or ()),
        private_origin=found.private_origin,
        origin_character=found.origin_character,
        archived=found.archived_at is not None,
        source=found.source,
        unused_days=found.unused_days,
        dormant=found.dormant,
        last_tick_day=found.last_tick_day,
        last_matched_at=found.last_matched_at,
    )


def _values(memory: Memory) -> dict[str, Any]:
    space = memory.key.kind is ListKind.SPACE
    return {
        "list_kind": memory.key.kind.value,
        "person_id": None if space else memory.key.owner,
        "space_id": memory.key.owner if space else None,
        "character_id": memory.key.character or None,
        "content": memory.content,
        "content_hash": content_hash(memory.content),
        "norm_hash": norm_hash(memory.content),
        "pinned": memory.pinned,
        "protected": memory.protected,
        "origin": memory.origin,
        "author_kind": memory.author_kind,
        "author_id": memory.author_id,
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
        "updated_by": memory.updated_by,
        "tags": list(memory.tags) or None,
        "channel_ids": list(memory.channel_ids) or None,
        "private_origin": memory.private_origin,
        "origin_character": memory.origin_character,
        "source": None if memory.source is None else dict(memory.source),
        "revision": memory.revision,
    }

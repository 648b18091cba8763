"""Which collection of the vector index answers, and which passages it has acknowledged: the pointer and the ledger (WD-123, WD-124).

Plain functions on a `Connection`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from memory.areas import IndexArea
from memory.chroma_guard import collection_name
from memory.chunk_rows import vector_key
from memory.index_kinds import IndexKind
from memory.index_schema import collections, vectors
from memory.ports import Vector
from memory.vectors import unpacked


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A passage with its vector as the embedder made it, to be put into a collection."""

    key: str
    area: IndexArea
    chunk_id: int
    position: int
    vector: Vector


def in_state(connection: sa.Connection, kind: IndexKind, fingerprint: str, state: str) -> str:
    """The newest collection of this embedder that is `serving` or `filling`; empty for none."""
    return connection.execute(_statements(kind).stated, {"the_fingerprint": fingerprint, "the_state": state}).scalar() or ""


def begin(connection: sa.Connection, kind: IndexKind, fingerprint: str, dimension: int, now: datetime) -> str:
    """A new collection to be filled; its name."""
    generation = connection.execute(_statements(kind).last).scalar_one() + 1
    name = collection_name(kind.name, fingerprint, dimension, generation)
    values = {
        "name": name, "kind": kind.name, "fingerprint": fingerprint, "dimension": dimension, "generation": generation, "state": "filling",
        "made_at": now,
    }  # fmt: skip
    connection.execute(sa.insert(collections), values)
    return name


def serve(connection: sa.Connection, kind: IndexKind, name: str, now: datetime) -> None:
    """Switch the pointer: this one answers, all others are retired (WD-124)."""
    connection.execute(_statements(kind).retire_others, {"the_name": name, "now": now})
    connection.execute(_statements(kind).serve, {"the_name": name})


def lose(connection: sa.Connection, kind: IndexKind, name: str, now: datetime) -> None:
    """It is damaged or gone: it answers no more, and nothing counts as acknowledged by it."""
    connection.execute(_statements(kind).retire_one, {"the_name": name, "now": now})
    connection.execute(_statements(kind).disown, {"the_name": name})


def retired(connection: sa.Connection, kind: IndexKind, before: datetime) -> list[str]:
    return list(connection.execute(_statements(kind).retired, {"before": before}).scalars())


def forget(connection: sa.Connection, name: str) -> None:
    connection.execute(_FORGET, {"the_name": name})


def held(connection: sa.Connection, kind: IndexKind, name: str) -> int:
    """How many passages the collection has acknowledged."""
    return connection.execute(_statements(kind).held, {"the_name": name}).scalar_one()


def held_keys(connection: sa.Connection, kind: IndexKind, name: str) -> set[str]:
    return {vector_key(row.key, row.position) for row in connection.execute(_statements(kind).keys, {"the_name": name})}


def pending(connection: sa.Connection, kind: IndexKind, name: str, fingerprint: str, most: int, *, above: int = 0) -> list[Pending]:
    """Passages that have a vector and that the collection has not acknowledged, of areas with more than `above` passages."""
    ask, values = _statements(kind), {"the_name": name, "the_fingerprint": fingerprint, "most": most}
    if not above:
        return _rows(connection.execute(ask.pending, values).all())
    large = list(connection.execute(ask.large, {"above": above}).scalars())
    return _rows(connection.execute(ask.pending_of_large, {**values, "large": large}).all()) if large else []


def sample(connection: sa.Connection, kind: IndexKind, name: str, fingerprint: str, most: int) -> list[Pending]:
    """Random acknowledged passages (WD-121)."""
    return _rows(connection.execute(_statements(kind).sample, {"the_name": name, "the_fingerprint": fingerprint, "most": most}).all())


def acknowledge(connection: sa.Connection, kind: IndexKind, name: str, done: Collection[Pending]) -> None:
    if done:
        connection.execute(
            _statements(kind).acknowledge, [{"the_chunk": each.chunk_id, "the_position": each.position, "new_name": name} for each in done]
        )


def _rows(rows: Sequence[Any]) -> list[Pending]:
    return [
        Pending(
            key=vector_key(row.key, row.position), area=IndexArea(row.area), chunk_id=row.chunk_id, position=row.position, vector=unpacked(row.vector)
        )
        for row in rows
    ]


_N = collections.c
_NAME = sa.bindparam("the_name", type_=sa.Text)
_FORGET = sa.delete(collections).where(_N.name == _NAME)


@dataclass(frozen=True, slots=True)
class _Statements:
    stated: sa.Select[str]
    last: sa.Select[int]
    serve: sa.Update
    retire_one: sa.Update
    retire_others: sa.Update
    retired: sa.Select[str]
    disown: sa.Update
    held: sa.Select[int]
    keys: sa.Select[Any, Any]
    pending: sa.Select[str, Any, Any, Any, Any]
    large: sa.Select[str]
    pending_of_large: sa.Select[str, Any, Any, Any, Any]
    sample: sa.Select[str, Any, Any, Any, Any]
    acknowledge: sa.Update


@cache
def _statements(kind: IndexKind) -> _Statements:
    chunk, passage = kind.chunks.c, kind.passages.c
    fingerprint, most = sa.bindparam("the_fingerprint", type_=sa.Text), sa.bindparam("most", type_=sa.Integer)
    of_kind, held = _N.kind == kind.name, passage.collection == _NAME
    retire = sa.update(collections).values(state="retired", retired_at=sa.bindparam("now", type_=_N.made_at.type))
    mine = (vectors.c.text_hash == passage.text_hash) & (vectors.c.fingerprint == fingerprint)
    # Not a join with the vectors: SQLite would go through all of them to find the last few.
    its_vector = sa.select(vectors.c.vector).where(mine).scalar_subquery().label("vector")
    with_vector = (
        sa.select(kind.key.label("key"), chunk.area, passage.chunk_id, passage.position, its_vector)
        .join_from(kind.passages, kind.chunks, chunk.id == passage.chunk_id)
        .where(sa.exists().where(mine))
    )
    return _Statements(
        stated=sa.select(_N.name)
        .where(of_kind, _N.fingerprint == fingerprint, _N.state == sa.bindparam("the_state", type_=sa.Text))
        .order_by(_N.generation.desc()),
        last=sa.select(sa.func.coalesce(sa.func.max(_N.generation), 0)).where(of_kind),
        serve=sa.update(collections).where(_N.name == _NAME).values(state="serving"),
        retire_one=retire.where(_N.name == _NAME),
        retire_others=retire.where(of_kind, _N.name != _NAME, _N.state != "retired"),
        retired=sa.select(_N.name).where(of_kind, _N.state == "retired", _N.retired_at < sa.bindparam("before", type_=_N.made_at.type)),
        disown=sa.update(kind.passages).where(held).values(collection=""),
        held=sa.select(sa.func.count()).select_from(kind.passages).where(held),
        keys=sa.select(kind.key.label("key"), passage.position).join_from(kind.passages, kind.chunks, chunk.id == passage.chunk_id).where(held),
        pending=with_vector.where((passage.collection < _NAME) | (passage.collection > _NAME), kind.live).limit(most),  # two ranges of the index
        large=sa.select(chunk.area)
        .join_from(kind.chunks, kind.passages, chunk.id == passage.chunk_id)
        .where(kind.live)
        .group_by(chunk.area)
        .having(sa.func.count() > sa.bindparam("above", type_=sa.Integer)),
        # Not by ranges of the index: all passages of all small areas stand in them, and stay there.
        pending_of_large=with_vector.where(
            passage.collection != _NAME, kind.live, chunk.area.in_(sa.bindparam("large", type_=sa.Text, expanding=True))
        ).limit(most),
        sample=with_vector.where(held).order_by(sa.func.random()).limit(most),
        acknowledge=sa.update(kind.passages)
        .where(
            passage.chunk_id == sa.bindparam("the_chunk", type_=sa.BigInteger),
            passage.position == sa.bindparam("the_position", type_=sa.BigInteger),
        )
        .values(collection=sa.bindparam("new_name", type_=sa.Text)),
    )

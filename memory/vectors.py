"""Vectors of passages in the database: float16 bytes by embedder and text, so that a rebuild pays for nothing twice (WD-124).

Plain functions on a `Connection`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from memory.index_kinds import FILES, MESSAGES, IndexKind
from memory.index_schema import vectors
from memory.ports import Vector
from memory.saved_schema import memories
from memory.upserts import insert_or_keep

_PUT = insert_or_keep(vectors, ["fingerprint", "text_hash"])
_HASHES = sa.bindparam("hashes", type_=sa.Text, expanding=True)
_ORPHANS = sa.delete(vectors).where(
    vectors.c.text_hash.in_(_HASHES),
    *(
        ~sa.exists().where(column == vectors.c.text_hash)
        for column in (FILES.passages.c.text_hash, MESSAGES.passages.c.text_hash, memories.c.content_hash)
    ),
)


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A text that has no vector yet."""

    text_hash: str
    text: str


class Placed(NamedTuple):
    """A passage and its vector, float16 bytes; None while it has none."""

    chunk_id: int
    position: int
    data: bytes | None


def packed(vector: Vector) -> bytes:
    return vector.astype(np.float16).tobytes()


def unpacked(data: bytes) -> Vector:
    return np.frombuffer(data, dtype=np.float16).astype(np.float32)


def is_usable(vector: Vector) -> bool:
    """No NaN, no infinity, not all zeros (WD-126): these would spoil an index or match everything."""
    return bool(np.isfinite(vector).all()) and float(np.abs(vector).max(initial=0.0)) > 1e-6


def put(connection: sa.Connection, fingerprint: str, found: Mapping[str, Vector]) -> None:
    """Keep usable vectors by text hash; others are left out."""
    rows = [{"fingerprint": fingerprint, "text_hash": key, "vector": packed(each)} for key, each in found.items() if is_usable(each)]
    if rows:
        connection.execute(_PUT[connection.dialect.name], rows)


def missing(connection: sa.Connection, kind: IndexKind, fingerprint: str, most: int) -> list[Unembedded]:
    """Up to `most` different texts of passages that have no vector of this embedder, newest first."""
    rows = connection.execute(_statements(kind).missing, {"fingerprint": fingerprint, "most": most})
    return [Unembedded(text_hash, text) for text_hash, text in {row.text_hash: row.text for row in rows}.items()]


def coverage(connection: sa.Connection, kind: IndexKind, fingerprint: str) -> tuple[int, int]:
    """How many passages have a vector of this embedder, and how many there are."""
    ask = _statements(kind)
    return connection.execute(ask.count_done, {"fingerprint": fingerprint}).scalar_one(), connection.execute(ask.count).scalar_one()


def in_area(connection: sa.Connection, kind: IndexKind, fingerprint: str, area: str, after: int = 0) -> list[Placed]:
    """The passages of an area's chunks with an id above `after`, with their vectors, by chunk and position."""
    rows = connection.execute(_statements(kind).in_area, {"fingerprint": fingerprint, "area": area, "after": after})
    return [Placed._make(row) for row in rows]


def drop_orphans(connection: sa.Connection, hashes: Collection[str]) -> None:
    """Remove the vectors of texts that no passage and no saved memory has any more: what was forgotten is forgotten here too (WD-92)."""
    if hashes:
        connection.execute(_ORPHANS, {"hashes": list(hashes)})


@dataclass(frozen=True, slots=True)
class _Statements:
    missing: sa.Select[Any, Any]
    count: sa.Select[int]
    count_done: sa.Select[int]
    in_area: sa.Select[Any, Any, Any]


@cache
def _statements(kind: IndexKind) -> _Statements:
    chunk, passage = kind.chunks.c, kind.passages.c
    mine = (vectors.c.text_hash == passage.text_hash) & (vectors.c.fingerprint == sa.bindparam("fingerprint", type_=sa.Text))
    count = sa.select(sa.func.count()).select_from(kind.passages)
    # A join leaves it to the database where to begin, and SQLite begins with all vectors of the embedder: a look into each passage does not.
    its_vector = sa.select(vectors.c.vector).where(mine).scalar_subquery()
    return _Statements(
        missing=sa.select(passage.text_hash, passage.text)
        .where(~sa.exists().where(mine))
        .order_by(passage.chunk_id.desc(), passage.position)  # what was written last is asked for first
        .limit(sa.bindparam("most", type_=sa.Integer)),
        count=count,
        count_done=count.where(sa.exists().where(mine)),
        in_area=sa.select(passage.chunk_id, passage.position, its_vector.label("vector"))
        .join_from(kind.chunks, kind.passages, chunk.id == passage.chunk_id)
        .where(chunk.area == sa.bindparam("area", type_=sa.Text), chunk.id > sa.bindparam("after", type_=sa.BigInteger), kind.live)
        .order_by(chunk.id, passage.position),
    )

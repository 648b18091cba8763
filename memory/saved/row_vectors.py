"""Vectors of saved memories in the database, by the hash of their text, and which embedder serves them (SM-94 to SM-96).

The pointer is a row of `collections` of the kind `rows`; there is no copy in the vector index, for a reply compares a few hundred rows exactly
(SM-31, decision 12). Plain functions on a `Connection`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

import sqlalchemy as sa

from memory import vectors
from memory.index_kinds import FILES, MESSAGES
from memory.index_schema import collections
from memory.index_schema import vectors as vector_rows
from memory.ports import Vector
from memory.saved_schema import memories
from memory.vectors import Unembedded

KIND = "rows"

_v, _n = vector_rows.c, collections.c
_FINGERPRINT = sa.bindparam("fingerprint", type_=sa.Text)
_HASHES = sa.bindparam("hashes", type_=sa.Text, expanding=True)
_HAS_VECTOR = sa.exists().where(_v.text_hash == memories.c.content_hash, _v.fingerprint == _FINGERPRINT)
_MISSING = (
    sa.select(memories.c.content_hash, memories.c.content)
    .where(~_HAS_VECTOR)
    .order_by(memories.c.updated_at.desc(), memories.c.id.desc())  # what was written last is asked for first
    .limit(sa.bindparam("most", type_=sa.Integer))
)
_COUNT = sa.select(sa.func.count(sa.distinct(memories.c.content_hash)))
_COUNT_DONE = _COUNT.where(_HAS_VECTOR)
_THERE = sa.select(memories.c.content_hash).where(memories.c.content_hash.in_(_HASHES)).distinct()
_OF_HASHES = sa.select(_v.text_hash, _v.vector).where(_v.fingerprint == _FINGERPRINT, _v.text_hash.in_(_HASHES))
_DROP = sa.delete(vector_rows).where(_v.fingerprint == _FINGERPRINT, _v.text_hash.in_(_HASHES))
_SERVING = sa.select(_n.fingerprint).where(_n.kind == KIND, _n.state == "serving")
_DROP_POINTER = sa.delete(collections).where(_n.kind == KIND)
_DROP_FORMER = sa.delete(vector_rows).where(
    _v.fingerprint == _FINGERPRINT,
    sa.exists().where(memories.c.content_hash == _v.text_hash),
    ~sa.exists().where(FILES.passages.c.text_hash == _v.text_hash),
    ~sa.exists().where(MESSAGES.passages.c.text_hash == _v.text_hash),
)


def missing(connection: sa.Connection, fingerprint: str, most: int) -> list[Unembedded]:
    """Up to `most` different texts without a vector of this embedder, newest first. Pins count, for they may be unpinned."""
    rows = connection.execute(_MISSING, {"fingerprint": fingerprint, "most": most})
    return [Unembedded(key, text) for key, text in {row.content_hash: row.content for row in rows}.items()]


def coverage(connection: sa.Connection, fingerprint: str) -> tuple[int, int]:
    """How many different texts have a vector of this embedder, and how many there are."""
    return connection.execute(_COUNT_DONE, {"fingerprint": fingerprint}).scalar_one(), connection.execute(_COUNT).scalar_one()


def keep(connection: sa.Connection, fingerprint: str, made: Mapping[str, Vector]) -> None:
    """Store the vectors of texts that are still somebody's: what was deleted while it was embedded leaves nothing."""
    if made:
        there = set(connection.execute(_THERE, {"hashes": list(made)}).scalars())
        vectors.put(connection, fingerprint, {key: vector for key, vector in made.items() if key in there})


def of_hashes(connection: sa.Connection, fingerprint: str, hashes: Collection[str]) -> dict[str, bytes]:
    """The vectors that there are, float16 bytes by hash."""
    if not hashes:
        return {}
    return {row.text_hash: row.vector for row in connection.execute(_OF_HASHES, {"fingerprint": fingerprint, "hashes": list(hashes)})}


def drop(connection: sa.Connection, fingerprint: str, hashes: Collection[str]) -> None:
    """Spoiled ones: they are made again."""
    if hashes:
        connection.execute(_DROP, {"fingerprint": fingerprint, "hashes": list(hashes)})


def serving(connection: sa.Connection) -> str:
    """The fingerprint of the embedder that answers; empty when none ever did."""
    return connection.execute(_SERVING).scalar() or ""


def serve(connection: sa.Connection, fingerprint: str, dimension: int, now: datetime) -> None:
    """This embedder answers from now on, and what only the former one needed goes, in one step (SM-95)."""
    former = serving(connection)
    connection.execute(_DROP_POINTER)
    values = {
        "name": f"{KIND}:{fingerprint}", "kind": KIND, "fingerprint": fingerprint, "dimension": dimension, "generation": 0, "state": "serving",
        "made_at": now,
    }  # fmt: skip
    connection.execute(sa.insert(collections), values)
    if former and former != fingerprint:
        connection.execute(_DROP_FORMER, {"fingerprint": former})

"""Vectors of areas that are too large to be held in memory: found again by the keys of an index, or compared one by one (WD-127)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import sqlalchemy as sa

from memory.areas import IndexArea
from memory.embedders.calibration import Calibration
from memory.hot_areas import AreaRows
from memory.index_kinds import IndexKind
from memory.index_schema import vectors
from memory.ports import Vector
from memory.ranking import Floats

_AT_ONCE = 4_096


def chunks_of_keys(connection: sa.Connection, kind: IndexKind, area: IndexArea, keys: Sequence[str]) -> dict[str, int]:
    """Chunk ids by key of a passage (`chunk_rows.vector_key`), as far as they are chunks of this area."""
    chunk_keys = {key: key.rpartition(":")[0] for key in keys}
    found = connection.execute(_statements(kind)[0], {"area": area, "keys": sorted(set(chunk_keys.values()))})
    ids = {row.key: row.id for row in found}
    return {key: ids[chunk] for key, chunk in chunk_keys.items() if chunk in ids}


def one_by_one(
    connection: sa.Connection, kind: IndexKind, fingerprint: str, area: IndexArea, calibration: Calibration, question: Vector, rows: AreaRows
) -> Floats:
    """For each chunk of an area the cosine of its nearest passage, read from the database in parts; NaN where it has no vector."""
    scores = np.full(len(rows.ids), np.nan)
    found = connection.execute(_statements(kind)[1], {"area": area, "fingerprint": fingerprint})
    for part in found.partitions(_AT_ONCE):
        usable = [row for row in part if row.vector is not None and len(row.vector) == 2 * calibration.dimension]
        matrix = np.frombuffer(b"".join(row.vector for row in usable), dtype=np.float16).reshape(-1, calibration.dimension)
        similar = calibration.document(matrix.astype(np.float32)) @ question
        owners = np.fromiter((row.chunk_id for row in usable), dtype=np.int64, count=len(usable))
        at = np.minimum(np.searchsorted(rows.ids, owners), max(0, len(rows.ids) - 1))
        there = rows.ids[at] == owners if len(rows.ids) else np.zeros(len(owners), dtype=bool)
        np.fmax.at(scores, at[there], similar[there])
    return scores


@cache
def _statements(kind: IndexKind) -> tuple[sa.Select[Any, Any], sa.Select[Any, Any]]:
    """Chunks by key, and the vectors of all passages of an area."""
    chunk, passage = kind.chunks.c, kind.passages.c
    of_area = (chunk.area == sa.bindparam("area", type_=sa.Text)) & kind.live
    by_key = sa.select(kind.key.label("key"), chunk.id).where(of_area, kind.key.in_(sa.bindparam("keys", type_=sa.Text, expanding=True)))
    mine = (vectors.c.text_hash == passage.text_hash) & (vectors.c.fingerprint == sa.bindparam("fingerprint", type_=sa.Text))
    its_vector = sa.select(vectors.c.vector).where(mine).scalar_subquery().label("vector")  # a join would begin with the vectors of all areas
    everything = (
        sa.select(passage.chunk_id, its_vector)
        .join_from(kind.chunks, kind.passages, passage.chunk_id == chunk.id)
        .where(of_area)
        .order_by(chunk.id)
    )
    return by_key, everything

"""What a search compares, held in memory for the areas that are searched most: which chunks there are, and the vectors of their passages (RS-181).

An area is read from the database once and then only what is new in it. Its number of chunks and their highest id tell one state from another, for ids
are never given twice. All areas together stay within a limit, the least recently searched leave; one too large by itself is never held. Reading the
vectors of a large area takes longer than a reply should wait: a search may take it without them and have them read behind it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from memory import vectors
from memory.areas import IndexArea
from memory.embedders.calibration import Calibration
from memory.index_kinds import FILES, IndexKind
from memory.ports import Matrix, Vector
from memory.vectors import Placed

LIMIT_BYTES = 128 * 1024 * 1024
AREA_BYTES = 96 * 1024 * 1024
NEW_VECTORS_S = 2.0  # so often at most an area is read again while its vectors are being made
OTHERS_VECTORS_S = 60.0  # another process may make vectors too
_OBJECTS_BYTES = 2_048  # of an area beside what its arrays hold, so that very many chats without chunks have a limit too
_AT_ONCE = 2_048  # vectors that are centred together: what fits into a processor's cache

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Cosines = npt.NDArray[np.float32]


def _no_ints() -> Ints:
    return np.zeros(0, dtype=np.int64)


def _no_flags() -> Flags:
    return np.zeros(0, dtype=bool)


@dataclass(slots=True)
class AreaRows:
    """The chunks of an area by id. `days`: ordinal of the local date, 0 for what has none; `firsts`: number of the first message, 0 for files;
    `pages`: of knowledge; `matching`: lore (WD-139).

    `vectors`: rows of the passages that have one, by chunk: `owners` names the chunk's id, `passages` the position in it. None when it is too large
    to be held, no embedder serves, or they are not read yet: then it is `cold`. `bare`: chunk ids of the passages that had no vector when read.
    """

    ids: Ints = field(default_factory=_no_ints)
    words: Ints = field(default_factory=_no_ints)
    days: Ints = field(default_factory=_no_ints)
    firsts: Ints = field(default_factory=_no_ints)
    pages: Flags = field(default_factory=_no_flags)
    matching: Flags = field(default_factory=_no_flags)
    vectors: Matrix | None = None
    owners: Ints = field(default_factory=_no_ints)
    passages: Ints = field(default_factory=_no_ints)
    bare: Ints = field(default_factory=_no_ints)
    total_passages: int = 0
    cold: bool = False

    @property
    def bytes(self) -> int:
        arrays = (self.ids, self.words, self.days, self.firsts, self.pages, self.matching, self.owners, self.passages, self.bare)
        return _OBJECTS_BYTES + sum(array.nbytes for array in arrays) + (0 if self.vectors is None else self.vectors.nbytes)

    @property
    def covered(self) -> bool:
        """Whether vectors say enough: nine of ten passages have one. Below that what has none would seem worse than it is."""
        return self.vectors is not None and len(self.owners) >= 0.9 * self.total_passages > 0

    def similar(self, question: Vector) -> Cosines:
        """The cosine of every passage that has a vector, in the order of `owners`."""
        return np.zeros(0, dtype=np.float32) if self.vectors is None else self.vectors @ question

    def nearest(self, similar: Cosines) -> npt.NDArray[np.float64]:
        """For each chunk the cosine of its nearest passage, NaN where it has no vector."""
        scores = np.full(len(self.ids), np.nan)
        if len(similar):
            starts = np.flatnonzero(np.diff(self.owners, prepend=-1))
            scores[np.searchsorted(self.ids, self.owners[starts])] = np.maximum.reduceat(similar, starts)
        return scores

    def passage(self, chunk_id: int, similar: Cosines) -> int | None:
        """The position of the passage of a chunk that is nearest; None when it has no vector."""
        first, behind = np.searchsorted(self.owners, [chunk_id, chunk_id + 1])
        return int(self.passages[first + int(similar[first:behind].argmax())]) if behind > first and len(similar) else None


@dataclass(frozen=True, slots=True)
class _Kept:
    """`state`: number of chunks and highest id; `version`: of the vectors, when it was read, at `read_s` on the monotonic clock."""

    rows: AreaRows
    state: tuple[int, int]
    version: int
    read_s: float


_NOTHING = _Kept(AreaRows(), (0, 0), -1, 0.0)


class HotAreas:
    """Used from several reader threads; each call is one transaction's work."""

    def __init__(
        self,
        kind: IndexKind = FILES,
        *,
        limit_bytes: int = LIMIT_BYTES,
        area_bytes: int = AREA_BYTES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kind = kind
        self._limit = limit_bytes
        self._area_limit = area_bytes
        self._monotonic = monotonic
        self._kept: OrderedDict[tuple[IndexArea, str], _Kept] = OrderedDict()
        self._held_bytes = 0
        self._version = 0
        self._lock = threading.Lock()

    def vectors_changed(self) -> None:
        """Vectors were added for passages that may be held already. They are seen within NEW_VECTORS_S."""
        self._version += 1

    def rows(
        self, connection: sa.Connection, area: IndexArea, fingerprint: str, calibration: Calibration | None, *, at_once: int | None = None
    ) -> AreaRows:
        """The area as it is now. `fingerprint`: of the serving embedder; vectors only with its `calibration`.

        `at_once`: an area of more passages whose vectors are not held comes `cold`, without them.
        """
        count, highest = connection.execute(_statements(self._kind).state, {"area": area}).one()
        key = (area, fingerprint if calibration is not None else "")
        with self._lock:
            kept = self._kept.get(key, _NOTHING)
            if kept.state == (count, highest) and not self._is_stale(kept) and not (kept.rows.cold and at_once is None):
                if kept is not _NOTHING:
                    self._kept.move_to_end(key)
                return kept.rows
        version, read_s = self._version, self._monotonic()
        rows = _read(connection, self._kind, area, key[1], calibration, kept, count, self._area_limit, at_once)
        with self._lock:
            if (before := self._kept.pop(key, None)) is not None:
                self._held_bytes -= before.rows.bytes
            self._kept[key] = _Kept(rows, (count, highest), version, read_s)
            self._held_bytes += rows.bytes
            while len(self._kept) > 1 and self._held_bytes > self._limit:
                self._held_bytes -= self._kept.popitem(last=False)[1].rows.bytes
        return rows

    def _is_stale(self, kept: _Kept) -> bool:
        age = self._monotonic() - kept.read_s
        return age > OTHERS_VECTORS_S if kept.version == self._version else age > NEW_VECTORS_S


def _read(
    connection: sa.Connection,
    kind: IndexKind,
    area: IndexArea,
    serving: str,
    calibration: Calibration | None,
    kept: _Kept,
    count: int,
    most_bytes: int,
    at_once: int | None,
) -> AreaRows:
    ask = _statements(kind)
    old, known = kept.rows, kept.state[1]
    rows = connection.execute(ask.rows, {"area": area, "after": known}).all()
    pieces = [kind.piece(row) for row in rows]
    there = np.fromiter(connection.execute(ask.ids, {"area": area}).scalars(), dtype=np.int64, count=count) if known else _no_ints()
    stays = np.isin(old.ids, there, assume_unique=True)

    def joined(before: Ints, new: Sequence[int]) -> Ints:
        return np.concatenate([before[stays], np.array(new, dtype=np.int64)])

    fresh = AreaRows(
        ids=joined(old.ids, [row.id for row in rows]),
        words=joined(old.words, [row.words for row in rows]),
        days=joined(old.days, [piece.day for piece in pieces]),
        firsts=joined(old.firsts, [piece.first for piece in pieces]),
        pages=np.concatenate([old.pages[stays], np.array([piece.page for piece in pieces], dtype=bool)]),
        matching=np.concatenate([old.matching[stays], np.array([piece.matching for piece in pieces], dtype=bool)]),
        total_passages=connection.execute(ask.passages, {"area": area}).scalar_one(),
    )
    if calibration is not None and fresh.total_passages * calibration.dimension * 4 <= most_bytes:
        fresh.cold = old.vectors is None and at_once is not None and fresh.total_passages > at_once
        if not fresh.cold:
            _add_vectors(connection, kind, area, serving, calibration, old, known, fresh)
    return fresh


def _add_vectors(
    connection: sa.Connection, kind: IndexKind, area: IndexArea, serving: str, calibration: Calibration, old: AreaRows, known: int, fresh: AreaRows
) -> None:
    """Give `fresh` its vectors: those of `old` that stay, and from the first chunk on that lacked one what the database has now."""
    lacking = int(old.bare.min(initial=known + 1))
    behind = min(known, lacking - 1) if old.vectors is not None else 0
    stays = np.isin(old.owners, fresh.ids) & (old.owners <= behind)
    placed = vectors.in_area(connection, kind, serving, area, behind)
    usable = [each for each in placed if each.data is not None and len(each.data) == 2 * calibration.dimension]
    before = int(np.count_nonzero(stays))
    fresh.vectors = np.empty((before + len(usable), calibration.dimension), dtype=np.float32)
    if old.vectors is not None:
        fresh.vectors[:before] = old.vectors[stays]
    for at in range(0, len(usable), _AT_ONCE):
        part = usable[at : at + _AT_ONCE]
        fresh.vectors[before + at : before + at + len(part)] = calibration.document(_matrix(part, calibration.dimension))
    fresh.owners = np.concatenate([old.owners[stays], np.array([each.chunk_id for each in usable], dtype=np.int64)])
    fresh.passages = np.concatenate([old.passages[stays], np.array([each.position for each in usable], dtype=np.int64)])
    fresh.bare = np.array([each.chunk_id for each in placed if each.data is None], dtype=np.int64)


def _matrix(part: Sequence[Placed], dimension: int) -> Matrix:
    return np.frombuffer(b"".join(each.data or b"" for each in part), dtype=np.float16).reshape(-1, dimension).astype(np.float32)


@dataclass(frozen=True, slots=True)
class _Statements:
    state: sa.Select[int, int]
    ids: sa.Select[int]
    rows: sa.Select[Any]
    passages: sa.Select[int]


@cache
def _statements(kind: IndexKind) -> _Statements:
    chunk = kind.chunks.c
    of_area = (chunk.area == sa.bindparam("area", type_=sa.Text)) & kind.live
    passages = sa.select(sa.func.count()).join_from(kind.chunks, kind.passages, chunk.id == kind.passages.c.chunk_id).where(of_area)
    return _Statements(
        state=sa.select(sa.func.count(), sa.func.coalesce(sa.func.max(chunk.id), 0)).where(of_area),
        ids=sa.select(chunk.id).where(of_area).order_by(chunk.id),
        rows=sa.select(chunk.id, chunk.words, *kind.facts).where(of_area, chunk.id > sa.bindparam("after", type_=sa.BigInteger)).order_by(chunk.id),
        passages=passages,
    )

"""The vector index as a mirror of the vectors in the database: checked before it is used, filled in batches, rebuilt beside and swapped.

WD-121 to WD-125.

It serves areas that are too large for memory. Whatever happens to it, the database answers; so every failure here ends in "not ready" and a rebuild.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import numpy as np

from memory import collection_rows
from memory.chroma_check import Verdict
from memory.chunk_rows import Gone
from memory.collection_rows import Pending
from memory.database import Database
from memory.embedders.calibration import Calibration
from memory.index_errors import IndexFailed
from memory.index_kinds import IndexKind
from memory.ports import Vector, VectorIndex

BATCH = 500
RETIRED_FOR = timedelta(hours=1)

log = logging.getLogger(__name__)


class Home(Protocol):
    """Where the index lives. `index`: the open one; `check` asks a child process about a collection; `start_anew` puts a damaged one aside."""

    @property
    def index(self) -> VectorIndex: ...

    async def check(self, collection: str, samples: Mapping[str, Vector], expected: int) -> Verdict: ...

    async def start_anew(self) -> None: ...


class VectorMirror:
    """One embedder's vectors of one kind in one index. `above`: of areas with more passages than this, for others never ask it, and it holds all that
    it has in memory; `told` hears, as a sentence, why an index was given up."""

    def __init__(
        self,
        db: Database,
        home: Home,
        clock: Callable[[], datetime],
        kind: IndexKind,
        *,
        fingerprint: str,
        calibration: Calibration,
        samples: int = 64,
        above: int = 0,
        told: Callable[[str], object] = lambda reason: None,
    ) -> None:
        self._db = db
        self._kind = kind
        self._home = home
        self._clock = clock
        self._fingerprint = fingerprint
        self._calibration = calibration
        self._samples = samples
        self._above = above
        self._told = told
        self._filling = ""
        self.serving = ""
        """The collection that may be asked; empty until one has passed its check (WD-122)."""

    @property
    def index(self) -> VectorIndex:
        return self._home.index

    async def open(self) -> None:
        """Check what is there and use it, or begin a new one. IndexFailed when the index cannot be used at all, StoreUnavailable."""
        name = await self._db.read(lambda connection: collection_rows.in_state(connection, self._kind, self._fingerprint, "serving"))
        self._filling = await self._db.read(lambda connection: collection_rows.in_state(connection, self._kind, self._fingerprint, "filling"))
        if name and not self._filling:
            verdict = await self._check(name)
            if not verdict.passed:
                await self.give_up(verdict.reason)
                return
            await self._sweep(name)
            self.serving = name
        elif self._filling and not (await self._check(self._filling)).passed:  # killed in the middle, and what is there is damaged
            await self.give_up("what was built of it is damaged")
        if not self.serving and not self._filling:
            await self.begin()

    async def begin(self) -> None:
        """Fill a new collection; the serving one answers meanwhile (WD-124)."""
        made = self._calibration.dimension
        self._filling = await self._db.write(lambda connection: collection_rows.begin(connection, self._kind, self._fingerprint, made, self._clock()))

    async def give_up(self, reason: str) -> None:
        """The index is damaged or does not answer: put it aside and begin anew. IndexFailed, StoreUnavailable."""
        log.warning("the vector index is built anew: %s", reason)
        self._told(reason)
        lost = {self.serving, self._filling}
        self.serving = self._filling = ""
        await self._home.start_anew()
        stored = await self._db.read(lambda connection: collection_rows.in_state(connection, self._kind, self._fingerprint, "serving"))
        for name in sorted((lost | {stored}) - {""}):
            await self._db.write(lambda connection, name=name: collection_rows.lose(connection, self._kind, name, self._clock()))
        await self.begin()

    async def pump(self) -> int:
        """Put the next batch of vectors into the collection that is filled, or else the one that serves; how many.

        The batch after which none is left makes a filled collection pass its check and serve. IndexFailed when it does not pass: the caller waits a
        little and gives it up, for what fails again would fail without a pause.
        """
        target = self._filling or self.serving
        if not target:
            return 0
        batch = await self._db.read(
            lambda connection: collection_rows.pending(connection, self._kind, target, self._fingerprint, BATCH, above=self._above)
        )
        if batch:
            await self._put(target, batch)
            return len(batch)
        if self._filling:
            await self._swap()
        return 0

    async def drop(self, gone: Sequence[Gone]) -> None:
        """Passages that are no more leave the index at once (WD-113)."""
        for name in {each.collection for each in gone}:
            if name in (self.serving, self._filling):
                await self.index.delete(name, [each.key for each in gone if each.collection == name])

    async def drop_retired(self) -> None:
        before = self._clock() - RETIRED_FOR
        for name in await self._db.read(lambda connection: collection_rows.retired(connection, self._kind, before)):
            await self.index.drop(name)
            await self._db.write(lambda connection, name=name: collection_rows.forget(connection, name))

    async def _put(self, target: str, batch: Sequence[Pending]) -> None:
        fits = [each for each in batch if len(each.vector) == self._calibration.dimension]
        if fits:
            centred = self._calibration.document(np.stack([each.vector for each in fits]))
            vectors = {each.key: vector for each, vector in zip(fits, centred, strict=True)}
            await self.index.upsert(target, {each.key: each.area for each in fits}, vectors)
        await self._db.write(lambda connection: collection_rows.acknowledge(connection, self._kind, target, batch))

    async def _swap(self) -> None:
        name = self._filling
        verdict = await self._check(name)
        if not verdict.passed:
            raise IndexFailed(verdict.reason)
        await self._db.write(lambda connection: collection_rows.serve(connection, self._kind, name, self._clock()))
        self.serving, self._filling = name, ""

    async def _check(self, name: str) -> Verdict:
        expected = await self._db.read(lambda connection: collection_rows.held(connection, self._kind, name))
        found = await self._db.read(lambda connection: collection_rows.sample(connection, self._kind, name, self._fingerprint, self._samples))
        fits = [each for each in found if len(each.vector) == self._calibration.dimension]
        if not fits:
            return Verdict(passed=True)
        centred = self._calibration.document(np.stack([each.vector for each in fits]))
        return await self._home.check(name, {each.key: vector for each, vector in zip(fits, centred, strict=True)}, expected)

    async def _sweep(self, name: str) -> None:
        """What a kill left in the index after its passage was gone."""
        try:
            there = await self.index.keys(name)
        except IndexFailed as error:
            await self.give_up(str(error))
            return
        known = await self._db.read(lambda connection: collection_rows.held_keys(connection, self._kind, name))
        await self.index.delete(name, there - known)

"""Vectors of saved memories while the gateway runs: made behind all else, measured before they count, and a change of embedder (SM-94 to SM-96).

No save and no reply waits for any of it. A row without a vector is not compared, and so does not age.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.embedding.change import EmbeddingChange
from gateway.embedding.succession import Shelf, Succession
from memory.database import Database
from memory.errors import StoreError
from memory.index_errors import EmbedderFailed
from memory.ports import Embedder
from memory.saved import row_vectors
from memory.saved.searching import Serving

log = logging.getLogger(__name__)

LOOK_EVERY_S = 60.0  # for what another process wrote, and what was told to nobody
AGAIN_S = 10.0  # after what may pass by itself
PERMANENT_S = 600.0  # after what only a person can change; they may have
_PAGES = 4  # batches that are looked up at once
Sleep = Callable[[float], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowVectorStatus:
    """`embedded` of `texts` have a vector of the embedder that is wanted; `serving`: the fingerprint of the one that answers, empty for none;
    `reason`: why nothing answers; `former`, `waits_for`: as those of `VectorStatus`."""

    embedded: int
    texts: int
    serving: str
    reason: str = ""
    former: str = ""
    waits_for: str = ""


class RowVectors:
    """`embedder`: the one that is wanted, None for none; `former`: an embedder by the fingerprint that served before, None when it cannot be called
    any more; `change`: what all kinds share, one of its own with this `former` when left out. Run `run` in the task group of the gateway."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        embedder: Embedder | None,
        former: Callable[[str], Embedder | None] = lambda fingerprint: None,
        change: EmbeddingChange | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._db = db
        self._sleep = sleep
        self._reason = ""
        self._spoiled: set[str] = set()
        self._wake = asyncio.Event()
        self._succession: Succession | None = None
        if embedder is not None:
            change = change or EmbeddingChange(db, clock, former)
            change.on_confirmed(self._wake.set)
            self._succession = Succession(SHELF, db=db, clock=clock, change=change, embedder=embedder, pages=_PAGES, kept=self._wake.set)

    def serving(self) -> Serving:
        """Who answers now."""
        if self._succession is None:
            return Serving(state="off")
        known = self._succession.answering
        if known is None:
            return Serving(state="failed" if self._reason else "building", reason=self._reason)
        return Serving(state="ok", embedder=known.embedder, calibration=known.calibration)

    def changed(self) -> None:
        """Rows were written. Call it on the event loop; it does not wait."""
        self._wake.set()

    def spoiled(self, hashes: Sequence[str]) -> None:
        """These vectors cannot be what they say: they are made again."""
        self._spoiled.update(hashes)
        self._wake.set()

    async def status(self) -> RowVectorStatus:
        """StoreError when the database does not answer."""
        succession = self._succession
        name = succession.name if succession is not None else ""
        done, texts = await self._db.read(lambda connection: row_vectors.coverage(connection, name))
        if succession is None:
            return RowVectorStatus(embedded=done, texts=texts, serving="")
        return RowVectorStatus(
            embedded=done,
            texts=texts,
            serving=succession.answering.fingerprint if succession.answering is not None else "",
            reason=self._reason,
            former=succession.former,
            waits_for=succession.waits_for,
        )

    async def run(self) -> None:
        """Until cancelled; returns at once when there is no embedder."""
        if self._succession is None:
            return
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._look_again())
                group.create_task(self._work(self._succession))
        finally:
            await self._succession.release()

    async def settle(self) -> None:
        """One round of what `run` repeats: measure, embed what is missing, switch when all is covered. Raises StoreError."""
        if self._succession is not None:
            await self._round(self._succession)

    async def _look_again(self) -> None:
        while True:
            await self._sleep(LOOK_EVERY_S)
            self._wake.set()

    async def _work(self, succession: Succession) -> None:
        while True:
            self._wake.clear()
            try:
                await self._round(succession)
                self._reason = ""
            except EmbedderFailed as error:
                log.debug("no vectors for saved memories: %s", error)  # the embedder itself says it, once an hour (RS-184)
                self._reason = str(error)
                await self._sleep(PERMANENT_S if error.permanent else max(AGAIN_S, error.retry_after_s))
                continue
            except StoreError as error:
                log.warning("the vectors of saved memories cannot be kept now: %s", error)
                await self._sleep(AGAIN_S)
                continue
            await self._wake.wait()

    async def _round(self, succession: Succession) -> None:
        gone, self._spoiled = self._spoiled, set()
        if gone and (known := succession.answering) is not None:
            await self._db.write(lambda connection: row_vectors.drop(connection, known.fingerprint, gone))
        await succession.round()


SHELF = Shelf(
    pointer=row_vectors.serving,
    point=lambda connection, known, now: row_vectors.serve(connection, known.fingerprint, known.calibration.dimension, now),
    missing=row_vectors.missing,
    coverage=row_vectors.coverage,
    keep=row_vectors.keep,
)
"""Saved memories and their pointer (SM-95)."""

"""The vectors of one kind of text while the gateway runs: made behind everything else, mirrored into the vector index, and how that stands.

No reply and no start waits for any of it (WD-101, RS-20). A failure leaves the search to the database, or to words alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal

from gateway.embedding import change as embedding_change
from gateway.embedding.change import EmbeddingChange, Known
from gateway.embedding.succession import Shelf, Succession
from memory import vectors
from memory.chunk_rows import Gone
from memory.database import Database
from memory.errors import StoreError
from memory.file_search import Serving
from memory.hot_areas import HotAreas
from memory.index_errors import EmbedderFailed, IndexFailed
from memory.index_kinds import IndexKind
from memory.ports import Embedder
from memory.vector_mirror import Home, VectorMirror

log = logging.getLogger(__name__)

AGAIN_S = 10.0  # after what may pass by itself
PERMANENT_S = 600.0  # after what only a person can change; they may have
_PAGES = 8  # batches that are looked up at once: looking costs as much as embedding a batch, and what is new meanwhile waits for so many
Sleep = Callable[[float], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorStatus:
    """`vectors`: off (no embedding model), building with `embedded` of `passages`, ok, or failed with `reason`; `embedder` and `dimension` (0: not
    known yet); `mirror`: of the vector index, which only areas too large for memory need; `missing`: what is to be installed; `former`: the embedder
    that answers until this one has read everything, empty for none; `waits_for`: its name, when somebody must say yes to what that costs."""

    vectors: Literal["off", "building", "ok", "failed"]
    embedder: str = ""
    dimension: int = 0
    embedded: int = 0
    passages: int = 0
    reason: str = ""
    mirror: Literal["off", "building", "ok", "failed"] = "off"
    mirror_reason: str = ""
    missing: str = ""
    former: str = ""
    waits_for: str = ""


class VectorKeeper:
    """`embedder`: None for none; `home`: of the vector index, None for none; `samples`: stored vectors that an index is checked with; `change`: what
    all kinds share, one of its own when left out; `mirror_above`: the index gets areas with more passages than this."""

    def __init__(
        self,
        kind: IndexKind,
        *,
        db: Database,
        clock: Callable[[], datetime],
        embedder: Embedder | None,
        home: Home | None,
        hot: HotAreas,
        samples: int,
        sleep: Sleep,
        change: EmbeddingChange | None,
        mirror_above: int = 0,
    ) -> None:
        self._kind = kind
        self._db = db
        self._clock = clock
        self._embedder = embedder
        self._home = home
        self._hot = hot
        self._samples = samples
        self._mirror_above = mirror_above
        self._sleep = sleep
        self._mirror: VectorMirror | None = None
        self._mirrored = ""  # whose vectors it has
        self._reason = self._mirror_reason = self._missing = ""
        self._gone: list[Gone] = []
        self._vectors_wake, self._mirror_wake = asyncio.Event(), asyncio.Event()
        self._succession: Succession | None = None
        if embedder is not None:
            change = change or EmbeddingChange(db, clock)
            change.on_confirmed(self._vectors_wake.set)
            self._succession = Succession(shelf_of(kind), db=db, clock=clock, change=change, embedder=embedder, pages=_PAGES, kept=self._vectors_kept)

    async def run(self) -> None:
        """Until cancelled; at once when there is nothing to make vectors with."""
        if self._succession is None:
            return
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._make_vectors(self._succession))
                if self._home is not None:
                    group.create_task(self._keep_mirror(self._succession, self._home))
        finally:
            await self._succession.release()

    def changed(self, gone: Sequence[Gone] = ()) -> None:
        """Texts came or went; `gone`: what the vector index must drop."""
        self._gone += gone
        self._vectors_wake.set()
        self._mirror_wake.set()

    async def fault(self) -> str:
        """Why the embedder does not work now; empty when it does, or there is none."""
        if self._embedder is None:
            return ""
        try:
            rows = await self._embedder.documents(["The quick brown fox"])
        except EmbedderFailed as error:
            return str(error)
        return "" if rows and rows[0] is not None else "it gives no vector for a plain sentence"

    async def begin_anew(self) -> None:
        """Build the vector index beside the one that serves (WD-124). Embeddings are not paid for again."""
        if self._mirror is not None:
            await self._mirror.begin()
        if self._succession is not None:
            self._succession.begin_anew()
        self.changed()

    async def status(self) -> VectorStatus:
        """StoreError when the database does not answer."""
        embedder, succession = self._embedder, self._succession
        if embedder is None or succession is None:
            return VectorStatus(vectors="off")
        done, passages = await self._db.read(lambda connection: vectors.coverage(connection, self._kind, succession.name))
        serves = succession.answering is not None and succession.answering.fingerprint == succession.name
        building = passages > 0 and (not serves or done + succession.refused() < 0.9 * passages)
        mirror = self._mirror
        return VectorStatus(
            vectors="failed" if self._reason else "building" if building else "ok",
            embedder=embedder.label,
            dimension=succession.answering.calibration.dimension if succession.answering else 0,
            embedded=done,
            passages=passages,
            reason=self._reason,
            mirror="off" if self._home is None or self._missing else "ok" if mirror is not None and mirror.serving else "building",
            mirror_reason=self._mirror_reason,
            missing=self._missing,
            former=succession.former,
            waits_for=succession.waits_for,
        )

    def serving(self) -> Serving:
        """What answers now."""
        if self._embedder is None or self._succession is None:
            return Serving(vectors="off")
        known = self._succession.answering
        if known is None:
            return Serving(vectors="failed" if self._reason else "building", embedder=self._embedder)
        mirror = self._mirror if self._mirrored == known.fingerprint else None
        return Serving(
            vectors="ok",
            embedder=known.embedder,
            calibration=known.calibration,
            index=mirror.index if mirror is not None and mirror.serving else None,
            collection=mirror.serving if mirror is not None else "",
        )

    # -- vectors

    async def _make_vectors(self, succession: Succession) -> None:
        while True:
            self._vectors_wake.clear()
            try:
                await succession.round()
                self._reason = ""
            except EmbedderFailed as error:
                log.debug("no vectors for the search index: %s", error)  # the embedder itself says it, once an hour (RS-184)
                self._reason = str(error)
                await self._sleep(PERMANENT_S if error.permanent else max(AGAIN_S, error.retry_after_s))
                continue
            except StoreError as error:
                log.warning("the vectors of the search index cannot be kept now: %s", error)
                await self._sleep(AGAIN_S)
                continue
            self._mirror_wake.set()
            await self._vectors_wake.wait()

    def _vectors_kept(self) -> None:
        self._hot.vectors_changed()
        self._vectors_wake.set()
        self._mirror_wake.set()

    # -- the vector index

    async def _keep_mirror(self, succession: Succession, home: Home) -> None:
        """Checked, filled and swapped behind everything else, with the vectors of whoever answers; a failure leaves the search to the database."""
        while True:
            await self._mirror_wake.wait()
            self._mirror_wake.clear()
            if (known := succession.answering) is None:
                continue
            try:
                if self._mirror is None or self._mirrored != known.fingerprint:
                    mirror = self._new_mirror(home, known)
                    await mirror.open()
                    self._mirror, self._mirrored = mirror, known.fingerprint
                gone, self._gone = self._gone, []
                await self._mirror.drop(gone)
                while await self._mirror.pump():
                    pass
                await self._mirror.drop_retired()
                self._missing = ""
            except IndexFailed as error:
                self._mirror_reason, self._missing = str(error), error.missing
                log.warning("the vector index cannot be used now: %s", error)
                await self._sleep(PERMANENT_S if error.missing else AGAIN_S)
                await self._begin_mirror_anew()
            except StoreError as error:
                log.warning("the vector index cannot be kept now: %s", error)
                await self._sleep(AGAIN_S)
                self._mirror_wake.set()

    async def _begin_mirror_anew(self) -> None:
        """An index that failed while it served is not trusted again (VX-11); one that was never open is opened at the next try."""
        self._mirror_wake.set()
        if self._mirror is not None and not self._missing:
            try:
                await self._mirror.give_up(self._mirror_reason)
            except (IndexFailed, StoreError) as error:
                log.warning("the vector index cannot be built anew now: %s", error)
                self._mirror = None  # opened and checked at the next try: half given up, it would wait for a filling that nobody began

    def _new_mirror(self, home: Home, known: Known) -> VectorMirror:
        def told(reason: str) -> None:
            self._mirror_reason = reason

        return VectorMirror(
            self._db,
            home,
            self._clock,
            self._kind,
            fingerprint=known.fingerprint,
            calibration=known.calibration,
            samples=self._samples,
            above=self._mirror_above,
            told=told,
        )


def shelf_of(kind: IndexKind) -> Shelf:
    """The passages of a kind, and the row that says which embedder serves them."""
    return Shelf(
        pointer=partial(embedding_change.serving, kind=kind),
        point=lambda connection, known, now: embedding_change.serve(connection, kind, known.fingerprint, now),
        missing=lambda connection, name, most: vectors.missing(connection, kind, name, most),
        coverage=lambda connection, name: vectors.coverage(connection, kind, name),
        keep=vectors.put,
    )

"""The search index while the gateway runs: follows the files, makes vectors behind, looks after the vector index, and says how it all stands.

Words stand in the index a moment after a file was written, vectors some seconds later (WD-112). No reply and no start waits for any of it (WD-101).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Literal

from gateway.embedding import change as embedding_change
from gateway.embedding.change import EmbeddingChange
from gateway.embedding.vector_keeping import AGAIN_S, Sleep, VectorKeeper, VectorStatus
from memory import chunk_rows
from memory.database import Database
from memory.errors import StoreError
from memory.file_errors import PathRefused
from memory.file_index import FileIndex, Refreshed
from memory.file_search import FileSearch
from memory.hot_areas import HotAreas
from memory.index_kinds import FILES
from memory.ports import Embedder
from memory.scopes import ROOT, Scope, scope_or_none
from memory.vector_mirror import Home
from memory.workspace_threads import WorkspaceThreads

log = logging.getLogger(__name__)

SCAN_EVERY_S = 60.0
WATCH_EVERY_S = 2.0  # the owner's files and those of memories in use: who edits a file by hand asks about it next
WATCH_SHARE = 50  # a look that takes long is followed by so many times its length without one
IN_USE_S = 600.0  # since the last search or write
Progress = Callable[[str, int, int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus(VectorStatus):
    """For `/memory status`: what is indexed, whether the words follow the files, and how the vectors stand."""

    files: int
    chunks: int
    words: Literal["ok", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What `/memory rebuild-index` tells. `vectors_reason`: why there are none, empty when the embedder works."""

    files_before: int
    chunks_before: int
    files: int
    chunks: int
    vectors_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """`chunk_tokens`, `chunk_overlap`: `memory.*`; `canary_samples`: `chroma.*`; `words_weight`: `search.words_weight.files`, as it is now."""

    chunk_tokens: int = 500
    chunk_overlap: int = 50
    canary_samples: int = 64
    words_weight: Callable[[], float] = lambda: 0.3


class Indexing:
    """`embedder`: None for search by words alone; `home`: of the vector index, None for none; `list_scopes`: the scopes that have a folder now;
    `today`: the local date; `change`: what all that make vectors share. Run `run` in the task group of the gateway; everything else works before it,
    only that nothing changes by itself."""

    def __init__(
        self,
        *,
        db: Database,
        files: WorkspaceThreads,
        clock: Callable[[], datetime],
        today: Callable[[], date],
        list_scopes: Callable[[], Awaitable[list[Scope]]],
        embedder: Embedder | None,
        home: Home | None,
        settings: IndexSettings,
        hot: HotAreas | None = None,
        scan_every_s: float = SCAN_EVERY_S,
        sleep: Sleep = asyncio.sleep,
        change: EmbeddingChange | None = None,
    ) -> None:
        self._db = db
        self._clock = clock
        self._list_scopes = list_scopes
        self._scan_every_s = scan_every_s
        self._sleep = sleep
        self._index = FileIndex(
            db,
            files,
            clock,
            size=settings.chunk_tokens,
            overlap=settings.chunk_overlap,
            passage_tokens=embedder.passage_tokens if embedder is not None else 0,
        )
        self._cut_wanted = embedder.passage_tokens if embedder is not None else None  # until it is known how files were cut before
        self._words_reason = ""
        self._pending: dict[tuple[Scope, str], None] = {}
        self._used: dict[Scope, float] = {}  # when, by the clock of the event loop
        self._files_wake = asyncio.Event()
        hot = hot or HotAreas()
        self._keeper = VectorKeeper(
            FILES, db=db, clock=clock, embedder=embedder, home=home, hot=hot, samples=settings.canary_samples, sleep=sleep, change=change
        )
        self.search = FileSearch(
            db, files, hot, serving=self._keeper.serving, stale=self.changed, asked=self._use, today=today, words_weight=settings.words_weight
        )

    def changed(self, scope: Scope, path: str) -> None:
        """A file was written or removed: it is read soon. Call it on the event loop; it does not wait."""
        self._pending[(scope, path)] = None
        self._use(scope)
        self._files_wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_files())
            group.create_task(self._tick())
            group.create_task(self._keeper.run())

    async def prepare_scope(self, scope: Scope) -> Refreshed:
        """Look at all files of a scope now, and not when it is next written to or searched: for tests, which wait for nothing else."""
        await self._settle_cut()
        return self._took(await self._index.scan(scope))

    async def forget_scope(self, scope: Scope) -> None:
        """Remove everything of a scope (WD-15). Safe to repeat."""
        self._took(await self._index.forget_scope(scope))

    async def status(self) -> IndexStatus:
        """StoreError when the database does not answer."""
        files, chunks = await self._db.read(chunk_rows.totals)
        return IndexStatus(files=files, chunks=chunks, words="failed" if self._words_reason else "ok", **asdict(await self._keeper.status()))

    async def rebuild(self, progress: Progress = lambda what, done, total: None) -> Rebuilt:
        """Test the embedder, cut every file anew, and build the vector index beside the one that serves (WD-124). Embeddings are not paid for again.

        `progress(scope, done, total)` hears of files. StoreError when the database does not answer.
        """
        await self._settle_cut()
        files_before, chunks_before = await self._db.read(chunk_rows.totals)
        reason = await self._keeper.fault()
        for scope in await self._scopes():
            self._took(await self._index.scan(scope, anew=True, seen=lambda done, total, scope=scope: progress(str(scope), done, total)))
        await self._keeper.begin_anew()
        files, chunks = await self._db.read(chunk_rows.totals)
        return Rebuilt(files_before=files_before, chunks_before=chunks_before, files=files, chunks=chunks, vectors_reason=reason)

    # -- files

    async def _tick(self) -> None:
        while True:
            await self._sleep(min(WATCH_EVERY_S, self._scan_every_s))
            self._files_wake.set()

    async def _follow_files(self) -> None:
        """What was told of at once, memories in use every few seconds, everything each minute: an edit from outside tells nobody (WD-112)."""
        now = asyncio.get_running_loop().time
        due = look = now()
        while True:
            try:
                await self._settle_cut()
                while self._pending:
                    await self._refresh_next()
                began = now()
                if began >= due:
                    due = began + self._scan_every_s * 0.9
                    await self._scan_all(await self._scopes())
                elif began >= look:
                    await self._scan_all(self._in_use(began))
                    look = now() + max(WATCH_EVERY_S * 0.9, WATCH_SHARE * (now() - began))
                self._words_reason = ""
            except StoreError as error:
                log.warning("the search index cannot follow the files now: %s", error)
                self._words_reason = str(error)
                await self._sleep(AGAIN_S)
                continue
            if not self._pending:
                await self._files_wake.wait()
            self._files_wake.clear()

    async def _settle_cut(self) -> None:
        """Before the first file: how files are cut, which a change of the embedder must not undo (SM-95)."""
        if (wanted := self._cut_wanted) is not None:
            self._index.cut_by(await self._db.write(lambda connection: embedding_change.cut_by(connection, wanted, self._clock())))
            self._cut_wanted = None

    async def _refresh_next(self) -> None:
        scope, path = next(iter(self._pending))
        with suppress(PathRefused):  # no file of the scope: nothing to follow
            self._took(await self._index.refresh(scope, path))
        self._pending.pop((scope, path), None)

    def _use(self, scope: Scope) -> None:
        self._used[scope] = asyncio.get_running_loop().time()

    def _in_use(self, now: float) -> list[Scope]:
        """The owner's memory and those that were searched or written of late."""
        self._used = {scope: at for scope, at in self._used.items() if now - at <= IN_USE_S}
        return list(dict.fromkeys([ROOT, *self._used]))

    async def _scan_all(self, scopes: list[Scope]) -> None:
        for scope in scopes:
            self._took(await self._index.scan(scope))
            while self._pending:  # what was just written goes before old files
                await self._refresh_next()

    async def _scopes(self) -> list[Scope]:
        """Those with a folder, and those that the index still knows."""
        known = await self._db.read(chunk_rows.known_scopes)
        there = [ROOT, *await self._list_scopes()]
        return list(dict.fromkeys([*there, *(scope for name in known if (scope := scope_or_none(name)))]))

    def _took(self, done: Refreshed) -> Refreshed:
        if done.changed:
            self._keeper.changed(done.gone)
        return done

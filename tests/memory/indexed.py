"""A memory with files and its search index, as small as a test wants it: words, a hash embedder, and everything real beneath."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from gateway.embedding.change import EmbeddingChange
from gateway.indexing import Indexing, IndexSettings, Sleep
from memory.database import Database
from memory.file_search import SearchResult
from memory.hot_areas import HotAreas
from memory.live_hits import Hit
from memory.ports import Embedder
from memory.scopes import ROOT, Access, Kind, Scope, scope_of
from memory.vector_mirror import Home
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads
from tests.conftest import FakeClock
from tests.patience import patience

OWNER = scope_of("dm", person=ROOT, space=None, memory_on=True, known=True)


def person(name: str) -> Scope:
    """A person's scope; `name` has ten letters at most."""
    return Scope(Kind.PERSON, f"p-{name:a<10}")


def space(name: str) -> Scope:
    return Scope(Kind.SPACE, f"s-{name:a<10}")


def access_of(scope: Scope) -> Access:
    """What a private chat of a person, or a group of a space, may read."""
    if scope.kind is Kind.SPACE:
        return scope_of("group", person=ROOT, space=scope, memory_on=True, known=True)
    return scope_of("dm", person=scope, space=None, memory_on=True, known=True)


@dataclass(slots=True)
class House:
    """`root`: the workspace on the disk, as a person sees it."""

    root: Path
    db: Database
    files: WorkspaceThreads
    indexing: Indexing
    scopes: list[Scope]
    clock: FakeClock

    def path(self, scope: Scope, path: str) -> Path:
        return self.root.joinpath(*scope.folder, path)

    def put(self, scope: Scope, path: str, text: str) -> None:
        """Write a file behind our back, as an editor would."""
        target = self.path(scope, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        if scope not in self.scopes:
            self.scopes.append(scope)

    async def know(self, scope: Scope = ROOT, **files: str) -> None:
        """Files of the top by their name without its ending, and the index of them."""
        for name, text in files.items():
            self.put(scope, f"{name}.md", text)
        await self.indexing.prepare_scope(scope)

    async def look(self, query: str, access: Access = OWNER, limit: int = 10) -> SearchResult:
        return await self.indexing.search.search(access, query, limit)

    async def hits(self, query: str, access: Access = OWNER, limit: int = 10) -> list[Hit]:
        return list((await self.look(query, access, limit)).hits)

    async def paths(self, query: str, access: Access = OWNER) -> list[str]:
        return [hit.path for hit in await self.hits(query, access)]


@asynccontextmanager
async def house(
    folder: Path,
    db: Database,
    *,
    embedder: Embedder | None = None,
    home: Home | None = None,
    clock: FakeClock | None = None,
    run: bool = False,
    scan_every_s: float = 60.0,
    settings: IndexSettings | None = None,
    hot: HotAreas | None = None,
    sleep: Sleep = asyncio.sleep,
    change: EmbeddingChange | None = None,
) -> AsyncIterator[House]:
    """`run`: with everything that works behind, until the block ends."""
    clock = clock or FakeClock()
    root = folder / "workspace"
    files = WorkspaceThreads(Workspace(root, folder / "data", clock))
    scopes: list[Scope] = []

    async def list_scopes() -> list[Scope]:
        return list(scopes)

    indexing = Indexing(
        db=db,
        files=files,
        clock=clock,
        today=lambda: date(2026, 3, 14),
        list_scopes=list_scopes,
        embedder=embedder,
        home=home,
        settings=settings or IndexSettings(),
        hot=hot,
        scan_every_s=scan_every_s,
        sleep=sleep,
        change=change,
    )
    made = House(root, db, files, indexing, scopes, clock)
    try:
        if not run:
            yield made
            return
        async with asyncio.TaskGroup() as group:
            running = group.create_task(indexing.run())
            yield made
            running.cancel()
    finally:
        if embedder is not None:
            await embedder.close()
        await files.close()


async def until(seen: Callable[[], object], within_s: float = 20.0) -> None:
    """Wait until `seen()` is true; it may be a coroutine function."""
    async with asyncio.timeout(patience(within_s)):
        while True:
            found = seen()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return
            await asyncio.sleep(0.02)


async def vectors_ready(built: House) -> None:
    async def ready() -> bool:
        status = await built.indexing.status()
        return status.vectors == "ok" and status.embedded == status.passages

    await until(ready)


def lines(texts: Sequence[str]) -> str:
    return "".join(f"- {text}\n" for text in texts)

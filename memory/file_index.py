"""Keeping the index equal to the files (WD-112, WD-113): after each write of ours that file, every minute all of them.

Words stand in the index when `refresh` returns; vectors follow behind (see `gateway.indexing`). What a person deletes or empties is gone at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from memory import chunk_rows, file_chunks, words
from memory.areas import area_of
from memory.chunk_rows import Gone, IndexedFile
from memory.database import Database
from memory.file_chunks import Chunk, Passage, chunks_of, passages_of
from memory.file_errors import FileUnreadable, PathRefused
from memory.layout import ROLES, Role, place
from memory.lore import Lore, lore_of
from memory.scopes import Scope
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads

_PAGES = frozenset({Role.KNOWLEDGE, Role.PUBLIC})
_JUST_NOW_NS = 2_000_000_000  # a file changed so shortly before may change again without another stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What a refresh did. `changed`: the index says something else now; `chunks`: of the file, now; `gone`: for the vector index to drop."""

    changed: bool
    chunks: int = 0
    gone: tuple[Gone, ...] = ()


@dataclass(frozen=True, slots=True)
class _Cut:
    """A file, read and cut."""

    file: IndexedFile
    role: Role
    lore: Lore
    chunks: tuple[tuple[Chunk, tuple[Passage, ...]], ...]


class FileIndex:
    """One per process; refreshes take turns, so that an older look at a file never ends up above a newer one.

    `size`, `overlap`: of chunks, in tokens; `passage_tokens`: of the embedder (`Embedder.passage_tokens`).
    """

    def __init__(
        self,
        db: Database,
        files: WorkspaceThreads,
        clock: Callable[[], datetime],
        *,
        size: int = 500,
        overlap: int = 50,
        passage_tokens: int = 0,
    ) -> None:
        self._db = db
        self._files = files
        self._clock = clock
        self._size = size
        self._overlap = overlap
        self._passage_tokens = passage_tokens
        self._turn = asyncio.Lock()

    @property
    def _rule(self) -> str:
        return f"{words.VERSION}|{file_chunks.rule(self._size, self._overlap, self._passage_tokens)}"

    def cut_by(self, passage_tokens: int) -> None:
        """Cut by another size of passages from now on; files cut by the former one are so at the next scan."""
        self._passage_tokens = passage_tokens

    async def refresh(self, scope: Scope, path: str, *, anew: bool = False) -> Refreshed:
        """Read one file and make the index say what it says; `anew`: also where it says so already, in rows made new.

        PathRefused for what is no file of the scope; StoreUnavailable: try again.
        """
        found = place(scope, path)
        if not ROLES[found.role].searchable:
            return Refreshed(changed=False)
        async with self._turn:
            cut = await self._files.read(lambda workspace: self._cut(workspace, scope, found.path))
            return await (self._remove(scope, found.path) if cut is None else self._put(scope, cut, anew=anew))

    async def scan(self, scope: Scope, *, anew: bool = False, seen: Callable[[int, int], object] = lambda done, total: None) -> Refreshed:
        """Refresh every file of a scope that is new, changed, gone or cut by an older rule; `anew`: all. A file whose stamp is unchanged is not read.

        `seen` hears how many of how many files are done. `chunks` of the result counts those of the whole scope.
        """
        stamps = await self._files.read(lambda workspace: _stamps(workspace, scope))
        known = await self._db.read(lambda connection: chunk_rows.known_files(connection, str(scope)))
        stale = [path for path, stamp in stamps.items() if anew or not self._is_current(known.get(path), stamp)]
        stale += [path for path in known if path not in stamps]
        gone: list[Gone] = []
        changed = False
        for done, path in enumerate(stale, start=1):
            result = await self.refresh(scope, path, anew=anew)
            gone += result.gone
            changed |= result.changed
            seen(done, len(stale))
        now = await self._db.read(lambda connection: chunk_rows.known_files(connection, str(scope)))
        return Refreshed(changed=changed, chunks=sum(file.chunks for file in now.values()), gone=tuple(gone))

    async def forget_scope(self, scope: Scope) -> Refreshed:
        """Remove everything of a scope from the index (WD-15)."""
        async with self._turn:
            gone = await self._db.write(lambda connection: chunk_rows.remove_scope(connection, str(scope)))
        return Refreshed(changed=True, gone=tuple(gone))

    def _is_current(self, known: IndexedFile | None, stamp: str) -> bool:
        return known is not None and known.rule == self._rule and bool(stamp) and known.stamp == stamp

    def _cut(self, workspace: Workspace, scope: Scope, path: str) -> _Cut | None:
        """None for what is not there or cannot be read: it is kept out of the index (WD-23)."""
        try:
            stamp = _stamp(workspace, scope, path, self._clock())
            text = workspace.read(scope, path)
        except (FileUnreadable, PathRefused):
            return None
        if text is None:
            return None
        cut = chunks_of(str(scope), path, text.content, size=self._size, overlap=self._overlap)
        lore = lore_of(text.content) if text.role in _PAGES else Lore.NONE
        file = IndexedFile(path=path, hash=text.hash, stamp=stamp, rule=self._rule, chunks=len(cut))
        return _Cut(file, text.role, lore, tuple((chunk, passages_of(chunk, self._passage_tokens)) for chunk in cut))

    async def _put(self, scope: Scope, cut: _Cut, *, anew: bool) -> Refreshed:
        before = await self._db.read(lambda connection: chunk_rows.known_file(connection, str(scope), cut.file.path))
        if before == cut.file and not anew:
            return Refreshed(changed=False, chunks=len(cut.chunks))
        area = area_of(scope, cut.role)
        gone = await self._db.write(
            lambda connection: chunk_rows.replace(connection, str(scope), cut.file, area, cut.lore, cut.chunks, self._clock(), anew=anew)
        )
        changed = anew or before is None or (before.hash, before.rule) != (cut.file.hash, cut.file.rule)
        return Refreshed(changed=changed, chunks=len(cut.chunks), gone=tuple(gone))

    async def _remove(self, scope: Scope, path: str) -> Refreshed:
        if await self._db.read(lambda connection: chunk_rows.known_file(connection, str(scope), path)) is None:
            return Refreshed(changed=False)
        gone = await self._db.write(lambda connection: chunk_rows.remove(connection, str(scope), path))
        return Refreshed(changed=True, gone=tuple(gone))


def _stamps(workspace: Workspace, scope: Scope) -> dict[str, str]:
    """Searchable files with their stamps; empty for one that must be read to be known."""
    found: dict[str, str] = {}
    for file in workspace.files(scope):
        if ROLES[file.role].searchable:
            try:
                found[file.path] = _stamp(workspace, scope, file.path, None)
            except PathRefused:
                continue
    return found


def _stamp(workspace: Workspace, scope: Scope, path: str, now: datetime | None) -> str:
    """What the disk says of a file; empty when it changed just before `now` and may change again within the same tick."""
    seen = workspace.stamp(scope, path)
    if seen is None:
        return ""
    name, stamp = seen
    if now is not None and abs(now.timestamp() * 1e9 - max(stamp.changed_ns, stamp.touched_ns)) < _JUST_NOW_NS:
        return ""
    return f"{name}:{stamp.device}:{stamp.inode}:{stamp.size}:{stamp.changed_ns}:{stamp.touched_ns}"

"""The home of the vector index: Chroma embedded in a folder of ours, or a Chroma server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from memory import chroma_check, chroma_folder
from memory.chroma_check import LIMIT_S, Verdict
from memory.chroma_client import ChromaIndex
from memory.index_errors import IndexFailed
from memory.ports import Vector, VectorIndex


class ChromaHome:
    """`folder`: `chroma/` of the data directory, whose lock the process holds (WD-120); `url`: of a server instead, empty for none."""

    def __init__(self, folder: Path, url: str = "", *, check_s: float = LIMIT_S) -> None:
        self._base = folder
        self._url = url
        self._check_s = check_s
        if not url:
            chroma_folder.sweep(folder)
        self._index = self._make()

    @property
    def index(self) -> VectorIndex:
        return self._index

    async def check(self, collection: str, samples: Mapping[str, Vector], expected: int) -> Verdict:
        folder = None if self._url else chroma_folder.current(self._base)
        return await chroma_check.check(folder, self._url, collection, samples, expected, limit_s=self._check_s)

    async def start_anew(self) -> None:
        """Forget the client and put its folder aside. A server keeps what it has: a new collection gets another name."""
        await self._index.close()
        if not self._url:
            try:
                await asyncio.to_thread(chroma_folder.put_aside, self._base)
            except OSError as error:
                raise IndexFailed(f"the damaged vector index cannot be put aside: {error.strerror or error}") from error
        self._index = self._make()

    async def close(self) -> None:
        await self._index.close()

    def _make(self) -> ChromaIndex:
        return ChromaIndex(url=self._url) if self._url else ChromaIndex(folder=chroma_folder.current(self._base))

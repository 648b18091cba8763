"""Embedders that run in this process: one thread of their own, loaded at first use, questions before documents that wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from memory.embedders.batches import batches, shortened
from memory.index_errors import EmbedderFailed
from memory.ports import Matrix, Vector

T = TypeVar("T")


class LocalModel(Protocol):
    """A loaded model, used by one thread. Rows need not have length 1."""

    @property
    def dimension(self) -> int: ...

    def documents(self, texts: list[str]) -> Matrix: ...

    def questions(self, texts: list[str]) -> Matrix: ...


class LocalEmbedder:
    """`load` is called in the thread at the first use and may import what it needs; what it raises as ImportError or OSError is EmbedderFailed.

    `stride`, `stride_characters`: documents that the thread takes in one go; a question waits for one such go at most, so slow models take few.
    `longest`: characters of a text; a longer one is shortened.
    """

    def __init__(
        self,
        load: Callable[[], LocalModel],
        *,
        fingerprint: str,
        label: str,
        passage_tokens: int = 0,
        batch: int = 64,
        stride: int = 16,
        stride_characters: int = 16_000,
        longest: int = 8_000,
    ) -> None:
        self.fingerprint = fingerprint
        self.label = label
        self.passage_tokens = passage_tokens
        self.batch = batch
        self._load = load
        self._stride = stride
        self._stride_characters = stride_characters
        self._longest = longest
        self._model: LocalModel | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedder")

    async def dimension(self) -> int:
        return await self._in_thread(lambda: self._ready().dimension)

    async def documents(self, texts: Sequence[str]) -> list[Vector | None]:
        found: list[Vector | None] = []
        prepared = [shortened(text, self._longest) for text in texts]
        for part in batches(prepared, count=self._stride, characters=self._stride_characters):
            found += await self._in_thread(partial(self._rows, [prepared[at] for at in part], question=False))
        return found

    async def questions(self, texts: Sequence[str]) -> list[Vector | None]:
        return await self._in_thread(partial(self._rows, [shortened(text, self._longest) for text in texts], question=True))

    async def close(self) -> None:
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _ready(self) -> LocalModel:
        if self._model is None:
            try:
                self._model = self._load()
            except (ImportError, OSError) as error:
                raise EmbedderFailed(f"the built-in embedder {self.label} cannot be loaded: {error}", permanent=True) from error
        return self._model

    def _rows(self, texts: list[str], *, question: bool) -> list[Vector | None]:
        model = self._ready()
        if not texts:
            return []
        return unit_rows(model.questions(texts) if question else model.documents(texts))


def unit_rows(matrix: Matrix) -> list[Vector | None]:
    """Each row with length 1; None for one that is all zeros or no number."""
    rows = np.asarray(matrix, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1)
    return [row / length if np.isfinite(length) and length > 1e-6 else None for row, length in zip(rows, lengths, strict=True)]

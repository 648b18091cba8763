"""One request of vectors for each reply and embedder, whatever becomes of it (SM-29, SM-34)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from memory.embedders.hashed import hash_embedder
from memory.index_errors import EmbedderFailed
from memory.ports import Vector
from memory.query import Query


class Counting:
    """An embedder that counts its requests: it answers, fails, or never answers."""

    fingerprint, label, batch, passage_tokens = "counting", "counting", 8, 0

    def __init__(self, *, fails: bool = False, hangs: bool = False) -> None:
        self.requests: list[list[str]] = []
        self._fails, self._hangs = fails, hangs
        self._inner = hash_embedder()

    async def dimension(self) -> int:
        return await self._inner.dimension()

    async def documents(self, texts: Sequence[str]) -> list[Vector | None]:
        return await self._inner.documents(texts)

    async def questions(self, texts: Sequence[str]) -> list[Vector | None]:
        self.requests.append(list(texts))
        if self._hangs:
            await asyncio.Event().wait()
        if self._fails:
            raise EmbedderFailed("no key")
        return await self._inner.questions(texts)

    async def close(self) -> None:
        await self._inner.close()


@pytest.mark.rule("SM-29")
async def test_all_texts_go_in_one_request_and_equal_or_empty_ones_once() -> None:
    embedder, query = Counting(), Query("cello", "cello", "", "cello\ntea", time_limit_s=5)
    one, two, none = await asyncio.gather(
        query.vector(embedder, "cello"), query.vector(embedder, "cello\ntea"), query.vector(embedder, "never asked")
    )
    assert embedder.requests == [["cello", "cello\ntea"]]
    assert one is not None and two is not None and none is None
    assert not np.array_equal(one, two)


@pytest.mark.rule("SM-34")
@pytest.mark.parametrize("trouble", ["fails", "hangs"])
async def test_who_comes_after_a_failure_hears_of_it_at_once(trouble: str) -> None:
    embedder, query = Counting(fails=trouble == "fails", hangs=trouble == "hangs"), Query("cello", time_limit_s=0.01)
    for _ in range(2):
        with pytest.raises(EmbedderFailed):
            await query.vector(embedder, "cello")
    assert len(embedder.requests) == 1


@pytest.mark.rule("SM-34")
async def test_who_stops_waiting_lets_nobody_ask_again() -> None:
    embedder, query = Counting(hangs=True), Query("cello", time_limit_s=60)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await query.vector(embedder, "cello")
    with pytest.raises(EmbedderFailed):
        await query.vector(embedder, "cello")
    assert len(embedder.requests) == 1

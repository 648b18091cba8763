"""An embedder that is left in peace while it is known to be out of order: not asked again for a minute, and written of once an hour (RS-184)."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from memory.index_errors import EmbedderFailed
from memory.ports import Embedder, Vector

REST_S = 60.0
SAID_EVERY_S = 3600.0

log = logging.getLogger(__name__)
T = TypeVar("T")


class RestingEmbedder:
    """`inner` with a rest after each failure. `now`: a monotonic clock, in seconds."""

    def __init__(self, inner: Embedder, *, now: Callable[[], float] = time.monotonic) -> None:
        self._inner = inner
        self._now = now
        self._failed: EmbedderFailed | None = None
        self._until = 0.0
        self._said: float | None = None

    @property
    def fingerprint(self) -> str:
        return self._inner.fingerprint

    @property
    def label(self) -> str:
        return self._inner.label

    @property
    def batch(self) -> int:
        return self._inner.batch

    @property
    def passage_tokens(self) -> int:
        return self._inner.passage_tokens

    async def dimension(self) -> int:
        return await self._asked(self._inner.dimension)

    async def documents(self, texts: Sequence[str]) -> list[Vector | None]:
        return await self._asked(lambda: self._inner.documents(texts))

    async def questions(self, texts: Sequence[str]) -> list[Vector | None]:
        return await self._asked(lambda: self._inner.questions(texts))

    async def close(self) -> None:
        await self._inner.close()

    async def _asked(self, ask: Callable[[], Awaitable[T]]) -> T:
        left = self._until - self._now()
        if self._failed is not None and left > 0:
            raise EmbedderFailed(str(self._failed), permanent=self._failed.permanent, retry_after_s=left)
        try:
            found = await ask()
        except EmbedderFailed as error:
            self._rest(error)
            raise
        if self._failed is not None:
            log.info("the embedding model %s answers again", self.label)
            self._failed = None
        return found

    def _rest(self, error: EmbedderFailed) -> None:
        now = self._now()
        self._failed, self._until = error, now + max(REST_S, error.retry_after_s)
        if self._said is None or now - self._said >= SAID_EVERY_S:
            self._said = now
            log.warning("the embedding model %s does not work, search goes by words: %s", self.label, error)

"""What one reply asks the indexes: its texts, and their vectors, made in one request when somebody first wants one (SM-29, RS-33).

Saved memories, documents and earlier messages are searched with the same vectors. Where their texts differ the request holds each of them.
"""

from __future__ import annotations

import asyncio

from memory.index_errors import EmbedderFailed
from memory.ports import Embedder, Vector


class Query:
    """`texts`: all that will be asked. `time_limit_s`: for the vectors, from the first wish on; whoever comes later gets what there is."""

    def __init__(self, *texts: str, time_limit_s: float) -> None:
        self._texts = tuple(dict.fromkeys(filter(None, texts)))
        self._time_limit_s = time_limit_s
        self._made: dict[str, dict[str, Vector | None]] = {}
        self._failed: dict[str, EmbedderFailed] = {}
        self._lock = asyncio.Lock()

    async def vector(self, embedder: Embedder, text: str) -> Vector | None:
        """Of one of the texts, as `Embedder.questions` gives it. One request for each embedder, also when it failed. Raises EmbedderFailed, of which
        the first tells why."""
        async with self._lock:  # two searches at once wait for one request
            name = embedder.fingerprint
            if name in self._failed:
                raise self._failed[name]
            if name not in self._made:
                self._made[name] = await self._asked(embedder, name)
            return self._made[name].get(text)

    async def _asked(self, embedder: Embedder, name: str) -> dict[str, Vector | None]:
        try:
            async with asyncio.timeout(self._time_limit_s):
                found = await embedder.questions(self._texts)
        except TimeoutError:
            self._failed[name] = EmbedderFailed(f"no vector within {self._time_limit_s:g} s")
            raise self._failed[name] from None
        except EmbedderFailed as error:
            self._failed[name] = error
            raise
        except asyncio.CancelledError:  # who asked first does not wait any more; the others are not to ask again
            self._failed[name] = EmbedderFailed("no vector in time")
            raise
        return dict(zip(self._texts, found, strict=True))

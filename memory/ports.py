"""Where the outside begins for memory: what makes vectors of texts, and what finds vectors that are near.

Each port has one contract suite which fakes and real ones pass alike. Words are no port: both databases hold them in the transaction of the text
(see `lexical`), and tests run on both.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from memory.areas import IndexArea

Vector = npt.NDArray[np.float32]
Matrix = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Makes vectors of texts. One that fails raises EmbedderFailed; it never blocks the event loop.

    `fingerprint`: names the model and how texts are prepared for it, so that vectors under one fingerprint can be compared and others cannot.
    `label`: for people. `batch`: how many documents are best given at once. `passage_tokens`: how much text makes one good vector; 0: a whole chunk.
    """

    @property
    def fingerprint(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def batch(self) -> int: ...

    @property
    def passage_tokens(self) -> int: ...

    async def dimension(self) -> int:
        """Of every vector. Loads the model, or asks the endpoint, at the first call."""
        ...

    async def documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """One vector of length 1 for each text that is stored, in order. A text too long is cut by the embedder; None for one it cannot take, which
        never fails the others (RS-179). Called in the background."""
        ...

    async def questions(self, texts: Sequence[str]) -> list[Vector | None]:
        """The same for texts that search; they may be prepared in another way. Goes before documents that wait."""
        ...

    async def close(self) -> None: ...


class VectorIndex(Protocol):
    """Finds near vectors among many; one collection at a time answers. Raises IndexFailed. Everything in it can be thrown away and made again."""

    async def upsert(self, collection: str, area: Mapping[str, IndexArea], vectors: Mapping[str, Vector]) -> None:
        """Store vectors by key; both mappings have the same keys. A repeated call changes nothing, an empty one does nothing (WD-125)."""
        ...

    async def delete(self, collection: str, keys: Collection[str]) -> None:
        """Unknown keys are no fault; no keys, no call (VX-12)."""
        ...

    async def query(self, collection: str, areas: Sequence[IndexArea], vector: Vector, count: int) -> dict[str, float]:
        """Up to `count` keys of these areas with their cosine. There is no query without areas; none of them, no hits (WD-127)."""
        ...

    async def keys(self, collection: str) -> set[str]:
        """Every key it holds; empty for a collection that is not there."""
        ...

    async def drop(self, collection: str) -> None: ...

    async def close(self) -> None: ...

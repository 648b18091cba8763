"""What one reply may recall, and the areas of it as they are compared (RS-31, RS-185)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memory.areas import IndexArea
from memory.hot_areas import AreaRows, Cosines, Flags, Ints
from memory.recall import chunk_store


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What one reply may recall of one chat: audiences by key (RS-185), messages behind `after` (what was cleared stays cleared) up to `edge` (behind
    it all is live) but for those of `live`. `importer`: who alone reads imports of theirs; `title`: of a chat that is not the one of the reply."""

    conversation_id: str
    audiences: tuple[str, ...]
    edge: int
    after: int = 0
    live: frozenset[int] = frozenset()
    importer: str = ""
    title: str = ""

    @property
    def areas(self) -> tuple[IndexArea, ...]:
        keys = [*self.audiences, *([f"importer:{self.importer}"] if self.importer else [])]
        return tuple(chunk_store.area_of(self.conversation_id, key) for key in keys)

    def holds(self, seq: int) -> bool:
        """Whether a message with this number may be recalled."""
        return self.after < seq <= self.edge and seq not in self.live

    def holds_each(self, seqs: Ints) -> Flags:
        """`holds` for each of these numbers."""
        return (seqs > self.after) & (seqs <= self.edge) & ~np.isin(seqs, list(self.live))


@dataclass(frozen=True, slots=True)
class Area:
    """One area as it is compared. An empty name is that of the messages without a chunk: the negative of their number stands for their id."""

    reach: Reach
    area: IndexArea
    rows: AreaRows
    similar: Cosines

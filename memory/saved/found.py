"""What one search of saved memories says (SM-29 to SM-34), as a value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memory.saved.rows import Memory


class Searched(StrEnum):
    """How a search went. Only OK may change counters, and only then may a full list forget a row (SM-34, SM-41, SM-47)."""

    OK = "ok"
    NONE = "none"  # nothing to search for, or nobody asked (SM-30)
    OFF = "off"  # no embedder, or one that is unsuitable (SM-98)
    FAILED = "failed"  # embedding, vectors or floor missing, wrong or late (SM-34)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """`matches`: good ones, best first, at most `matches_max`; `compared`: every row that was compared, matches too. Both empty unless `mode` is OK.
    `reason`: why not, for the log and the health check; empty when there is nothing to say."""

    mode: Searched
    matches: tuple[Memory, ...] = ()
    compared: tuple[Memory, ...] = ()
    reason: str = ""

    @property
    def ok(self) -> bool:
        return self.mode is Searched.OK


NOT_SEARCHED = Found(mode=Searched.NONE)

"""The live window: which turns of the log are sent, decided purely (WD-36 to WD-40, RS-3).

The saved edge only moves forward, in halves, so the start of the prompt stays the same between two trims.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSize:
    """One turn of the log: the sequence number of its last message, and its estimated tokens."""

    last_seq: int
    tokens: int


def edge_after_trim(turns: Sequence[TurnSize], *, max_turns: int, max_tokens: int) -> int | None:
    """The sequence number up to which messages leave, or None when nothing must.

    Above either limit the oldest half of the turns (rounded down) leaves, again until it fits; the newest turn never leaves.
    """
    kept = list(turns)
    while len(kept) > 1 and (len(kept) > max_turns or sum(turn.tokens for turn in kept) > max_tokens):
        kept = kept[len(kept) // 2 :]
    gone = len(turns) - len(kept)
    return turns[gone - 1].last_seq if gone else None

"""The live window: which turns of the log are sent, decided purely (WD-36 to WD-40, RS-3).

The saved edge only moves forward, in halves, so the start of the prompt stays the same between two trims.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TURNS_AT_MOST = 5  # times the turn limit, however short the turns are


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSize:
    """One turn of the log: the sequence number of its last message, and its estimated tokens."""

    last_seq: int
    tokens: int


def edge_after_trim(turns: Sequence[TurnSize], *, max_turns: int, max_tokens: int, floor_tokens: int = 0) -> int | None:
    """The sequence number up to which messages leave, or None when nothing must.

    Above either limit the oldest half of the turns (rounded down) leaves, again until it fits; the newest turn never leaves. Up to `floor_tokens`
    short talk is left in peace: there only five times the turn limit counts (WD-37).
    """
    kept = list(turns)
    while len(kept) > 1:
        size = sum(turn.tokens for turn in kept)
        most = max_turns if size > floor_tokens else TURNS_AT_MOST * max_turns
        if size <= max_tokens and len(kept) <= most:
            break
        kept = kept[len(kept) // 2 :]
    gone = len(turns) - len(kept)
    return turns[gone - 1].last_seq if gone else None

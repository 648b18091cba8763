"""What saved memory does in one kind of chat (the platform matrix, SM 3.5), as a value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Notice(StrEnum):
    """How a person hears of what was remembered (SM-61)."""

    TOAST = "toast"
    SHORT = "short"
    FULL = "full"
    HIDDEN = "hidden"
    RESULT = "result"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPolicy:
    """`head_rows`: unpinned rows that stand in every prompt, None for all active ones (SM-21); `deep_memory`: whether a subscriber gets it here;
    `dreams`: with scheduled summaries."""

    read_rows: bool
    write_rows: bool
    ageing: bool
    head_rows: int | None
    deep_memory: bool
    dreams: bool
    chat_summaries: bool
    notice: Notice


OFF = MemoryPolicy(
    read_rows=False,
    write_rows=False,
    ageing=False,
    head_rows=0,
    deep_memory=False,
    dreams=False,
    chat_summaries=False,
    notice=Notice.NONE,
)
"""Of who is signed out and of a challenge: nothing is read, nothing written (SM-88, SM-89)."""

"""How much one dream may take away (WD-80), and how much a model must be able to answer (WD-79). Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from memory.dream_input import Material
from memory.dream_rules import Judged
from memory.markdown_lines import has_content

_ID_TOKENS = 40  # ids, names of fields and braces of one entry
_NEW_TOKENS = 80  # a new line
_DIARY_TOKENS = 800


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a dream may not be written. `kind`: lines, bytes or empty; `lost` of `total` (lines or bytes) would go, `limit` may."""

    kind: str
    lost: int
    total: int
    limit: int

    @property
    def reason(self) -> str:
        """As a dream's row keeps it."""
        return f"{self.kind}: {self.lost} of {self.total}, limit {self.limit}"

    @staticmethod
    def of_reason(text: str) -> Refusal | None:
        found = _REASON.fullmatch(text)
        return Refusal(kind=found[1], lost=int(found[2]), total=int(found[3]), limit=int(found[4])) if found else None


_REASON = re.compile(r"(lines|bytes|empty): ([0-9]+) of ([0-9]+), limit ([0-9]+)")


def refusal(old_text: str, new_text: str, given: Material, judged: Judged, *, loss_percent: int, shrink_percent: int) -> Refusal | None:
    """None when the new text may take the place of the old. Lines that were reworded or merged are kept ones; one drop is always allowed."""
    total, lost = len(given.old), len(judged.dropped)
    limit = max(1, total * loss_percent // 100)
    if lost > limit:
        return Refusal(kind="lines", lost=lost, total=total, limit=limit)
    if has_content(old_text) and not has_content(new_text):
        return Refusal(kind="empty", lost=lost, total=total, limit=limit)
    before, after = len(old_text.encode()), len(new_text.encode())
    most = before * shrink_percent // 100
    if before - after > most:
        return Refusal(kind="bytes", lost=before - after, total=before, limit=most)
    return None


def output_tokens(given: Material, max_new: int, count: Callable[[str], int]) -> int:
    """What a full answer may need: every old line said again, room for the new ones, and the diary (WD-79)."""
    old = sum(count(line.text) + count(line.section) + _ID_TOKENS for line in given.old)
    return old * 5 // 4 + max_new * (_NEW_TOKENS + _ID_TOKENS) + _DIARY_TOKENS

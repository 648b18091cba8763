"""Places in a character's text for what stands elsewhere by itself: standing summaries and recalled passages (RS-170). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

SUMMARIES = ("chat_summary",)
RECALLED = ("recalled_scenes", "recalled_messages")  # of several names in one text the first of these is the place

_SLOT = re.compile(rf"\{{\{{\s*({'|'.join((*SUMMARIES, *RECALLED))})\s*\}}\}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Names of the slots that a text has for each content; empty: it has none, and the content stands at its default place, summaries before the
    talk, recalled passages behind it."""

    summaries: str = ""
    recalled: str = ""


def places(template: str) -> Places:
    named = _SLOT.findall(template)
    return Places(summaries=_first(SUMMARIES, named), recalled=_first(RECALLED, named))


def fill(template: str, *, summaries: str, recalled: str) -> str:
    """`template` with each content once, at the first slot of its name; other slots, and those without content, print nothing. What is put in is not
    looked through for slots."""
    found = places(template)
    left = {found.summaries: summaries, found.recalled: recalled}
    return _SLOT.sub(lambda slot: left.pop(slot[1], ""), template)


def _first(names: Sequence[str], among: Sequence[str]) -> str:
    return next((name for name in names if name in among), "")

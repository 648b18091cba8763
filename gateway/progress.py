"""An answer in the making, as somebody who waits for it sees it: the draft as it grows, silence, the end.

A step carries the whole draft, never a piece of it: whoever reads it decides what to do when words were taken back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agent.llm.port import Finish, Usage


@dataclass(frozen=True, slots=True)
class Grown:
    """`text`: everything said so far. Shorter than before, or other words, when the model had to begin again (CH-98)."""

    text: str


@dataclass(frozen=True, slots=True)
class Quiet:
    """Nothing new for a while: time to see whether the reader is still there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The last step. `state` is answered, empty, silent, stopped or failed; `code` says why it failed (a code of `agent.errors`, `budget:day`, …).
    `memories`: saved memories that it changed, as `memory_notices.as_json` says them."""

    state: str
    text: str = ""
    code: str = ""
    usage: Usage = field(default_factory=Usage)
    finish: Finish | None = None
    memories: tuple[Mapping[str, Any], ...] = ()


Step: TypeAlias = Grown | Quiet | Ended


class Restarted(Exception):
    """Words that went out were taken back."""


class Appended:
    """For a reader that can only append: what may be sent of a growing draft.

    When the model begins again, nothing is sent while it says the same words once more; other words are `Restarted`, for what went out cannot be
    called back, and two answers run together are none. Blanks at both ends wait for the words behind them, so that the whole equals the stored
    text.
    """

    def __init__(self) -> None:
        self._sent = ""

    def more(self, draft: str, *, whole: bool = False) -> str:
        """What to send now that the draft is `draft`; with `whole` nothing comes behind it. Raises Restarted."""
        text = draft.strip()
        if text.startswith(self._sent):
            more, self._sent = text[len(self._sent) :], text
            return more
        if whole or not self._sent.startswith(text):
            raise Restarted
        return ""

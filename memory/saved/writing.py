"""Wishes to write saved memories: what is to be stored, within which caps, and what came of it (SM-3, SM-54). Values alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from memory.saved.rows import ListKey, Memory
from memory.saved.text_limit import CONTENT_MAX


class Outcome(StrEnum):
    """What came of a wish to write (SM-54); one code each."""

    SAVED = "saved"
    UPDATED = "updated"
    DELETED = "deleted"
    UNCHANGED = "unchanged"
    MEMORY_OFF = "memory_off"
    LEARNING_OFF = "learning_off"
    PRIVACY = "privacy"
    BLACKLISTED = "blacklisted"
    LIST_FULL = "list_full"
    SEARCH_UNAVAILABLE = "search_unavailable"
    TOO_LONG = "too_long"
    EMPTY = "empty"
    UNKNOWN_ID = "unknown_id"
    PINNED = "pinned"
    CHANGED = "changed"
    NEEDS_YES = "needs_yes"
    LIST_NOT_ALLOWED = "list_not_allowed"
    TOO_MANY_OPERATIONS = "too_many_operations"
    STORAGE_ERROR = "storage_error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The caps of the configuration (3.4): rows of each side of a list, code points of a text (never above CONTENT_MAX)."""

    unpinned: int = 100
    pinned: int = 20
    content: int = CONTENT_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class New:
    """A row to be made. `author_kind`: person, model, job. `private_origin` is of personal rows and ignored for a space's (SM-15).

    `source`: platform, chat, turn, messages, where known. A pin is protected whatever `protected` says.
    """

    key: ListKey
    content: str
    origin: str
    author_kind: str
    author_id: str = ""
    protected: bool = False
    pinned: bool = False
    private_origin: bool = True
    channel_ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    source: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """`memory`: the row as it is now, of a deletion as it was, of a refused duplicate the one that stands. `victim`: the row that was forgotten for
    it; with `list_full`, the one that would go if the person agrees. `present_text`: what stands there now, with `changed`. `length` and `limit`:
    code points, with `too_long`. `seq`: of the operation in the journal, 0 for none."""

    outcome: Outcome
    memory: Memory | None = None
    victim: Memory | None = None
    present_text: str = ""
    length: int = 0
    limit: int = 0
    seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What came of saving several drafts at once: all or none (SM-60). `added`: new rows; `standing`: rows that said exactly the same already;
    `fits`: how many of the drafts would have fitted, when they did not; `fault`: the place of the draft whose text is refused."""

    outcome: Outcome
    added: tuple[Memory, ...] = ()
    standing: tuple[Memory, ...] = ()
    fits: int = 0
    fault: int | None = None


def text_fault(content: str, limits: Limits) -> Result | None:
    """Why a cleaned text may not be stored; None when it may (SM-3)."""
    if not content:
        return Result(outcome=Outcome.EMPTY)
    if len(content) > limits.content:
        return Result(outcome=Outcome.TOO_LONG, length=len(content), limit=limits.content)
    return None

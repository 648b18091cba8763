"""What the workspace hands out and takes back: plain values about one file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memory.layout import Role
from memory.line_diff import DiffLine, difference
from memory.scopes import Scope


class Author(StrEnum):
    """Who changes a file. A program (a tool of the model's, a job) is held to the limit per line and to WD-22; a person may write what they like."""

    PERSON = "person"
    PROGRAM = "program"


class Section(StrEnum):
    """Sections of a daily file (WD-4, WD-54)."""

    TRIMMED = "Trimmed Context"
    SUMMARY = "Daily Summary"
    LATE = "Daily Summary (late)"
    OVERFLOW = "Context Overflow Recovery"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A file as it stood. `path`: as asked for; `name`: what the file is called (`USER.md` for `user.md`); `content`: every character, line ends and
    byte order mark included; `hash`: SHA-256 of its bytes in hex."""

    scope: Scope
    path: str
    name: str
    role: Role
    content: str
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """A file in a listing. `size` in bytes; `changed_at` as the disk says, in UTC."""

    path: str
    name: str
    role: Role
    size: int
    changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The file now. `before`: the hash it had, None for a new file; `revision`: where the old text is kept, None when there was none to keep.
    `text` is None when the file was removed. Not `changed`: it already said so, and nothing was written."""

    text: Text | None
    before: str | None
    revision: str | None = None
    changed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """The file now; None, and no file, when nothing was left to add. `refused`: why lines were left out, one reason each, without their words."""

    text: Text | None
    changed: bool
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Somebody changed the file since; nothing was written (WD-17). `current` is None when they removed it; `base` is the text that the change was
    based on, None when it is kept no more."""

    current: Text | None
    proposed: str
    base: str | None = None

    def difference(self) -> tuple[DiffLine, ...]:
        """What the proposed text would change in the file as it is now, to be shown."""
        return difference(self.current.content if self.current else "", self.proposed)

    def theirs(self) -> tuple[DiffLine, ...]:
        """What was changed in the file meanwhile; empty when the base is not known."""
        return () if self.base is None else difference(self.base, self.current.content if self.current else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A file that is left as it is and out of everything, for `/memory status` and `doctor` (WD-21, WD-23, WD-24). `reason` is a sentence."""

    path: str
    reason: str

"""What the page sees of dreams and proposals, and the desk behind it: plain values and one port (WD-77, WD-81, WD-89)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, Protocol

from gateway.person import Person
from memory.line_diff import DiffLine
from memory.scopes import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalView:
    """Why a dream was not written (WD-80). `kind`: lines, bytes or empty; `lost` of `total` would go, `limit` may."""

    kind: str
    lost: int
    total: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamChange:
    """One line that a dream touched, or looked at and left. `before`: the words that stood there (of a merge, several lines); `after`: those that
    stand there now, empty for a dropped line; `reason`: a code, of a drop: outdated, duplicate, temporary or contradicted."""

    kind: Literal["added", "changed", "merged", "dropped", "candidate", "left_out"]
    before: tuple[str, ...] = ()
    after: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamView:
    """One dream of the night of `date`. `state`: applying, done, refused or undone; `trigger`: night, manual or accepted; `story`: its narrative as
    safe HTML."""

    id: str
    date: date
    state: str
    trigger: str
    refusal: RefusalView | None
    changes: tuple[DreamChange, ...]
    story: str
    created_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalView:
    """What waits for a yes: a refused dream (`kind` dream), a line that rests on other people's words (candidate), a tool's change (change).

    `difference`: what accepting would change in the file `path`; `origin`: of a candidate's words (WD-67).
    """

    id: str
    kind: str
    path: str
    refusal: RefusalView | None
    origin: str
    difference: tuple[DiffLine, ...]
    created_at: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NextUndo:
    """What undoing would reverse now: `lines` lines of `path`, changed by `cause` at `at`."""

    cause: str
    path: str
    lines: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """How the newest ended job of a scope went. `state`: done or parked; `skipped`: why it did nothing: `nothing new` (WD-62), `model` (WD-79)."""

    at: datetime
    state: str
    skipped: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamList:
    """`running_since`: a dream of this scope is at work; `undo`: None when there is nothing to reverse; `at_night`: this memory dreams by itself."""

    dreams: tuple[DreamView, ...] = ()
    more: bool = False
    proposals: tuple[ProposalView, ...] = ()
    running_since: datetime | None = None
    last: LastRun | None = None
    undo: NextUndo | None = None
    at_night: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamStart:
    """`days` as taken, `clamped` when that is not what was asked for. With `running_since` another one runs, and nothing was started."""

    days: int
    clamped: bool = False
    running_since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """What undoing did, line by line: `removed` are gone again, `restored` are back. `whole`: the file is what it was before, byte for byte; else it
    was changed since, and only those lines were touched. `forgotten`: how many lines stay away, for they were forgotten."""

    path: str
    whole: bool
    removed: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    forgotten: int = 0


class Refused(Exception):
    """The desk will not. `code` is for programs; `key` names a sentence of the catalogue, `values` fill it in."""

    def __init__(self, code: str, key: str, /, **values: object) -> None:
        super().__init__(code)
        self.code = code
        self.key = key
        self.values = values


class DreamDesk(Protocol):
    """The dreams of a scope as the page uses them. Each call is one short look or one decision; the dream itself is a job."""

    async def look(self, scope: Scope, *, before: str, limit: int) -> DreamList:
        """Newest first, those before the dream of id `before` (empty = the newest)."""
        ...

    async def start(self, scope: Scope, person: Person, *, days: int, force: bool) -> DreamStart:
        """Raises Refused when this person has had their dreams of today, or when the model cannot dream."""
        ...

    async def undo(self, scope: Scope, person: Person) -> Reversal | None:
        """Reverse the last dream or tool change of the scope; None when there is none (WD-89)."""
        ...

    async def apply(self, scope: Scope, person: Person, proposal_id: str) -> Sequence[DiffLine] | None:
        """Accept a proposal of this scope; what it changed. None when there is no such open one. Raises Refused when a check still fails (WD-81)."""
        ...

    async def discard(self, scope: Scope, person: Person, proposal_id: str) -> bool:
        """Turn a proposal down; False when there is no such open one."""
        ...

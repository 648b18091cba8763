"""Whose files: the root, one person's or one space's; and what a conversation may read and write of them. Pure; unclear cases get the least.

The table of the specification (section 1.2) is `scope_of`. No tool takes a scope: it is settled here before the first model call (WD-9).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from memory.ids import PersonId, SpaceId

SYSTEM = "system.md"
PUBLIC = "knowledge/public"


class Kind(StrEnum):
    ROOT = "root"
    PERSON = "people"
    SPACE = "spaces"


_IDS = {Kind.ROOT: re.compile(""), Kind.PERSON: re.compile("p-[a-z2-7]{10}"), Kind.SPACE: re.compile("s-[a-z2-7]{10}")}


@dataclass(frozen=True, slots=True)
class Scope:
    """One memory area: the root (`id` is empty; the owner's), one person's or one space's. Written `root`, `people/<id>`, `spaces/<id>` (WD-3)."""

    kind: Kind
    id: str = ""

    def __post_init__(self) -> None:
        """ValueError for an id that we never gave: it would become the name of a folder."""
        if not _IDS[self.kind].fullmatch(self.id):
            raise ValueError(f"no id of a scope under {self.kind}: {self.id!r}")

    def __str__(self) -> str:
        return f"{self.kind}/{self.id}" if self.id else str(self.kind)

    @property
    def folder(self) -> tuple[str, ...]:
        """Its folder below the workspace, as names; none for the root."""
        return (self.kind, self.id) if self.id else ()

    @property
    def about(self) -> str:
        """The file that says whom or what the scope is about."""
        return "space.md" if self.kind is Kind.SPACE else "user.md"


ROOT = Scope(Kind.ROOT)


def person_scope(person: PersonId) -> Scope:
    return Scope(Kind.PERSON, person)


def space_scope(space: SpaceId) -> Scope:
    """Of a restricted channel or private thread too: it has an id of its own kind `s-` (WD-12)."""
    return Scope(Kind.SPACE, space)


def parse_scope(text: str) -> Scope:
    """The inverse of `str`. ValueError for anything else."""
    kind, _, name = text.partition("/")
    scope = Scope(Kind(kind), name)
    if str(scope) != text:
        raise ValueError(f"no scope: {text!r}")
    return scope


def scope_or_none(text: str) -> Scope | None:
    """The same, with None for whatever is no scope: less is read, never more."""
    try:
        return parse_scope(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Area:
    """Files of one scope: all of them, or the file or folder `under`."""

    scope: Scope
    under: str = ""

    def holds(self, scope: Scope, path: str) -> bool:
        return scope == self.scope and (not self.under or path == self.under or path.startswith(f"{self.under}/"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What one turn may touch. `scope`: whose memory it has, None for none. Paths asked about are those of `memory.layout`, already checked."""

    scope: Scope | None
    reads: tuple[Area, ...]
    writes: tuple[Area, ...] = ()

    def may_read(self, scope: Scope, path: str) -> bool:
        return any(area.holds(scope, path) for area in self.reads)

    def may_write(self, scope: Scope, path: str) -> bool:
        return any(area.holds(scope, path) for area in self.writes)


_PERSONA, _OPEN_PAGES = Area(ROOT, SYSTEM), Area(ROOT, PUBLIC)

WITHOUT_MEMORY = Access(scope=None, reads=(_PERSONA,))
"""Challenge chats, and any chat with memory off."""

STRANGER = Access(scope=None, reads=(_PERSONA, _OPEN_PAGES))
"""A visitor who is not signed in, a sender who is not paired, and whatever cannot be resolved (WD-9)."""


def scope_of(kind: str, *, person: Scope | None, space: Scope | None, memory_on: bool, known: bool) -> Access:
    """What a conversation reads and writes (section 1.2, WD-9, WD-10).

    `kind`: dm, group, web, api or challenge. `person`: the speaker's own scope, the root for the owner. `space`: the place's, None for private
    chats. `known`: the speaker is signed in or paired; a group does not ask. A combination that makes no sense is a stranger's: never more.
    """
    if kind == "challenge" or not memory_on:
        return WITHOUT_MEMORY
    if kind == "group":  # whoever speaks, the owner too: a group never reads a private scope
        return _own(space) if space is not None and space.kind is Kind.SPACE else STRANGER
    if kind in ("dm", "web", "api") and space is None and known and person is not None and person.kind is not Kind.SPACE:
        return _own(person)
    return STRANGER


def scope_of_task(delivers_to: Access, *, creator_may_read: bool) -> Access:
    """A scheduled task has the scope of the chat it delivers to, as long as whoever made it may read that scope when it runs."""
    return delivers_to if creator_may_read else STRANGER


def _own(scope: Scope) -> Access:
    whole = Area(scope)
    return Access(scope=scope, reads=(whole,) if scope == ROOT else (_PERSONA, whole, _OPEN_PAGES), writes=(whole,))

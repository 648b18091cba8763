"""The files a scope has, and the role of each (section 1.1): the table as data. A path with no role here is not ours and cannot be reached.

Names of roles are taken in one spelling only, so that no disk and no check can disagree about what `Memory/..` or `SYSTEM.MD` is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import lru_cache
from typing import Literal

from memory import cowagent
from memory.file_errors import PathRefused
from memory.paths import folded, parts_of
from memory.scopes import PUBLIC, ROOT, SYSTEM, Access, Kind, Scope

CURATED = "MEMORY.md"
DAILY_FOLDER = "memory"
DIARY_FOLDER = "memory/dreams"
KNOWLEDGE_FOLDER = "knowledge"
KNOWLEDGE_INDEX = "knowledge/index.md"


class Role(StrEnum):
    SYSTEM = "system"
    ABOUT = "about"
    RULES = "rules"
    CURATED = "curated"
    DAILY = "daily"
    DIARY = "diary"
    KNOWLEDGE = "knowledge"
    PUBLIC = "public"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """How files of a role are used. `head`: whole in the prompt of their scope (`system.md`: of every scope). `tools`: `file_write` reaches them."""

    head: bool = False
    searchable: bool = False
    dream: Literal["never", "read_only", "input"] = "never"
    tools: bool = False


ROLES: Mapping[Role, Conduct] = {
    Role.SYSTEM: Conduct(head=True, tools=True),
    Role.ABOUT: Conduct(head=True, searchable=True, dream="read_only", tools=True),
    Role.RULES: Conduct(head=True),
    Role.CURATED: Conduct(head=True, searchable=True, dream="input", tools=True),
    Role.DAILY: Conduct(searchable=True, dream="input", tools=True),
    Role.DIARY: Conduct(),
    Role.KNOWLEDGE: Conduct(searchable=True, tools=True),
    Role.PUBLIC: Conduct(searchable=True),  # only the owner's own edit puts a page there (WD-8)
    Role.OTHER: Conduct(),  # a person's own notes, what an import laid beside a file
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One file of one scope. `path`: below the scope's folder, in the one spelling; `folder`: names below the workspace; `names`: what the file may
    be called there, the one that wins first."""

    scope: Scope
    path: str
    role: Role
    folder: tuple[str, ...]
    names: tuple[str, ...]


_TOP = {folded(name): name for name in (SYSTEM, "user.md", "space.md", CURATED, cowagent.RULES, DAILY_FOLDER, KNOWLEDGE_FOLDER)}
_BELOW = {folded(path): path for path in (DIARY_FOLDER, PUBLIC, KNOWLEDGE_INDEX)}
_OLD_NAMES = {ours: theirs for theirs, ours in cowagent.NAMES.items()}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@lru_cache(maxsize=8_192)  # every listing asks it of every file
def place(scope: Scope, path: str) -> Place:
    """The file `path` of `scope`. PathRefused when it is none: outside, hidden, no Markdown, of no role, or of another scope (WD-20)."""
    parts = parts_of(path)
    parts = (cowagent.NAMES.get(parts[0], parts[0]), *parts[1:])
    plain = "/".join(parts)
    _check_spelling(parts)
    if cowagent.is_left_alone(plain):
        raise PathRefused(f"{plain} belongs to another program and is left alone")
    role = _role(scope, parts)
    old = _OLD_NAMES.get(plain, "")
    usable = old and (scope == ROOT or role is Role.ABOUT)
    return Place(scope=scope, path=plain, role=role, folder=(*scope.folder, *parts[:-1]), names=(parts[-1], old) if usable else (parts[-1],))


def daily_path(day: date) -> str:
    return f"{DAILY_FOLDER}/{day.isoformat()}.md"


def diary_path(day: date) -> str:
    return f"{DIARY_FOLDER}/{day.isoformat()}.md"


def day_of(path: str) -> date | None:
    """The local date that a daily file or a diary is about; None for other files."""
    name = path.removeprefix(f"{DIARY_FOLDER}/") if path.startswith(f"{DIARY_FOLDER}/") else path.removeprefix(f"{DAILY_FOLDER}/")
    stem = name.removesuffix(".md")
    if name != path and _DATE.fullmatch(stem):
        with suppress(ValueError):  # 2026-02-30
            return date.fromisoformat(stem)
    return None


def local_date_of(path: str) -> str:
    """The same as rows keep it, YYYY-MM-DD; empty for other files."""
    day = day_of(path)
    return day.isoformat() if day else ""


def locate(access: Access, path: str) -> Place:
    """The file a tool means by `path`: in the scope of its turn, or what every scope shares. PathRefused when this turn may not read it (WD-10)."""
    parts = parts_of(path)
    shared = path == SYSTEM or parts[:2] == ("knowledge", "public")
    scope = ROOT if shared else access.scope
    if scope is not None:
        found = place(scope, path)
        if access.may_read(found.scope, found.path):
            return found
    raise PathRefused(f"{path} cannot be reached from this chat")


def tool_may_write(access: Access, found: Place, *, knowledge: bool = True) -> bool:
    """Whether `file_write` and `file_edit` of a turn with `access` may change `found`: never a diary, a public page, `space.md` (WD-8, WD-104).

    `system.md` falls to the owner's private chats by `access` alone, for no other turn writes in the root. `knowledge`: the setting of that name.
    """
    if not access.may_write(found.scope, found.path) or (found.role is Role.KNOWLEDGE and not knowledge):
        return False
    return ROLES[found.role].tools and not (found.role is Role.ABOUT and found.scope.kind is Kind.SPACE)


def _check_spelling(parts: tuple[str, ...]) -> None:
    for known, name in ((_TOP, parts[0]), (_BELOW, "/".join(parts[:2]))):
        right = known.get("/".join(map(folded, name.split("/"))), name)
        if right != name:
            raise PathRefused(f"{name} is written {right}")


def _role(scope: Scope, parts: tuple[str, ...]) -> Role:
    match parts:
        case ("system.md",) if scope == ROOT:
            return Role.SYSTEM
        case ("system.md",):
            raise PathRefused("there is one system.md, and it is the owner's")
        case ("user.md" | "space.md" as name,):
            if name != scope.about:
                raise PathRefused(f"here that file is called {scope.about}")
            return Role.ABOUT
        case ("MEMORY.md",):
            return Role.CURATED
        case (cowagent.RULES,) if scope == ROOT:
            return Role.RULES
        case ("knowledge", "public", _, *_):
            if scope != ROOT:
                raise PathRefused("pages for everyone are the owner's")
            return Role.PUBLIC
        case ("knowledge", _, *_):
            return Role.KNOWLEDGE
        case ("memory", "dreams", _):
            return Role.DIARY if day_of("/".join(parts)) else Role.OTHER
        case ("memory", _):
            return Role.DAILY if day_of("/".join(parts)) else Role.OTHER
        case (_,):
            return Role.OTHER
        case _:
            raise PathRefused("the files of a memory are those at its top and in memory/ and knowledge/")

"""The world book: knowledge pages that say in their front matter when they stand in a prompt (WD-139). Pure.

    ---
    lore: always
    ---

`always`: whole in the head of every turn of its scope, all such pages together within `ALWAYS_MAX_TOKENS`. `match`: pieces of it in the tail when the
search of a reply accepts them. Anything else, and every page without front matter, is found by tools only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from memory import tokens
from memory.markdown_lines import BOM, behind_front_matter, plain

ALWAYS_MAX_TOKENS = 1_000
MATCH_MAX_PIECES = 3
MATCH_MAX_TOKENS = 512

_FIELD = re.compile(r"([A-Za-z][\w-]*)[ \t]*:[ \t]*(.*)")


class Lore(StrEnum):
    ALWAYS = "always"
    MATCH = "match"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page that always stands in the head: `text` without its front matter, `tokens` of that text."""

    path: str
    text: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The pages that stand in the head, by path, and the paths of those for which no room was left."""

    pages: tuple[Page, ...]
    left_out: tuple[str, ...]


def front_matter(text: str) -> Mapping[str, str]:
    """The `name: value` lines between the two `---` at the very start, names in lower case, quotes around a value taken off; empty without them.

    No YAML: lists, nesting and comments are people's own, and are passed over.
    """
    found: dict[str, str] = {}
    for line in _split(text)[0]:
        if field := _FIELD.fullmatch(line.strip()):
            found[field[1].lower()] = field[2].strip().strip("\"'")
    return found


def body(text: str) -> str:
    """A page for reading, without its front matter."""
    return "\n".join(_split(text)[1]).strip("\n")


def lore_of(text: str) -> Lore:
    """When the page stands in a prompt. A value that is none of the three counts as none."""
    value = front_matter(text).get("lore", "").lower()
    return Lore(value) if value in set(Lore) else Lore.NONE


def always_page(path: str, text: str) -> Page | None:
    """The page at `path` if it stands in the head always."""
    if lore_of(text) is not Lore.ALWAYS:
        return None
    shown = body(text)
    return Page(path=path, text=shown, tokens=tokens.count(shown))


def standing(pages: Iterable[Page], most: int = ALWAYS_MAX_TOKENS) -> Standing:
    """Those of `pages` that fit into `most` tokens together, in the order of their paths: the same pages give the same bytes on every turn (WD-6).

    A page that does not fit is left out whole and named, and the smaller ones after it still stand.
    """
    kept: list[Page] = []
    left_out: list[str] = []
    room = most
    for page in sorted(pages, key=lambda page: page.path):
        if page.tokens <= room:
            kept.append(page)
            room -= page.tokens
        else:
            left_out.append(page.path)
    return Standing(pages=tuple(kept), left_out=tuple(left_out))


def _split(text: str) -> tuple[list[str], list[str]]:
    """The lines of the front matter and those after it."""
    lines = plain(text).split("\n")
    at = behind_front_matter(lines) if text.startswith(("---", f"{BOM}---")) else 0
    return lines[1 : at - 1] if at else [], lines[at:]

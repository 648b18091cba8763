"""The entries of a memory file: what is told apart, referred to, promoted, undone and forgotten (WD-5). Pure.

An entry is one bullet with the lines that belong to it (indented, or a code fence it opened), a code fence by itself, or any other line with words.
Headings, blank lines, comments, front matter and rules across the page are no entries: they stay where they are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from memory.markdown_lines import BOM, behind_front_matter, body, has_content, heading_of, lines_of, plain

ID_LENGTH = 8  # characters of the hash; longer when two entries of one file begin alike

_BULLET = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)])[ \t]+(?=\S)")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """`text`: its words without the bullet, continuation lines as they stand; `hash`: `line_hash` of it; `id`: the start of the hash, unique in its
    file; `first`, `last`: line numbers from 1; `section`: the words of the nearest heading above, empty for none."""

    text: str
    hash: str
    id: str
    first: int
    last: int
    section: str


def line_hash(text: str) -> str:
    """SHA-256 in hex of an entry's words: the bullet, blanks around and at line ends, and the kind of line end do not count."""
    lines = [line.rstrip() for line in plain(text).split("\n")]
    lines[0] = _BULLET.sub("", lines[0].lstrip(), count=1)
    return hashlib.sha256("\n".join(lines).strip().encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=2_048)  # a year of days, which every night looks at again and which hardly ever change
def entries(text: str) -> tuple[Entry, ...]:
    """The entries of a file, in order. Equal entries of one file share hash and id: they are one thing said twice."""
    found = list(_blocks(text))
    length = id_length({line_hash(words) for words, *_ in found})
    return tuple(
        Entry(text=words, hash=(digest := line_hash(words)), id=digest[:length], first=first, last=last, section=section)
        for words, first, last, section in found
    )


def id_length(hashes: Collection[str]) -> int:
    """How many characters of different hashes tell all of them apart."""
    return next((n for n in range(ID_LENGTH, 64, 4) if len({each[:n] for each in hashes}) == len(hashes)), 64)


def without(text: str, hashes: Iterable[str]) -> str:
    """`text` without the entries of these hashes; every other byte stays (WD-92)."""
    gone = set(hashes)
    cut = {number for entry in entries(text) if entry.hash in gone for number in range(entry.first, entry.last + 1)}
    return "".join(line for number, line in enumerate(lines_of(text), start=1) if number not in cut)


def as_bullet(text: str) -> str:
    """An entry's words as lines of a file: the first behind a dash, the others as they are, indented enough to belong to it (WD-74)."""
    first, *rest = text.strip("\n").split("\n")
    return "\n".join([f"- {first.strip()}", *(line if not line.strip() or line.startswith(("  ", "\t")) else f"  {line}" for line in rest)])


def _blocks(text: str) -> Iterator[tuple[str, int, int, str]]:
    lines = [body(line) for line in lines_of(text.removeprefix(BOM))]
    section, at = "", behind_front_matter(lines)
    while at < len(lines):
        line = lines[at]
        if titled := heading_of(line):
            section = titled.words
        if titled or not line.strip():
            at += 1
            continue
        end = _end_of_entry(lines, at)
        words = "\n".join([_BULLET.sub("", lines[at].lstrip(), count=1), *lines[at + 1 : end]]).rstrip()
        if has_content("\n".join(lines[at:end])):
            yield words, at + 1, end, section
        at = end


def _end_of_entry(lines: list[str], at: int) -> int:
    """The index behind the entry that begins at `at`."""
    if _FENCE.match(lines[at]):
        return _behind_fence(lines, at)
    if lines[at].lstrip().startswith("<!--"):
        return next((n + 1 for n in range(at, len(lines)) if "-->" in lines[n]), len(lines))
    if not _BULLET.match(lines[at].lstrip()):
        return at + 1
    indent = len(lines[at]) - len(lines[at].lstrip())
    end = at + 1
    while end < len(lines) and lines[end].strip() and _deeper(lines[end], indent) and not _BULLET.match(lines[end].lstrip()):
        end = _behind_fence(lines, end) if _FENCE.match(lines[end]) else end + 1
    return end


def _deeper(line: str, indent: int) -> bool:
    return len(line) - len(line.lstrip()) >= indent + 2 or line.startswith("\t")


def _behind_fence(lines: list[str], at: int) -> int:
    opening = _FENCE.match(lines[at])
    mark = opening[1] if opening else "```"
    for end in range(at + 1, len(lines)):
        if lines[end].strip().startswith(mark) and not lines[end].strip().strip(mark[0]):
            return end + 1
    return len(lines)

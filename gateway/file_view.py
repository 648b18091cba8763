"""A memory file as the page shows it: blocks of safe HTML, each with the lines it stands for and whose they are. Pure.

Bullets are blocks of their own, so that each can carry its origin; what belongs together on the page (a table, a paragraph, a code block) is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from channels.html import to_html
from memory.lines import Entry, entries
from memory.markdown_lines import BOM, body, heading_of, is_bullet, lines_of
from memory.provenance import LineRow, Origin

BlockKind: TypeAlias = Literal["heading", "line", "text", "hint"]

_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineMark:
    """One entry of a file and where it is from. `first`, `last`: line numbers from 1; `author` is empty for a person's own line."""

    id: str
    first: int
    last: int
    origin: Origin
    author: str
    created_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """`kind`: a heading (`level` 1 to 6), one bullet (`level` counts its indents), other text, or a hint for people (a comment, front matter).
    `text`: the words of a heading or hint; `html`: of the others, sanitised."""

    kind: BlockKind
    first: int
    last: int
    level: int = 0
    text: str = ""
    html: str = ""


def marks(text: str, rows: Mapping[str, LineRow]) -> tuple[LineMark, ...]:
    """Every entry of a file with its origin; `rows` are those of `memory.provenance` by hash."""
    return tuple(_mark(entry, rows.get(entry.hash)) for entry in entries(text))


def blocks(text: str) -> tuple[Block, ...]:
    """A file cut into what the page shows one below the other."""
    return tuple(_blocks([body(line) for line in lines_of(text.removeprefix(BOM))], entries(text)))


def _mark(entry: Entry, row: LineRow | None) -> LineMark:
    return LineMark(
        id=entry.id,
        first=entry.first,
        last=entry.last,
        origin=row.origin if row else Origin.HUMAN,
        author=row.author if row else "",
        created_at=row.created_at if row else None,
    )


def _blocks(lines: list[str], found: tuple[Entry, ...]) -> Iterator[Block]:
    begins = {entry.first: entry for entry in found}
    at = 1
    while at <= len(lines):
        line = lines[at - 1]
        if not line.strip():
            at += 1
            continue
        if titled := heading_of(line):
            yield Block(kind="heading", first=at, last=at, level=titled.level, text=titled.words)
            at += 1
            continue
        entry = begins.get(at)
        if entry is None:
            last = _end_of_hint(lines, at, begins)
            words = "\n".join(lines[at - 1 : last])
            comment = _COMMENT.match(words.strip())
            if hint := (comment[1] if comment else words.strip("-.\n ")).strip():
                yield Block(kind="hint", first=at, last=last, text=hint)
        elif is_bullet(line):
            last = entry.last
            indent = len(line) - len(line.lstrip())
            yield Block(kind="line", first=at, last=last, level=min(indent // 2, 4), html=to_html(_dedented(lines[at - 1 : last], indent)))
        else:
            last = _end_of_text(lines, entry, begins)
            yield Block(kind="text", first=at, last=last, html=to_html("\n".join(lines[at - 1 : last])))
        at = last + 1


def _end_of_hint(lines: list[str], at: int, begins: Mapping[int, Entry]) -> int:
    """The last line of what is no entry: a comment up to its end, front matter, a rule."""
    if lines[at - 1].lstrip().startswith("<!--"):
        return next((n for n in range(at, len(lines) + 1) if "-->" in lines[n - 1]), len(lines))
    last = at
    while last < len(lines) and last + 1 not in begins and lines[last].strip() and not heading_of(lines[last]):
        last += 1
    return last


def _end_of_text(lines: list[str], entry: Entry, begins: Mapping[int, Entry]) -> int:
    """The last line of a paragraph, a table or a code block that begins with `entry`."""
    last = entry.last
    while last < len(lines) and lines[last].strip() and (follower := begins.get(last + 1)) and not is_bullet(lines[last]):
        last = follower.last
    return last


def _dedented(lines: list[str], indent: int) -> str:
    return "\n".join(line[indent:] if not line[:indent].strip() else line.lstrip() for line in lines)

"""Which lines of a long `MEMORY.md` stand in the prompt, and how many do not (WD-7). Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from memory.lines import Entry, entries
from memory.markdown_lines import body, lines_of
from memory.provenance import LineRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """`text`: the lines that stand in the prompt, in their order, under their headings; `left_out`: entries that do not."""

    text: str
    left_out: int


def share(text: str, rows: Mapping[str, LineRow], most: int, count: Callable[[str], int]) -> Share:
    """The part of `text` within `most` tokens: whole while it fits, else lines by people first, then the newest.

    `rows`: of the lines that a program wrote, by hash; any other line is a person's (WD-5). `count`: tokens of a text.
    """
    if count(text) <= most:
        return Share(text=text, left_out=0)
    found = entries(text)
    lines = [body(line) for line in lines_of(text)]
    kept: list[Entry] = []
    left = most
    for entry in sorted(found, key=lambda each: _rank(each, rows.get(each.hash)), reverse=True):
        cost = count("\n".join(lines[entry.first - 1 : entry.last])) + 1
        if cost <= left:
            kept.append(entry)
            left -= cost
    return Share(text=_in_order(lines, kept), left_out=len(found) - len(kept))


def _rank(entry: Entry, row: LineRow | None) -> tuple[bool, float, int]:
    """The higher, the sooner it is taken. Where times are equal or unknown, what stands further down is newer."""
    written = row.created_at.timestamp() if row is not None and row.created_at is not None else 0.0
    return row is None, written, entry.first


def _in_order(lines: list[str], kept: list[Entry]) -> str:
    text: list[str] = []
    section = ""
    for entry in sorted(kept, key=lambda each: each.first):
        if entry.section != section:
            section = entry.section
            text += [f"## {section}"] if section else []
        text += lines[entry.first - 1 : entry.last]
    return "\n".join(text)

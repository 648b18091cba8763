"""The difference between two texts, line by line, as a page or a chat shows it (WD-17, WD-81). Pure."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memory.markdown_lines import body, common_ends, lines_of

COMPARED_LINES = 2_000  # above it the changed part is shown as one block: comparing costs the square


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line: in both texts, only in the first (`removed`) or only in the second (`added`). Numbers count from 1; None where it is not."""

    kind: Literal["same", "removed", "added"]
    text: str
    before: int | None
    after: int | None


def difference(before: str, after: str, *, context: int = 3) -> tuple[DiffLine, ...]:
    """What leads from `before` to `after`, with `context` unchanged lines around each change; empty when only line ends differ."""
    old, new = ([body(line) for line in lines_of(text)] for text in (before, after))
    head, tail = common_ends(old, new)
    lines = [DiffLine("same", old[at], at + 1, at + 1) for at in range(head)]
    for start, end, into, until in _changes(old[head : len(old) - tail], new[head : len(new) - tail]):
        same = old[head + start : head + end] == new[head + into : head + until]
        if same:
            lines += [DiffLine("same", old[head + start + n], head + start + n + 1, head + into + n + 1) for n in range(end - start)]
        else:
            lines += [DiffLine("removed", old[head + n], head + n + 1, None) for n in range(start, end)]
            lines += [DiffLine("added", new[head + n], None, head + n + 1) for n in range(into, until)]
    lines += [DiffLine("same", old[len(old) - n], len(old) - n + 1, len(new) - n + 1) for n in range(tail, 0, -1)]
    return _near_changes(lines, context)


def _changes(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int, int]]:
    if max(len(old), len(new)) > COMPARED_LINES:
        return [(0, len(old), 0, len(new))]
    return [(start, end, into, until) for _, start, end, into, until in difflib.SequenceMatcher(None, old, new).get_opcodes()]


def _near_changes(lines: Sequence[DiffLine], context: int) -> tuple[DiffLine, ...]:
    near: set[int] = set()
    for at, line in enumerate(lines):
        if line.kind != "same":
            near.update(range(max(0, at - context), min(len(lines), at + context + 1)))
    return tuple(lines[at] for at in sorted(near))

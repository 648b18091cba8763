"""The lines of a Markdown file, byte for byte: line ends, a byte order mark and everything we do not understand stay as they are (WD-4). Pure.

A line ends at \\n, \\r\\n or \\r and nowhere else: what Python's `splitlines` also takes for an end (U+2028, form feed …) is text of people's.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

BOM = "\ufeff"

_LINE = re.compile("[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?[ \t#]*")
_BULLET = re.compile(r"[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\S")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_EMPTY_MARK = re.compile(r"[-*+>]?|[0-9]{1,9}[.)]")  # nothing, or a bullet without text
_RULE = re.compile(r"-{3,}|\*{3,}|_{3,}")  # across the page, blanks between taken out
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\r\n]*)")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def lines_of(text: str) -> list[str]:
    """`text` cut behind each line end; joined they are `text` again."""
    return _LINE.findall(text)


def body(line: str) -> str:
    """A line without its end."""
    return line.rstrip("\r\n")


def newline_of(text: str) -> str:
    """The line end that most lines have; \\n when there is none."""
    ends = [line[len(body(line)) :] for line in lines_of(text)]
    return max(("\n", "\r\n", "\r"), key=ends.count)


def unix(text: str) -> str:
    """Without the byte order mark, with \\n only."""
    return text.removeprefix(BOM).replace("\r\n", "\n").replace("\r", "\n")


def plain(text: str) -> str:
    """For reading: `unix`, without blank lines around."""
    return unix(text).strip("\n")


class Heading(NamedTuple):
    """`level`: 1 to 6; `words`: without the signs around, empty for none."""

    level: int
    words: str


def heading_of(line: str) -> Heading | None:
    """What a line without its end is as a heading; None for any other line."""
    found = _HEADING.fullmatch(line)
    return Heading(len(found[1]), (found[2] or "").strip()) if found else None


def is_bullet(line: str) -> bool:
    """Whether a list item with words begins here."""
    return _BULLET.match(line) is not None


def behind_front_matter(lines: Sequence[str]) -> int:
    """How many of the lines (without ends, no byte order mark) a front matter takes; it is about the page and no part of what it says."""
    if lines and lines[0].rstrip() == "---":
        return next((at + 1 for at, line in enumerate(lines[1:], start=1) if line.rstrip() in ("---", "...")), 0)
    return 0


def in_style_of(old: str, edited: str) -> str:
    """`edited`, which came through a form or a model and so has one kind of line end and no byte order mark, in the style of the file `old`.

    A line that was there before keeps its own end, another gets that of most lines. Whether the last line has an end is as in `edited`.
    """
    newline = newline_of(old)
    before = lines_of(old.removeprefix(BOM))
    after = [body(line) for line in lines_of(edited.removeprefix(BOM))]
    head, tail = common_ends([body(line) for line in before], after)
    moved: dict[str, deque[str]] = {}
    for line in before[head : len(before) - tail]:
        moved.setdefault(body(line), deque()).append(line)
    middle = [ends.popleft() if (ends := moved.get(line)) else line for line in after[head : len(after) - tail]]
    kept = [*before[:head], *middle, *before[len(before) - tail :]]
    styled = [line if line != text else line + newline for line, text in zip(kept, after, strict=True)]
    if styled and not edited.endswith(("\n", "\r")):
        styled[-1] = body(styled[-1])
    return (BOM if old.startswith(BOM) else "") + "".join(styled)


def common_ends(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """How many lines two texts share at the start and, of the others, at the end."""
    most = min(len(before), len(after))
    head = next((at for at in range(most) if before[at] != after[at]), most)
    tail = next((at for at in range(most - head) if before[-1 - at] != after[-1 - at]), most - head)
    return head, tail


def has_content(text: str) -> bool:
    """Whether there is more than headings (WD-2), and what nobody sees on the page: comments, empty bullets, rules."""
    lines = without_comments(plain(text)).split("\n")
    for at, line in enumerate(lines):
        bare = line.strip()
        if heading_of(line) or _EMPTY_MARK.fullmatch(bare) or _RULE.fullmatch(bare.replace(" ", "").replace("\t", "")):
            continue
        if at and lines[at - 1].strip() and _UNDERLINE.fullmatch(line):
            continue
        if at + 1 < len(lines) and _UNDERLINE.fullmatch(lines[at + 1]):
            continue  # the heading that is underlined
        return True
    return False


def without_comments(text: str) -> str:
    """What a reader of the page sees; a comment that is left open goes on to the end."""
    return _COMMENT.sub("", text)


def new_lines(old: str, text: str) -> list[str]:
    """Lines of `text` that `old` does not have, without their ends."""
    known = {body(line) for line in lines_of(old)}
    return [line for line in map(body, lines_of(text)) if line not in known]


def one_line(text: str) -> str:
    """`text` as one line of a file: no line ends, no control characters, blanks joined."""
    return " ".join(CONTROL.sub(" ", text).split())


def open_fence(text: str) -> str:
    """The line that would close a code fence left open at the end of `text`; empty when none is."""
    return _outside_fences(text)[1]


def last_heading(text: str, level: int) -> str:
    """The words of the last heading of `level` under which a line put at the end would stand; empty when there is none."""
    outside, fence = _outside_fences(text)
    mark = "#" * level + " "
    return "" if fence else next((line.removeprefix(mark).strip() for line in reversed(outside) if line.startswith(mark)), "")


def appended(old: str, block: str, *, title: str = "") -> str:
    """`old`, every byte of it, then a blank line and `block` (lines with \\n) in the file's own line ends. An empty file begins with `title`.

    A code fence left open is closed first, or all that follows would be code.
    """
    newline = newline_of(old)
    lines = lines_of(old)
    ended = old in ("", BOM) or lines[-1] != body(lines[-1])
    between = "" if ended else newline
    if old.strip("\ufeff \t\r\n"):
        if fence := open_fence(old):
            between += fence + newline
        if between or body(lines[-1]).strip():
            between += newline
    elif title:
        between += title + newline * 2
    return old + between + block.strip("\n").replace("\n", newline) + newline


def holds_block(text: str, block: str) -> bool:
    """Whether the lines of `block` stand in `text`, one after the other."""
    return f"\n{plain(block)}\n" in f"\n{plain(text)}\n"


def _outside_fences(text: str) -> tuple[list[str], str]:
    """The lines that stand in no code fence, and the mark of the fence that is open at the end, empty for none."""
    outside: list[str] = []
    fence = ""
    for line in map(body, lines_of(text.removeprefix(BOM))):
        found = _FENCE.fullmatch(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
        elif found and not (found[1][0] == "`" and "`" in found[2]):
            fence = found[1]
        else:
            outside.append(line)
    return outside, fence

"""Cutting a file into chunks, the pieces that are searched (WD-111), and these into passages, which get a vector each. Pure.

A chunk is whole lines under one heading, up to a number of tokens by our own counting; neighbours share some lines, and a line that is too long is
cut into windows. Every character of a file that is not blank stands in at least one chunk, but for sections of nothing but comments.

Most embedders blur a page of ten events into one vector that is near to nothing: measured, one vector for each line finds two to eight times as much
(decision 7). A chunk is then as near as the nearest of its passages.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory import tokens as counting
from memory.layout import local_date_of
from memory.markdown_lines import BOM, behind_front_matter, body, heading_of, lines_of, without_comments

VERSION = 2
"""Of how files are cut: another number cuts every file anew."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SOFT_ENDS = "。！？!?.;；,，、 \t"  # where a long line is cut rather than in the middle of a word
_HEADINGS_MAX = 200  # characters of the path of headings
_BULLET = re.compile(r"^[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+", re.MULTILINE)
_SHORT_TOKENS = 8  # a line of less says too little alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """`key`: unique over all files, made of scope, path, position and text; `heading`: the headings above, ` > ` between them; `text`: as it stands
    in the file, lines joined by \\n; lines count from 1; `local_date`: of a daily file, YYYY-MM-DD, else empty."""

    key: str
    position: int
    heading: str
    text: str
    text_hash: str
    first_line: int
    last_line: int
    local_date: str

    @property
    def searched(self) -> str:
        """What words and vectors are made of: the text under its headings."""
        return f"{self.heading}\n{self.text}" if self.heading else self.text


@dataclass(frozen=True, slots=True)
class Passage:
    """What gets one vector: `begin` to `end` in the text of its chunk. `text`: as it is given to the embedder."""

    begin: int
    end: int
    text: str

    @property
    def text_hash(self) -> str:
        """What its vector is found again by: passages that say the same share one."""
        return hash_of("", self.text)


def rule(size: int, overlap: int, passage: int) -> str:
    """How files are cut now: chunks made by another rule are out of date."""
    return f"{VERSION}/{size}/{overlap}/{passage}"


def passages_of(chunk: Chunk, most: int) -> tuple[Passage, ...]:
    """The passages of a chunk: lines of up to `most` tokens, very short ones together with the next; 0: the whole chunk is one.

    A passage begins with the nearest heading, which says what a line is about; those of daily files say when and where, and are left out.
    """
    heading = "" if chunk.local_date else chunk.heading.rpartition(" > ")[2]
    if not most:
        return (Passage(0, len(chunk.text), _under(heading, chunk.text)),)
    found: list[Passage] = []
    begin = at = 0
    lines = chunk.text.split("\n")
    for number, line in enumerate(lines, start=1):
        end = at + len(line)
        if number == len(lines) or counting.count(chunk.text[begin:end]) >= _SHORT_TOKENS:
            for window in _windows(_Line(chunk.text[begin:end], 0, counting.count(chunk.text[begin:end])), most, most // 10):
                if any(map(str.isalnum, window.text)) or window.text.strip(" -*+#>\n"):
                    start = begin + window.at
                    found.append(Passage(start, start + len(window.text), _under(heading, _BULLET.sub("", window.text))))
            begin = end + 1
        at = end + 1
    return tuple(found)


def windows_of(text: str, size: int) -> tuple[tuple[int, str], ...]:
    """`text`, or overlapping windows of up to `size` tokens, each with where it begins; cut at soft places where there are any."""
    return tuple((window.at, window.text) for window in _windows(_Line(text, 0, counting.count(text)), size, size // 10))


def chunks_of(scope: str, path: str, content: str, *, size: int, overlap: int) -> tuple[Chunk, ...]:
    """The chunks of a file, in order; none when it says nothing but headings. `size`, `overlap`: in tokens of `memory.tokens.count`."""
    overlap = min(overlap, size // 2)
    found: list[Chunk] = []
    for piece in _pieces(content, size, overlap):
        text_hash = hash_of(piece.heading, piece.text)
        key = hashlib.sha256("\0".join((scope, path, str(len(found)), text_hash)).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        found.append(
            Chunk(
                key=key,
                position=len(found),
                heading=piece.heading,
                text=piece.text,
                text_hash=text_hash,
                first_line=piece.first,
                last_line=piece.last,
                local_date=local_date_of(path),
            )
        )
    return tuple(found)


def hash_of(heading: str, text: str) -> str:
    """Of a text under its headings; 40 characters of hex."""
    return hashlib.sha256(f"{heading}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class _Piece:
    heading: str
    text: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Line:
    """`at`: where a window begins in its line."""

    text: str
    number: int
    tokens: int
    at: int = 0


def _pieces(content: str, size: int, overlap: int) -> Iterator[_Piece]:
    for heading, lines in _sections(content):
        yield from _packed(heading, [window for line in lines for window in _windows(line, size, overlap)], size, overlap)


def _sections(content: str) -> Iterator[tuple[str, list[_Line]]]:
    """Lines under one heading, with it: the path of headings above, then its lines. A section of nothing but headings and comments says nothing."""
    lines = [body(line) for line in lines_of(content.removeprefix(BOM))]
    path: list[tuple[int, str]] = []
    gathered: list[_Line] = []
    fence = ""
    for number, line in enumerate(lines[(start := behind_front_matter(lines)) :], start=start + 1):
        opened = _FENCE.match(line)
        titled = None if fence else heading_of(line)
        if titled is None:
            gathered.append(_Line(line, number, counting.count(line) + 1))
            if opened:
                fence = "" if fence and opened[1].startswith(fence) else fence or opened[1]
            continue
        if _says_something(gathered):
            yield _joined(path), gathered
        gathered = []
        path = [(depth, words) for depth, words in path if depth < titled.level]
        if titled.words:
            path.append((titled.level, titled.words))
    if _says_something(gathered):
        yield _joined(path), gathered


def _says_something(lines: list[_Line]) -> bool:
    """Hints of a template are no memory."""
    return bool(without_comments("\n".join(line.text for line in lines)).strip())


def _under(heading: str, text: str) -> str:
    return f"{heading}\n{text}" if heading else text


def _joined(path: list[tuple[int, str]]) -> str:
    return " > ".join(words for _, words in path)[-_HEADINGS_MAX:]


def _windows(line: _Line, size: int, overlap: int) -> Iterator[_Line]:
    """The line, or the windows of one that is too long; each begins within the one before."""
    if line.tokens <= size:
        yield line
        return
    text, at = line.text, 0
    while at < len(text):
        end = _end_of_window(text, at, size)
        yield _Line(text[at:end], line.number, counting.count(text[at:end]) + 1, at)
        if end >= len(text):
            return
        back = max(1, round((end - at) * overlap / size))
        at = max(at + 1, end - back)


def _end_of_window(text: str, at: int, size: int) -> int:
    low, high = at + 1, min(len(text), at + size * 8)  # a token has at most some four letters; eight is never too few
    while low < high:
        middle = (low + high + 1) // 2
        if counting.count(text[at:middle]) + 1 <= size:
            low = middle
        else:
            high = middle - 1
    if low >= len(text):
        return len(text)
    softest = max(text.rfind(mark, at + (low - at) * 2 // 3, low) for mark in _SOFT_ENDS)
    return softest + 1 if softest > at else low


def _packed(heading: str, lines: list[_Line], size: int, overlap: int) -> Iterator[_Piece]:
    """Lines put together up to `size`; the next piece begins with the last lines of the one before, as far as they fit into `overlap`."""
    gathered: list[_Line] = []
    total = fresh = 0
    for line in lines:
        if fresh and total + line.tokens > size:
            yield _piece(heading, gathered)
            gathered = _tail(gathered, min(overlap, size - line.tokens))
            total, fresh = sum(each.tokens for each in gathered), 0
        gathered.append(line)
        total += line.tokens
        fresh += bool(line.text.strip())
    if fresh:
        yield _piece(heading, gathered)


def _tail(lines: list[_Line], most: int) -> list[_Line]:
    kept: list[_Line] = []
    for line in reversed(lines):
        if sum(each.tokens for each in kept) + line.tokens > most:
            break
        kept.insert(0, line)
    return kept


def _piece(heading: str, lines: list[_Line]) -> _Piece:
    said = [at for at, line in enumerate(lines) if line.text.strip()]
    lines = lines[said[0] : said[-1] + 1]
    return _Piece(heading, "\n".join(line.text for line in lines), lines[0].number, lines[-1].number)

"""Cutting the talk into chunks, the pieces that are recalled: five real messages of one audience in a row (RS-16 to RS-19, RS-186). Pure.

A chunk has one text, a line for each message. Its vectors are made of parts: as much as makes one good vector, and never across a long silence.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory import tokens as counting
from memory.extract import shortened
from memory.file_chunks import Passage, windows_of

SIZE = 5  # messages
CONTEXT_CHARACTERS = 200  # of the message before, which a part repeats
PART_TOKENS = 400  # for an embedder that names no size of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A real message: its number and id, when, who may read it (key of an audience, empty for all in the chat), who said what; `fingerprint` of all
    that. `gap`: between the message before it and this one something was said that was forgotten (RS-189)."""

    seq: int
    id: str
    at: datetime
    speaker: str
    text: str
    fingerprint: str
    audience: str = ""
    gap: bool = False

    @property
    def line(self) -> str:
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Messages that are found together. `passages`: what gets a vector each; their places count characters of `text`."""

    messages: tuple[Spoken, ...]
    passages: tuple[Passage, ...]

    @property
    def audience(self) -> str:
        return self.messages[0].audience

    @property
    def text(self) -> str:
        return text_of(self.messages)

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.messages)


def text_of(messages: Sequence[Spoken]) -> str:
    return "\n".join(message.line for message in messages)


def fingerprint_of(messages: Sequence[Spoken]) -> str:
    """Changes whenever one of them would be read differently, or is gone (RS-22)."""
    return hashlib.blake2b("\x1f".join(message.fingerprint for message in messages).encode(), digest_size=12).hexdigest()


def cut(talk: Iterable[Spoken], taken: Collection[int], *, gap: timedelta, part_tokens: int) -> list[Chunk]:
    """New chunks of messages that are in none yet (`taken`: numbers of those that are); fewer than five wait (RS-16).

    `gap`: a silence that parts vectors, zero for none; `part_tokens`: of one good vector, 0 when the embedder names none.
    """
    waiting: dict[str, list[Spoken]] = defaultdict(list)
    for message in sorted(talk, key=lambda message: message.seq):
        if message.seq not in taken:
            waiting[message.audience].append(message)
    groups = [found[at : at + SIZE] for found in waiting.values() for at in range(0, len(found) - SIZE + 1, SIZE)]
    return [chunk_of(group, gap=gap, part_tokens=part_tokens) for group in sorted(groups, key=lambda group: group[0].seq)]


def chunk_of(messages: Sequence[Spoken], *, gap: timedelta, part_tokens: int) -> Chunk:
    """One chunk of these messages, whatever their number: also what is left of one (RS-21)."""
    return Chunk(messages=tuple(messages), passages=tuple(_passages(messages, gap, part_tokens or PART_TOKENS)))


def _passages(messages: Sequence[Spoken], gap: timedelta, most: int) -> list[Passage]:
    """Parts of whole messages, a message too long by itself in windows; each with the message before as context for its vector (RS-18)."""
    found: list[Passage] = []
    begin = at = size = first = 0
    for number, message in enumerate(messages):
        cost = counting.count(message.line)
        silent = bool(gap) and number > 0 and message.at - messages[number - 1].at > gap
        if number > first and (silent or size + cost > most):
            found.append(_part(messages, first, number, begin))
            begin, first, size = at, number, 0
        if cost > most:
            before = _context(messages, number)
            found += [Passage(at + start, at + start + len(text), f"{before}{text}") for start, text in windows_of(message.line, most)]
            begin, first, size = at + len(message.line) + 1, number + 1, 0
        size += cost if cost <= most else 0
        at += len(message.line) + 1
    if first < len(messages):
        found.append(_part(messages, first, len(messages), begin))
    return [passage for passage in found if any(map(str.isalnum, passage.text))]


def _part(messages: Sequence[Spoken], first: int, behind: int, begin: int) -> Passage:
    text = text_of(messages[first:behind])
    return Passage(begin, begin + len(text), f"{_context(messages, first)}{text}")


def _context(messages: Sequence[Spoken], number: int) -> str:
    return f"{shortened(messages[number - 1].line, CONTEXT_CHARACTERS)}\n" if number else ""

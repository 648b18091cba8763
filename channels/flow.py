"""A text on its way to a platform: the words in one line of reading, and what has to stand around them wherever they are cut.

The words of a `Flow` go out exactly once. Everything that may have to be repeated on both sides of a cut (fence lines, table heads, quote marks,
emphasis) is a `Span` over them, written anew in every piece that shows a part of it. So no cut can lose a word, double one, or leave a fence open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from channels.message import Entity
from channels.port import TextUnit
from channels.units import measure


@dataclass(frozen=True, slots=True)
class Piece:
    """One message: the text exactly as sent, and its entities where the platform takes them."""

    text: str
    entities: tuple[Entity, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Words `start` to `end` (code points) stand between `open` and `close`, or under an entity.

    Spans nest. `rank` orders those that begin together, lowest outermost. An inline span holds no blanks at its edges, for a mark beside a blank
    marks nothing.
    """

    start: int
    end: int
    open: str = ""
    close: str = ""
    rank: int = 0
    inline: bool = False
    entity: str = ""
    url: str = ""
    language: str = ""

    def cost(self, unit: TextUnit) -> int:
        return measure(self.open, unit) + measure(self.close, unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Words with their spans. `blocks` are the ends of top-level blocks, `parts` those of list items and nested blocks: the best places to cut.

    `solid` are ranges kept whole when they fit a piece; `code` are ranges where a blank line is content.
    """

    text: str
    spans: tuple[Span, ...] = ()
    blocks: tuple[int, ...] = ()
    parts: tuple[int, ...] = ()
    solid: tuple[tuple[int, int], ...] = ()
    code: tuple[tuple[int, int], ...] = ()


def shown(flow: Flow, start: int, end: int) -> Piece:
    """Words `start` to `end` as one message, every span that touches them opened and closed around its part of them."""
    parts: list[str] = []
    begun: dict[int, int] = {}
    entities: list[Entity] = []
    length = 0  # of `parts`, in UTF-16 units
    at = start

    def put(text: str) -> None:
        nonlocal length
        parts.append(text)
        length += measure(text, TextUnit.UTF16)

    for position, opens, number, span in _events(flow, start, end):
        put(flow.text[at:position])
        at = position
        if opens:
            begun[number] = length
            put(span.open)
            continue
        put(span.close)
        if span.entity:
            offset = begun[number]
            entities.append(Entity(span.entity, offset, length - offset, span.url, span.language))
    put(flow.text[at:end])
    return Piece("".join(parts), tuple(sorted(entities, key=lambda entity: (entity.offset, -entity.length))))


def _events(flow: Flow, start: int, end: int) -> Iterable[tuple[int, bool, int, Span]]:
    """Every opening and closing within the range as (position, opens?, number of the span, span), in the order they are written."""
    touched = [(_part(flow.text, span, start, end), span) for span in flow.spans if span.start < end and span.end > start]
    kept = sorted(((a, span.rank, -b, span) for (a, b), span in touched if a < b), key=lambda entry: entry[:3])
    opening = [(a, True, number, span) for number, (a, _, _, span) in enumerate(kept)]
    closing = [(-b, False, number, span) for number, (_, _, b, span) in enumerate(kept)]
    # At one position the closings come first, innermost (the last opened) before outermost.
    return sorted(opening + closing, key=lambda event: (event[0], event[1], event[2] if event[1] else -event[2]))


def _part(text: str, span: Span, start: int, end: int) -> tuple[int, int]:
    start, end = max(span.start, start), min(span.end, end)
    if span.inline:
        words = text[start:end]
        start, end = start + len(words) - len(words.lstrip()), end - len(words) + len(words.rstrip())
    return start, end

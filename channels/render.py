"""From a model's Markdown to the messages a platform is sent (CH-130 to CH-144).

The tree is written in the platform's dialect first and cut then, marks counted in: what is measured is what is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from channels.dialects import DIALECTS
from channels.flow import Entity, Piece
from channels.markdown import parse
from channels.message import clean, is_blank, visible
from channels.port import Capabilities, Markup
from channels.split import split
from channels.units import measure
from channels.writer import write

__all__ = ["SILENT", "Entity", "Piece", "is_silent", "render"]

SILENT = "[silent]"


def is_silent(text: str) -> bool:
    """Is the whole reply the token that says "say nothing"? A reply that merely mentions it is no such reply (CH-144)."""
    return visible(text).strip() == SILENT


def render(text: str, capabilities: Capabilities, *, part_marks: bool = False) -> list[Piece]:
    """`text` as messages of at most `text_max` units each, in order; nothing for a blank text (CH-141).

    `part_marks` ends each of several pieces with a line "(1/3)", counted in the limit (CH-142).
    """
    text = clean(text)
    if capabilities.markup is Markup.HTML and not is_blank(text) and measure(text, capabilities.text_unit) <= capabilities.text_max:
        return [Piece(text)]  # the page renders Markdown itself: nothing to write anew while nothing must be cut
    flow = write(parse(text), DIALECTS[capabilities.markup])

    def cut(limit: int) -> list[Piece]:
        return [piece for piece in split(flow, limit, capabilities.text_unit) if not is_blank(piece.text)]

    pieces = cut(capabilities.text_max)
    return _numbered(cut, capabilities) if part_marks and len(pieces) > 1 else pieces


def _numbered(cut: Callable[[int], list[Piece]], capabilities: Capabilities) -> list[Piece]:
    digits = 1
    while True:
        room = measure(_part_mark("9" * digits, "9" * digits), capabilities.text_unit)
        pieces = cut(capabilities.text_max - room)
        if len(str(len(pieces))) <= digits:
            return [replace(piece, text=piece.text + _part_mark(i, len(pieces))) for i, piece in enumerate(pieces, 1)]
        digits += 1


def _part_mark(number: int | str, count: int | str) -> str:
    return f"\n\n({number}/{count})"

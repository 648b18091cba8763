"""From a model's Markdown to the messages a platform is sent (CH-130 to CH-144): `render` for a text, `lay_out` for a text with a medium or a file.

The tree is written in the platform's dialect first and cut then, marks counted in: what is measured is what is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from channels.dialects import DIALECTS
from channels.flow import Entity, Piece
from channels.markdown import parse
from channels.message import clean, is_blank, visible
from channels.port import Capabilities, Markup
from channels.split import split
from channels.units import measure
from channels.writer import write

__all__ = ["PIECES_MAX", "SILENT", "Entity", "Layout", "Piece", "is_silent", "lay_out", "render"]

SILENT = "[silent]"
PIECES_MAX = 8  # CH-143: a longer answer is sent as a file, where files can be sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What goes out, in this order: the medium with its `caption` (when one fits), the `pieces`, the whole text as one `.md` file (`document`)."""

    pieces: tuple[Piece, ...]
    caption: Piece | None = None
    document: str = ""


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


def lay_out(text: str, capabilities: Capabilities, *, medium: bool = False) -> Layout:
    """`text` beside a medium, or as a file when it would take more than 8 messages and files can be sent (CH-143).

    A caption is whole or absent: a text above `caption_max` follows the medium as messages.
    """
    if medium and capabilities.caption_max:
        match render(text, replace(capabilities, text_max=capabilities.caption_max)):
            case [caption]:
                return Layout(pieces=(), caption=caption)
            case _:
                pass
    pieces = render(text, capabilities)
    if len(pieces) > PIECES_MAX and capabilities.media_max_bytes:
        return Layout(pieces=(pieces[0],), document=clean(text))
    return Layout(pieces=tuple(pieces))


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

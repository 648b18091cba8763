"""What of the text for unsent talk fits a prompt: the newest, whole, and a marked excerpt of what stands at the edge (RS-70, RS-171). Pure.

Nothing that is stored changes: a larger room shows the same words whole again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory import tokens
from memory.extract import borders, sentences

LEFT_OUT = "[… older summaries left out: too long …]"
CUT = "[… part left out: too long …]"
EXCERPT_LEAST = 48  # tokens of an excerpt's own words; fewer tell nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Stood:
    """What stands in a prompt for talk that is not sent. `kind`: of a summary, `part` of a day that has no row, `block` of turns that left, `extract`
    of messages that wait; `id`: of its row, 0 where it has none; `begin`, `end`: the local dates it is about (YYYY-MM-DD), empty for none;
    `first`, `last`: numbers of its messages; `cut`: only some of it stands there."""

    id: int = 0
    kind: str
    begin: str = ""
    end: str = ""
    first: int
    last: int
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of text with what it is of. `label` stands before `words` and is never cut; `open`: what an excerpt is taken from where that is not
    `words` themselves: what everybody knows of them (RS-93)."""

    of: Stood
    words: str
    label: str = ""
    open: str | None = None

    @property
    def text(self) -> str:
        return f"{self.label}{self.words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """`shown`: pieces as they stand, in order, the excerpt first if there is one; `stood`: what they are of; `left_out`: how many others had no room;
    `whole`: every piece is shown."""

    shown: tuple[Piece, ...]
    stood: tuple[Stood, ...]
    left_out: int
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A text for talk that is not sent, what stands in it, and how much more of that had no room."""

    text: str = ""
    stood: tuple[Stood, ...] = ()
    left_out: int = 0

    @property
    def cut(self) -> bool:
        return self.left_out > 0 or any(each.cut for each in self.stood)


NOTHING = Standing()


def fit(pieces: Sequence[Piece], room: int | None) -> Fitted:
    """The longest end of `pieces`, the oldest first, that fits `room` tokens (None: any), and of the one before it an excerpt."""
    kept: list[Piece] = []
    left = room
    for piece in reversed(pieces):
        cost = tokens.count(piece.text) + 1
        if left is None or cost <= left:
            kept.append(piece)
            left = None if left is None else left - cost
            continue
        if words := excerpt(piece, left - 1):
            kept.append(replace(piece, of=replace(piece.of, cut=True), words=words))
        break
    kept.reverse()
    before = _distinct(pieces[: len(pieces) - len(kept)])
    stood = _distinct(kept)
    return Fitted(
        shown=tuple(kept),
        stood=tuple(replace(each, cut=cut or key in before) for key, (each, cut) in stood.items()),
        left_out=len(before.keys() - stood.keys()),
        whole=len(kept) == len(pieces),
    )


def below(head: str, pieces: Sequence[Piece], most: int, *, left_out: str = LEFT_OUT) -> Standing:
    """`pieces` below a heading, within `most` tokens, with the line `left_out` where some had no room; nothing for none."""
    if not pieces:
        return NOTHING
    fitted = fit(pieces, most - tokens.count(f"{head}\n{left_out}"))
    lines = [head, *([] if fitted.whole else [left_out]), *(piece.text for piece in fitted.shown)]
    return Standing(text="\n".join(lines), stood=fitted.stood, left_out=fitted.left_out)


def excerpt(piece: Piece, room: int) -> str:
    """The mark and the end of a piece's words, from where a sentence begins, else a sign as people see it; empty where `room` tokens are too few."""
    words = piece.words if piece.open is None else piece.open
    room -= tokens.count(f"{piece.label}{CUT} ") + 1  # of rounding
    if room < EXCERPT_LEAST:
        return ""
    for places in (sentences(words), borders(words)):
        at = places[bisect_left(places, -room, key=lambda place: -tokens.count(words[place:]))]
        if tokens.count(found := words[at:].strip()) >= EXCERPT_LEAST or not at:
            return f"{CUT} {found}" if found else ""
    return ""


def joined(*parts: Standing) -> Standing:
    """Several texts, one below the other."""
    return Standing(
        text="\n\n".join(part.text for part in parts if part.text),
        stood=tuple(each for part in parts for each in part.stood),
        left_out=sum(part.left_out for part in parts),
    )


def _distinct(pieces: Sequence[Piece]) -> dict[Stood, tuple[Stood, bool]]:
    """What these pieces are of, in order, by what it is when whole; and whether something of it was cut."""
    found: dict[Stood, tuple[Stood, bool]] = {}
    for piece in pieces:
        key = replace(piece.of, cut=False)
        found[key] = (key, piece.of.cut or (key in found and found[key][1]))
    return found

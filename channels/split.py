"""Where a long text is cut (CH-131 to CH-136): pure, in whatever unit the platform counts, by what will really be sent.

`split` measures a piece together with the marks it needs, so what it returns is never above the limit and needs no second look. Between two pieces at
most line ends are left out: the end of a message is one.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from channels.flow import Flow, Piece, Span, shown
from channels.port import TextUnit
from channels.units import graphemes, measure

ENTITIES_MAX = 100  # CH-138
LIMIT_MIN = 4  # the longest code point, in bytes

_BLANK_LINE = re.compile(r"(?<!\n)\n(?=[ \t]*\n)")
_LINE = re.compile(r"(?<!\n)\n")
_SENTENCE = re.compile(r"[.!?…]+[\"'”’)\]]*[ \t]+|[。！？｡]+[」』”’）】〉》]*[ \t\u3000]*")
_BLANK = re.compile(r"[ \t\u3000]+")
_LINE_ENDS = re.compile(r"\n(?:[ \t]*\n)*")


def split(flow: Flow, limit: int, unit: TextUnit) -> list[Piece]:
    """`flow` as messages of at most `limit` units (at least 4) and 100 entities each.

    Marks that alone would fill half a piece are left out, and where not one character fits beside its marks the characters go without.
    """
    if limit < LIMIT_MIN:
        raise ValueError(f"a piece must hold at least one character: limit {limit} is below {LIMIT_MIN}")
    whole = shown(flow, 0, len(flow.text))
    if measure(whole.text, unit) <= limit and len(whole.entities) <= ENTITIES_MAX:
        return [whole] if flow.text else []
    flow = replace(flow, spans=tuple(span for span in flow.spans if span.cost(unit) <= limit // 2))
    return list(_Cutter(flow, limit, unit).pieces())


class _Cutter:
    """Positions are code points of the flow's text; an index counts the boundaries between its graphemes."""

    def __init__(self, flow: Flow, limit: int, unit: TextUnit) -> None:
        self.flow, self.limit = flow, limit
        atoms = list(_atoms(flow.text, limit, unit))
        self.bounds = [0, *accumulate(map(len, atoms))]
        self.lengths = [0, *accumulate(measure(atom, unit) for atom in atoms)]
        self.marks = _Tally(flow.spans, [span.cost(unit) for span in flow.spans])
        self.entities = _Tally(flow.spans, [int(bool(span.entity)) for span in flow.spans])
        self.solid = sorted(pair for pair in flow.solid if self.fits(*map(self.index, pair)))
        self.choices = [self.open_to_cut(found) for found in _cut_points(flow)]

    def pieces(self) -> Iterable[Piece]:
        start, last = 0, len(self.bounds) - 1
        while start < last:
            dressed = self.fits(start, start + 1)
            cut = self.cut(start) if dressed else self.furthest(start, bare=True)
            begin, end = self.bounds[start], self.bounds[cut]
            yield shown(self.flow, begin, end) if dressed else Piece(self.flow.text[begin:end])
            start = self.resume(cut)

    def cut(self, start: int) -> int:
        """The index where the piece that begins at `start` ends: the best kind of place that leaves it at least half full (CH-133)."""
        full = self.furthest(start)
        if full == len(self.bounds) - 1:
            return full
        full = self.before_solid(start, full)
        half = self.cost(start, full) / 2
        for choice in self.choices:
            place = bisect_right(choice, full) - 1
            if place >= 0 and choice[place] > start and self.cost(start, choice[place]) >= half:
                return choice[place]
        ends_line = full - 1 > start and self.flow.text[self.bounds[full] - 1] == "\n"
        return full - 1 if ends_line else full

    def resume(self, cut: int) -> int:
        """Past the line end that the end of the message stands for: one inside code, all blank lines elsewhere."""
        position = self.bounds[cut]
        blank = _LINE_ENDS.match(self.flow.text, position)
        if blank is None:
            return cut
        inside = any(start < position < end for start, end in self.flow.code)
        return self.index(position + 1 if inside else blank.end())

    def furthest(self, start: int, *, bare: bool = False) -> int:
        def length(index: int) -> int:
            return self.lengths[index] - self.lengths[start] if bare else self.cost(start, index)

        index = bisect_right(range(len(self.bounds)), self.limit, lo=start + 1, key=length) - 1
        if not bare and self.entities.touched(self.bounds[start], self.bounds[index]) > ENTITIES_MAX:
            position = self.bounds[start]
            index = bisect_right(range(index), ENTITIES_MAX, lo=start + 1, key=lambda i: self.entities.touched(position, self.bounds[i])) - 1
        return max(index, start + 1)

    def before_solid(self, start: int, index: int) -> int:
        place = bisect_left(self.solid, (self.bounds[index],)) - 1
        if place < 0 or self.solid[place][1] <= self.bounds[index]:
            return index
        before = self.index(self.solid[place][0])
        return before if before > start else index

    def open_to_cut(self, positions: Iterable[int]) -> list[int]:
        """Indexes of `positions`, without those inside a grapheme or inside something solid."""
        found: list[int] = []
        for position in sorted(set(positions)):
            index = self.index(position)
            place = bisect_left(self.solid, (position,)) - 1
            if self.bounds[index] == position and (place < 0 or self.solid[place][1] <= position):
                found.append(index)
        return found

    def index(self, position: int) -> int:
        return bisect_right(self.bounds, position) - 1

    def fits(self, start: int, end: int) -> bool:
        return self.cost(start, end) <= self.limit

    def cost(self, start: int, end: int) -> int:
        """Units of the piece between two indexes, marks included; never less than what is sent."""
        return self.lengths[end] - self.lengths[start] + self.marks.touched(self.bounds[start], self.bounds[end])


class _Tally:
    """Sums a number over the spans that touch a range, without looking at each."""

    def __init__(self, spans: Sequence[Span], values: Sequence[int]) -> None:
        by_start = sorted(zip((span.start for span in spans), values, strict=True))
        by_end = sorted(zip((span.end for span in spans), values, strict=True))
        self.starts, self.ends = [at for at, _ in by_start], [at for at, _ in by_end]
        self.begun = [0, *accumulate(value for _, value in by_start)]
        self.over = [0, *accumulate(value for _, value in by_end)]

    def touched(self, start: int, end: int) -> int:
        return self.begun[bisect_left(self.starts, end)] - self.over[bisect_right(self.ends, start)]


def _cut_points(flow: Flow) -> Iterable[Iterable[int]]:
    """Positions by kind, best kind first (CH-133). A line is left before its end, a sentence or word after the blanks that follow it."""
    yield flow.blocks
    yield [*flow.parts, *(found.start() for found in _BLANK_LINE.finditer(flow.text))]
    yield (found.start() for found in _LINE.finditer(flow.text))
    yield (found.end() for found in _SENTENCE.finditer(flow.text))
    yield (found.end() for found in _BLANK.finditer(flow.text))


def _atoms(text: str, limit: int, unit: TextUnit) -> Iterable[str]:
    """What may not be cut: graphemes, and the code points of those that alone exceed the limit (CH-131)."""
    for grapheme in graphemes(text):
        if measure(grapheme, unit) <= limit:
            yield grapheme
        else:
            yield from grapheme

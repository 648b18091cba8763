"""The part of a chunk that is shown for a hit: up to 500 characters around what matched (WD-102). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from memory import words
from memory.words import Term

SNIPPET_MAX = 500

_SENTENCE = regex.compile(r"[^\n。！？!?]*(?:[。！？!?]+|\n|\Z)")
_SEGMENT_MAX = 200


@dataclass(frozen=True, slots=True)
class Span:
    """`begin` to `end` in a text, in characters."""

    begin: int
    end: int


def snippet(text: str, terms: Sequence[Term], near: Span | None, most: int = SNIPPET_MAX) -> Span:
    """Where to look: the sentence or line that holds most of the question's weight. `near`: the passage whose vector was nearest; it breaks ties and
    leads where no word matches. Blank ends are left out."""
    segments = list(_segments(text))
    if len(text) <= most or not segments:
        return _trimmed(text, Span(0, min(len(text), most)))
    weights = {term.token: term.weight for term in terms}
    scores = [_held(text[each.begin : each.end], weights) + (0.5 if near and _meet(each, near) else 0) for each in segments]
    return _trimmed(text, _grown(segments, scores.index(max(scores)), most))


def _meet(one: Span, other: Span) -> bool:
    return one.begin < other.end and other.begin < one.end


def _held(text: str, weights: dict[str, float]) -> float:
    return sum(weights.get(token, 0.0) for token in set(words.tokens(text)))


def _segments(text: str) -> Iterator[Span]:
    for found in _SENTENCE.finditer(text):
        for begin in range(found.start(), found.end(), _SEGMENT_MAX):
            yield Span(begin, min(begin + _SEGMENT_MAX, found.end()))


def _grown(segments: list[Span], at: int, most: int) -> Span:
    """The segment with its neighbours, the one behind first, for as long as they fit."""
    first = last = at
    while True:
        if last + 1 < len(segments) and segments[last + 1].end - segments[first].begin <= most:
            last += 1
        elif first and segments[last].end - segments[first - 1].begin <= most:
            first -= 1
        else:
            return Span(segments[first].begin, segments[last].end)


def _trimmed(text: str, span: Span) -> Span:
    part = text[span.begin : span.end]
    begin = span.begin + len(part) - len(part.lstrip())
    return Span(begin, begin + len(part.strip()))

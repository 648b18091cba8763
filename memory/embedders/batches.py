"""Putting texts together for one request of an embedder, by count and characters (RS-179). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def batches(texts: Sequence[str], *, count: int, characters: int) -> Iterator[range]:
    """Consecutive stretches of `texts`: at most `count` texts and `characters` in all; a text longer than that stands alone."""
    first, total = 0, 0
    for at, text in enumerate(texts):
        if at > first and (at - first >= count or total + len(text) > characters):
            yield range(first, at)
            first, total = at, 0
        total += len(text)
    if first < len(texts):
        yield range(first, len(texts))


def shortened(text: str, characters: int) -> str:
    """At most `characters` of `text`, its end kept too: what a text is about stands at its ends more often than in its middle."""
    if len(text) <= characters:
        return text
    head = characters * 3 // 4
    return text[:head] + text[len(text) - (characters - head) :]

"""A plain extract of talk, made without a model: what stands in the context until the summary is there, and for good where none can be made (WD-43).

Pure and quick, for it runs in the transaction that moves the edge of the window.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, cast

import regex  # pyright: ignore[reportMissingTypeStubs]  (the package ships none; what is used of it is typed by _Pattern)

from memory.markdown_lines import one_line
from memory.secret_patterns import find_secret

ITEMS_MAX = 10
CHARACTERS_MAX = 120  # of one item, with the speaker's name
_NAME_MAX = 24


class _Pattern(Protocol):
    def findall(self, string: str) -> list[str]: ...


_SENTENCE_END = re.compile(r"""[.!?…।؟۔]+["'”’»)\]]*\s+|[。！？｡]+["'”’」』）]*\s*|\n\s*""")
_GRAPHEME = cast("_Pattern", regex.compile(r"\X"))  # pyright: ignore[reportUnknownMemberType]  (no stubs, see above)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """One message as the extract sees it. `id`: of the message; `by_person`: a person wrote it, not the bot."""

    id: str
    speaker: str
    text: str
    by_person: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line of an extract and the message it was taken from."""

    text: str
    source: str


def extract(talk: Sequence[Words]) -> tuple[Item, ...]:
    """At most 10 items of at most 120 characters, in the order of the talk; graphemes stay whole.

    People's words come before the bot's, spread over the whole stretch, its first and last among them. What looks like a secret is left out (WD-22).
    """
    said = [words for words in talk if one_line(words.text) and find_secret(words.text) is None]
    people = [at for at, words in enumerate(said) if words.by_person]
    chosen = _spread(people, ITEMS_MAX)
    answers = [at for at in range(len(said)) if at not in set(people)]
    chosen += _spread(answers, ITEMS_MAX - len(chosen))
    return tuple(Item(text=_line(said[at]), source=said[at].id) for at in sorted(chosen))


def borders(text: str) -> list[int]:
    """Places where `text` may be cut without breaking what people see as one sign, 0 and its end among them (RS-171)."""
    return list(accumulate(map(len, _GRAPHEME.findall(text)), initial=0))


def sentences(text: str) -> list[int]:
    """Those of the same places where a sentence or a line begins, 0 and the end among them."""
    whole = borders(text)
    begins = {found.end() for found in _SENTENCE_END.finditer(text)}
    return [place for place in whole if place in begins or place in (0, len(text))]


def shortened(text: str, most: int) -> str:
    """`text` in at most `most` code points, whole graphemes, with … where something was left out."""
    if len(text) <= most:
        return text
    kept = ""
    for cluster in _GRAPHEME.findall(text[: most + 64]):
        if len(kept) + len(cluster) > most - 1:
            break
        kept += cluster
    return f"{kept.rstrip()}…"


def _line(words: Words) -> str:
    speaker = shortened(one_line(words.speaker), _NAME_MAX)
    return shortened(f"{speaker}: {one_line(words.text)}" if speaker else one_line(words.text), CHARACTERS_MAX)


def _spread(places: Sequence[int], most: int) -> list[int]:
    """Up to `most` of `places`, evenly, the first and the last among them."""
    if len(places) <= most:
        return list(places)
    if most < 2:
        return list(places[len(places) - most :])
    return [places[round(n * (len(places) - 1) / (most - 1))] for n in range(most)]

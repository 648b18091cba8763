"""How well chunks fit a question: words weighed, and words and vectors put together (RS-173, RS-175, WD-107, WD-108). Pure.

Arrays run over what one search compared, in one order; a score that a side does not have is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]

_SATURATION, _LENGTH = 1.2, 0.75  # BM25's k1 and b; each token counts once in a chunk, so k1 acts through the length alone
_RARE = 0.2  # a word in more than such a share of the texts says nothing about what they are about
_COMMON_RARITY = -math.log(
    _RARE
)  # its rarity there; a word weighs what it has beyond that, so that none counts fully just below and not at all above
_PAIR = 0.75  # of a word: what one pair of a script without blanks says, for a run has more of them than words (decision 14)
_RANK = 60.0  # the constant of reciprocal rank fusion
NEWEST = 0.2  # what age may add
_HALF_LIFE_DAYS = 30.0


@dataclass(frozen=True, slots=True)
class Found:
    """One term of a question: what it weighs by itself, where it stands (None: in too much to tell anything apart), and in how many of the bundled
    passages, which keep particles common in a short list (RS-175). `beside`: which terms of the question share a character with it, as pairs of a
    script without blanks do (`words.beside`)."""

    weight: float
    places: Places | None
    in_background: int
    beside: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Worded:
    """`scores`: BM25 over the different tokens of a chunk, 0 where none matches; `share`: of the weight of the question's rare words, how much stands
    there, 0 to 1 (RS-175); `held`: how much that is, counted in words that stand in one text alone; `telling`: whether the question has a rare word
    at all."""

    scores: Floats
    share: Floats
    held: Floats
    telling: bool


def weigh(found: Sequence[Found], lengths: npt.NDArray[np.int64], background: int) -> Worded:
    """`lengths`: tokens of each chunk; `background`: how many bundled passages there are."""
    count = len(lengths)
    scores, held, rare = np.zeros(count), np.zeros(count), [0.0] * len(found)
    average = float(lengths.mean()) if count and lengths.any() else 1.0
    factor = (_SATURATION + 1) / (1 + _SATURATION * (1 - _LENGTH + _LENGTH * lengths / average))
    texts = count + background
    once = max(_rarity(texts, 1) - _COMMON_RARITY, 1e-6)
    for at, term in enumerate(found):
        if term.places is None:
            continue
        holding = len(term.places) + term.in_background
        rarity = _rarity(texts, holding)
        scores[term.places] += term.weight * rarity * factor[term.places]
        rare[at] = term.weight * max(rarity - _COMMON_RARITY, 0.0)
        held[term.places] += min(rare[at] / once, 1.0) * (_PAIR if term.beside else 1.0)  # a part of a name is not worth several words
    return Worded(scores, _share(found, rare, count), held, any(rare))


def _rarity(texts: int, holding: int) -> float:
    return float(np.log1p((texts - holding + 0.5) / (holding + 0.5)))


def _share(found: Sequence[Found], rare: Sequence[float], count: int) -> Floats:
    """Of the weight of rare words, how much each chunk holds. `rare`: what each term weighs there; nothing for one that is not rare.

    A run of n characters is cut into n - 1 pairs and has about half as many words: a pair that is missing weighs half, and one that shares a
    character with a pair that stands there is most likely no word but the border of one, and is not missing at all.
    """
    held, wanted = np.zeros(count), np.zeros(count)
    for term, weight in zip(found, rare, strict=True):
        if term.places is None or not weight:
            continue
        missing = np.full(count, weight / 2 if term.beside else weight)
        for other in term.beside:
            places = found[other].places
            if places is not None and rare[other]:
                missing[places] = 0.0
        missing[term.places] = weight
        held[term.places] += weight
        wanted += missing
    return np.divide(held, wanted, out=held, where=wanted > 0)


def fuse(vectors: Floats | None, words: Floats | None, *, words_weight: float, days_old: Floats) -> Floats:
    """One score for each chunk; NaN for one that no side found. Higher is better.

    `vectors`, `words`: the score of each side, NaN where it has none; None for a side that was not asked. `days_old`: NaN for what does not age.
    Words that match nothing (0) are not found. z(vectors) + w · z(words); where a side has no spread, rank fusion (RS-173). What is new gets up to
    NEWEST more, which never takes a hit away (WD-107); it is scaled to the ranks where these decide.
    """
    sides: list[tuple[Floats, Flags, float]] = []
    if vectors is not None:
        sides.append((vectors, ~np.isnan(vectors), 1.0))
    if words is not None:
        sides.append((words, np.nan_to_num(words) > 0, words_weight))
    total, found, unit = np.zeros(len(days_old)), np.zeros(len(days_old), dtype=bool), 1.0
    spread = bool(sides) and all(_has_spread(side) for side, _, _ in sides)
    if not spread:
        unit = 1 / (_RANK + 1)
    for side, there, weight in sides:
        total += (weight if len(sides) > 1 else 1.0) * _standard(side) if spread else _reciprocal_ranks(side, there)
        found |= there
    fresh = np.nan_to_num(np.exp2(-np.maximum(days_old, 0) / _HALF_LIFE_DAYS))
    return np.where(found, total + unit * NEWEST * fresh, np.nan)


def best(scores: Floats, days_old: Floats, ids: npt.NDArray[np.int64], count: int) -> Places:
    """Places of the `count` best scores, best first; equal ones newer first, then by id."""
    places = np.flatnonzero(~np.isnan(scores))
    if len(places) > (near := max(4 * count, 64)):
        edge = np.partition(scores[places], len(places) - near)[len(places) - near]
        places = places[scores[places] >= edge]
    age = np.nan_to_num(days_old[places], nan=np.inf)
    order = np.lexsort((ids[places], age, -scores[places]))
    return places[order][:count]


def _has_spread(side: Floats) -> bool:
    known = side[~np.isnan(side)]
    return len(known) >= 2 and float(known.std()) > 1e-9


def _standard(side: Floats) -> Floats:
    """z-scores; what the side did not find takes its lowest."""
    known = side[~np.isnan(side)]
    z = (side - known.mean()) / known.std()
    return np.nan_to_num(z, nan=float(np.nanmin(z)))


def _reciprocal_ranks(side: Floats, found: Flags) -> Floats:
    """1 / (60 + rank), equal scores sharing the better rank; 0 for what the side did not find."""
    ranks = np.searchsorted(np.sort(-side[found]), -side, side="left") + 1
    return np.where(found, 1 / (_RANK + ranks), 0.0)

"""One search as arrays: the chunks of its areas in one order, what each side says of them, and which are accepted (RS-173 to RS-175). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from memory import ranking, words
from memory.embedders import background_set
from memory.hot_areas import AreaRows, Flags, Ints
from memory.ranking import Floats, Found, Worded
from memory.words import Term

TEXT_SHARE = 0.2
"""Of the weight of a question's rare words, so much must stand in a chunk for words alone to accept it (RS-175)."""

TOGETHER = 2.3
"""Where sides add up: the parts of both floors that a chunk reaches and one for each rare word in it must come to this (decision 14)."""

NO_VECTORS = 0.95
"""So much of that is enough for a chunk whose vector was not compared: what words leave open, nothing else can say."""


@dataclass(frozen=True, slots=True)
class Compared:
    """`chunk_id` with its fused score; `accepted`: whether either side takes it for an answer and not just for the nearest there is;
    `fits`: whether it is worth a line in a list that somebody reads."""

    chunk_id: int
    score: float
    accepted: bool
    fits: bool


def compare(
    areas: Sequence[AreaRows],
    terms: Sequence[Term],
    holders: Sequence[Ints | None],
    nearness: Sequence[Floats] | None,
    *,
    allowed: Sequence[Flags],
    today: int,
    words_weight: float,
    floor: float,
    count: int,
    text_share: float = TEXT_SHARE,
    names: Sequence[frozenset[str]] = (),
    name_weight: float = 1.0,
    adds_up: bool = False,
    list_floor: float = -1.0,
) -> list[Compared]:
    """The `count` best chunks, best first.

    `holders`: for each term the ids of the chunks that hold it (`lexical.holders_of_each`); `nearness`: for each area the cosine of its chunks, NaN
    for none, or None when no vector was compared; `allowed`: which chunks of each area count at all: the others are not compared either.
    `today`: ordinal of the local date; `floor`: the cosine above which a vector alone accepts (RS-174); `text_share`: of the weight of the rare
    words, how much accepts by words alone. `names`: tokens of each name in the question; they weigh `name_weight` times, and a chunk that holds one
    whole is accepted, unless more than half of the chunks do (RS-35, RS-175). `adds_up`: what one side lacks of its floor the other may give, and
    three of six rare words say more than one of two (decision 14). `list_floor`: what holds none of the rare words fits only above this cosine.
    """
    ids = np.concatenate([rows.ids[may] for rows, may in zip(areas, allowed, strict=True)])
    if not len(ids):
        return []
    lengths = np.concatenate([rows.words[may] for rows, may in zip(areas, allowed, strict=True)])
    days = np.concatenate([rows.days[may] for rows, may in zip(areas, allowed, strict=True)])
    days_old: Floats = np.where(days > 0, (today - days).astype(np.float64), np.nan)
    known = background_set.holding()
    order = np.argsort(ids)
    places = {term.token: None if held is None else _places(ids, order, held) for term, held in zip(terms, holders, strict=True)}
    telling = [(name, held) for name in names if (held := _holding(places, name)) is not None and 2 * len(held) <= len(ids)]
    heavy = frozenset[str]().union(*(name for name, _ in telling))
    found = [
        Found(term.weight * (name_weight if term.token in heavy else 1.0), places[term.token], known.get(term.token, 0), beside)
        for term, beside in zip(terms, words.beside([term.token for term in terms]), strict=True)
    ]
    worded = ranking.weigh(found, lengths, len(background_set.background().passages))
    near = None if nearness is None else np.concatenate([scores[may] for scores, may in zip(nearness, allowed, strict=True)])
    fused = ranking.fuse(near, worded.scores, words_weight=words_weight, days_old=days_old)
    accepted = _accepted(near, worded, floor, text_share, adds_up)
    for _, held in telling:
        accepted[held] = True
    fits = _fitting(near, worded, list_floor) if near is not None else worded.scores > 0
    best = ranking.best(fused, days_old, ids, count)
    return [Compared(int(ids[at]), float(fused[at]), bool(accepted[at]), bool(fits[at])) for at in best]


def _accepted(near: Floats | None, worded: Worded, floor: float, text_share: float, adds_up: bool) -> Flags:
    share = worded.share
    unknown = np.isnan(near) if near is not None else np.ones(len(share), dtype=bool)
    nearness = np.nan_to_num(near, nan=-1.0) if near is not None else -np.ones(len(share))
    accepted: Flags = ((share > 0) & (share >= text_share)) | (nearness > floor)
    if adds_up:
        together = share / text_share + worded.held + np.maximum(nearness, 0.0) / max(floor, 1e-6)
        accepted |= together > np.where(unknown, TOGETHER * NO_VECTORS, TOGETHER)
    return accepted


def _fitting(near: Floats, worded: Worded, floor: float) -> Flags:
    """By its words or its vector. The words that every question has say nothing beside a rare one; where none is rare, or no vector was compared,
    any word will do (WD-107, WD-108)."""
    by_words: Flags = worded.share > 0 if worded.telling else worded.scores > 0
    return by_words | (near > floor) | (np.isnan(near) & (worded.scores > 0))


def by_key(rows: AreaRows, chunk_of: Mapping[str, int], cosines: Mapping[str, float]) -> Floats:
    """For each chunk of an area the best cosine of its passages that an index found; NaN for what it did not."""
    scores = np.full(len(rows.ids), np.nan)
    for key, cosine in cosines.items():
        if (chunk_id := chunk_of.get(key)) is not None:
            at = int(np.searchsorted(rows.ids, chunk_id))
            if at < len(rows.ids) and rows.ids[at] == chunk_id:
                scores[at] = cosine if np.isnan(scores[at]) else max(scores[at], cosine)
    return scores


def _holding(places: Mapping[str, npt.NDArray[np.intp] | None], name: frozenset[str]) -> npt.NDArray[np.intp] | None:
    """Where all tokens of a name stand; None where one of them stands too often to be looked up."""
    parts = [places.get(token) for token in name]
    if not parts or any(part is None for part in parts):
        return None
    return reduce(np.intersect1d, [part for part in parts if part is not None])


def _places(ids: Ints, order: npt.NDArray[np.intp], held: Ints) -> npt.NDArray[np.intp]:
    if not len(held):
        return np.zeros(0, dtype=np.intp)
    at = np.minimum(np.searchsorted(ids, held, sorter=order), len(ids) - 1)
    places = order[at]
    return places[ids[places] == held]

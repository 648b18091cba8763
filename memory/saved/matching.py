"""Which rows match a message: vectors and words in one ranking over all lists (SM-30 to SM-33, RS-173, RS-175). Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np

from memory import ranking, words
from memory.comparing import TEXT_SHARE
from memory.embedders import background_set
from memory.ports import Matrix, Vector
from memory.ranking import Found
from memory.saved.rows import Memory

_ALIKE = 6  # decimals: what differs less is the same similarity, computed twice


def query_of(text: str, *, min_chars: int = 3, min_chars_cjk: int = 2, max_chars: int = 1000) -> str:
    """What is searched for; empty when the text says too little (SM-30)."""
    text = unicodedata.normalize("NFC", text).strip()[:max_chars].strip()
    return text if len(text) >= (min_chars_cjk if words.CJK.search(text) else min_chars) else ""


def match(
    rows: Sequence[Memory],
    vectors: Matrix,
    tokens: Sequence[Sequence[str]],
    question: Vector,
    query: str,
    *,
    floor: float,
    words_weight: float,
    most: int,
) -> tuple[Memory, ...]:
    """The good ones, best first, at most `most`.

    `vectors`: of the rows, centred, length 1; `question`: likewise; `tokens`: of each row. Equal ones: matched longest ago first, then the lower id.
    """
    if not rows:
        return ()
    near = np.round((vectors @ question).astype(np.float64), _ALIKE)
    worded = _worded(tokens, query)
    never_ages = np.full(len(rows), np.nan)
    fused = np.round(ranking.fuse(near, worded.scores, words_weight=words_weight, days_old=never_ages), _ALIKE)
    good = (near > floor) | ((worded.scores > 0) & (worded.share >= TEXT_SHARE))
    order = sorted((at for at in range(len(rows)) if good[at]), key=lambda at: (-float(fused[at]), _matched(rows[at]), rows[at].id))
    return tuple(rows[at] for at in order[:most])


def _matched(memory: Memory) -> float:
    """When it was matched last, for comparing; never is longest ago."""
    return memory.last_matched_at.timestamp() if memory.last_matched_at is not None else float("-inf")


def _worded(tokens: Sequence[Sequence[str]], query: str) -> ranking.Worded:
    known, background = background_set.holding(), len(background_set.background().passages)
    sets = [frozenset(each) for each in tokens]

    def found(term: words.Term) -> Found:
        places = np.fromiter((at for at, each in enumerate(sets) if term.token in each), dtype=np.intp)
        return Found(term.weight, places, known.get(term.token, 0))

    return ranking.weigh([found(term) for term in words.terms(query)], np.array([len(each) for each in tokens], dtype=np.int64), background)

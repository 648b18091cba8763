"""Searching the talk for one reply: words and vectors together, in the chats and audiences it may read, and read again from the log (RS-30 to RS-36).

The search runs over chunks that reach out of the live window, and over messages that wait for a chunk (RS-17). A message that reads otherwise than
when its chunk was made withholds the chunk (RS-22, RS-180). No reply waits until the vectors of a large chat are read (RS-34): it goes by the
vector index, or by words alone, and they are read behind it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import sqlalchemy as sa

from memory import comparing, far_vectors, lexical, words
from memory.areas import IndexArea
from memory.database import Database
from memory.embedders import calibration as calibrating
from memory.embedders.calibration import Calibration
from memory.file_search import Serving
from memory.hot_areas import HotAreas, Ints
from memory.index_errors import EmbedderFailed, IndexFailed
from memory.index_kinds import MESSAGES
from memory.ports import Vector
from memory.query import Query
from memory.ranking import Floats
from memory.recall import waiting_talk
from memory.recall.block import CHUNKS_MAX, Passage
from memory.recall.chunks import Spoken
from memory.recall.reach import Area, Reach
from memory.recall.read_again import read_again
from memory.words import Term

log = logging.getLogger(__name__)

COMMON = 2_000  # a word in more chunks of an area than this, and than a quarter of them, tells nothing apart
CANDIDATES = 96  # passages that an index is asked for
AT_ONCE = 4_000  # passages of a chat whose vectors are read while its reply waits: some 0.1 s
ONE_BY_ONE = 20_000  # passages that are compared from the database where no index answers; of more, words alone must do


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`names`: tokens of each name in `text`; `query`: of the reply, which makes the vector once for all searches."""

    text: str
    names: tuple[frozenset[str], ...]
    query: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What was found, best first. `mode`: with vectors, by words alone, or nothing was there to search; `searched`: chunks; `stale`: chats whose
    chunks must be made anew."""

    passages: tuple[Passage, ...] = ()
    mode: Literal["hybrid", "text", "none"] = "none"
    searched: int = 0
    stale: frozenset[str] = frozenset()


class TalkSearch:
    """`serving`: what answers now; `warm` hears of a large area that is searched and whose vectors are not in memory; the numbers are those of
    `recall.*` and `search.words_weight.messages`, as they are now."""

    def __init__(
        self,
        db: Database,
        hot: HotAreas,
        *,
        serving: Callable[[], Serving],
        words_weight: Callable[[], float],
        name_weight: Callable[[], float],
        floor_percentile: Callable[[], float],
        text_share: Callable[[], float],
        warm: Callable[[IndexArea], object] | None = None,
        at_once: int = AT_ONCE,
    ) -> None:
        self._db = db
        self._hot = hot
        self._serving = serving
        self._words_weight = words_weight
        self._name_weight = name_weight
        self._percentile = floor_percentile
        self._text_share = text_share
        self._warm = warm
        self._at_once = at_once if warm is not None else None

    async def search(self, asked: Asked, reaches: Sequence[Reach], *, most: int = CHUNKS_MAX) -> Recalled:
        """Up to `most` finds. Raises StoreError; an embedder or index that fails leaves the words (RS-36)."""
        terms, serving = words.terms(asked.text), self._serving()
        question = await self._question(serving, asked)
        calibration = serving.calibration if question is not None else None
        fingerprint = serving.embedder.fingerprint if serving.embedder is not None else ""
        areas, waiting, holders = await self._db.read(lambda connection: self._look(connection, reaches, terms, fingerprint, calibration, question))
        if not any(len(each.rows.ids) for each in areas):
            return Recalled()
        allowed = [each.reach.holds_each(each.rows.firsts) for each in areas]
        nearness = None
        if question is not None and calibration is not None:
            nearness = [await self._near(serving, calibration, question, each) for each in areas]
            if all(np.isnan(scores).all() for scores in nearness):
                nearness = None
        compared = await asyncio.to_thread(
            comparing.compare,
            [each.rows for each in areas],
            terms,
            holders,
            nearness,
            allowed=allowed,
            today=0,
            words_weight=self._words_weight(),
            floor=calibration.floor(calibrating.ARCHIVE, self._percentile()) if calibration is not None else 1.0,
            count=most,
            text_share=self._text_share(),
            names=asked.names,
            name_weight=self._name_weight(),
            adds_up=True,
        )
        accepted = [each for each in compared if each.accepted]
        passages, stale = await self._db.read(lambda connection: read_again(connection, accepted, areas, waiting, terms))
        searched = int(sum(np.count_nonzero(may) for may in allowed))
        return Recalled(passages=passages, mode="text" if nearness is None else "hybrid", searched=searched, stale=stale)

    async def _question(self, serving: Serving, asked: Asked) -> Vector | None:
        if serving.embedder is None or serving.calibration is None:
            return None
        try:
            vector = await asked.query.vector(serving.embedder, asked.text)
        except EmbedderFailed as error:
            log.info("recall goes by words alone: %s", error)
            return None
        return None if vector is None else serving.calibration.question(vector)

    def _look(
        self,
        connection: sa.Connection,
        reaches: Sequence[Reach],
        terms: Sequence[Term],
        fingerprint: str,
        calibration: Calibration | None,
        question: Vector | None,
    ) -> tuple[list[Area], dict[int, tuple[str, Spoken]], list[Ints | None]]:
        areas: list[Area] = []
        waiting: dict[int, tuple[str, Spoken]] = {}
        for reach in reaches:
            newest: list[int] = []
            for area in reach.areas:
                rows = self._hot.rows(connection, area, fingerprint, calibration, at_once=self._at_once)
                areas.append(Area(reach, area, rows, np.zeros(0, dtype=np.float32) if question is None else rows.similar(question)))
                newest.append(int(rows.firsts.max(initial=0)))
            uncut = waiting_talk.waiting(connection, reach, newest)
            waiting |= {-message.seq: (reach.conversation_id, message) for message in uncut}
            areas.append(Area(reach, IndexArea(""), waiting_talk.rows_of(uncut), np.zeros(0, dtype=np.float32)))
        stored = [each.area for each in areas if each.area and len(each.rows.ids)]
        most = max(COMMON, max((len(each.rows.ids) for each in areas), default=0) // 4)
        holders: list[Ints | None] = [np.zeros(0, dtype=np.int64) for _ in terms]
        if stored:
            holders = lexical.holders_of_each(connection, MESSAGES, stored, [term.token for term in terms], most)
        held = {number: frozenset(words.tokens(message.line)) for number, (_, message) in waiting.items()}
        return areas, waiting, [waiting_talk.held_by(found, term, held) for found, term in zip(holders, terms, strict=True)]

    async def _near(self, serving: Serving, calibration: Calibration, question: Vector, area: Area) -> Floats:
        """The cosine of each chunk's nearest passage, NaN for none. Of an area that is not in memory by the index, else one by one (WD-127)."""
        rows = area.rows
        if rows.cold and self._warm is not None:
            self._warm(area.area)
        if rows.vectors is not None or not rows.total_passages:
            return rows.nearest(area.similar)
        if serving.index is not None and serving.collection:
            try:
                cosines = await serving.index.query(serving.collection, [area.area], question, CANDIDATES)
                if len(cosines) >= min(CANDIDATES, rows.total_passages):
                    chunk_of = await self._db.read(lambda connection: far_vectors.chunks_of_keys(connection, MESSAGES, area.area, list(cosines)))
                    return comparing.by_key(rows, chunk_of, cosines)
            except IndexFailed as error:
                log.warning("the vector index does not answer: %s", error)
        if rows.cold or rows.total_passages > ONE_BY_ONE:
            return np.full(len(rows.ids), np.nan)
        fingerprint = serving.embedder.fingerprint if serving.embedder is not None else ""
        return await self._db.read(
            lambda connection: far_vectors.one_by_one(connection, MESSAGES, fingerprint, area.area, calibration, question, rows)
        )

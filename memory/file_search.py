"""Searching the files of a memory: words and vectors together, by what a turn may read, and read again from the file before it is told (section 8).

Access filters what is compared and is asked again about each hit (WD-10). A search that did not work says so: it is not a search that found nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

import numpy as np
import sqlalchemy as sa

from memory import comparing, far_vectors, lexical, live_hits, words
from memory.areas import IndexArea, areas_of
from memory.comparing import Compared
from memory.database import Database
from memory.embedders.calibration import ARCHIVE, Calibration
from memory.errors import StoreError
from memory.hot_areas import AreaRows, Cosines, Flags, HotAreas, Ints
from memory.index_errors import EmbedderFailed, IndexFailed
from memory.index_kinds import FILES
from memory.live_hits import Hit
from memory.lore import MATCH_MAX_PIECES, MATCH_MAX_TOKENS
from memory.ports import Embedder, Vector, VectorIndex
from memory.query import Query
from memory.ranking import Floats
from memory.scopes import Access, Scope
from memory.tokens import count as count_tokens
from memory.words import Term
from memory.workspace_threads import WorkspaceThreads

log = logging.getLogger(__name__)

Mode = Literal["hybrid", "words", "failed"]
Vectors = Literal["ok", "off", "building", "failed"]

COMMON = 2_000  # a word in more chunks of an area than this, and than a quarter of them, tells nothing apart
CANDIDATES = 96  # passages that an index is asked for (RS-173 wants 24 chunks)
LIST_PERCENTILE = 60.0
"""Of the floor of a list that somebody reads: that of rows (SM-33). At 95, as for what comes unasked, two of five related pairs would be hidden, at
60 one of six is."""
QUESTION_S = 1.0  # for the vector of the question; after that words alone answer
_SPARE = 10  # hits looked at beyond the limit, for some may be out of date


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What answers at present. `vectors`: how the vector side is (WD-122); without `embedder` and `calibration` words answer alone. `index` with its
    `collection` serves areas that are too large for memory; None: these are compared one by one."""

    vectors: Vectors = "off"
    embedder: Embedder | None = None
    calibration: Calibration | None = None
    index: VectorIndex | None = None
    collection: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Hits, best first. `mode`: words and meaning, words alone, or a search that failed; `note`: why there were no vectors, empty for none."""

    hits: tuple[Hit, ...] = ()
    mode: Mode = "words"
    note: Literal["", "off", "building", "failed", "slow"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What was read for one search. `allowed`: for each area the chunks that count; `similar`: for each the cosines of its passages, as far as they
    are held in memory."""

    areas: tuple[IndexArea, ...]
    rows: tuple[AreaRows, ...]
    allowed: tuple[Flags, ...]
    similar: tuple[Cosines, ...]
    holders: list[Ints | None]


class FileSearch:
    """`serving`: what answers now; `stale` hears of a file that the index does not say as it is, `asked` of a scope that is searched; `today`: the
    local date; `words_weight`: of words beside vectors (`search.words_weight.files`); `floor_percentile`: RS-174."""

    def __init__(
        self,
        db: Database,
        files: WorkspaceThreads,
        hot: HotAreas,
        *,
        serving: Callable[[], Serving],
        stale: Callable[[Scope, str], object],
        today: Callable[[], date],
        asked: Callable[[Scope], object] = lambda scope: None,
        words_weight: Callable[[], float] = lambda: 0.3,
        floor_percentile: float = 95.0,
        question_s: float = QUESTION_S,
    ) -> None:
        self._db = db
        self._files = files
        self._hot = hot
        self._serving = serving
        self._stale = stale
        self._asked = asked
        self._today = today
        self._words_weight = words_weight
        self._percentile = floor_percentile
        self._question_s = question_s

    async def search(self, access: Access, query: str, limit: int = 10, *, knowledge: bool = True) -> SearchResult:
        """The best chunks for `query` among the files that `access` may read; no cut but `limit` (WD-107, WD-108). `knowledge`: whether pages count.

        Never raises what the store or an embedder does: the result says it.
        """
        if access.scope is not None:
            self._asked(access.scope)
        return await self._told(access, query, limit, lambda rows: np.ones(len(rows.ids), dtype=bool) if knowledge else ~rows.pages)

    async def matching_lore(self, access: Access, query: str, asked: Query | None = None) -> tuple[Hit, ...]:
        """Pieces of pages with `lore: match` that this message brings up: accepted ones alone, at most three with 512 tokens in all (WD-139).

        `asked`: of this reply, with `query` among its texts, so that its vector is not asked for twice (SM-29).
        """
        found = await self._told(access, query, 2 * MATCH_MAX_PIECES, lambda rows: rows.matching, asked)
        kept: list[Hit] = []
        for hit in found.hits:
            fits = sum(count_tokens(each.snippet) for each in [*kept, hit]) <= MATCH_MAX_TOKENS
            if hit.accepted and fits and len(kept) < MATCH_MAX_PIECES:
                kept.append(hit)
        return tuple(kept)

    async def _told(self, access: Access, query: str, limit: int, allow: Callable[[AreaRows], Flags], asked: Query | None = None) -> SearchResult:
        try:
            return await self._found(access, query, limit, allow, asked)
        except StoreError as error:
            log.warning("a search of files failed: %s", error)
            return SearchResult(mode="failed")

    async def _found(self, access: Access, query: str, limit: int, allow: Callable[[AreaRows], Flags], asked: Query | None) -> SearchResult:
        areas, terms, serving = areas_of(access), words.terms(query), self._serving()
        if not areas:
            return SearchResult()
        question, note = await self._question(serving, query, asked)
        calibration = serving.calibration if question is not None else None
        fingerprint = serving.embedder.fingerprint if serving.embedder is not None else ""
        look = await self._db.read(lambda connection: self._look(connection, areas, terms, fingerprint, calibration, question, allow))
        nearness: list[Floats] | None = None
        nearest: dict[int, int] = {}
        if question is not None and calibration is not None:
            nearness, note = await self._nearness(serving, calibration, question, look, nearest, limit)
        compared = await asyncio.to_thread(
            comparing.compare,
            look.rows,
            terms,
            look.holders,
            nearness,
            allowed=look.allowed,
            today=self._today().toordinal(),
            words_weight=self._words_weight(),
            floor=calibration.floor(ARCHIVE, self._percentile) if calibration is not None else 1.0,
            count=limit + _SPARE,
            list_floor=calibration.floor(ARCHIVE, LIST_PERCENTILE) if calibration is not None else 1.0,
        )
        if nearness is not None:
            for rows, similar in zip(look.rows, look.similar, strict=True):
                nearest.update({each.chunk_id: at for each in compared if (at := rows.passage(each.chunk_id, similar)) is not None})
        hits = await self._hits(access, areas, compared, nearest, terms, limit)
        return SearchResult(hits=hits, mode="words" if nearness is None else "hybrid", note=note)

    async def _question(
        self, serving: Serving, query: str, asked: Query | None
    ) -> tuple[Vector | None, Literal["", "off", "building", "failed", "slow"]]:
        """The centred vector of the question, or None and why."""
        if serving.embedder is None or serving.calibration is None or serving.vectors != "ok":
            return None, "building" if serving.vectors == "ok" else serving.vectors
        try:
            async with asyncio.timeout(self._question_s):
                vector = await asked.vector(serving.embedder, query) if asked else (await serving.embedder.questions([query]))[0]
        except TimeoutError:
            return None, "slow"
        except EmbedderFailed as error:
            log.debug("no vector of a question: %s", error)  # the embedder itself says it, once an hour (RS-184)
            return None, "failed"
        return (None, "") if vector is None else (serving.calibration.question(vector), "")

    def _look(
        self,
        connection: sa.Connection,
        areas: tuple[IndexArea, ...],
        terms: Sequence[Term],
        fingerprint: str,
        calibration: Calibration | None,
        question: Vector | None,
        allow: Callable[[AreaRows], Flags],
    ) -> _Look:
        rows = tuple(self._hot.rows(connection, area, fingerprint, calibration) for area in areas)
        most = max(COMMON, max(len(each.ids) for each in rows) // 4)
        there = [area for area, each in zip(areas, rows, strict=True) if len(each.ids)]
        holders = lexical.holders_of_each(connection, FILES, there, [term.token for term in terms], most)
        similar = tuple(np.zeros(0, dtype=np.float32) if question is None else each.similar(question) for each in rows)
        return _Look(areas=areas, rows=rows, allowed=tuple(map(allow, rows)), similar=similar, holders=holders)

    async def _nearness(
        self, serving: Serving, calibration: Calibration, question: Vector, look: _Look, nearest: dict[int, int], limit: int
    ) -> tuple[list[Floats] | None, Literal["", "building"]]:
        """For each area the cosines of its chunks; None while too few of them have a vector."""
        found: list[Floats] = []
        for area, rows, similar in zip(look.areas, look.rows, look.similar, strict=True):
            if rows.vectors is None and rows.total_passages:
                found.append(await self._far(serving, calibration, question, area, rows, nearest, limit))
            elif rows.total_passages and not rows.covered:
                return None, "building"
            else:
                found.append(rows.nearest(similar))
        return found, ""

    async def _far(
        self, serving: Serving, calibration: Calibration, question: Vector, area: IndexArea, rows: AreaRows, nearest: dict[int, int], limit: int
    ) -> Floats:
        """Cosines of an area that is too large for memory: by the index, and one by one where that gives too few (WD-127)."""
        fingerprint = serving.embedder.fingerprint if serving.embedder is not None else ""
        wanted = max(CANDIDATES, 4 * limit)
        if serving.index is not None and serving.collection:
            try:
                cosines = await serving.index.query(serving.collection, [area], question, wanted)
            except IndexFailed as error:
                log.warning("the vector index does not answer: %s", error)
                cosines = {}
            if len(cosines) >= min(wanted, rows.total_passages):
                chunk_of = await self._db.read(lambda connection: far_vectors.chunks_of_keys(connection, FILES, area, list(cosines)))
                for key in sorted(cosines, key=lambda each: cosines[each]):
                    if key in chunk_of:
                        nearest[chunk_of[key]] = int(key.rpartition(":")[2])
                return comparing.by_key(rows, chunk_of, cosines)
        return await self._db.read(lambda connection: far_vectors.one_by_one(connection, FILES, fingerprint, area, calibration, question, rows))

    async def _hits(
        self, access: Access, areas: Sequence[IndexArea], compared: Sequence[Compared], nearest: dict[int, int], terms: Sequence[Term], limit: int
    ) -> tuple[Hit, ...]:
        if not compared:
            return ()
        ids = [each.chunk_id for each in compared]
        near = {chunk_id: at for chunk_id, at in nearest.items() if chunk_id in set(ids)}
        found = await self._db.read(lambda connection: live_hits.stored(connection, ids, areas, near))
        readable = {each.chunk_id: each for each in found if access.may_read(each.scope, each.path)}
        hits, stale = await self._files.read(lambda workspace: live_hits.live(workspace, compared, readable, terms, limit))
        for scope, path in stale:
            self._stale(scope, path)
        return hits

"""Searching the talk for one reply: words and vectors together, in the chats and audiences it may read, and read again from the log (RS-30 to RS-36).

The search runs over chunks that reach out of the live window, and over messages that wait for a chunk (RS-17). A message that reads otherwise than
when its chunk was made withholds the chunk (RS-22, RS-180). No reply waits until the vectors of a large chat are read (RS-34): it goes by the
vector index, or by words alone, and they are read behind it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import sqlalchemy as sa

from memory import comparing, far_vectors, lexical, words
from memory.areas import IndexArea
from memory.comparing import Compared
from memory.database import Database
from memory.embedders import calibration as calibrating
from memory.embedders.calibration import Calibration
from memory.file_search import Serving
from memory.hot_areas import AreaRows, Cosines, HotAreas, Ints
from memory.index_errors import EmbedderFailed, IndexFailed
from memory.index_kinds import MESSAGES
from memory.ports import Vector
from memory.query import Query
from memory.ranking import Floats
from memory.recall import chunk_store, chunks, real_talk
from memory.recall.audiences import audience_key
from memory.recall.block import CHUNKS_MAX, Passage
from memory.recall.chunks import Spoken
from memory.recall_schema import chunk_passages
from memory.words import Term

log = logging.getLogger(__name__)

COMMON = 2_000  # a word in more chunks of an area than this, and than a quarter of them, tells nothing apart
WAITING_WITHIN = 2_000  # newest messages of a chat, among which an audience that has no chunk yet is looked for
CANDIDATES = 96  # passages that an index is asked for
AT_ONCE = 4_000  # passages of a chat whose vectors are read while its reply waits: some 0.1 s
ONE_BY_ONE = 20_000  # passages that are compared from the database where no index answers; of more, words alone must do


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What one reply may recall of one chat: audiences by key (RS-185), messages behind `after` (what was cleared stays cleared) up to
    `edge` (behind it all is live), who alone reads imports of
    theirs, and the name of the chat when it is not the one of the reply."""

    conversation_id: str
    audiences: tuple[str, ...]
    edge: int
    after: int = 0
    live: frozenset[int] = frozenset()
    importer: str = ""
    title: str = ""

    @property
    def areas(self) -> tuple[IndexArea, ...]:
        keys = [*self.audiences, *([f"importer:{self.importer}"] if self.importer else [])]
        return tuple(chunk_store.area_of(self.conversation_id, key) for key in keys)


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


@dataclass(frozen=True, slots=True)
class _Area:
    """One area as it is compared. An empty name is that of the messages without a chunk: the negative of their number stands for their id."""

    reach: Reach
    area: IndexArea
    rows: AreaRows
    similar: Cosines


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
        allowed = [
            (each.rows.firsts > each.reach.after) & (each.rows.firsts <= each.reach.edge) & ~np.isin(each.rows.firsts, list(each.reach.live))
            for each in areas
        ]
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
        passages, stale = await self._db.read(lambda connection: _read_again(connection, accepted, areas, waiting, terms))
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
    ) -> tuple[list[_Area], dict[int, tuple[str, Spoken]], list[Ints | None]]:
        areas: list[_Area] = []
        waiting: dict[int, tuple[str, Spoken]] = {}
        for reach in reaches:
            newest: list[int] = []
            for area in reach.areas:
                rows = self._hot.rows(connection, area, fingerprint, calibration, at_once=self._at_once)
                areas.append(_Area(reach, area, rows, np.zeros(0, dtype=np.float32) if question is None else rows.similar(question)))
                newest.append(int(rows.firsts.max(initial=0)))
            uncut = [
                message
                for message in real_talk.uncut(connection, reach.conversation_id, after=_waits_after(connection, reach, newest))
                if message.audience in reach.audiences and reach.after < message.seq <= reach.edge and message.seq not in reach.live
            ]
            waiting |= {-message.seq: (reach.conversation_id, message) for message in uncut}
            areas.append(_Area(reach, IndexArea(""), _rows_of(uncut), np.zeros(0, dtype=np.float32)))
        stored = [each.area for each in areas if each.area and len(each.rows.ids)]
        most = max(COMMON, max((len(each.rows.ids) for each in areas), default=0) // 4)
        holders = lexical.holders_of_each(connection, MESSAGES, stored, [term.token for term in terms], most) if stored else [_NOTHING for _ in terms]
        held = {number: frozenset(words.tokens(message.line)) for number, (_, message) in waiting.items()}
        return areas, waiting, [_with_waiting(found, term, held) for found, term in zip(holders, terms, strict=True)]

    async def _near(self, serving: Serving, calibration: Calibration, question: Vector, area: _Area) -> Floats:
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


_NEAR_WEIGHT = 2.0
_P = chunk_passages.c
_SPANS = sa.select(_P.chunk_id, _P.position, _P.begin, _P.end).where(_P.chunk_id.in_(sa.bindparam("ids", type_=sa.BigInteger, expanding=True)))
_NOTHING: Ints = np.zeros(0, dtype=np.int64)


def _waits_after(connection: sa.Connection, reach: Reach, newest: Sequence[int]) -> int:
    """Number of a message behind which all stand that wait for a chunk, so that a long chat is not read through for each reply.

    `newest`: first number of the newest chunk of each area, 0 for none: chunks of one audience are made in order.
    """
    least = min(newest[: len(reach.audiences)], default=0)  # what was imported holds no message of this chat
    return least or real_talk.behind_newest(connection, reach.conversation_id, WAITING_WITHIN)


def _rows_of(messages: Sequence[Spoken]) -> AreaRows:
    """Messages that wait for a chunk, as an area of their own; ids ascend."""
    ordered = sorted(messages, key=lambda message: -message.seq)
    zeros = np.zeros(len(ordered), dtype=np.int64)
    flags = np.zeros(len(ordered), dtype=bool)
    return AreaRows(
        ids=np.array([-message.seq for message in ordered], dtype=np.int64),
        words=np.array([len(words.tokens(message.line)) for message in ordered], dtype=np.int64),
        days=zeros,
        firsts=np.array([message.seq for message in ordered], dtype=np.int64),
        pages=flags,
        matching=flags,
    )


def _with_waiting(found: Ints | None, term: Term, held: dict[int, frozenset[str]]) -> Ints | None:
    if found is None:
        return None
    more = [number for number, tokens in held.items() if term.token in tokens]
    return np.concatenate([found, np.array(more, dtype=np.int64)]) if more else found


def _read_again(
    connection: sa.Connection, compared: Sequence[Compared], areas: Sequence[_Area], waiting: dict[int, tuple[str, Spoken]], terms: Sequence[Term]
) -> tuple[tuple[Passage, ...], frozenset[str]]:
    """Finds with their messages as the log has them now; those of a chunk that does not say that any more are left out, and their chats named."""
    reach_of = {each.area: each.reach for each in areas if each.area}
    stored = {each.id: each for each in chunk_store.by_id(connection, [each.chunk_id for each in compared if each.chunk_id > 0], list(reach_of))}
    near = _near_spans(connection, list(stored), areas)
    found: list[Passage] = []
    stale: set[str] = set()
    for each in compared:
        if each.chunk_id < 0:
            chat, message = waiting[each.chunk_id]
            found.append(Passage(chunk_id=0, chat=chat, messages=(message,), best=0, score=each.score))
            continue
        chunk = stored.get(each.chunk_id)
        if chunk is None:
            continue
        reach = reach_of[IndexArea(chunk.area)]
        messages = real_talk.by_seq(connection, chunk.conversation_id, chunk.seqs)
        if chunks.fingerprint_of(messages) != chunk.fingerprint:
            stale.add(chunk.conversation_id)
            continue
        outside = tuple(message for message in messages if reach.after < message.seq <= reach.edge and message.seq not in reach.live)
        if outside:
            best = _best(messages, outside, near.get(chunk.id), terms)
            found.append(Passage(chunk_id=chunk.id, chat=chunk.conversation_id, messages=outside, best=best, score=each.score, source=reach.title))
    return tuple(found), frozenset(stale)


def _near_spans(connection: sa.Connection, ids: Sequence[int], areas: Sequence[_Area]) -> dict[int, tuple[int, int]]:
    """Where in a chunk's text the passage stands whose vector was nearest, as far as the vectors are held in memory."""
    positions = {chunk: at for each in areas for chunk in ids if (at := each.rows.passage(chunk, each.similar)) is not None}
    rows = connection.execute(_SPANS, {"ids": list(positions)}) if positions else ()
    return {row.chunk_id: (row.begin, row.end) for row in rows if positions[row.chunk_id] == row.position}


def _best(messages: Sequence[Spoken], outside: Sequence[Spoken], near: tuple[int, int] | None, terms: Sequence[Term]) -> int:
    """The place among `outside` of the message that holds most of the question's words; one in the nearest passage counts for two words more.

    `messages`: the whole chunk, whose lines make its text.
    """
    scores: dict[int, float] = {}
    begin = 0
    for message in messages:
        end = begin + len(message.line)
        tokens = frozenset(words.tokens(message.line))
        scores[message.seq] = sum(term.weight for term in terms if term.token in tokens)
        if near is not None and begin < near[1] and end > near[0]:
            scores[message.seq] += _NEAR_WEIGHT
        begin = end + 1
    return max(range(len(outside)), key=lambda at: scores[outside[at].seq])


Audience = tuple[tuple[str, ...] | None, tuple[str, ...] | None]
"""`people` and `personas` of a message; None is all."""


def readable(audiences: Collection[Audience], readers: Collection[str], responder: str) -> tuple[str, ...]:
    """Keys of the audiences that a reply may use: everybody who will read it is inside `people`, and the responder inside `personas` (RS-185)."""
    return tuple(
        audience_key(people, personas)
        for people, personas in audiences
        if (people is None or set(readers) <= set(people)) and (personas is None or responder in personas)
    )

"""What a search of the talk found, read again from the log: nothing is quoted that the log does not say now (RS-22, RS-180)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from memory import words
from memory.areas import IndexArea
from memory.comparing import Compared
from memory.recall import chunk_store, chunks, real_talk
from memory.recall.block import Passage
from memory.recall.chunks import Spoken
from memory.recall.reach import Area
from memory.recall_schema import chunk_passages
from memory.words import Term

_NEAR_WEIGHT = 2.0
_P = chunk_passages.c
_SPANS = sa.select(_P.chunk_id, _P.position, _P.begin, _P.end).where(_P.chunk_id.in_(sa.bindparam("ids", type_=sa.BigInteger, expanding=True)))


def read_again(
    connection: sa.Connection, compared: Sequence[Compared], areas: Sequence[Area], waiting: Mapping[int, tuple[str, Spoken]], terms: Sequence[Term]
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
        outside = tuple(message for message in messages if reach.holds(message.seq))
        if outside:
            best = _best(messages, outside, near.get(chunk.id), terms)
            found.append(Passage(chunk_id=chunk.id, chat=chunk.conversation_id, messages=outside, best=best, score=each.score, source=reach.title))
    return tuple(found), frozenset(stale)


def _near_spans(connection: sa.Connection, ids: Sequence[int], areas: Sequence[Area]) -> dict[int, tuple[int, int]]:
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

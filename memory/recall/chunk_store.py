"""Chunks of the talk in the database, with their words in the same transaction; their vectors follow behind (RS-20, RS-180).

Plain functions on a `Connection`. A chunk never changes what it says: a changed message makes it stale at once, nobody finds it, and it is made
anew.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory import lexical, tokens, vectors, words
from memory.areas import IndexArea
from memory.chunk_rows import Gone, vector_key
from memory.index_kinds import MESSAGES
from memory.recall.chunks import Chunk
from memory.recall_schema import chunk_messages, chunk_passages, message_chunks

_AT_ONCE = 10_000  # ids in one statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A chunk as it was made. `seqs`: its messages; `fingerprint`: of them then. An imported one is told by its text, for its messages may be
    elsewhere."""

    id: int
    conversation_id: str
    area: str
    seqs: tuple[int, ...]
    fingerprint: str
    origin: str
    importer: str
    state: str
    text: str
    messages: int
    tokens: int
    said_from: datetime
    said_to: datetime
    created_at: datetime


def area_of(conversation_id: str, audience: str = "") -> IndexArea:
    """Where the chunks of a chat and an audience are searched: no query of the index is without one (RS-181, RS-185)."""
    return IndexArea("/".join(filter(None, ("talk", conversation_id, audience))))


def add(connection: sa.Connection, conversation_id: str, chunk: Chunk, now: datetime, *, importer: str = "", area: IndexArea | None = None) -> int:
    """Store a chunk, found by its words at once. Returns its id. `importer`: who brought it in; `area`: where it is found, if not by its audience."""
    text = chunk.text
    found = words.tokens(text)
    first, last = chunk.messages[0], chunk.messages[-1]
    area = area or area_of(conversation_id, chunk.audience)
    chunk_id: int = connection.execute(_ADD, {
        "conversation_id": conversation_id, "area": area, "first_seq": first.seq, "last_seq": last.seq, "text": text,
        "fingerprint": chunk.fingerprint, "messages": len(chunk.messages), "tokens": tokens.count(text), "words": len(found),
        "said_from": first.at, "said_to": last.at, "created_at": now, "importer": importer, "origin": "imported" if importer else "native",
    }).scalar_one()  # fmt: skip
    connection.execute(_ADD_MESSAGE, [{"chunk_id": chunk_id, "message_seq": message.seq} for message in chunk.messages])
    lexical.put(connection, MESSAGES, chunk_id, area, found)
    if chunk.passages:
        connection.execute(_ADD_PASSAGE, [
            {"chunk_id": chunk_id, "position": at, "begin": each.begin, "end": each.end, "text_hash": each.text_hash, "text": each.text}
            for at, each in enumerate(chunk.passages)
        ])  # fmt: skip
    return chunk_id


def mark_stale(connection: sa.Connection, conversation_id: str, first: int, last: int) -> None:
    """Messages with these numbers were edited, deleted or replaced: no chunk that holds one is found any more (RS-21)."""
    connection.execute(_MARK, {"of": conversation_id, "first": first, "last": last})


def stale(connection: sa.Connection, conversation_id: str) -> list[Stored]:
    """Chunks that wait to be made anew."""
    return _stored(connection, connection.execute(_IN_STATE, {"of": conversation_id, "state": "stale"}).all())


def chats_with_stale(connection: sa.Connection) -> list[str]:
    return list(connection.execute(_STALE_CHATS).scalars())


def of_chat(connection: sa.Connection, conversation_id: str) -> list[Stored]:
    """Every chunk of a chat, the oldest talk first."""
    return _stored(connection, connection.execute(_ALL, {"of": conversation_id}).all())


def by_id(connection: sa.Connection, ids: Collection[int], areas: Collection[IndexArea]) -> list[Stored]:
    """Live chunks of these areas; others are not found."""
    return _stored(connection, connection.execute(_BY_ID, {"ids": list(ids), "areas": list(areas)}).all())


def drop(connection: sa.Connection, ids: Collection[int]) -> list[Gone]:
    """Remove chunks with their words and vectors; returns what the vector index must drop."""
    return [each for some in _portions(ids) for each in _drop(connection, some)]


def _drop(connection: sa.Connection, ids: list[int]) -> list[Gone]:
    values = {"ids": ids}
    passages = connection.execute(_PASSAGES, values).all()
    lexical.drop(connection, MESSAGES, ids)
    for statement in (_DROP_PASSAGES, _DROP_MESSAGES, _DROP):
        connection.execute(statement, values)
    vectors.drop_orphans(connection, {row.text_hash for row in passages})
    return [Gone(row.collection, vector_key(str(row.chunk_id), row.position)) for row in passages if row.collection]


def drop_chat(connection: sa.Connection, conversation_id: str, *, native: bool = True) -> list[Gone]:
    """Remove the chunks of a chat, `native` ones or the imported ones (RS-40)."""
    wanted = [each.id for each in of_chat(connection, conversation_id) if (each.origin == "native") is native]
    return drop(connection, wanted)


def drop_all(connection: sa.Connection, conversation_id: str) -> None:
    """Every chunk of a chat that goes. What Chroma holds of them is swept at the next start: it is asked for areas of chats, and this one is gone."""
    for native in (True, False):
        drop_chat(connection, conversation_id, native=native)


def _stored(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> list[Stored]:
    held: dict[int, list[int]] = {row.id: [] for row in rows}
    for ids in _portions(held):
        for row in connection.execute(_MESSAGES, {"ids": ids}):
            held[row.chunk_id].append(row.message_seq)
    return [Stored(**row._mapping, seqs=tuple(held[row.id])) for row in rows]  # pyright: ignore[reportPrivateUsage]  (SQLAlchemy's public name)


def _portions(ids: Collection[int]) -> list[list[int]]:
    """As many as a statement takes: SQLite may stop at 32,766 parameters, PostgreSQL at 65,535, and an old chat has more chunks."""
    whole = list(ids)
    return [whole[at : at + _AT_ONCE] for at in range(0, len(whole), _AT_ONCE)]


# -- statements, built once ------------------------------------------------------------------------------------------------

_C, _P, _M = message_chunks.c, chunk_passages.c, chunk_messages.c
_IDS = sa.bindparam("ids", type_=sa.BigInteger, expanding=True)
_OF = _C.conversation_id == sa.bindparam("of", type_=sa.Text)
_ADD = sa.insert(message_chunks).returning(_C.id)
_ADD_MESSAGE = sa.insert(chunk_messages)
_ADD_PASSAGE = sa.insert(chunk_passages)
_FIELDS = [_C[name] for name in Stored.__dataclass_fields__ if name != "seqs"]
_ALL = sa.select(*_FIELDS).where(_OF).order_by(_C.first_seq, _C.id)
_IN_STATE = _ALL.where(_C.state == sa.bindparam("state", type_=sa.Text))
_STALE_CHATS = sa.select(_C.conversation_id).where(_C.state == "stale").distinct()
_BY_ID = sa.select(*_FIELDS).where(_C.id.in_(_IDS), _C.area.in_(sa.bindparam("areas", type_=sa.Text, expanding=True)), _C.state == "live")
_MESSAGES = sa.select(_M.chunk_id, _M.message_seq).where(_M.chunk_id.in_(_IDS)).order_by(_M.message_seq)
_PASSAGES = sa.select(_P.chunk_id, _P.position, _P.text_hash, _P.collection).where(_P.chunk_id.in_(_IDS))
_DROP_PASSAGES = sa.delete(chunk_passages).where(_P.chunk_id.in_(_IDS))
_DROP_MESSAGES = sa.delete(chunk_messages).where(_M.chunk_id.in_(_IDS))
_DROP = sa.delete(message_chunks).where(_C.id.in_(_IDS))
_MARK = (
    sa.update(message_chunks)
    .where(
        _OF,
        _C.state == "live",
        _C.id.in_(
            sa.select(_M.chunk_id).where(
                _M.message_seq.between(sa.bindparam("first", type_=sa.BigInteger), sa.bindparam("last", type_=sa.BigInteger))
            )
        ),
    )
    .values(state="stale")
)

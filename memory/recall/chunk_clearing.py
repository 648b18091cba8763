"""Forgetting chunks: what they held is found no more and is not cut again, the messages stay (RS-42). Plain functions on a `Connection`.

Something must remember that these messages are not to be recalled, or the next cut would bring them back: an emptied chunk that holds their numbers
and nothing else, in an area of its own that no search names. A rebuild of the native chunks removes it.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from memory.chunk_rows import Gone
from memory.recall import chunk_store, real_talk
from memory.recall.chunk_store import Stored
from memory.recall_schema import chunk_messages, message_chunks

CLEARED = "cleared"  # in the name of the area of emptied chunks


def is_emptied(chunk: Stored) -> bool:
    return chunk.area == chunk_store.area_of(chunk.conversation_id, CLEARED)


def forget(connection: sa.Connection, conversation_id: str, ids: Collection[int], now: datetime) -> list[Gone]:
    """Chunks of a chat, others are left alone; returns what the vector index must drop."""
    gone: list[Gone] = []
    for chunk in chunk_store.of_chat(connection, conversation_id):
        if chunk.id in ids and not is_emptied(chunk):
            gone += chunk_store.drop(connection, [chunk.id])
            _keep_out(connection, conversation_id, chunk.seqs, chunk.said_from, chunk.said_to, now)
    return gone


def clear(connection: sa.Connection, conversation_id: str, now: datetime) -> tuple[int, list[Gone]]:
    """Every chunk of a chat, imported ones too, and what waits for one; how many chunks there were, and what the vector index must drop."""
    chunks = chunk_store.of_chat(connection, conversation_id)
    waiting = real_talk.uncut(connection, conversation_id)
    gone = chunk_store.drop(connection, [chunk.id for chunk in chunks])
    seqs = sorted({seq for chunk in chunks for seq in chunk.seqs} | {message.seq for message in waiting})
    begins = [chunk.said_from for chunk in chunks] + [message.at for message in waiting]
    ends = [chunk.said_to for chunk in chunks] + [message.at for message in waiting]
    if seqs:
        _keep_out(connection, conversation_id, seqs, min(begins), max(ends), now)
    return sum(not is_emptied(chunk) for chunk in chunks), gone


def _keep_out(connection: sa.Connection, conversation_id: str, seqs: Collection[int], begin: datetime, end: datetime, now: datetime) -> None:
    if not seqs:
        return  # an imported one without messages here
    values = {
        "conversation_id": conversation_id, "area": chunk_store.area_of(conversation_id, CLEARED), "state": "off", "fingerprint": "",
        "first_seq": min(seqs), "last_seq": max(seqs), "said_from": begin, "said_to": end, "created_at": now,
    }  # fmt: skip
    chunk_id = connection.execute(_ADD, values).scalar_one()
    connection.execute(_ADD_MESSAGE, [{"chunk_id": chunk_id, "message_seq": seq} for seq in sorted(seqs)])


_ADD = sa.insert(message_chunks).returning(message_chunks.c.id)
_ADD_MESSAGE = sa.insert(chunk_messages)

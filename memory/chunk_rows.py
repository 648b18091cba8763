"""The rows of the index about one file: put in the place of those it had, words and all in one transaction. Plain functions on a `Connection`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from memory import lexical, vectors, words
from memory.areas import IndexArea
from memory.file_chunks import Chunk, Passage
from memory.index_kinds import FILES
from memory.index_schema import file_chunks, file_passages, indexed_files

_C, _P, _F = file_chunks.c, file_passages.c, indexed_files.c
_SCOPE, _PATH = sa.bindparam("the_scope", type_=sa.Text), sa.bindparam("the_path", type_=sa.Text)
_KNOWN = sa.select(_C.id, _C.key, _C.lore, _C.first_line, _C.last_line).where(_C.scope == _SCOPE, _C.path == _PATH)
_ADD = sa.insert(file_chunks).returning(_C.id)
_MOVE = sa.update(file_chunks).where(_C.id == sa.bindparam("the_id")).values(first_line=sa.bindparam("first"), last_line=sa.bindparam("last"))
_IDS = sa.bindparam("ids", type_=sa.BigInteger, expanding=True)
_GONE_PASSAGES = (
    sa.select(_C.key, _P.position, _P.text_hash, _P.collection).join(file_passages, _P.chunk_id == _C.id).where(_C.id.in_(_IDS)).order_by(_C.id)
)
_DROP_PASSAGES = sa.delete(file_passages).where(_P.chunk_id.in_(_IDS))
_DROP_CHUNKS = sa.delete(file_chunks).where(_C.id.in_(_IDS))
_FILE = sa.select(indexed_files).where(_F.scope == _SCOPE, _F.path == _PATH)
_FILES = sa.select(indexed_files).where(_F.scope == _SCOPE)
_DROP_FILE = sa.delete(indexed_files).where(_F.scope == _SCOPE, _F.path == _PATH)
_ALL_FILES = sa.select(sa.func.count()).select_from(indexed_files).where(_F.chunks > 0)
_ALL_CHUNKS = sa.select(sa.func.count()).select_from(file_chunks)
_SCOPES = sa.select(_F.scope).distinct()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedFile:
    """A file as it was when it was cut. `stamp`: what the disk said of it, empty when that proves nothing; `rule`: how it was cut."""

    path: str
    hash: str
    stamp: str
    rule: str
    chunks: int


@dataclass(frozen=True, slots=True)
class Gone:
    """A vector that the vector index may hold of a passage that is no more."""

    collection: str
    key: str


def known_files(connection: sa.Connection, scope: str) -> dict[str, IndexedFile]:
    """By path."""
    return {row.path: _file(row) for row in connection.execute(_FILES, {"the_scope": scope})}


def known_file(connection: sa.Connection, scope: str, path: str) -> IndexedFile | None:
    row = connection.execute(_FILE, {"the_scope": scope, "the_path": path}).one_or_none()
    return None if row is None else _file(row)


def known_scopes(connection: sa.Connection) -> list[str]:
    return list(connection.execute(_SCOPES).scalars())


def totals(connection: sa.Connection) -> tuple[int, int]:
    """Files that say something, and chunks."""
    return connection.execute(_ALL_FILES).scalar_one(), connection.execute(_ALL_CHUNKS).scalar_one()


def replace(
    connection: sa.Connection,
    scope: str,
    file: IndexedFile,
    area: IndexArea,
    lore: str,
    chunks: Sequence[tuple[Chunk, Sequence[Passage]]],
    now: datetime,
    *,
    anew: bool = False,
) -> list[Gone]:
    """Make the index say of a file what `chunks` say; chunks that stand there already keep their rows unless `anew`.

    Returns what the vector index must drop.
    """
    before = known_file(connection, scope, file.path)
    rows = {row.key: row for row in connection.execute(_KNOWN, {"the_scope": scope, "the_path": file.path})}
    keeps = not anew and before is not None and before.rule == file.rule and all(row.lore == lore for row in rows.values())
    kept = {chunk.key for chunk, _ in chunks if chunk.key in rows} if keeps else set[str]()
    gone, hashes = _drop(connection, [row.id for key, row in rows.items() if key not in kept])
    for chunk, passages in chunks:
        if chunk.key not in kept:
            _add(connection, scope, file.path, area, lore, chunk, passages)
        elif (row := rows[chunk.key]) and (row.first_line, row.last_line) != (chunk.first_line, chunk.last_line):
            connection.execute(_MOVE, {"the_id": row.id, "first": chunk.first_line, "last": chunk.last_line})
    connection.execute(_DROP_FILE, {"the_scope": scope, "the_path": file.path})
    connection.execute(
        sa.insert(indexed_files),
        {
            "scope": scope, "path": file.path, "hash": file.hash, "stamp": file.stamp, "rule": file.rule, "chunks": len(chunks), "indexed_at": now,
        },
    )  # fmt: skip
    vectors.drop_orphans(connection, hashes)  # last: what the new rows say too keeps its vector
    return gone


def remove(connection: sa.Connection, scope: str, path: str) -> list[Gone]:
    """There is no such file any more."""
    gone, hashes = _drop(connection, [row.id for row in connection.execute(_KNOWN, {"the_scope": scope, "the_path": path})])
    vectors.drop_orphans(connection, hashes)
    connection.execute(_DROP_FILE, {"the_scope": scope, "the_path": path})
    return gone


def remove_scope(connection: sa.Connection, scope: str) -> list[Gone]:
    """Everything of a scope (WD-15)."""
    return [gone for path in known_files(connection, scope) for gone in remove(connection, scope, path)]


def _add(connection: sa.Connection, scope: str, path: str, area: IndexArea, lore: str, chunk: Chunk, passages: Sequence[Passage]) -> None:
    tokens = words.tokens(chunk.searched)
    values = {
        "key": chunk.key, "scope": scope, "path": path, "area": area, "position": chunk.position, "first_line": chunk.first_line,
        "last_line": chunk.last_line, "heading": chunk.heading, "text": chunk.text, "text_hash": chunk.text_hash, "local_date": chunk.local_date,
        "lore": lore, "words": len(tokens),
    }  # fmt: skip
    chunk_id = connection.execute(_ADD, values).scalar_one()
    lexical.put(connection, FILES, chunk_id, area, tokens)
    rows = [
        {"chunk_id": chunk_id, "position": at, "begin": each.begin, "end": each.end, "text_hash": each.text_hash, "text": each.text}
        for at, each in enumerate(passages)
    ]
    if rows:
        connection.execute(sa.insert(file_passages), rows)


def _drop(connection: sa.Connection, ids: list[int]) -> tuple[list[Gone], set[str]]:
    """What the vector index must drop, and the hashes of the texts that these chunks had."""
    if not ids:
        return [], set()
    passages = connection.execute(_GONE_PASSAGES, {"ids": ids}).all()
    lexical.drop(connection, FILES, ids)
    connection.execute(_DROP_PASSAGES, {"ids": ids})
    connection.execute(_DROP_CHUNKS, {"ids": ids})
    gone = [Gone(row.collection, vector_key(row.key, row.position)) for row in passages if row.collection]
    return gone, {row.text_hash for row in passages}


def vector_key(chunk_key: str, position: int) -> str:
    """How the vector index calls a passage; never empty, unique over all files (VX-13)."""
    return f"{chunk_key}:{position}"


def _file(row: sa.Row[tuple[str, ...]]) -> IndexedFile:
    return IndexedFile(path=row.path, hash=row.hash, stamp=row.stamp, rule=row.rule, chunks=row.chunks)

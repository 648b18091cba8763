"""Words of chunks: stored beside them in the same transaction, and found again (WD-109, RS-176). FTS5 on SQLite, tsvector on PostgreSQL.

Both hold the tokens that `memory.words` cut, once for each chunk, and answer one question: which chunks of an area hold this token. The weighing is
`memory.ranking`, so both databases rank alike. Every token set of a chunk holds its area, and there is no query without one (WD-127).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from memory.areas import IndexArea
from memory.index_kinds import IndexKind

_PUT = {
    "sqlite": "INSERT INTO {0} (rowid, tokens) VALUES (?, ?)",
    "postgresql": "INSERT INTO {0} (rowid, tokens) VALUES (%s, array_to_tsvector(string_to_array(%s, ' ')))",
}
_DROP = {"sqlite": "DELETE FROM {0} WHERE rowid = ?", "postgresql": "DELETE FROM {0} WHERE rowid = %s"}
_ALL_WORDS = {
    "sqlite": "SELECT rowid, tokens FROM {0}",
    "postgresql": "SELECT rowid, array_to_string(tsvector_to_array(tokens), ' ') FROM {0}",
}
_FIND = {
    "sqlite": "SELECT {0}, count(*), group_concat(rowid) FROM (SELECT rowid FROM {1} WHERE {1} MATCH ? LIMIT ?)",
    "postgresql": (
        "SELECT {0}, count(*), string_agg(CAST(rowid AS text), ',')"
        " FROM (SELECT rowid FROM {1} WHERE tokens @@ CAST(%s AS tsquery) LIMIT %s) AS found{0}"
    ),
}
_AND = {"sqlite": "AND", "postgresql": "&"}
_QUOTE = {"sqlite": '"', "postgresql": "'"}
_ALL = 1 << 40
_COPIED_AT_ONCE = 1_000  # chunks
_AT_ONCE = 100  # questions in one statement: each statement costs more than what it asks

Rowids = npt.NDArray[np.int64]


def put(connection: sa.Connection, kind: IndexKind, rowid: int, area: IndexArea, tokens: Iterable[str]) -> None:
    """Store the different tokens of the chunk `rowid`."""
    connection.exec_driver_sql(_PUT[connection.dialect.name].format(kind.words), (rowid, " ".join([_mark(area), *sorted(set(tokens))])))


def drop(connection: sa.Connection, kind: IndexKind, rowids: Iterable[int]) -> None:
    statement = _DROP[connection.dialect.name].format(kind.words)
    for rowid in rowids:
        connection.exec_driver_sql(statement, (rowid,))


def copy(source: sa.Connection, target: sa.Connection, kind: IndexKind) -> None:
    """Put the words of all chunks of `source` in the place of those of `target`, which may be the other kind of database."""
    target.exec_driver_sql(f"DELETE FROM {kind.words}")  # the name of a table of ours
    put_words = _PUT[target.dialect.name].format(kind.words)
    for rows in source.exec_driver_sql(_ALL_WORDS[source.dialect.name].format(kind.words)).partitions(_COPIED_AT_ONCE):
        target.exec_driver_sql(put_words, [tuple(row) for row in rows])


def holders(connection: sa.Connection, kind: IndexKind, asked: Sequence[tuple[IndexArea, str]], most: int | None = None) -> list[Rowids]:
    """For each area and token the ids of the chunks of that area that hold it, in no order; with `most` not more than so many, then any of them."""
    name = connection.dialect.name
    found: list[Rowids] = []
    for at in range(0, len(asked), _AT_ONCE):
        part = asked[at : at + _AT_ONCE]
        values: list[object] = []
        for area, token in part:
            values += [f" {_AND[name]} ".join(_quoted(each, _QUOTE[name]) for each in (_mark(area), token)), _ALL if most is None else most]
        rows = connection.exec_driver_sql(_statement(name, kind.words, len(part)), tuple(values)).all()
        texts = {row[0]: row[2] for row in rows}
        found += [np.array(texts[number].split(",") if texts[number] else [], dtype=np.int64) for number in range(len(part))]
    return found


def holders_of_each(
    connection: sa.Connection, kind: IndexKind, areas: Sequence[IndexArea], tokens: Sequence[str], most: int
) -> list[Rowids | None]:
    """For each token the chunks of all `areas` that hold it; None for one that stands in more than `most` of an area: it tells nothing apart.

    When every token is such, all are looked up in full, for a question of common words has an answer too (WD-108).
    """
    asked = [(area, token) for token in tokens for area in areas]
    if not asked:
        return [None for _ in tokens]
    parts = holders(connection, kind, asked, most + 1)
    found: list[Rowids | None] = []
    for at in range(0, len(parts), len(areas)):
        of_token = parts[at : at + len(areas)]
        found.append(None if any(len(part) > most for part in of_token) else np.concatenate(of_token))
    if any(each is not None and len(each) for each in found) or all(each is not None for each in found):
        return found
    parts = holders(connection, kind, asked)
    return [np.concatenate(parts[at : at + len(areas)]) for at in range(0, len(parts), len(areas))]


@cache
def _statement(name: str, table: str, count: int) -> str:
    return " UNION ALL ".join(f"SELECT * FROM ({_FIND[name].format(number, table)}) AS asked{number}" for number in range(count))


@cache
def _mark(area: IndexArea) -> str:
    """The token that every chunk of an area holds; a sign stands in front that no word holds, and the rest is letters and digits for both indexes."""
    return "§" + hashlib.sha256(area.encode()).hexdigest()[:16]


def _quoted(token: str, quote: str) -> str:
    return quote + token.replace("\\", "\\\\").replace(quote, quote * 2) + quote

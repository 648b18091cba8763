"""What is indexed, as data: the tables of files and of the talk. One machine serves both: words, vectors, hot areas, Chroma (RS-28, RS-181).

A piece is a chunk; its passages have a vector each. A chunk never changes what it says, and ids are never given twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import sqlalchemy as sa

from memory.index_schema import file_chunks, file_passages
from memory.layout import KNOWLEDGE_FOLDER
from memory.lore import Lore
from memory.recall_schema import chunk_passages, message_chunks

_PAGES = f"{KNOWLEDGE_FOLDER}/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What a search must know of a chunk before it compares. `day`: ordinal of its local date, 0 for what has none; `first`: number of its first
    message, 0 for files; `page`, `matching`: of knowledge pages (WD-139)."""

    day: int = 0
    first: int = 0
    page: bool = False
    matching: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexKind:
    """`name`: also of its collections; `words`: the table of its tokens; `key`: what a chunk is called in the vector index; `live`: which chunks may
    be found at all; `facts` and `piece`: the columns that make a `Piece`, and how."""

    name: str
    chunks: sa.Table
    passages: sa.Table
    words: str
    key: sa.ColumnElement[str]
    live: sa.ColumnElement[bool]
    facts: tuple[sa.ColumnElement[Any], ...]
    piece: Callable[[sa.Row[Any]], Piece]


def _of_file(row: sa.Row[Any]) -> Piece:
    day = date.fromisoformat(row.local_date).toordinal() if row.local_date else 0
    return Piece(day=day, page=row.path.startswith(_PAGES), matching=row.lore == Lore.MATCH)


def _of_talk(row: sa.Row[Any]) -> Piece:
    return Piece(day=row.said_to.toordinal(), first=row.first_seq)


FILES = IndexKind(
    name="files",
    chunks=file_chunks,
    passages=file_passages,
    words="file_words",
    key=file_chunks.c.key,
    live=sa.true(),
    facts=(file_chunks.c.path, file_chunks.c.local_date, file_chunks.c.lore),
    piece=_of_file,
)
MESSAGES = IndexKind(
    name="messages",
    chunks=message_chunks,
    passages=chunk_passages,
    words="message_words",
    key=sa.cast(message_chunks.c.id, sa.Text),
    live=message_chunks.c.state == "live",
    facts=(message_chunks.c.said_to, message_chunks.c.first_seq),
    piece=_of_talk,
)

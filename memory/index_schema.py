"""Tables of the search index: chunks of files, their passages and vectors, and what of it stands where. All can be made again from the files.

The words of a chunk are in `file_words`, which is no table of this metadata: an FTS5 table on SQLite, a tsvector on PostgreSQL (see `lexical`).
"""

from __future__ import annotations

import sqlalchemy as sa

from memory.columns import Counter, json, metadata, number, text, time

# A row never changes what it says: a changed file gets new rows. Ids are never given twice, so that number and highest id tell one state of an area.
file_chunks = sa.Table(
    "file_chunks",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("area", sa.Text, nullable=False),  # who may find it: the scope, or `public` (see `areas`)
    number("position"),
    number("first_line"),
    number("last_line"),
    text("heading"),
    text("text"),
    sa.Column("text_hash", sa.Text, nullable=False),
    text("local_date"),
    text("lore"),  # always, match, none (WD-139)
    number("words"),  # tokens of the tokeniser, each as often as it stands there
    sa.Index(None, "scope", "path"),
    sa.Index(None, "area", "id"),
    sqlite_autoincrement=True,
)

# The parts of a chunk that have a vector each.
file_passages = sa.Table(
    "file_passages",
    metadata,
    sa.Column("chunk_id", sa.BigInteger, sa.ForeignKey("file_chunks.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.BigInteger, primary_key=True),
    number("begin"),  # characters in the chunk's text
    number("end"),
    sa.Column("text_hash", sa.Text, nullable=False, index=True),
    text("text"),  # as it is given to the embedder
    sa.Column("collection", sa.Text, nullable=False, server_default="", index=True),  # of Chroma, that acknowledged its vector; empty = none
)

indexed_files = sa.Table(
    "indexed_files",
    metadata,
    sa.Column("scope", sa.Text, primary_key=True),
    sa.Column("path", sa.Text, primary_key=True),
    sa.Column("hash", sa.Text, nullable=False),  # of the text that was cut
    text("stamp"),  # what the disk said of it then
    sa.Column("rule", sa.Text, nullable=False),  # versions and sizes it was cut by
    number("chunks"),
    time("indexed_at", nullable=False),
)

# A cache for every kind of text: what was embedded once is not paid for again (WD-124).
vectors = sa.Table(
    "vectors",
    metadata,
    sa.Column("fingerprint", sa.Text, primary_key=True),
    sa.Column("text_hash", sa.Text, primary_key=True),
    sa.Column("vector", sa.LargeBinary, nullable=False),  # float16, length 1, as the embedder made it
)

# What an embedder was measured to be (SM-33).
calibrations = sa.Table(
    "calibrations",
    metadata,
    sa.Column("fingerprint", sa.Text, primary_key=True),
    number("dimension"),
    sa.Column("background", sa.Text, nullable=False),  # version of the bundled passages
    sa.Column("documents_mean", sa.LargeBinary, nullable=False),  # float32
    sa.Column("questions_mean", sa.LargeBinary, nullable=False),
    json("best"),  # N as text -> best similarities of unanswered questions among N passages, ascending; `related` -> those of the pairs
    time("made_at", nullable=False),
)

# Which Chroma collection answers (WD-123, WD-124).
collections = sa.Table(
    "collections",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False),
    number("dimension"),
    number("generation"),
    sa.Column("state", sa.Text, nullable=False),  # filling, serving, retired
    time("made_at", nullable=False),
    time("retired_at"),
)

"""Tables of recall and summaries: chunks of the talk with their passages, summary rows of every kind with what they stand for, links between chats.

The talk itself is the truth; chunks and their vectors can be made again from it. The words of a chunk are in `message_words`, which is no table of
this metadata: an FTS5 table on SQLite, a tsvector on PostgreSQL, as for files (see `lexical`).
"""

from __future__ import annotations

import sqlalchemy as sa

from memory.columns import Counter, flag, json, metadata, number, text, time

# Five real messages of one audience (RS-16, RS-186). Its words never change: a changed message gets its chunk made anew.
message_chunks = sa.Table(
    "message_chunks",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    sa.Column("conversation_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    sa.Column("area", sa.Text, nullable=False),  # who may find it: the chat and the audience, filtered before similarity (RS-181, RS-185)
    json("audience_people"),  # null = all in the chat
    json("audience_personas"),
    number("first_seq"),
    number("last_seq"),
    sa.Column("state", sa.Text, nullable=False, server_default="live"),  # live, stale, off
    sa.Column("origin", sa.Text, nullable=False, server_default="native"),  # native, imported (RS-40)
    text("importer"),  # who alone may read an imported one, until it is shared
    text("text"),
    sa.Column("fingerprint", sa.Text, nullable=False),  # of the messages it was made from (RS-22)
    json("names"),  # that weigh most in a search (RS-35, RS-177)
    number("messages"),
    number("tokens"),
    number("words"),  # tokens of the tokeniser
    text("failure"),  # why it has no vector
    number("failures"),
    time("retry_at"),
    time("said_from", nullable=False),
    time("said_to", nullable=False),
    time("created_at", nullable=False),
    sa.Index(None, "conversation_id", "last_seq"),
    sa.Index(None, "area", "id"),
    sqlite_autoincrement=True,
)

# Which messages a chunk holds; for an imported one without sources here, none.
chunk_messages = sa.Table(
    "chunk_messages",
    metadata,
    sa.Column("chunk_id", sa.BigInteger, sa.ForeignKey("message_chunks.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("message_seq", sa.BigInteger, primary_key=True),
    sa.Index(None, "message_seq"),
)

# The parts of a chunk that have a vector each (RS-18).
chunk_passages = sa.Table(
    "chunk_passages",
    metadata,
    sa.Column("chunk_id", sa.BigInteger, sa.ForeignKey("message_chunks.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.BigInteger, primary_key=True),
    number("begin"),  # characters in the chunk's text
    number("end"),
    sa.Column("text_hash", sa.Text, nullable=False, index=True),
    text("text"),  # as it is given to the embedder
    sa.Column("collection", sa.Text, nullable=False, server_default="", index=True),  # of Chroma, that acknowledged its vector; empty = none
)

# Every kind of summary has one form, so that profiles can change without a loss (RS-1). Rows are added, replaced by key or made inactive (RS-195).
summaries = sa.Table(
    "summaries",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    sa.Column("conversation_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # recent, consolidated, long_term; day, week, month, year; entry, scene
    text("audience"),  # key of its audience; empty = all in the chat (RS-186)
    json("audience_people"),
    json("audience_personas"),
    sa.Column("state", sa.Text, nullable=False, server_default="active"),  # active, inactive, waiting, withheld
    flag("hand_edited"),
    flag("stale"),  # its sources changed since (RS-166)
    text("title"),
    text("text"),
    json("details"),  # list of {text, kind, state, due} (RS-55, RS-165)
    number("first_seq"),
    number("last_seq"),
    text("local_date"),  # of a day; the Monday of a week; the first day of a month or year
    number("part"),  # 2, 3 … of a second row for one date (RS-159)
    text("zone"),
    number("rollover_hour"),
    json("failed_days"),  # that a week was folded without (RS-164)
    text("fingerprint"),  # of what it was made from (RS-194)
    text("model"),
    text("origin"),  # rolling, calendar, automatic, asked, written, imported
    number("tokens"),
    time("created_at", nullable=False),
    time("updated_at", nullable=False),
    sa.Index(None, "conversation_id", "kind", "state"),
    sa.Index(None, "conversation_id", "local_date"),
    sqlite_autoincrement=True,
)

# The messages a summary stands for, by id, so that another zone or hour moves nothing (RS-159).
summary_sources = sa.Table(
    "summary_sources",
    metadata,
    sa.Column("summary_id", sa.BigInteger, sa.ForeignKey("summaries.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("message_seq", sa.BigInteger, primary_key=True),
    sa.Index(None, "message_seq"),
)

# The summaries a summary was made from; they stay stored, inactive, and can be restored (RS-45, RS-164).
summary_inputs = sa.Table(
    "summary_inputs",
    metadata,
    sa.Column("summary_id", sa.BigInteger, sa.ForeignKey("summaries.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("input_id", sa.BigInteger, sa.ForeignKey("summaries.id", ondelete="CASCADE"), primary_key=True),
    sa.Index(None, "input_id"),
)

# Instructions for entries, shared by the whole application (RS-88).
summary_templates = sa.Table(
    "summary_templates",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    text("name"),
    text("text"),
    time("created_at", nullable=False),
    time("updated_at", nullable=False),
    sqlite_autoincrement=True,
)

# One chat may recall another: made by the person of both, one-way, revocable (RS-187).
chat_links = sa.Table(
    "chat_links",
    metadata,
    sa.Column("reader_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("source_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
    time("created_at", nullable=False),
    time("revoked_at"),
)

"""Tables of saved memories: the rows, how they age, what a program did to them, and the switches of people and spaces (section 6 of the rules).

The database is the truth about them. Their vectors are in `vectors`, by the hash of the text; nothing here is made again from elsewhere.
"""

from __future__ import annotations

import sqlalchemy as sa

from memory.columns import Counter, flag, json, metadata, number, text, time
from memory.saved.text_limit import CONTENT_MAX

# Each kind of list sets exactly its own columns. Characters are named by their lineage, which survives removal and return (SM-92).
memories = sa.Table(
    "memories",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    sa.Column("list_kind", sa.Text, nullable=False),  # global, character, space
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=True),
    sa.Column("character_id", sa.Text, sa.ForeignKey("characters.id"), nullable=True),
    sa.Column("space_id", sa.Text, sa.ForeignKey("spaces.id", ondelete="CASCADE"), nullable=True),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("content_hash", sa.Text, nullable=False),  # of the exact text: names its vector
    sa.Column("norm_hash", sa.Text, nullable=False),  # of the folded text: finds duplicates (SM-4)
    flag("pinned"),
    flag("protected"),
    sa.Column("origin", sa.Text, nullable=False),  # panel, generate, from_chat, tool, deep, import
    sa.Column("author_kind", sa.Text, nullable=False),  # person, model, job
    text("author_id"),
    time("created_at", nullable=False),
    time("updated_at", nullable=False),
    text("updated_by"),
    json("tags"),  # words, null or empty = none (SM-18)
    json("channel_ids"),  # channel:account:chat, null or empty = everywhere (SM-17)
    flag("private_origin", True),  # SM-15
    text("origin_character"),  # the lineage whose list it left when that character was deleted (SM-92)
    time("archived_at"),
    json("source"),  # platform, chat, turn, messages
    sa.Column("revision", sa.Text, nullable=False),  # new on every change by a person or the AI, put back by undo
    sa.CheckConstraint(f"length(content) between 1 and {CONTENT_MAX}", name="content"),
    sa.CheckConstraint("not pinned or protected", name="pinned"),
    sa.CheckConstraint(
        "(list_kind = 'global' and person_id is not null and character_id is null and space_id is null)"
        " or (list_kind = 'character' and person_id is not null and character_id is not null and space_id is null)"
        " or (list_kind = 'space' and person_id is null and character_id is not null and space_id is not null)",
        name="list",
    ),
    sa.Index(None, "person_id", "list_kind", "character_id"),
    sa.Index(None, "space_id", "character_id"),
    sqlite_autoincrement=True,  # an id is never given twice, also after deletions
)

memory_decay = sa.Table(
    "memory_decay",
    metadata,
    sa.Column("memory_id", sa.BigInteger, sa.ForeignKey("memories.id", ondelete="CASCADE"), primary_key=True),
    number("unused_days"),  # 0 to 7
    flag("dormant"),  # never true for a pin
    sa.Column("last_tick_day", sa.Date, nullable=False),  # UTC; starts at the day of creation (SM-38)
    time("last_matched_at"),
)

# What a program did to rows: undo goes back by it, and it is the one copy of a deleted or evicted row.
memory_journal = sa.Table(
    "memory_journal",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    text("turn_id"),
    number("attempt"),
    text("run_id"),  # of a deep memory job; empty for a turn
    number("seq"),  # order inside the attempt or run
    sa.Column("actor", sa.Text, nullable=False),  # tool, deep
    sa.Column("op", sa.Text, nullable=False),  # create, update, delete, evict
    sa.Column("memory_id", sa.BigInteger, nullable=False),
    sa.Column("list_key", sa.Text, nullable=False),
    sa.Column("cause_seq", sa.BigInteger, nullable=True),  # of an eviction: the save that needed the place
    json("before"),  # the whole row with its decay state, null where there was none
    json("after"),
    text("after_revision"),
    json("source_messages"),
    text("conversation_id"),
    time("created_at", nullable=False),
    time("undone_at"),
    time("void_at"),  # its texts are erased and no undo brings them back (SM-78)
    sa.Index(None, "turn_id", "attempt"),
    sa.Index(None, "run_id"),
    sa.Index(None, "memory_id"),
    sa.Index(None, "conversation_id"),
    sa.Index(None, "list_key"),
)

# The learning switch; a missing row is on (SM-87).
learning = sa.Table(
    "learning",
    metadata,
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("character_id", sa.Text, sa.ForeignKey("characters.id"), primary_key=True),
    flag("learn", True),  # writes
    flag("use", True),  # reads
)

space_learning = sa.Table(
    "space_learning",
    metadata,
    sa.Column("space_id", sa.Text, sa.ForeignKey("spaces.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("character_id", sa.Text, sa.ForeignKey("characters.id"), primary_key=True),
    flag("learn", True),
    flag("use", True),
)

blacklist = sa.Table(
    "blacklist",
    metadata,
    sa.Column("space_id", sa.Text, sa.ForeignKey("spaces.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), primary_key=True),
    time("created_at", nullable=False),
)

# A question that waits for its yes (SM-77, RS-42, WO-22), or for one of its buttons.
clear_tokens = sa.Table(
    "clear_tokens",
    metadata,
    sa.Column("token_hash", sa.Text, primary_key=True),
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
    sa.Column("list_key", sa.Text, nullable=False),
    number("step"),
    json("listed"),  # ids of the pins that were shown
    time("expires_at", nullable=False),
    time("used_at"),
)

# How far deep memory has read a chat (SM-81, SM-84).
deep_reading = sa.Table(
    "deep_reading",
    metadata,
    sa.Column("conversation_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    number("read_seq"),
    time("ran_at"),
)

# One playing of a challenge (WO-16, SM-88).
attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    sa.Column("conversation_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False, index=True),
    text("challenge"),
    number("number"),
    sa.Column("state", sa.Text, nullable=False),  # open, judging, won, lost, given_up
    number("turns"),
    sa.Column("score", sa.BigInteger, nullable=True),
    text("verdict"),
    time("started_at", nullable=False),
    time("ended_at"),
)

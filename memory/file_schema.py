"""Tables about the files of a memory: whose a line is, what of the log they cover already, dreams, proposals, first-start questions.

The files themselves are the truth about what is remembered; these rows say where it came from and what was done (WD-5, WD-50, WD-82).
"""

from __future__ import annotations

import sqlalchemy as sa

from memory.columns import Counter, flag, json, metadata, number, text, time

# One row for each line that a program wrote. A line of a file without its row is a human's, also a program's line after an edit (WD-5).
file_lines = sa.Table(
    "file_lines",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),  # `memory.lines.line_hash`; its start is the line's id
    sa.Column("origin", sa.Text, nullable=False),  # person, assistant, mixed, unsourced, imported (WD-67)
    sa.Column("author", sa.Text, nullable=False),  # summary, dream, tool, import, onboarding
    text("run_id"),  # of the job, dream or turn that wrote it
    json("sources"),  # ids of messages
    json("evidence"),  # hashes of daily lines, for a line of MEMORY.md
    json("speakers"),  # ids of the people whose messages it rests on
    text("local_date"),  # of a daily line
    text("used_by"),  # the dream that took this daily line in; empty = none yet (WD-85)
    time("created_at", nullable=False),
    sa.UniqueConstraint("scope", "path", "hash"),
    sa.Index(None, "scope", "local_date"),
)

# What may not come back: no words, only hashes and ids (WD-90, WD-92).
line_bars = sa.Table(
    "line_bars",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    sa.Column("scope", sa.Text, nullable=False, index=True),
    sa.Column("reason", sa.Text, nullable=False),  # undone, deleted, forgotten
    sa.Column("hash", sa.Text, nullable=False),  # of the line itself
    json("evidence"),  # hashes of the daily lines it rested on
    json("sources"),  # ids of the messages they rested on
    time("created_at", nullable=False),
)

# Which stretches of a conversation stand in the day's files already (WD-50).
coverage = sa.Table(
    "coverage",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    sa.Column("conversation_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("first_seq", sa.BigInteger, nullable=False),
    sa.Column("last_seq", sa.BigInteger, nullable=False),
    sa.Column("local_date", sa.Text, nullable=False),
    sa.Column("section", sa.Text, nullable=False),  # trimmed, summary, late, overflow, copied
    text("run_id"),  # the job that wrote it
    flag("fallback"),  # the plain extract stands there until a later try works (WD-45)
    flag("stale"),  # a message in it was edited or deleted since (WD-59)
    time("created_at", nullable=False),
    sa.Index(None, "conversation_id", "last_seq"),
    sa.Index(None, "scope", "local_date"),
)

# What stands in the context in place of turns that left it (WD-43). Several until they are merged (WD-46).
summary_blocks = sa.Table(
    "summary_blocks",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    sa.Column("conversation_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    sa.Column("first_seq", sa.BigInteger, nullable=False),
    sa.Column("last_seq", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # extract, summary
    text("text"),
    time("created_at", nullable=False),
    time("updated_at", nullable=False),
    sa.UniqueConstraint("conversation_id", "last_seq"),
)

dreams = sa.Table(
    "dreams",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("local_date", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),  # applying, done, refused, undone
    sa.Column("trigger", sa.Text, nullable=False),  # night, manual, accepted
    text("batch_key"),
    json("dates"),
    text("old_hash"),
    text("new_hash"),
    sa.Column("staged", sa.Text, nullable=True),  # the new MEMORY.md, until it stands in its place (WD-82)
    json("plan"),  # what will be booked: lines with provenance, daily lines used
    json("changes"),  # added, changed, merged, dropped, each with its words
    text("diary"),
    text("reason"),
    number("calls"),
    time("created_at", nullable=False),
    time("ended_at"),
    sa.Index(None, "scope", "created_at"),
    sa.Index(None, "scope", "batch_key"),
)

# What waits for a person's yes: a refused dream, a candidate line, a tool's change after foreign text, a forgetting (WD-68, WD-81, WD-92, WD-105).
proposals = sa.Table(
    "proposals",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # dream, candidate, change, forget
    sa.Column("state", sa.Text, nullable=False, server_default="open"),  # open, applied, discarded
    text("path"),
    json("payload"),
    text("run_id"),
    text("conversation_id"),
    text("person_id"),
    time("created_at", nullable=False),
    time("expires_at", nullable=False),
    time("decided_at"),
    sa.Index(None, "scope", "state"),
)

# Every change of a file by a program, daily appends excepted: what undo goes back by (WD-89).
file_changes = sa.Table(
    "file_changes",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("cause", sa.Text, nullable=False),  # dream, tool, accepted, undo, forget, import, onboarding
    text("cause_id"),
    text("before_hash"),
    text("after_hash"),
    text("revision"),  # where the old text is kept
    json("removed"),  # lines, each with its words and provenance
    json("added"),
    time("undone_at"),
    time("created_at", nullable=False),
    sa.Index(None, "scope", "created_at"),
)

onboarding = sa.Table(
    "onboarding",
    metadata,
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("state", sa.Text, nullable=False),  # new, asked, done, dismissed (WD-31)
    number("asked"),  # times so far
    text("asked_on"),  # local date of the last time
    json("answers"),  # which were given: names of fields, no words
    time("updated_at", nullable=False),
)

# What a scope has settled for itself; the configuration's value where it has not.
scope_settings = sa.Table(
    "scope_settings",
    metadata,
    sa.Column("scope", sa.Text, primary_key=True),
    text("timezone"),
    sa.Column("knowledge", sa.Boolean, nullable=True),
    json("told"),  # what its person was told once: codes with the date
    time("updated_at", nullable=False),
)

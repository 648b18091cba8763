"""The table of scheduled tasks: what is to be said, where, and when (WD-131 to WD-138).

The row is everything a run needs; nothing of it comes from a message that must arrive first. What a run did is in the job table and the outbox; the
last result is kept here too, for those two are swept.
"""

from __future__ import annotations

import sqlalchemy as sa

from memory.columns import Counter, flag, metadata, number, text, time

tasks = sa.Table(
    "tasks",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False, index=True),  # who made it
    sa.Column("address", sa.Text, nullable=False, index=True),  # where it is said: the key of a conversation
    text("scope"),  # whose memory a run reads, as long as its maker may; empty for none
    sa.Column("kind", sa.Text, nullable=False),  # say: the text itself; ask: what the model answers to it
    sa.Column("text", sa.Text, nullable=False),
    flag("silent"),  # says nothing when there is nothing to say
    text("rule"),  # cron; empty for a task that runs once
    time("once_at"),
    text("timezone"),  # empty = the machine's
    text("language"),
    sa.Column("state", sa.Text, nullable=False, server_default="active"),  # active, paused, done, failed, bad
    text("fault"),  # of a bad one: why it cannot run
    time("next_run"),  # null when nothing is planned any more
    time("run_slot"),  # the run that is going on: when it was due
    text("run_turn"),  # its id in outbox and usage
    text("run_key"),  # of its job
    flag("run_stored"),  # what it says is stored and on its way
    time("last_run"),
    text("last_result"),  # sent, silent, missed, failed, revoked, skipped
    text("last_error"),
    number("runs"),
    number("skipped"),  # runs left out because the one before was still going on
    number("missed"),  # runs that nobody was there for
    time("created_at", nullable=False),
    time("updated_at", nullable=False),
    time("ended_at"),
    time("seen_at"),  # when its end was shown to somebody
    sa.Index(None, "state", "next_run"),
    sqlite_autoincrement=True,  # a number is never given twice: the keys of its jobs hold it
)

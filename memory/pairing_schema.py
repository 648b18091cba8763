"""Tables about letting people in: who waits with a code, who runs a space, which accounts are about to be linked (CH-113, CH-118, WD-13).

Of a code only a keyed hash is kept. The rows of one who waits go when they are let in, turned away, or too late.
"""

from __future__ import annotations

import sqlalchemy as sa

from memory.columns import Counter, flag, metadata, text, time

pairings = sa.Table(
    "pairings",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("platform_user_id", sa.Text, nullable=False),
    text("name"),  # what the platform shows; never a reason to admit anybody (CH-111)
    text("language"),
    sa.Column("address", sa.Text, nullable=False),  # their private chat
    sa.Column("code_hash", sa.Text, nullable=False, index=True),
    time("told_at", nullable=False),  # when the code was made and said
    time("expires_at", nullable=False),
    sa.UniqueConstraint("channel", "account", "platform_user_id"),
)

space_managers = sa.Table(
    "space_managers",
    metadata,
    sa.Column("space_id", sa.Text, sa.ForeignKey("spaces.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), primary_key=True, index=True),
    time("created_at", nullable=False),
)

# Two accounts on their way to one person: the one that asked for the code, and the one that gave it.
account_links = sa.Table(
    "account_links",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    sa.Column("code_hash", sa.Text, nullable=False, index=True),
    sa.Column("asker_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("asker_chat", sa.Text, nullable=False),  # conversations, where each side is told and confirms
    sa.Column("giver_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=True, index=True),
    text("giver_chat"),
    flag("asker_agreed"),
    flag("giver_agreed"),
    time("expires_at", nullable=False),
)

"""Every table of the database, for SQLite and PostgreSQL alike. The migrations make them; a test holds the two equal.

Times are `UtcTime` (microseconds since 1970, UTC); the plain DateTime type loses its zone on SQLite and a test forbids it.
Lists and records that only travel together are JSON. Columns that later waves need (audience, canonical version) are here from the start.
"""

from __future__ import annotations

import sqlalchemy as sa

from memory.columns import Counter, flag, json, metadata, number, text, time

# -- who ---------------------------------------------------------------------------------------------------------------

people = sa.Table(
    "people",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("name"),
    sa.Column(
        "sign_in", sa.Text, nullable=True, unique=True
    ),  # the name folded for signing in; null without a password, for names may repeat
    sa.Column("role", sa.Text, nullable=False, server_default="guest"),  # guest, user, admin, owner (CH-118)
    sa.Column("scope", sa.Text, nullable=False, unique=True),  # "root" for the owner of the root scope, else "people/<id>" (WD-9)
    text("language"),
    text("timezone"),
    text("privacy"),  # "", partial, full (SM-13)
    flag("share_private"),  # private memories are used in shared places too (SM-15)
    text("password_hash"),
    flag("blocked"),
    sa.Column("subscriber_until", sa.Date, nullable=True),
    time("created_at", nullable=False),
)

identities = sa.Table(
    "identities",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("platform_user_id", sa.Text, nullable=False),
    text("name"),
    time("created_at", nullable=False),
    sa.UniqueConstraint("channel", "account", "platform_user_id"),
)

spaces = sa.Table(
    "spaces",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("platform_space_id", sa.Text, nullable=False),
    text("server_id"),  # the platform's id of the server it belongs to; if it is another than its own, not all of the server reads it (WD-12)
    text("title"),
    text("timezone"),
    flag("allowed"),
    text("mention"),  # "", on, off: whether a mention is needed here; empty = as the account says (CH-116)
    time("created_at", nullable=False),
    sa.UniqueConstraint("channel", "account", "platform_space_id"),
)

# The configuration says who a character is; this row is the lineage that survives its removal and return (SM-92).
characters = sa.Table(
    "characters",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("config_id", sa.Text, nullable=False, unique=True),
    text("name"),
    time("created_at", nullable=False),
    time("removed_at"),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("token_hash", sa.Text, primary_key=True),
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("csrf", sa.Text, nullable=False),
    text("agent"),
    time("created_at", nullable=False),
    time("seen_at", nullable=False),
    time("expires_at", nullable=False),
)

login_links = sa.Table(
    "login_links",
    metadata,
    sa.Column("code_hash", sa.Text, primary_key=True),
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
    time("expires_at", nullable=False),
    time("used_at"),
)

api_tokens = sa.Table(
    "api_tokens",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("token_hash", sa.Text, nullable=False, unique=True),
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False, index=True),
    text("name"),
    time("created_at", nullable=False),
    time("used_at"),
)

# -- where and what ----------------------------------------------------------------------------------------------------

conversations = sa.Table(
    "conversations",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),  # channel:account:chat[:thread] (CH-13)
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # dm, group, web, api, challenge
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=True),
    sa.Column("space_id", sa.Text, sa.ForeignKey("spaces.id", ondelete="CASCADE"), nullable=True),
    sa.Column("character", sa.Text, nullable=False, server_default="default"),
    json("characters"),  # ids of all who answer here, first one included; null = `character` alone (WO-40)
    text("challenge"),  # of a challenge chat: which one it plays; empty = the default character alone
    text("mode"),  # "" conversation, role-play, game
    text("persona"),
    text("profile"),  # window profile; empty = the character's
    text("record"),  # "" full, recall_only, none (RS-12)
    sa.Column("recall_on", sa.Boolean, nullable=True),  # null = as mode and kind say (RS-9)
    json("settings"),  # of this chat alone, by key (section 8 of recall and summaries)
    text("timezone"),
    text("busy"),  # "", steer, queue (CH-71)
    flag("memory_on", True),
    text("title"),
    text("title_origin"),  # "", words, model, person
    number("window_edge"),  # messages up to this sequence number have left the context
    number("seen_seq"),  # the person has read up to here
    number("last_seq"),
    sa.Column("turns_left", sa.BigInteger, nullable=True),  # challenge chats only
    text("forked_from"),
    time("created_at", nullable=False),
    time("updated_at", nullable=False),
    time("deleted_at"),
    sa.Index(None, "person_id", "updated_at"),
)

messages = sa.Table(
    "messages",
    metadata,
    sa.Column("seq", Counter, primary_key=True),  # the order of the log, within each conversation and over all
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("conversation_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    text("turn_id", index=True),
    sa.Column("role", sa.Text, nullable=False),  # user, assistant, notice
    text("author_person_id"),
    text("author_character"),
    text("author_name"),
    text("text"),
    sa.Column("state", sa.Text, nullable=False, server_default="live"),  # live, hidden, forgotten
    sa.Column("origin", sa.Text, nullable=False, server_default="person"),  # person, assistant, notice, scheduled, imported
    text("scope"),  # whose memory it belongs to, settled when it was stored (WD-9); empty = nobody's, and no summary takes it
    flag("foreign_text"),  # forwarded, quoted from elsewhere, with files; an answer whose run read such text (WD-67)
    flag("canonical", True),
    number("attempt", 1),
    text("outcome"),  # of an answer: answered, stopped
    json("audience_people"),  # null = all
    json("audience_personas"),
    json("attachments"),
    json("reply_to"),
    text("fingerprint"),
    time("created_at", nullable=False),
    time("edited_at"),
    sa.Index(None, "conversation_id", "seq"),
    sa.Index(None, "scope", "seq"),
    sqlite_autoincrement=True,  # a number is never given twice, also after deletions
)

# Which platform messages a message of ours is: edits and deletions find it here long after the inbox row is gone.
message_refs = sa.Table(
    "message_refs",
    metadata,
    sa.Column("channel", sa.Text, primary_key=True),
    sa.Column("account", sa.Text, primary_key=True),
    sa.Column("chat_id", sa.Text, primary_key=True),
    sa.Column("platform_message_id", sa.Text, primary_key=True),
    sa.Column("message_id", sa.Text, nullable=False, index=True),
)

attachments = sa.Table(
    "attachments",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("person_id"),
    text("conversation_id"),
    sa.Column("kind", sa.Text, nullable=False),
    text("name"),
    text("mime"),
    number("size"),
    text("sha256"),
    text("path"),  # under the attachments folder of data_dir
    time("created_at", nullable=False),
)

turns = sa.Table(
    "turns",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("conversation_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False, index=True),
    text("person_id"),
    text("scope"),
    sa.Column("state", sa.Text, nullable=False),  # running, answered, stopped, failed, empty
    number("attempt", 1),
    text("character"),
    text("model"),
    text("error_code"),
    json("preview_ids"),  # platform ids of the preview on show, stored before its next edit (CH-97)
    json("receipt"),
    json("recalled"),  # what the first try recalled, for a retry (RS-79)
    time("started_at", nullable=False),
    time("ended_at"),
)

model_calls = sa.Table(
    "model_calls",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    text("turn_id", index=True),
    text("person_id"),
    text("conversation_id"),
    text("channel"),
    sa.Column("purpose", sa.Text, nullable=False),
    text("model"),
    sa.Column("outcome", sa.Text, nullable=False),
    number("input_tokens"),
    number("output_tokens"),
    number("cached_tokens"),
    flag("estimated"),
    sa.Column("cost", sa.Float, nullable=False, server_default="0"),
    number("milliseconds"),
    time("at", nullable=False),
    sa.Index(None, "at"),
)

# -- delivery ----------------------------------------------------------------------------------------------------------

inbox = sa.Table(
    "inbox",
    metadata,
    sa.Column("id", Counter, primary_key=True),  # the order of arrival
    sa.Column("delivery_id", sa.Text, nullable=False, unique=True),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("event_key", sa.Text, nullable=False),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),  # new, running, done, ignored, dead (CH-53); early: words of an edit that wait for their message
    text("rule"),  # why it was ignored or died
    number("attempts"),
    text("conversation_id"),
    text("person_id"),
    text("message_id"),
    text("turn_id"),
    json("event"),
    time("received_at", nullable=False),
    time("finished_at"),
    sa.UniqueConstraint("channel", "account", "event_key"),
    sa.Index(None, "state"),
    sa.Index(None, "conversation_id", "id"),
    sa.Index(None, "turn_id"),
    sa.Index(None, "message_id"),
    sa.Index(None, "address", "id"),
)

cursors = sa.Table(
    "cursors",
    metadata,
    sa.Column("channel", sa.Text, primary_key=True),
    sa.Column("account", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
    time("updated_at", nullable=False),
)

outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("id", Counter, primary_key=True),  # parts of one address go out in this order (CH-81)
    sa.Column("part_id", sa.Text, nullable=False, unique=True),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("address", sa.Text, nullable=False),
    text("conversation_id"),
    text("turn_id", index=True),
    text("message_id"),
    text("delivery_id"),
    sa.Column("kind", sa.Text, nullable=False),  # answer, notice, reminder
    sa.Column("state", sa.Text, nullable=False),  # queued, sending, unknown, sent, failed, expired
    json("part"),
    number("attempts"),
    number("unknowns"),  # how often nobody could tell whether it arrived
    text("reason"),
    json("platform_ids"),
    flag("told"),  # the person has been told that it did not arrive (CH-82)
    time("not_before"),
    time("expires_at", nullable=False),
    time("attempted_at"),
    time("created_at", nullable=False),
    time("updated_at", nullable=False),
    sa.Index(None, "state", "account"),
    sa.Index(None, "address", "id"),
)

# -- work and time -----------------------------------------------------------------------------------------------------

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    text("scope"),
    text("local_date"),  # YYYY-MM-DD: rows with a date are the ledger (WD-53)
    sa.Column("state", sa.Text, nullable=False, server_default="waiting"),  # waiting, running, done, parked, cancelled (WD-98)
    number("attempts"),
    number("lost_leases"),
    number("priority"),
    json("payload"),
    json("result"),
    text("error_class"),
    text("error"),
    time("not_before", nullable=False),
    text("lease_owner"),
    time("lease_until"),
    time("created_at", nullable=False),
    time("updated_at", nullable=False),
    sa.UniqueConstraint("kind", "key"),
    sa.Index(None, "state", "not_before"),
)

job_parts = sa.Table(
    "job_parts",
    metadata,
    sa.Column("job_id", Counter, sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("part", sa.Text, primary_key=True),
    text("input_hash"),
    json("output"),
    time("created_at", nullable=False),
)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("fence", sa.BigInteger, nullable=False),  # grows with every taking: a late writer shows an old number and is refused
    time("until", nullable=False),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    time("at", nullable=False),
    text("actor"),
    sa.Column("action", sa.Text, nullable=False),
    text("target"),
    json("before"),
    json("after"),
    text("address"),
)

errors = sa.Table(
    "errors",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    time("at", nullable=False),
    text("delivery_id"),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
)

settings = sa.Table(
    "settings",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.JSON, nullable=False),
    time("updated_at", nullable=False),
)

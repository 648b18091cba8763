"""Every table of the database, for SQLite and PostgreSQL alike. The first migration makes them; a test holds the two equal.

Times are `UtcTime` (microseconds since 1970, UTC); the plain DateTime type loses its zone on SQLite and a test forbids it.
Lists and records that only travel together
are JSON. Columns that later waves need (audience, origin, canonical version, fingerprints) are here from the start.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class UtcTime(sa.types.TypeDecorator[datetime]):
    """An aware datetime in, the same instant in UTC out; stored as integer microseconds, so it sorts and compares on both databases."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> int | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a naive datetime reached the database")
        return (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any | None, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else _EPOCH + timedelta(microseconds=value)


metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Counter = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite numbers only INTEGER primary keys by itself


def _text(name: str, **more: Any) -> sa.Column[str]:
    """A text that is never null: empty means none."""
    return sa.Column(name, sa.Text, nullable=False, server_default="", **more)


def _flag(name: str, default: bool = False) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False, server_default=sa.true() if default else sa.false())


def _number(name: str, default: int = 0) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=str(default))


def _time(name: str, *, nullable: bool = True) -> sa.Column[datetime]:
    return sa.Column(name, UtcTime, nullable=nullable)


def _json(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.JSON(none_as_null=True), nullable=True)


# -- who ---------------------------------------------------------------------------------------------------------------

people = sa.Table(
    "people",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _text("name"),
    sa.Column(
        "sign_in", sa.Text, nullable=True, unique=True
    ),  # the name folded for signing in; null without a password, for names may repeat
    sa.Column("role", sa.Text, nullable=False, server_default="guest"),  # guest, user, admin, owner (CH-118)
    sa.Column("scope", sa.Text, nullable=False, unique=True),  # "root" for the owner of the root scope, else "people/<id>" (WD-9)
    _text("language"),
    _text("timezone"),
    _text("privacy"),  # "", partial, full (SM-13)
    _text("password_hash"),
    _flag("blocked"),
    sa.Column("subscriber_until", sa.Date, nullable=True),
    _time("created_at", nullable=False),
)

identities = sa.Table(
    "identities",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("platform_user_id", sa.Text, nullable=False),
    _text("name"),
    _time("created_at", nullable=False),
    sa.UniqueConstraint("channel", "account", "platform_user_id"),
)

spaces = sa.Table(
    "spaces",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("platform_space_id", sa.Text, nullable=False),
    _text("title"),
    _text("timezone"),
    _flag("allowed"),
    _time("created_at", nullable=False),
    sa.UniqueConstraint("channel", "account", "platform_space_id"),
)

# The configuration says who a character is; this row is the lineage that survives its removal and return (SM-92).
characters = sa.Table(
    "characters",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("config_id", sa.Text, nullable=False, unique=True),
    _text("name"),
    _time("created_at", nullable=False),
    _time("removed_at"),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("token_hash", sa.Text, primary_key=True),
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("csrf", sa.Text, nullable=False),
    _text("agent"),
    _time("created_at", nullable=False),
    _time("seen_at", nullable=False),
    _time("expires_at", nullable=False),
)

login_links = sa.Table(
    "login_links",
    metadata,
    sa.Column("code_hash", sa.Text, primary_key=True),
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
    _time("expires_at", nullable=False),
    _time("used_at"),
)

api_tokens = sa.Table(
    "api_tokens",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("token_hash", sa.Text, nullable=False, unique=True),
    sa.Column("person_id", sa.Text, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False, index=True),
    _text("name"),
    _time("created_at", nullable=False),
    _time("used_at"),
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
    _text("persona"),
    _text("profile"),  # window profile; empty = the character's
    _text("timezone"),
    _text("busy"),  # "", steer, queue (CH-71)
    _flag("memory_on", True),
    _text("title"),
    _text("title_origin"),  # "", words, model, person
    _number("window_edge"),  # messages up to this sequence number have left the context
    _number("seen_seq"),  # the person has read up to here
    _number("last_seq"),
    sa.Column("turns_left", sa.BigInteger, nullable=True),  # challenge chats only
    _text("forked_from"),
    _time("created_at", nullable=False),
    _time("updated_at", nullable=False),
    _time("deleted_at"),
    sa.Index(None, "person_id", "updated_at"),
)

messages = sa.Table(
    "messages",
    metadata,
    sa.Column("seq", Counter, primary_key=True),  # the order of the log, within each conversation and over all
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("conversation_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    _text("turn_id", index=True),
    sa.Column("role", sa.Text, nullable=False),  # user, assistant, notice
    _text("author_person_id"),
    _text("author_character"),
    _text("author_name"),
    _text("text"),
    sa.Column("state", sa.Text, nullable=False, server_default="live"),  # live, hidden, forgotten
    sa.Column("origin", sa.Text, nullable=False, server_default="person"),  # person, assistant, notice, scheduled, imported
    _flag("canonical", True),
    _number("attempt", 1),
    _text("outcome"),  # of an answer: answered, stopped
    _json("audience_people"),  # null = all
    _json("audience_personas"),
    _json("attachments"),
    _json("reply_to"),
    _text("fingerprint"),
    _time("created_at", nullable=False),
    _time("edited_at"),
    sa.Index(None, "conversation_id", "seq"),
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
    _text("person_id"),
    _text("conversation_id"),
    sa.Column("kind", sa.Text, nullable=False),
    _text("name"),
    _text("mime"),
    _number("size"),
    _text("sha256"),
    _text("path"),  # under the attachments folder of data_dir
    _time("created_at", nullable=False),
)

turns = sa.Table(
    "turns",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("conversation_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False, index=True),
    _text("person_id"),
    _text("scope"),
    sa.Column("state", sa.Text, nullable=False),  # running, answered, stopped, failed, empty
    _number("attempt", 1),
    _text("character"),
    _text("model"),
    _text("error_code"),
    _json("preview_ids"),  # platform ids of the preview on show, stored before its next edit (CH-97)
    _json("receipt"),
    _time("started_at", nullable=False),
    _time("ended_at"),
)

model_calls = sa.Table(
    "model_calls",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    _text("turn_id", index=True),
    _text("person_id"),
    _text("conversation_id"),
    _text("channel"),
    sa.Column("purpose", sa.Text, nullable=False),
    _text("model"),
    sa.Column("outcome", sa.Text, nullable=False),
    _number("input_tokens"),
    _number("output_tokens"),
    _number("cached_tokens"),
    _flag("estimated"),
    sa.Column("cost", sa.Float, nullable=False, server_default="0"),
    _number("milliseconds"),
    _time("at", nullable=False),
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
    sa.Column("state", sa.Text, nullable=False),  # new, running, done, ignored, dead (CH-53)
    _text("rule"),  # why it was ignored or died
    _number("attempts"),
    _text("conversation_id"),
    _text("person_id"),
    _text("message_id"),
    _text("turn_id"),
    _json("event"),
    _time("received_at", nullable=False),
    _time("finished_at"),
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
    _time("updated_at", nullable=False),
)

outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("id", Counter, primary_key=True),  # parts of one address go out in this order (CH-81)
    sa.Column("part_id", sa.Text, nullable=False, unique=True),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("address", sa.Text, nullable=False),
    _text("conversation_id"),
    _text("turn_id", index=True),
    _text("message_id"),
    _text("delivery_id"),
    sa.Column("kind", sa.Text, nullable=False),  # answer, notice, reminder
    sa.Column("state", sa.Text, nullable=False),  # queued, sending, unknown, sent, failed, expired
    _json("part"),
    _number("attempts"),
    _number("unknowns"),  # how often nobody could tell whether it arrived
    _text("reason"),
    _json("platform_ids"),
    _flag("told"),  # the person has been told that it did not arrive (CH-82)
    _time("not_before"),
    _time("expires_at", nullable=False),
    _time("attempted_at"),
    _time("created_at", nullable=False),
    _time("updated_at", nullable=False),
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
    _text("scope"),
    _text("local_date"),  # YYYY-MM-DD: rows with a date are the ledger (WD-53)
    sa.Column("state", sa.Text, nullable=False, server_default="waiting"),  # waiting, running, done, parked, cancelled (WD-98)
    _number("attempts"),
    _number("lost_leases"),
    _number("priority"),
    _json("payload"),
    _json("result"),
    _text("error_class"),
    _text("error"),
    _time("not_before", nullable=False),
    _text("lease_owner"),
    _time("lease_until"),
    _time("created_at", nullable=False),
    _time("updated_at", nullable=False),
    sa.UniqueConstraint("kind", "key"),
    sa.Index(None, "state", "not_before"),
)

job_parts = sa.Table(
    "job_parts",
    metadata,
    sa.Column("job_id", Counter, sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("part", sa.Text, primary_key=True),
    _text("input_hash"),
    _json("output"),
    _time("created_at", nullable=False),
)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("fence", sa.BigInteger, nullable=False),  # grows with every taking: a late writer shows an old number and is refused
    _time("until", nullable=False),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    _time("at", nullable=False),
    _text("actor"),
    sa.Column("action", sa.Text, nullable=False),
    _text("target"),
    _json("before"),
    _json("after"),
    _text("address"),
)

errors = sa.Table(
    "errors",
    metadata,
    sa.Column("id", Counter, primary_key=True),
    _time("at", nullable=False),
    _text("delivery_id"),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
)

settings = sa.Table(
    "settings",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.JSON, nullable=False),
    _time("updated_at", nullable=False),
)

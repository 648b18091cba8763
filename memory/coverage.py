"""Which messages stand in the day's files already, and which wait for it (WD-49 to WD-51, WD-59). Plain functions on a `Connection`.

Covered are ranges of sequence numbers in one conversation, whatever is in them. Talk is what people said and what the bot answered, of chats that
have a memory: no commands, notices, scheduled output, no challenge chats, and in spaces nothing by or to people with privacy `full` (SM-13).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory.columns import UtcTime
from memory.file_schema import coverage
from memory.forgotten import forgotten_messages
from memory.schema import conversations, messages, people
from memory.scopes import Kind

Range = tuple[int, int]  # first and last sequence number, both in it


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """One message of people or the bot, as summaries need it. `files`: names of what came with it."""

    seq: int
    id: str
    conversation_id: str
    role: str  # user, assistant
    author_person_id: str
    author_name: str
    text: str
    foreign_text: bool
    files: tuple[str, ...]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """A stretch that stands in the file of `local_date` (YYYY-MM-DD). `section`: trimmed, summary, late, overflow or copied; `run_id`: of the job;
    `created_at`: when its messages were read."""

    id: int = 0
    conversation_id: str
    scope: str
    first_seq: int
    last_seq: int
    local_date: str
    section: str
    run_id: str = ""
    fallback: bool = False
    stale: bool = False
    created_at: datetime

    @property
    def range(self) -> Range:
        return self.first_seq, self.last_seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Uncovered talk of one scope: when its first and its last message was said, and their smallest number."""

    scope: str
    first_seq: int
    first_at: datetime
    last_at: datetime


# -- ranges, pure ----------------------------------------------------------------------------------------------------------


def within(seq: int, ranges: Iterable[Range]) -> bool:
    return any(first <= seq <= last for first, last in ranges)


def runs(wanted: Sequence[int], taken: Iterable[Range]) -> list[Range]:
    """`wanted` (ascending, none of it in `taken`) as few ranges, none of which meets a taken one."""
    borders = sorted(first for first, _ in taken)
    found: list[Range] = []
    for seq in wanted:
        if found and not any(found[-1][1] < border < seq for border in borders):
            found[-1] = (found[-1][0], seq)
        else:
            found.append((seq, seq))
    return found


# -- reading ---------------------------------------------------------------------------------------------------------------


def uncovered(connection: sa.Connection, scope: str) -> list[Talk]:
    """All talk of a scope that stands in no daily file yet, in the order of the log."""
    return [_talk(row) for row in connection.execute(_UNCOVERED, {"scope": scope, "after": 0})]


def uncovered_times(connection: sa.Connection, scope: str) -> list[datetime]:
    """When the uncovered messages of a scope were said."""
    return list(connection.execute(_UNCOVERED_TIMES, {"scope": scope, "after": 0}).scalars().all())


def waiting(connection: sa.Connection, after: int = 0) -> list[Waiting]:
    """Every scope with uncovered talk behind the number `after`. Reads all messages behind it: keep the number from the last look."""
    return [
        Waiting(scope=row.scope, first_seq=row.first_seq, first_at=row.first_at, last_at=row.last_at)
        for row in connection.execute(_WAITING, {"after": after})
    ]


def last_seq(connection: sa.Connection) -> int:
    """The number of the newest message of the log."""
    return connection.execute(_LAST).scalar() or 0


def talk_in(connection: sa.Connection, conversation_id: str, scope: str, ranges: Iterable[Range]) -> list[Talk]:
    """The talk of these stretches as it reads now: what was edited in its new words, what was deleted or forgotten not at all (WD-92)."""
    gone = forgotten_messages(connection, scope)
    found: list[Talk] = []
    for first, last in ranges:
        values = {"of": conversation_id, "scope": scope, "first": first, "last": last}
        found += [talk for row in connection.execute(_TALK_IN, values) if (talk := _talk(row)).id not in gone]
    return found


def talk_by_id(connection: sa.Connection, scope: str, ids: Iterable[str]) -> list[Talk]:
    """These messages, those that still count, in the order of the log."""
    wanted = set(ids) - forgotten_messages(connection, scope)
    return [_talk(row) for row in connection.execute(_BY_ID, {"scope": scope, "ids": sorted(wanted)})]


def covered(connection: sa.Connection, conversation_id: str, first: int, last: int) -> list[Covered]:
    """What of a conversation between two numbers is covered."""
    return [_covered(row) for row in connection.execute(_MEETS, {"of": conversation_id, "first": first, "last": last})]


def of_run(connection: sa.Connection, scope: str, run_id: str) -> list[Covered]:
    """What one job has covered."""
    return [_covered(row) for row in connection.execute(_OF_RUN, {"scope": scope, "run": run_id})]


def stale(connection: sa.Connection, scope: str) -> list[Covered]:
    """Stretches of a scope whose messages were edited or deleted since (WD-59)."""
    return [_covered(row) for row in connection.execute(_STALE, {"scope": scope})]


def stale_scopes(connection: sa.Connection) -> set[str]:
    return {row.scope for row in connection.execute(_STALE_SCOPES)}


def changed_in(connection: sa.Connection, row: Covered) -> set[str]:
    """Ids of the messages of a covered stretch that read otherwise than when it was read, or are no talk any more."""
    values = {"of": row.conversation_id, "first": row.first_seq, "last": row.last_seq, "since": row.created_at}
    return {row.id for row in connection.execute(_CHANGED, values)}


# -- writing ---------------------------------------------------------------------------------------------------------------


def add(connection: sa.Connection, rows: Iterable[Covered]) -> None:
    """Remember what was written. A stretch with a message that changed since `created_at` is stale from the start."""
    for row in rows:
        values: dict[str, Any] = {name: getattr(row, name) for name in Covered.__dataclass_fields__ if name != "id"}
        of = {"of": row.conversation_id, "first": row.first_seq, "last": row.last_seq, "since": row.created_at}
        edited = connection.execute(_EDITED, of).first() is not None
        connection.execute(_ADD, values | {"stale": row.stale or edited})


def mark_stale(connection: sa.Connection, conversation_id: str, first: int, last: int) -> int:
    """Messages with these numbers were edited, deleted or replaced: whatever covers them is stale. Returns how many stretches."""
    return connection.execute(_MARK, {"conversation": conversation_id, "first": first, "last": last}).rowcount


def made_good(connection: sa.Connection, ids: Iterable[int], read_at: datetime) -> None:
    """These stretches were written anew from messages read at `read_at`: no fallback, and not stale unless something changed since."""
    for number in ids:
        row = connection.execute(_BY_NUMBER, {"number": number}).one_or_none()
        if row is not None:
            of = {"of": row.conversation_id, "first": row.first_seq, "last": row.last_seq, "since": read_at}
            edited = connection.execute(_EDITED, of).first() is not None
            connection.execute(_MADE_GOOD, {"number": number, "is_stale": edited, "read_at": read_at})


# -- statements, built once ------------------------------------------------------------------------------------------------


def _not_full() -> sa.ColumnElement[bool]:
    """In spaces: neither by a person with privacy `full` nor an answer to one."""
    asked, who, asker = messages.alias("asked"), people.alias("who"), people.alias("asker")
    by_them = sa.exists().where(who.c.id == messages.c.author_person_id, who.c.privacy == "full")
    to_them = sa.exists().where(
        messages.c.turn_id != "",
        asked.c.turn_id == messages.c.turn_id,
        asked.c.role == "user",
        asker.c.id == asked.c.author_person_id,
        asker.c.privacy == "full",
    )
    return sa.not_(messages.c.scope.startswith(f"{Kind.SPACE}/")) | sa.not_(by_them | to_them)


# What counts as talk at all: for files, for chunks and for summaries of a chat alike.
COUNTS = (
    (messages.c.scope != "")
    & (messages.c.state == "live")
    & messages.c.canonical
    & messages.c.origin.in_(["person", "assistant"])
    & sa.exists().where(conversations.c.id == messages.c.conversation_id, conversations.c.deleted_at.is_(None))
    & _not_full()
)
_IS_COVERED = sa.exists().where(
    coverage.c.conversation_id == messages.c.conversation_id, coverage.c.last_seq >= messages.c.seq, coverage.c.first_seq <= messages.c.seq
)
_WAITS = COUNTS & sa.not_(_IS_COVERED) & (messages.c.seq > sa.bindparam("after", type_=sa.BigInteger))
_FIELDS = [messages.c[name] for name in Talk.__dataclass_fields__ if name != "files"]
_TALK = sa.select(*_FIELDS, messages.c.attachments)
_OF_SCOPE = messages.c.scope == sa.bindparam("scope")
_UNCOVERED = _TALK.where(_OF_SCOPE, _WAITS).order_by(messages.c.seq)
_UNCOVERED_TIMES = sa.select(messages.c.created_at).where(_OF_SCOPE, _WAITS).order_by(messages.c.seq)
_WAITING = (
    sa.select(
        messages.c.scope,
        sa.func.min(messages.c.seq).label("first_seq"),
        sa.func.min(messages.c.created_at).label("first_at"),
        sa.func.max(messages.c.created_at).label("last_at"),
    )
    .where(_WAITS)
    .group_by(messages.c.scope)
    .order_by(messages.c.scope)
)
_LAST = sa.select(sa.func.max(messages.c.seq))
_BETWEEN = messages.c.seq.between(sa.bindparam("first", type_=sa.BigInteger), sa.bindparam("last", type_=sa.BigInteger))
_IN = (messages.c.conversation_id == sa.bindparam("of")) & _BETWEEN
_TALK_IN = _TALK.where(_OF_SCOPE, COUNTS, _IN).order_by(messages.c.seq)
_BY_ID = _TALK.where(_OF_SCOPE, COUNTS, messages.c.id.in_(sa.bindparam("ids", expanding=True))).order_by(messages.c.seq)
_SINCE = sa.bindparam("since", type_=UtcTime)
_CHANGED = sa.select(messages.c.id).where(
    _IN, (messages.c.state != "live") | sa.not_(messages.c.canonical) | (messages.c.edited_at.is_not(None) & (messages.c.edited_at >= _SINCE))
)
_EDITED = sa.select(messages.c.id).where(_IN, messages.c.edited_at.is_not(None), messages.c.edited_at >= _SINCE).limit(1)
_ROWS = sa.select(coverage)
_MEETS = _ROWS.where(
    coverage.c.conversation_id == sa.bindparam("of"), coverage.c.last_seq >= sa.bindparam("first"), coverage.c.first_seq <= sa.bindparam("last")
).order_by(coverage.c.first_seq)
_OF_RUN = _ROWS.where(coverage.c.scope == sa.bindparam("scope"), coverage.c.run_id == sa.bindparam("run")).order_by(coverage.c.id)
_STALE = _ROWS.where(coverage.c.scope == sa.bindparam("scope"), coverage.c.stale, coverage.c.local_date != "").order_by(coverage.c.id)
_STALE_SCOPES = sa.select(coverage.c.scope).where(coverage.c.stale, coverage.c.local_date != "").distinct()
_BY_NUMBER = _ROWS.where(coverage.c.id == sa.bindparam("number"))
_ADD = sa.insert(coverage)
_MARK = (
    sa.update(coverage)
    .where(
        coverage.c.conversation_id == sa.bindparam("conversation"),
        coverage.c.last_seq >= sa.bindparam("first", type_=sa.BigInteger),
        coverage.c.first_seq <= sa.bindparam("last", type_=sa.BigInteger),
        coverage.c.local_date != "",
    )
    .values(stale=True)
)
_MADE_GOOD = (
    sa.update(coverage)
    .where(coverage.c.id == sa.bindparam("number"))
    .values(
        fallback=False, stale=sa.bindparam("is_stale", type_=sa.Boolean), created_at=sa.bindparam("read_at", type_=UtcTime)
    )
)


def _talk(row: sa.Row[Any]) -> Talk:
    values: dict[str, Any] = dict(row._mapping)  # pyright: ignore[reportPrivateUsage]  # SQLAlchemy's public name
    attached: list[Mapping[str, Any]] = values.pop("attachments") or []
    return Talk(**values, files=tuple(str(file.get("name") or file.get("kind") or "file") for file in attached))


def _covered(row: sa.Row[Any]) -> Covered:
    return Covered(**row._mapping)  # pyright: ignore[reportPrivateUsage]  # SQLAlchemy's public name

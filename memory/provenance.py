"""Where the lines of files came from, what may not come back, and what changed: rows about files, never their truth (WD-5, WD-89, WD-90).

Plain functions on a `Connection`, to be joined into the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from memory.file_schema import file_changes, file_lines, line_bars
from memory.lines import Entry
from memory.upserts import insert_or_keep


class Origin(StrEnum):
    """Whose words a line rests on (WD-67). `HUMAN` is a line without a row: whoever edits a file owns what it then says (WD-5)."""

    PERSON = "person"
    ASSISTANT = "assistant"
    MIXED = "mixed"
    UNSOURCED = "unsourced"
    IMPORTED = "imported"
    HUMAN = "human"


EVIDENCE = frozenset({Origin.PERSON, Origin.HUMAN})
"""Origins on which a line of MEMORY.md may rest (WD-68)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRow:
    """One line that a program wrote. `author`: summary, dream, tool, import, onboarding; `run_id`: of its job, dream or turn; `sources`: ids of
    messages; `evidence`: hashes of daily lines; `speakers`: ids of people; `used_by`: the dream that took a daily line in."""

    hash: str
    origin: Origin
    author: str
    run_id: str = ""
    sources: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    local_date: str = ""
    used_by: str = ""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What may not come back (WD-90, WD-92): the line of this hash, and whatever rests on nothing but this evidence. `reason`: undone, deleted or
    forgotten."""

    reason: str
    hash: str
    evidence: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedLine:
    """A line that a change took or brought, with its row at that time; without one it was a human's."""

    text: str
    section: str = ""
    row: LineRow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a file by a program (WD-89). `cause`: dream, tool, accepted, undo, forget, import, onboarding; `revision`: where the old text is
    kept; hashes are those of the files, empty for none."""

    id: int = 0
    scope: str
    path: str
    cause: str
    cause_id: str = ""
    before_hash: str = ""
    after_hash: str = ""
    revision: str = ""
    removed: tuple[ChangedLine, ...] = ()
    added: tuple[ChangedLine, ...] = ()
    undone_at: datetime | None = None
    created_at: datetime | None = None


_PUT = insert_or_keep(file_lines, ["scope", "path", "hash"])
_LINES = sa.select(file_lines).where(file_lines.c.scope == sa.bindparam("scope"), file_lines.c.path == sa.bindparam("path"))
_DAILY = sa.select(file_lines.c.path, file_lines.c.hash, file_lines.c.used_by).where(
    file_lines.c.scope == sa.bindparam("scope"), file_lines.c.local_date != ""
)
_BY_HASH = sa.select(file_lines).where(
    file_lines.c.scope == sa.bindparam("scope"), file_lines.c.hash.in_(sa.bindparam("hashes", expanding=True))
)
_DROP = sa.delete(file_lines).where(
    file_lines.c.scope == sa.bindparam("scope"),
    file_lines.c.path == sa.bindparam("path"),
    file_lines.c.hash.in_(sa.bindparam("hashes", expanding=True)),
)
_USE = (
    sa.update(file_lines)
    .where(file_lines.c.scope == sa.bindparam("of"), file_lines.c.hash.in_(sa.bindparam("hashes", expanding=True)), file_lines.c.local_date != "")
    .values(used_by=sa.bindparam("dream"))
)
_FORGOTTEN = sa.select(sa.func.coalesce(sa.func.max(line_bars.c.id), 0)).where(
    line_bars.c.scope == sa.bindparam("scope"), line_bars.c.reason == "forgotten"
)
_HOLD = sa.text("SELECT pg_advisory_xact_lock(hashtext('yumegate forgetting'), hashtext(:scope))")
_BARS = sa.select(line_bars).where(line_bars.c.scope == sa.bindparam("scope")).order_by(line_bars.c.id)
_CHANGES = (
    sa.select(file_changes)
    .where(file_changes.c.scope == sa.bindparam("scope"))
    .order_by(file_changes.c.id.desc())
    .limit(sa.bindparam("most"))
)


def put_lines(connection: sa.Connection, scope: str, path: str, rows: Iterable[LineRow], now: datetime) -> None:
    """Remember who wrote these lines. A hash that is known for the file keeps its first row."""
    for row in rows:
        connection.execute(_PUT[connection.dialect.name], {**row_json(row), "scope": scope, "path": path, "created_at": now})


def lines_of(connection: sa.Connection, scope: str, path: str) -> dict[str, LineRow]:
    """The known lines of one file by their hash."""
    return {row.hash: _line(row) for row in connection.execute(_LINES, {"scope": scope, "path": path})}


def daily_hashes(connection: sa.Connection, scope: str) -> dict[str, dict[str, bool]]:
    """Of all daily files of a scope, by path: the hashes of known lines, and whether a dream has taken them in (WD-85)."""
    found: dict[str, dict[str, bool]] = {}
    for row in connection.execute(_DAILY, {"scope": scope}):
        found.setdefault(row.path, {})[row.hash] = bool(row.used_by)
    return found


def by_hash(connection: sa.Connection, scope: str, hashes: Collection[str]) -> dict[str, list[tuple[str, LineRow]]]:
    """Path and row of every known line of a scope with one of these hashes."""
    found: dict[str, list[tuple[str, LineRow]]] = {}
    for row in connection.execute(_BY_HASH, {"scope": scope, "hashes": list(hashes)}):
        found.setdefault(row.hash, []).append((row.path, _line(row)))
    return found


def origin_of(entry: Entry, known: Mapping[str, LineRow]) -> Origin:
    """Whose words an entry of a file rests on, by the rows of that file (WD-5)."""
    row = known.get(entry.hash)
    return Origin.HUMAN if row is None else row.origin


def drop_lines(connection: sa.Connection, scope: str, path: str, hashes: Collection[str]) -> None:
    """These lines are in the file no more."""
    connection.execute(_DROP, {"scope": scope, "path": path, "hashes": list(hashes)})


def mark_used(connection: sa.Connection, scope: str, hashes: Collection[str], dream: str) -> None:
    """Daily lines that a dream has taken in (WD-85); with `dream` empty they are new again."""
    if hashes:
        connection.execute(_USE, {"of": scope, "hashes": list(hashes), "dream": dream})


def bar(connection: sa.Connection, scope: str, bars: Collection[Bar], now: datetime) -> None:
    values = [
        {"scope": scope, "reason": each.reason, "hash": each.hash, "evidence": list(each.evidence), "sources": list(each.sources), "created_at": now}
        for each in bars
    ]
    if any(each.reason == "forgotten" for each in bars):
        hold(connection, scope)
    if values:
        connection.execute(sa.insert(line_bars), values)


def forgettings(connection: sa.Connection, scope: str) -> int:
    """A number that grows when something of the scope is forgotten. Nothing is forgotten between this and the end of the transaction (WD-92)."""
    hold(connection, scope)
    return connection.execute(_FORGOTTEN, {"scope": scope}).scalar_one()


def hold(connection: sa.Connection, scope: str) -> None:
    """Until this transaction ends, no other one that asks likewise goes on. SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(_HOLD, {"scope": scope})


def bars_of(connection: sa.Connection, scope: str) -> tuple[Bar, ...]:
    return tuple(bar for bar, _ in dated_bars(connection, scope))


def dated_bars(connection: sa.Connection, scope: str) -> tuple[tuple[Bar, datetime], ...]:
    """What may not come back, each with when that was settled."""
    rows = connection.execute(_BARS, {"scope": scope})
    return tuple(
        (Bar(reason=row.reason, hash=row.hash, evidence=_texts(row.evidence), sources=_texts(row.sources)), row.created_at) for row in rows
    )


def record_change(connection: sa.Connection, change: Change, now: datetime) -> int:
    """Remember a change so that it can be undone; returns its id."""
    values = {
        "scope": change.scope, "path": change.path, "cause": change.cause, "cause_id": change.cause_id, "before_hash": change.before_hash,
        "after_hash": change.after_hash, "revision": change.revision, "removed": list(map(line_json, change.removed)),
        "added": list(map(line_json, change.added)), "created_at": now,
    }  # fmt: skip
    return connection.execute(sa.insert(file_changes).returning(file_changes.c.id), values).scalar_one()


def changes_of(connection: sa.Connection, scope: str, limit: int = 50) -> list[Change]:
    """The newest changes of a scope's files, newest first."""
    return [_change(row) for row in connection.execute(_CHANGES, {"scope": scope, "most": limit})]


def mark_undone(connection: sa.Connection, change_id: int, now: datetime) -> None:
    connection.execute(sa.update(file_changes).where(file_changes.c.id == change_id).values(undone_at=now))


def rewrite_change(connection: sa.Connection, change: Change) -> None:
    """Store the lines of a change anew: forgetting takes words out of it (WD-92)."""
    values = {"removed": list(map(line_json, change.removed)), "added": list(map(line_json, change.added))}
    connection.execute(sa.update(file_changes).where(file_changes.c.id == change.id).values(**values))


def delete_scope(connection: sa.Connection, scope: str) -> None:
    """All rows about the files of a scope (WD-15)."""
    for table in (file_lines, line_bars, file_changes):
        connection.execute(sa.delete(table).where(table.c.scope == scope))


def row_json(row: LineRow) -> dict[str, Any]:
    """All but when it was made."""
    return {
        "hash": row.hash, "origin": str(row.origin), "author": row.author, "run_id": row.run_id, "sources": list(row.sources),
        "evidence": list(row.evidence), "speakers": list(row.speakers), "local_date": row.local_date, "used_by": row.used_by,
    }  # fmt: skip


def row_of_json(value: Mapping[str, Any]) -> LineRow:
    lists = {name: _texts(value[name]) for name in ("sources", "evidence", "speakers")}
    kept: dict[str, Any] = {**value, "origin": Origin(value["origin"]), **lists}
    return LineRow(**kept)


def line_json(line: ChangedLine) -> dict[str, Any]:
    return {"text": line.text, "section": line.section, "row": None if line.row is None else row_json(line.row)}


def line_of_json(value: Mapping[str, Any]) -> ChangedLine:
    return ChangedLine(text=value["text"], section=value["section"], row=None if value["row"] is None else row_of_json(value["row"]))


def _line(row: sa.Row[Any]) -> LineRow:
    return LineRow(
        hash=row.hash, origin=Origin(row.origin), author=row.author, run_id=row.run_id, sources=_texts(row.sources), evidence=_texts(row.evidence),
        speakers=_texts(row.speakers), local_date=row.local_date, used_by=row.used_by, created_at=row.created_at,
    )  # fmt: skip


def _texts(value: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(value or ())


def _change(row: sa.Row[Any]) -> Change:
    return Change(
        id=row.id, scope=row.scope, path=row.path, cause=row.cause, cause_id=row.cause_id, before_hash=row.before_hash, after_hash=row.after_hash,
        revision=row.revision, removed=tuple(map(line_of_json, row.removed or ())), added=tuple(map(line_of_json, row.added or ())),
        undone_at=row.undone_at, created_at=row.created_at,
    )  # fmt: skip

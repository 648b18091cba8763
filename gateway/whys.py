"""Why a line is remembered: from the line to its evidence to the messages, within one scope (WD-91); and all that is remembered, numbered (SC-24)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from memory import provenance
from memory.database import Database
from memory.file_errors import FileUnreadable
from memory.layout import CURATED, ROLES, day_of, local_date_of
from memory.lines import ID_LENGTH, Entry, entries
from memory.provenance import LineRow, Origin
from memory.schema import conversations, messages
from memory.scopes import Scope
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads

_MESSAGES = (
    sa.select(messages.c.id, messages.c.conversation_id, messages.c.author_name, messages.c.text, messages.c.created_at, conversations.c.title)
    .join(conversations, conversations.c.id == messages.c.conversation_id)
    .where(messages.c.id.in_(sa.bindparam("ids", expanding=True)), messages.c.scope == sa.bindparam("scope"), messages.c.state == "live")
    .order_by(messages.c.seq)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A message of this scope; those of another, and those taken away, are not told."""

    id: str
    conversation_id: str
    chat: str
    author: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a file with where it comes from. `date`: of a daily line, else when the program wrote it; empty for a human's elsewhere.
    `author`: summary, dream, tool … or human."""

    id: str
    text: str
    path: str
    date: str
    origin: Origin
    author: str
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """`evidence`: the daily lines it rests on; `lost`: how many of them stand in no file any more."""

    line: Line
    evidence: tuple[Line, ...] = ()
    lost: int = 0


class Whys:
    def __init__(self, db: Database, files: WorkspaceThreads) -> None:
        self._db = db
        self._files = files

    async def chain(self, scope: Scope, line_id: str) -> Chain | None:
        """The chain of the line whose hash begins with `line_id` (at least 8 hex digits); None when no file of this scope has it."""
        wanted = line_id.strip().lower().lstrip("#")
        if len(wanted) < ID_LENGTH:
            return None
        there = await self._files.read(lambda workspace: _lines(workspace, scope))
        found = next(((path, entry) for path, entry in there if entry.hash.startswith(wanted)), None)
        if found is None:
            return None
        path, entry = found
        return await self._db.read(lambda connection: _chain(connection, str(scope), path, entry, there))

    async def known(self, scope: Scope) -> tuple[Line, ...]:
        """Every line of MEMORY.md in its order, for a numbered list: with id, date and origin, without messages."""
        there = await self._files.read(lambda workspace: _lines(workspace, scope, only=CURATED))
        rows = await self._db.read(lambda connection: provenance.lines_of(connection, str(scope), CURATED))
        return tuple(_line(path, entry, rows.get(entry.hash), ()) for path, entry in there)


def _lines(workspace: Workspace, scope: Scope, only: str = "") -> list[tuple[str, Entry]]:
    """Every entry of the files that are memory, MEMORY.md first."""
    paths = [file.path for file in workspace.files(scope) if ROLES[file.role].searchable and only in ("", file.path)]
    found: list[tuple[str, Entry]] = []
    for path in sorted(paths, key=lambda each: (each != CURATED, each)):
        try:
            text = workspace.read(scope, path)
        except FileUnreadable:
            continue
        found += [(path, entry) for entry in entries(text.content if text else "")]
    return found


def _chain(connection: sa.Connection, scope: str, path: str, entry: Entry, there: Collection[tuple[str, Entry]]) -> Chain:
    row = provenance.lines_of(connection, scope, path).get(entry.hash)
    hashes = set(row.evidence) if row else set[str]()
    rows = provenance.by_hash(connection, scope, hashes) if hashes else {}
    evidence: list[Line] = []
    for where, each in there:
        if each.hash in hashes and day_of(where):
            own = next((found for at, found in rows.get(each.hash, []) if at == where), None)
            evidence.append(_line(where, each, own, _sources(connection, scope, own.sources if own else ())))
    said = _sources(connection, scope, row.sources if row else ())
    found = {each.hash for where, each in there if day_of(where)}
    return Chain(line=_line(path, entry, row, said), evidence=tuple(evidence), lost=len(hashes - found))


def _sources(connection: sa.Connection, scope: str, ids: Iterable[str]) -> tuple[Source, ...]:
    wanted = list(ids)
    if not wanted:
        return ()
    rows = connection.execute(_MESSAGES, {"ids": wanted, "scope": scope})
    return tuple(
        Source(id=row.id, conversation_id=row.conversation_id, chat=row.title, author=row.author_name, text=row.text, at=row.created_at)
        for row in rows
    )


def _line(path: str, entry: Entry, row: LineRow | None, sources: tuple[Source, ...]) -> Line:
    written = row.created_at.date().isoformat() if row and row.created_at else ""
    return Line(
        id=entry.id,
        text=entry.text,
        path=path,
        date=local_date_of(path) or written,
        origin=row.origin if row else Origin.HUMAN,
        author=row.author if row else "human",
        sources=sources,
    )

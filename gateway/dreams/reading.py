"""What a dream sees: the live files and their rows, read anew each time it looks (WD-65, WD-66)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from threading import Lock

import sqlalchemy as sa

from gateway.config import Config
from memory import dream_store, provenance
from memory.database import Database
from memory.dream_input import Day, DayLine, Material, OldLine, curated, day
from memory.dream_rules import Policy
from memory.errors import StoreError
from memory.file_errors import FileUnreadable
from memory.layout import CURATED, Role, daily_path, day_of
from memory.lines import Entry, entries
from memory.markdown_lines import one_line
from memory.provenance import Bar, LineRow
from memory.schema import people
from memory.scopes import ROOT, Kind, Scope
from memory.texts import FileInfo, Text
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads

NAME_MAX = 80  # characters of a person's name in a request and in a line
DAYS_KEPT = 2_000  # daily files whose text is remembered, those used last
SETTLES = timedelta(minutes=1)  # a row younger than this may belong to a line that is just being written
_QUIET = ("partial", "full")  # of these people nothing is promoted (SM-13, WD-51)

FindManagers = Callable[[Scope, frozenset[str]], Awaitable[frozenset[str]]]

_PEOPLE = sa.select(people.c.id, people.c.name, people.c.role, people.c.privacy).where(people.c.id.in_(sa.bindparam("ids", expanding=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """`live`: MEMORY.md, None when there is none; `old` and `fixed`: its lines; `days`: every daily file, oldest first;
    `unreadable`: files left out."""

    live: Text | None
    old: tuple[OldLine, ...]
    fixed: tuple[Entry, ...]
    about_name: str
    about: str
    days: tuple[Day, ...]
    unreadable: tuple[str, ...]
    forgettings: int = 0  # as `provenance.forgettings` counted before anything was read

    @property
    def text(self) -> str:
        return self.live.content if self.live else ""

    def material(self, days: Collection[Day], names: dict[str, str]) -> Material:
        return Material(old=self.old, fixed=self.fixed, about_name=self.about_name, about=self.about, days=tuple(days), names=names)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    live: Text | None
    about: str
    days: dict[date, str]
    unreadable: tuple[str, ...]
    cowagent: bool


class DreamReading:
    """`managers`: which of these people manage a space, so that a dream takes orders from them (CH-118, WD-69); None: admins and owner alone."""

    def __init__(
        self,
        *,
        db: Database,
        files: WorkspaceThreads,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        managers: FindManagers | None = None,
    ) -> None:
        self._db = db
        self._files = files
        self._clock = clock
        self._config = config
        self._managers = managers
        self._days = _DayTexts()

    async def look(self, scope: Scope, *, new_only: bool = False) -> Seen:
        """Everything, now; with `new_only` the days alone that have a line no dream has taken in. Lines of MEMORY.md that a person deleted since are
        barred on the way (WD-90). FileUnreadable when MEMORY.md is."""
        forgettings = await self._db.read(lambda connection: provenance.forgettings(connection, str(scope)))
        read = await self._files.read(lambda workspace: _read(workspace, scope, self._days))
        text = read.live.content if read.live else ""
        known, lines, used = await self._db.read(partial(_rows, scope=str(scope), days=read.days, new_only=new_only))
        now = self._clock()
        if deleted := _deleted(text, known, now):
            await self._db.write(partial(_bar, scope=str(scope), deleted=deleted, now=now))
        old, fixed = curated(text, known)
        days = tuple(
            day(on, text, lines[on], used.get(on.isoformat(), ()), imported=read.cowagent)
            for on, text in sorted(read.days.items())
            if on in lines
        )
        return Seen(
            live=read.live, old=old, fixed=fixed, about_name=scope.about, about=read.about, days=days, unreadable=read.unreadable,
            forgettings=forgettings,
        )  # fmt: skip

    async def policy(self, scope: Scope, lines: Collection[DayLine], *, add_only: bool) -> tuple[Policy, dict[str, str]]:
        """What holds for the people who said these lines; and their names."""
        ids = frozenset(speaker for line in lines for speaker in line.speakers)
        rows = await self._db.read(lambda connection: connection.execute(_PEOPLE, {"ids": sorted(ids)}).all())
        bars = await self._db.read(lambda connection: provenance.dated_bars(connection, str(scope)))
        in_space = scope.kind is Kind.SPACE
        admins = frozenset(row.id for row in rows if row.role in ("admin", "owner"))
        if in_space and ids and self._managers is not None:
            admins |= await self._managers(scope, ids)
        settings = self._config().dream
        policy = Policy(
            max_items=settings.max_items,
            max_new=settings.max_new_items,
            add_only=add_only,
            in_space=in_space,
            admins=admins,
            silent=frozenset(row.id for row in rows if row.privacy in _QUIET),
            bars=bars,
        )
        return policy, {row.id: name for row in rows if (name := one_line(row.name)[:NAME_MAX])}


class _DayTexts:
    """Texts of daily files as they were read last, by size and time of change: a night need not read a year anew. Safe from several threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Scope, str], tuple[int, datetime, str]] = OrderedDict()
        self._lock = Lock()

    def read(self, workspace: Workspace, scope: Scope, file: FileInfo) -> str | None:
        with self._lock:
            known = self._known.pop((scope, file.path), None)
        if known is None or known[:2] != (file.size, file.changed_at):
            found = workspace.read(scope, file.path)
            if found is None:
                return None
            known = (file.size, file.changed_at, found.content)
        with self._lock:
            self._known[scope, file.path] = known
            if len(self._known) > DAYS_KEPT:
                self._known.popitem(last=False)
        return known[2]


def _read(workspace: Workspace, scope: Scope, texts: _DayTexts) -> _Files:
    days: dict[date, str] = {}
    unreadable: list[str] = []
    for file in workspace.files(scope):
        on = day_of(file.path)
        if file.role is not Role.DAILY or on is None:
            continue
        try:
            found = texts.read(workspace, scope, file)
        except FileUnreadable:  # left as it is and out of dreams (WD-23)
            unreadable.append(file.path)
            continue
        if found is not None:
            days[on] = found
    return _Files(
        live=workspace.read(scope, CURATED),
        about=_about(workspace, scope, unreadable),
        days=days,
        unreadable=tuple(unreadable),
        cowagent=scope == ROOT and workspace.is_cowagent(),
    )


def _about(workspace: Workspace, scope: Scope, unreadable: list[str]) -> str:
    try:
        found = workspace.read(scope, scope.about)
    except StoreError:
        unreadable.append(scope.about)
        return ""
    return found.content if found else ""


def _rows(
    connection: sa.Connection, *, scope: str, days: Mapping[date, str], new_only: bool
) -> tuple[dict[str, LineRow], dict[date, dict[str, LineRow]], dict[str, set[str]]]:
    """Rows of MEMORY.md, rows of the days that count by their date, and people's daily lines that were used."""
    used = dream_store.used_human_lines(connection, scope)
    wanted = set(days)
    if new_only:
        known = provenance.daily_hashes(connection, scope)
        wanted = {on for on, text in days.items() if _is_new(text, known.get(daily_path(on), {}), used.get(on.isoformat(), ()))}
    rows = {on: provenance.lines_of(connection, scope, daily_path(on)) for on in wanted}
    return provenance.lines_of(connection, scope, CURATED), rows, used


def _is_new(text: str, known: Mapping[str, bool], used: Collection[str]) -> bool:
    """Whether a day has a line that no dream has taken in: a program's, or a person's."""
    return any(not known.get(entry.hash, entry.hash in used) for entry in entries(text))


def _deleted(live: str, known: dict[str, LineRow], now: datetime) -> list[LineRow]:
    """Program's lines that are in the file no more: a person deleted or reworded them."""
    there = {entry.hash for entry in entries(live)}
    return [row for row in known.values() if row.hash not in there and (row.created_at or now) <= now - SETTLES]


def _bar(connection: sa.Connection, *, scope: str, deleted: list[LineRow], now: datetime) -> None:
    """They may not come back from the same evidence (WD-90)."""
    provenance.bar(connection, scope, [barred(row, "deleted") for row in deleted], now)
    provenance.drop_lines(connection, scope, CURATED, [row.hash for row in deleted])


def barred(row: LineRow, reason: str) -> Bar:
    """What keeps a line from coming back. Its messages are barred only where no daily line stands between: one message may say several things."""
    return Bar(reason=reason, hash=row.hash, evidence=row.evidence, sources=() if row.evidence else row.sources)

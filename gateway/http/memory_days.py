"""Daily notes for the page: the days of a month, and one day with its sections and where each line is from (WD-4, WD-67)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aiohttp import web

from gateway.file_view import Block, LineMark, blocks, marks
from gateway.http.base import HttpFault, answer, not_found, require_person
from gateway.http.memory_files import refusal
from gateway.http.memory_scope import MemoryScopes, day_in
from memory import provenance
from memory.database import Database
from memory.file_errors import FileRefused, FileUnreadable
from memory.layout import Role, daily_path, day_of, diary_path
from memory.lines import entries
from memory.markdown_lines import has_content
from memory.provenance import LineRow
from memory.scopes import Scope
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads

_MONTH = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])")
_TITLE_LEVEL = 1  # `# Daily Memory: …` says what the page says already
_SECTION_LEVEL = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRow:
    """A day with a daily file or a diary. `lines` is null for a file that cannot be read (WD-23)."""

    date: date
    lines: int | None
    daily: bool
    diary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DayLine:
    """One line of a day as it is shown. `used`: a dream has taken it in (WD-85)."""

    id: str
    html: str
    origin: str
    author: str
    created_at: datetime | None
    used: bool


@dataclass(slots=True, kw_only=True)
class DayGroup:
    """What stands under one heading of a section: a time and the conversation's name, or nothing."""

    title: str = ""
    lines: list[DayLine] = field(default_factory=list[DayLine])


@dataclass(slots=True, kw_only=True)
class DaySection:
    title: str = ""
    groups: list[DayGroup] = field(default_factory=list[DayGroup])


class MemoryDayRoutes:
    def __init__(self, *, scopes: MemoryScopes, db: Database, files: WorkspaceThreads, clock: Callable[[], datetime]) -> None:
        self._scopes = scopes
        self._db = db
        self._files = files
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/api/memory/days", self.month), web.get("/api/memory/days/{date:[^/]+}", self.day)]

    async def month(self, request: web.Request) -> web.Response:
        """The days of `month`, by default the asker's present one; `months` names every month that has any."""
        scope = await self._scopes.of(request)
        wanted = request.query.get("month") or self._today(require_person(request).timezone).isoformat()[:7]
        if not _MONTH.fullmatch(wanted):
            raise HttpFault(400, "bad_field", "error_bad_field", param="month", field="month", reason="YYYY-MM")
        months, days = await self._files.read(partial(_days, scope=scope, month=wanted))
        return answer({"scope": str(scope), "month": wanted, "months": months, "days": days})

    async def day(self, request: web.Request) -> web.Response:
        scope, wanted = await self._scopes.of(request), day_in(request.match_info["date"])
        path = daily_path(wanted)
        try:
            found, diary = await self._files.read(lambda ws: (ws.read(scope, path), ws.stamp(scope, diary_path(wanted)) is not None))
        except (FileRefused, FileUnreadable) as error:
            raise refusal(error) from error
        if found is None and not diary:
            raise not_found()
        text = found.content if found else ""
        rows = await self._db.read(partial(provenance.lines_of, scope=str(scope), path=path))
        return answer(
            {
                "date": wanted,
                "path": path,
                "hash": found.hash if found else None,
                "diary": diary,
                "sections": await asyncio.to_thread(sections, text, rows),  # seconds, for a large file
            }
        )

    def _today(self, zone: str) -> date:
        now = self._clock()
        try:
            return now.astimezone(ZoneInfo(zone)).date() if zone else now.date()
        except (ZoneInfoNotFoundError, ValueError):
            return now.date()


def sections(text: str, rows: Mapping[str, LineRow]) -> list[DaySection]:
    """The lines of a daily file under their section and, within it, under the heading of their conversation. Hints and empty sections are left out.
    """
    found = [DaySection(groups=[DayGroup()])]
    by_first = {mark.first: mark for mark in marks(text, rows)}
    used = {entry.first for entry in entries(text) if (row := rows.get(entry.hash)) is not None and row.used_by}
    for block in blocks(text):
        if block.kind == "heading" and block.level == _SECTION_LEVEL:
            found.append(DaySection(title=block.text, groups=[DayGroup()]))
        elif block.kind == "heading" and block.level > _TITLE_LEVEL:
            found[-1].groups.append(DayGroup(title=block.text))
        elif block.kind in ("line", "text"):
            found[-1].groups[-1].lines.append(_line(block, by_first[block.first], block.first in used))
    for section in found:
        section.groups = [group for group in section.groups if group.lines]
    return [section for section in found if section.groups]


def _line(block: Block, mark: LineMark, used: bool) -> DayLine:
    return DayLine(id=mark.id, html=block.html, origin=mark.origin, author=mark.author, created_at=mark.created_at, used=used)


def _days(workspace: Workspace, *, scope: Scope, month: str) -> tuple[list[str], list[DayRow]]:
    dated = [(day, file) for file in workspace.files(scope) if file.role in (Role.DAILY, Role.DIARY) and (day := day_of(file.path))]
    months = sorted({day.isoformat()[:7] for day, _ in dated})
    here = {day for day, _ in dated if day.isoformat().startswith(month)}
    daily = {day for day, file in dated if file.role is Role.DAILY}
    diaries = {day for day, file in dated if file.role is Role.DIARY}
    return months, [
        DayRow(date=day, lines=_lines(workspace, scope, day) if day in daily else 0, daily=day in daily, diary=day in diaries) for day in sorted(here)
    ]


def _lines(workspace: Workspace, scope: Scope, day: date) -> int | None:
    """How many lines a daily file holds; headings alone are none (WD-2)."""
    try:
        found = workspace.read(scope, daily_path(day))
    except FileUnreadable:
        return None
    return len(entries(found.content)) if found and has_content(found.content) else 0

"""`/memory export`: one archive of a scope, its files as they are and its rows as JSON lines; a job, for it may be large.

The archive lies among the person's uploads under a random name. No message holds it, so housekeeping takes it away after a day.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from gateway import held
from gateway.attachments import Attachments
from gateway.jobs.handling import JobContext, JobResult
from gateway.jobs.table import Job
from gateway.people import find_by_scope
from gateway.zones import zone_of
from memory.database import Database
from memory.file_errors import FileUnreadable
from memory.file_schema import coverage, dreams, file_changes, file_lines, line_bars, proposals, scope_settings
from memory.saved import moves, transfer
from memory.saved.lineages import lineages, names_of
from memory.schedule import local_date
from memory.scopes import Kind, Scope, parse_scope
from memory.texts import FileInfo
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads

KIND = "memory-export"
_TABLES = (file_lines, file_changes, line_bars, coverage, dreams, proposals, scope_settings)


def job(scope: Scope, person_id: str, key: str, *, language: str = "en") -> Job:
    """An archive of `scope` for this person. `key`: of the command that asked."""
    return Job(kind=KIND, key=key, scope=str(scope), payload={"person": person_id, "language": language})


class MemoryExport:
    """The handler. Its output: `file`, `name` and `size` of the archive, `files` in it, and `left_out` paths that cannot be read."""

    def __init__(
        self,
        *,
        db: Database,
        files: WorkspaceThreads,
        attachments: Attachments,
        timezone: Callable[[], str],
        clock: Callable[[], datetime],
    ) -> None:
        self._db = db
        self._files = files
        self._attachments = attachments
        self._timezone = timezone
        self._clock = clock

    async def run(self, job: Job, context: JobContext) -> JobResult:
        scope, now = parse_scope(job.scope), self._clock()
        rows = await self._db.read(partial(rows_of, scope=str(scope)))
        listed = await self._files.read(lambda workspace: workspace.files(scope))
        more = await self._db.read(partial(beside_files, scope=scope, files=listed, language=str(job.payload.get("language", "en")), now=now))
        data, files, left_out = await self._files.read(partial(archive, scope=scope, rows=rows, more=more))
        day = await self._db.read(lambda connection: local_date(now, zone_of(connection, job.scope, self._timezone())))
        name = f"memory-{day}.zip"

        async def keep() -> dict[str, Any]:
            stored = await self._attachments.keep(data, name=name, person_id=str(job.payload["person"]), now=now)
            return {"file": stored.id, "name": name, "size": len(data), "files": files, "left_out": left_out}

        return JobResult(output=await context.paid("archive", "", keep))  # a repeated run gives the first one's


def rows_of(connection: sa.Connection, scope: str) -> dict[str, list[dict[str, Any]]]:
    """Every row about the files of a scope, by table."""
    found: dict[str, list[dict[str, Any]]] = {}
    for table in _TABLES:
        rows = connection.execute(sa.select(table).where(table.c.scope == scope).order_by(*table.primary_key.columns))
        found[table.name] = [dict(row._mapping) for row in rows]  # pyright: ignore[reportPrivateUsage]  # SQLAlchemy's public name
    return found


def beside_files(connection: sa.Connection, *, scope: Scope, files: Sequence[FileInfo], language: str, now: datetime) -> dict[str, str]:
    """Text by name of what is held beside the files: saved memories; of a person's own scope everything about them, and their chats (WO-22)."""
    if scope.kind is Kind.SPACE:
        return {"memories.json": transfer.export(connection, moves.lists_of_spaces(connection, [scope.id]), now)}
    person = find_by_scope(connection, str(scope))
    if person is None:
        return {}
    known = lineages(connection)
    names = names_of(connection, known.values())
    characters = {lineage: (config_id, names.get(lineage) or config_id) for config_id, lineage in known.items()}
    shown = [{"path": file.path, "size": file.size, "changed_at": file.changed_at} for file in files]
    about = held.held(connection, person, characters, shown)
    return {
        "memories.json": transfer.export(connection, moves.lists_of_people(connection, [person.id]), now),
        "about-me.json": json.dumps(about, ensure_ascii=False, indent=1, default=_plain),
        "about-me.md": held.markdown(about, language),
        "chats.jsonl": "".join(f"{json.dumps(each, ensure_ascii=False, default=_plain)}\n" for each in held.said(connection, person.id)),
    }


def archive(workspace: Workspace, scope: Scope, rows: Mapping[str, list[dict[str, Any]]], more: Mapping[str, str]) -> tuple[bytes, int, list[str]]:
    """The bytes of the zip file, how many files of the scope are in it, and those that could not be read. `more`: further texts by their names."""
    held, left_out = io.BytesIO(), list[str]()
    count = 0
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in workspace.files(scope):
            try:
                text = workspace.read(scope, file.path)
            except FileUnreadable:
                left_out.append(file.path)
                continue
            if text is not None:
                packed.writestr(f"files/{file.path}", text.content.encode())
                count += 1
        for name, words in more.items():
            packed.writestr(name, words.encode())
        for name, lines in rows.items():
            packed.writestr(f"rows/{name}.jsonl", "".join(f"{json.dumps(line, ensure_ascii=False, default=_plain)}\n" for line in lines))
    return held.getvalue(), count, left_out


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)

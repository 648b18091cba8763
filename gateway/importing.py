"""The command `import cowagent`: a CowAgent folder copied into the owner's scope (WD-26 to WD-29). `memory.cowagent_import` decides what is written.

Rows of the new lines are stored before their files, and the record of the change after each: a kill in between leaves rows that say nothing, or a
file that the next import knows by its content (WD-5).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from gateway.admin import AdminFault
from gateway.adoption import OFFER
from gateway.cowagent_config import TheirConfig, read_config
from gateway.import_report import Outcome, report
from gateway.zone_names import otherwise
from memory import told
from memory.cowagent_import import CAUSE, Occupied, Plan, Step, plan, rows_of, wanted
from memory.cowagent_source import Skipped, Source, SourceRefused, read_source
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.file_errors import FileRefused, FileUnreadable, PathRefused
from memory.file_schema import file_changes
from memory.provenance import Change, bars_of, put_lines, record_change
from memory.schedule import local_date
from memory.scopes import ROOT, Scope
from memory.texts import Author, Conflict, Written
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads

COMMAND = "import cowagent"
CONFIG_NAME = "config.json"
CONFIG_MAX_BYTES = 1_000_000

_IMPORTED = sa.select(file_changes.c.path, file_changes.c.cause_id).where(file_changes.c.scope == str(ROOT), file_changes.c.cause == CAUSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What was asked for. `their_config`: their configuration file; None looks for one in the folder."""

    folder: Path
    their_config: Path | None = None
    dry_run: bool = False

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Order:
        """From the arguments of the command line; AdminFault for a path that is not absolute."""
        folder, config = (Path(str(arguments.get(name) or "")) for name in ("path", "their_config"))
        given = bool(arguments.get("their_config"))
        if not folder.is_absolute() or (given and not config.is_absolute()):
            raise AdminFault("give absolute paths: the gateway may run in another folder")
        return cls(folder=folder, their_config=config if given else None, dry_run=bool(arguments.get("dry_run")))


class Importing:
    """`on_written` is told of every file that changed, on the event loop: the index listens. `timezone`: an IANA name, empty for the system's."""

    def __init__(
        self,
        *,
        db: Database,
        files: WorkspaceThreads,
        clock: Callable[[], datetime],
        workspace: Path,
        timezone: Callable[[], str],
        on_written: Callable[[Scope, str], None] = lambda _scope, _path: None,
    ) -> None:
        self._db = db
        self._files = files
        self._clock = clock
        self._workspace = workspace
        self._timezone = timezone
        self._on_written = on_written

    async def run(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Copy, or say what would be copied. Returns the report for a person and how many files were written. Raises AdminFault."""
        order = Order.of(arguments)
        try:
            source, config = await asyncio.to_thread(_read, order, self._workspace, self._clock)
            known, bars = await self._db.read(_remembered)
            here = await self._files.read(partial(_here, source=source))
            today = local_date(self._clock(), otherwise(self._timezone()))
            decided = plan(source, here, known, bars, today)
            failed = () if order.dry_run else await self._write(decided)
        except SourceRefused as error:
            raise AdminFault(str(error)) from error
        except StoreUnavailable as error:
            raise AdminFault(f"{error}. What was copied stays; run the import again") from error
        outcome = Outcome(source=order.folder, workspace=self._workspace, plan=decided, dry_run=order.dry_run, failed=failed, config=config)
        return {"text": report(outcome), "files": 0 if order.dry_run else len(outcome.written)}

    async def _write(self, decided: Plan) -> tuple[Skipped, ...]:
        """Carry the plan out; what could not be written, each with the reason. StoreUnavailable when the disk or the database is full or gone."""
        now = self._clock()
        await self._db.write(partial(_book, steps=decided.steps, now=now))
        failed: list[Skipped] = []
        for step in decided.steps:
            try:
                done = await self._files.write(ROOT, partial(_put, step=step))
            except FileRefused as error:
                failed.append(Skipped(path=step.name, reason=str(error)))
                continue
            if not isinstance(done, Written):
                failed.append(Skipped(path=step.name, reason=f"{step.path} was changed at this moment: run the import again"))
                continue
            await self._db.write(partial(_record, change=_change(step, done), now=now))
            self._on_written(ROOT, step.path)
        return tuple(failed)


def preview(arguments: Mapping[str, Any], workspace: Path, timezone: str, clock: Callable[[], datetime]) -> dict[str, Any]:
    """A dry run where Yumegate has never been started: nothing is there yet, and nothing is made. Blocks. Raises AdminFault."""
    order = replace(Order.of(arguments), dry_run=True)
    try:
        source, config = _read(order, workspace, clock)
        here = _here(Workspace(workspace, workspace / ".yumegate", clock), source=source)
    except (SourceRefused, StoreUnavailable) as error:
        raise AdminFault(str(error)) from error
    decided = plan(source, here, (), (), local_date(clock(), otherwise(timezone)))
    return {"text": report(Outcome(source=order.folder, workspace=workspace, plan=decided, dry_run=True, config=config)), "files": 0}


def _read(order: Order, workspace: Path, clock: Callable[[], datetime]) -> tuple[Source, TheirConfig | None]:
    source, target = Path(os.path.realpath(order.folder)), Path(os.path.realpath(workspace))
    if source == target:
        raise SourceRefused(f"{order.folder} is the workspace itself and is used in place: there is nothing to import")
    if source in target.parents or target in source.parents:
        raise SourceRefused(f"{order.folder} and the workspace {workspace} lie one in the other: set another agent_workspace")
    return read_source(order.folder, clock), _their_config(order)


def _their_config(order: Order) -> TheirConfig | None:
    """None when there is no such file and nobody named one."""
    path = order.their_config or order.folder / CONFIG_NAME
    try:
        if path.stat().st_size > CONFIG_MAX_BYTES:
            return TheirConfig(fault=f"{path} is too large")
        return read_config(path.read_bytes())
    except FileNotFoundError:
        return TheirConfig(fault=f"there is no {path}") if order.their_config else None
    except OSError as error:
        return TheirConfig(fault=f"{path} cannot be read ({error.strerror})")


def _here(workspace: Workspace, *, source: Source) -> dict[str, Occupied]:
    """Our files that the plan needs to know."""
    found: dict[str, Occupied] = {}
    for path in wanted(source, [info.path for info in workspace.files(ROOT)]):
        try:
            text = workspace.read(ROOT, path)
        except (FileUnreadable, PathRefused):
            found[path] = Occupied(content=None)
        else:
            if text is not None:
                found[path] = Occupied.by(text)
    return found


def _put(workspace: Workspace, *, step: Step) -> Written | Conflict:
    """As a person's own edit: it is the owner's order, and a long line of theirs is kept. Secrets were left out by the plan."""
    return workspace.replace(ROOT, step.path, step.text, based_on=step.based_on, by=Author.PERSON)


def _remembered(connection: sa.Connection) -> tuple[frozenset[tuple[str, str]], frozenset[str]]:
    """Path and source hash of everything imported before, and hashes of lines that may not come back."""
    known = frozenset((path, digest) for path, digest in connection.execute(_IMPORTED))
    return known, frozenset(bar.hash for bar in bars_of(connection, str(ROOT)))


def _book(connection: sa.Connection, *, steps: tuple[Step, ...], now: datetime) -> None:
    told.settle(connection, str(ROOT), OFFER, now)  # the owner has chosen
    for step in steps:
        put_lines(connection, str(ROOT), step.path, rows_of(step), now)


def _record(connection: sa.Connection, *, change: Change, now: datetime) -> None:
    record_change(connection, change, now)


def _change(step: Step, done: Written) -> Change:
    """Without the words: a second import knows the file by it, and nothing undoes an import by lines."""
    after = done.text.hash if done.text else ""
    return Change(
        scope=str(ROOT), path=step.path, cause=CAUSE, cause_id=step.source_hash, before_hash=done.before or "", after_hash=after,
        revision=done.revision or "",
    )  # fmt: skip

"""Every change that a program makes in a memory file, daily appends and dreams apart: compare and swap, provenance, a record to undo it by.

The rows of new lines are stored before the file: a kill in between leaves rows without a line, which say nothing, never a line of ours that would
count as a human's. The record of the change follows; should it be missing, the revision of the old text is still there (WD-17, WD-88, WD-89).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import sqlalchemy as sa

from memory import provenance
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.lines import Entry, entries
from memory.provenance import Change, ChangedLine, LineRow
from memory.scopes import Scope
from memory.texts import Author, Conflict, Written
from memory.workspace_threads import WorkspaceThreads

TRIES = 4  # somebody may edit the file at the same moment, hardly four times in a row

Compose = Callable[[str], str]
RowOf = Callable[[Entry], LineRow | None]
OnWritten = Callable[[Scope, str], None]


class FileWriter:
    """`on_written` is told of every file that changed, on the event loop: the index listens."""

    def __init__(self, *, db: Database, files: WorkspaceThreads, clock: Callable[[], datetime], on_written: OnWritten) -> None:
        self._db = db
        self._files = files
        self._clock = clock
        self.on_written = on_written

    async def change(
        self, scope: Scope, path: str, compose: Compose, *, cause: str, cause_id: str = "", row_of: RowOf = lambda _entry: None
    ) -> Change | None:
        """Make the file say `compose(its text)`; the text is empty for a file that is not there. None when nothing changes.

        `compose` is called again on the new text when somebody changed the file meanwhile (WD-17), and may raise to give up. `row_of` gives the
        provenance of each entry that was not there before; None makes it a human's. Raises what `Workspace.replace` raises.
        """
        for _ in range(TRIES):
            old = await self._files.read(lambda workspace: workspace.read(scope, path))
            before = old.content if old else ""
            after = compose(before)
            if after == before:
                return None
            had, has = entries(before), entries(after)
            gone, new = _less(had, has), _less(has, had)
            rows = [row for row in map(row_of, new) if row is not None]
            now = self._clock()
            known = await self._db.write(lambda connection, rows=rows, now=now: self._prepare(connection, scope, path, rows, now))
            based_on = old.hash if old else None
            done = await self._files.write(
                scope, lambda workspace, after=after, based_on=based_on: workspace.replace(scope, path, after, based_on=based_on)
            )
            if isinstance(done, Written):
                break
        else:
            raise StoreUnavailable(f"{path} is being changed by another program all the time: try again")
        self.on_written(scope, path)
        removed = tuple(ChangedLine(text=entry.text, section=entry.section, row=known.get(entry.hash)) for entry in gone)
        added = tuple(ChangedLine(text=entry.text, section=entry.section, row=row_of(entry)) for entry in new)
        change = Change(
            scope=str(scope),
            path=path,
            cause=cause,
            cause_id=cause_id,
            before_hash=done.before or "",
            after_hash=done.text.hash if done.text else "",
            revision=done.revision or "",
            removed=removed,
            added=added,
            created_at=now,
        )
        await self._db.write(lambda connection: self._record(connection, change, now))
        return change

    async def save(self, scope: Scope, path: str, text: str, *, based_on: str | None) -> Written | Conflict:
        """A person's own edit, byte for byte as given; it is theirs, so no rows and no record (WD-5). Raises as `Workspace.replace`."""
        done = await self._files.write(scope, lambda workspace: workspace.replace(scope, path, text, based_on=based_on, by=Author.PERSON))
        if isinstance(done, Written) and done.changed:
            self.on_written(scope, path)
        return done

    def _prepare(self, connection: sa.Connection, scope: Scope, path: str, rows: list[LineRow], now: datetime) -> dict[str, LineRow]:
        known = provenance.lines_of(connection, str(scope), path)
        provenance.put_lines(connection, str(scope), path, rows, now)
        return known

    def _record(self, connection: sa.Connection, change: Change, now: datetime) -> None:
        provenance.record_change(connection, change, now)
        gone = [line.row.hash for line in change.removed if line.row is not None]
        provenance.drop_lines(connection, change.scope, change.path, gone)


def _less(these: tuple[Entry, ...], those: tuple[Entry, ...]) -> list[Entry]:
    known = {entry.hash for entry in those}
    return [entry for entry in these if entry.hash not in known]

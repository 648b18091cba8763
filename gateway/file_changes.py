"""Changes of memory files that wait for a person's yes (WD-105): kept, shown, made or dropped.

    ChangeError
    ├── NoSuchChange    nothing of that id waits in this scope
    └── ChangeStale     the file was changed since, and the lines that were shown do not fit it any more; nothing was written
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial

from gateway.file_writer import Compose, FileWriter
from memory import file_edits, proposal_store, proposed_changes
from memory.database import Database
from memory.file_edits import EditRefused
from memory.file_hash import file_hash
from memory.layout import place
from memory.line_diff import difference
from memory.lines import Entry
from memory.markdown_lines import body, lines_of
from memory.proposed_changes import Passage, ProposedChange
from memory.provenance import Change, LineRow, Origin
from memory.scopes import Scope
from memory.workspace_threads import WorkspaceThreads


class ChangeError(Exception):
    pass


class NoSuchChange(ChangeError):
    pass


class ChangeStale(ChangeError):
    pass


class FileChanges:
    """The service behind `/memory apply <id>` and `/memory discard <id>`."""

    def __init__(self, *, db: Database, files: WorkspaceThreads, writer: FileWriter, clock: Callable[[], datetime]) -> None:
        self._db = db
        self._files = files
        self._writer = writer
        self._clock = clock

    async def propose(self, scope: Scope, path: str, compose: Compose, passage: Passage | None, about: ProposedChange) -> ProposedChange | None:
        """Keep what `compose` makes of the file as a proposal, and write nothing; None when it changes nothing. `compose` may raise to give up.

        `about`: run, conversation, person and sources of the turn; its other fields are filled in here.
        """
        old = await self._files.read(lambda workspace: workspace.read(scope, path))
        before = old.content if old else ""
        after = compose(before)
        if after == before:
            return None
        lines = difference(before, after, context=0)
        change = replace(
            about, scope=str(scope), path=path, based_on=old.hash if old else "", text=after, passage=passage,
            removed=tuple(line.text for line in lines if line.kind == "removed" and line.text.strip()),
            added=tuple(line.text for line in lines if line.kind == "added" and line.text.strip()),
        )  # fmt: skip
        kept = await self._db.write(partial(proposed_changes.propose, change=change, now=self._clock()))
        return replace(change, id=kept)

    async def waiting(self, scope: Scope) -> tuple[ProposedChange, ...]:
        """What waits for a yes in this scope, oldest first."""
        return await self._db.read(partial(proposed_changes.open_changes, scope=str(scope), now=self._clock()))

    async def accept(self, scope: Scope, change_id: str) -> ProposedChange:
        """Make a change that a person of this scope said yes to; the caller has checked that they may. A repeated call does nothing more.

        The file may be another by now: a passage is sought again, a whole text needs the file it was written for (WD-17). The lines are the
        person's then, who saw them and said yes. Raises NoSuchChange, ChangeStale and what the workspace raises.
        """
        change = await self._find(scope, change_id)
        await self._make(scope, change)
        await self._db.write(partial(proposal_store.decide, scope=str(scope), proposal_id=change_id, state="applied", now=self._clock()))
        return change

    async def discard(self, scope: Scope, change_id: str) -> ProposedChange:
        """Drop a change. Raises NoSuchChange."""
        change = await self._find(scope, change_id)
        await self._db.write(partial(proposal_store.decide, scope=str(scope), proposal_id=change_id, state="discarded", now=self._clock()))
        return change

    async def _find(self, scope: Scope, change_id: str) -> ProposedChange:
        found = await self._db.read(partial(proposed_changes.find, scope=str(scope), change_id=change_id, now=self._clock()))
        if found is None:
            raise NoSuchChange(change_id)
        return found

    async def _make(self, scope: Scope, change: ProposedChange) -> Change | None:
        def row_of(entry: Entry) -> LineRow:
            return LineRow(
                hash=entry.hash, origin=Origin.PERSON, author="tool", run_id=change.run_id, sources=change.sources, speakers=change.speakers
            )

        return await self._writer.change(scope, change.path, partial(_composed, scope, change), cause="accepted", cause_id=change.id, row_of=row_of)


def _composed(scope: Scope, change: ProposedChange, before: str) -> str:
    role = place(scope, change.path).role
    if (file_hash(before) if before else "") == change.based_on:
        return change.text
    there = {body(line) for line in lines_of(before)}
    if set(change.added) <= there and not set(change.removed) & there:
        return before  # written already, by a call that was killed before it could say so
    if change.passage is None:
        raise ChangeStale(change.path)
    old, new = change.passage.old, change.passage.new
    try:
        after = file_edits.edited(before, old, new) if old else file_edits.with_line(before, change.path, role, new)
        file_edits.check(before, after, change.path, role)
    except EditRefused as error:
        raise ChangeStale(change.path) from error
    return after

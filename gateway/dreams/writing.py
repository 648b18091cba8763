"""The steps of a dream's write, each durable before the next, and how a cut one is taken up again (WD-82, WD-83).

    staged in the dream's row → live hash compared, old text kept, file replaced (the workspace does all three) → booked in one transaction
    → diary → row ended

Whoever repeats a step does it once: the file is swapped by its hash, booking asks whether the row is still `applying`, the diary whether it holds the
section. Why the staged text lies in the row and not in a file: docs/decisions/0008.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import date, datetime
from typing import Protocol, TypeVar

import sqlalchemy as sa

from gateway.dreams.errors import DreamFailed, ForgottenMeanwhile
from memory import dream_store, provenance
from memory.database import Database
from memory.diary import diary_title
from memory.dream_store import Booking, Dream
from memory.file_errors import FileRefused, FileUnreadable
from memory.layout import CURATED, diary_path
from memory.lines import entries
from memory.revisions import HASH_LENGTH
from memory.scopes import Scope, parse_scope
from memory.texts import Conflict
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads

T = TypeVar("T")

log = logging.getLogger(__name__)


class Commit(Protocol):
    """`Database.write`, or a job's fenced one."""

    def __call__(self, work: Callable[[sa.Connection], T], /) -> Awaitable[T]: ...


class DreamWriting:
    """`on_written` is told of each file that changed."""

    def __init__(self, *, db: Database, files: WorkspaceThreads, clock: Callable[[], datetime], on_written: Callable[[Scope, str], None]) -> None:
        self._db = db
        self._files = files
        self._clock = clock
        self._on_written = on_written

    async def write(self, dream: Dream, commit: Commit, forgettings: int) -> bool:
        """Carry out a new dream whose text is staged. False when somebody changed MEMORY.md meanwhile: nothing was written.

        `forgettings`: counted before anything was read for it. ForgottenMeanwhile; DreamFailed.
        """
        now = self._clock()
        await unless_forgotten(commit, dream.scope, forgettings)(lambda connection: dream_store.put(connection, dream, now))
        return await self._apply(dream, commit)

    async def recover(self, scope: str | None = None, commit: Commit | None = None) -> list[Dream]:
        """Bring dreams that were cut short to their end, of one scope or of all; those that came to it. One that was overtaken is thrown away."""
        commit = commit or self._db.write
        ended: list[Dream] = []
        for dream in await self._db.read(lambda connection: dream_store.unfinished(connection, scope)):
            if dream.state == "done":
                self._on_written(parse_scope(dream.scope), CURATED)
                await self._tell(dream, commit)
                ended.append(dream)
            elif await self._apply(dream, commit):
                ended.append(dream)
        return ended

    async def _apply(self, dream: Dream, commit: Commit) -> bool:
        scope = parse_scope(dream.scope)
        try:
            revision = await self._files.write(scope, lambda workspace: _swap(workspace, scope, dream))
        except (FileRefused, FileUnreadable) as error:
            await commit(lambda connection: dream_store.throw_away(connection, dream.id))
            raise DreamFailed(f"MEMORY.md cannot take this dream: {error}") from error
        if revision is None:
            await commit(lambda connection: dream_store.throw_away(connection, dream.id))
            return False
        now = self._clock()
        await commit(lambda connection: dream_store.book(connection, dream, revision, now))
        self._on_written(scope, CURATED)
        await self._tell(dream, commit)
        return True

    async def _tell(self, dream: Dream, commit: Commit) -> None:
        scope, day = parse_scope(dream.scope), date.fromisoformat(dream.local_date)
        if dream.diary:
            title = diary_title(dream.local_date)
            try:
                await self._files.write(scope, lambda workspace: workspace.append(scope, diary_path(day), dream.diary, title=title))
            except (FileRefused, FileUnreadable) as error:  # the memory stands; a diary that cannot be written must not hold it up for ever
                log.warning("the diary of %s cannot be written: %s", dream.local_date, error)
        now = self._clock()
        await commit(lambda connection: dream_store.finish(connection, dream.id, now))


def unless_forgotten(commit: Commit, scope: str, forgettings: int) -> Commit:
    """`commit`, but ForgottenMeanwhile and nothing stored when something was forgotten since `forgettings` were counted."""

    async def guarded(work: Callable[[sa.Connection], T], /) -> T:
        def checked(connection: sa.Connection) -> T:
            if provenance.forgettings(connection, scope) != forgettings:
                raise ForgottenMeanwhile(scope)
            return work(connection)

        return await commit(checked)

    return guarded


def _swap(workspace: Workspace, scope: Scope, dream: Dream) -> str | None:
    """Put the staged text in its place; the id of the old text's revision, empty for none, None when the file is neither old nor new.

    A file that says all that the dream decided is a new one, also when a person has edited other lines of it since the crash.
    """
    live = workspace.read(scope, CURATED)
    if live is not None and (live.hash == dream.new_hash or (live.hash != dream.old_hash and _says(live.content, dream.booking))):
        kept = workspace.revisions(scope, CURATED)
        return next((each.id for each in kept if each.hash == dream.old_hash[:HASH_LENGTH]), "")
    done = workspace.replace(scope, CURATED, dream.staged or "", based_on=dream.old_hash or None)
    return None if isinstance(done, Conflict) else done.revision or ""


def _says(text: str, booking: Booking) -> bool:
    there = {entry.hash for entry in entries(text)}
    added = {line.row.hash for line in booking.added if line.row}
    removed = {line.row.hash for line in booking.removed if line.row} - added
    return bool(added) and added <= there and not removed & there

"""The page's desk for dreams: looks into the rows, and passes wishes on to those who dream, undo and decide (WD-63, WD-64, WD-81, WD-89, WD-105)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from gateway.config import Config
from gateway.dreams import look as dream_look
from gateway.dreams import runs as dream_runs
from gateway.dreams.errors import DreamFailed
from gateway.dreams.night import dreams_by_itself
from gateway.dreams.wishes import KINDS, Dreaming, ProposalGone, Requested
from gateway.file_changes import ChangeStale, FileChanges, NoSuchChange
from gateway.http.dream_views import DreamList, DreamStart, LastRun, NextUndo, ProposalView, Refused, Reversal
from gateway.person import Person
from gateway.undoing import CAUSES, LOOKED_AT, Undoing
from memory import dream_store, proposal_store, provenance
from memory.database import Database
from memory.file_errors import FileRefused, FileUnreadable
from memory.layout import CURATED
from memory.line_diff import DiffLine
from memory.lines import entries
from memory.proposal_store import Proposal
from memory.scopes import Scope
from memory.workspace_threads import WorkspaceThreads

_REFUSED = {"per_day": "error_dreams_per_day", "no_model": "dream_no_model"}
SHOWN = (*KINDS, "change")  # proposals; forgetting has two steps of its own (WD-92)


class Desk:
    """A `gateway.http.dream_views.DreamDesk`. `wake_jobs` is called after a dream was asked for."""

    def __init__(
        self,
        *,
        db: Database,
        files: WorkspaceThreads,
        clock: Callable[[], datetime],
        dreaming: Dreaming,
        undoing: Undoing,
        changes: FileChanges,
        config: Callable[[], Config],
        wake_jobs: Callable[[], None],
    ) -> None:
        self._db = db
        self._files = files
        self._clock = clock
        self._dreaming = dreaming
        self._undoing = undoing
        self._changes = changes
        self._config = config
        self._wake_jobs = wake_jobs

    async def look(self, scope: Scope, *, before: str, limit: int) -> DreamList:
        now = self._clock()
        found, waiting = await self._db.read(partial(_look, scope=str(scope), before=before, limit=limit, now=now))
        words: dict[str, str] = {}
        if any(each.kind == "candidate" for each in waiting):
            text = await self._curated(scope)
            words = {entry.hash: entry.text for entry in entries(text)}
        proposals = [dream_look.proposal_view(each, words, await self._difference(scope, each)) for each in waiting]
        config = self._config()
        at_night = config.summary.enabled and dreams_by_itself(config, str(scope))
        return replace(found, proposals=_worth_asking(proposals), at_night=at_night)

    async def start(self, scope: Scope, person: Person, *, days: int, force: bool) -> DreamStart:
        now = self._clock()

        def ask(connection: sa.Connection) -> Requested:
            return self._dreaming.request(connection, scope, days=days, force=force, person=person.id, now=now)

        asked = await self._db.write(ask)
        if asked.refused:
            raise Refused(asked.refused, _REFUSED[asked.refused])
        if asked.running_since is None:
            self._wake_jobs()
        return DreamStart(days=asked.days, clamped=asked.clamped, running_since=asked.running_since)

    async def undo(self, scope: Scope, person: Person) -> Reversal | None:
        try:
            done = await self._undoing.undo(scope)
        except FileUnreadable as error:
            raise Refused("unreadable", "error_file_unreadable") from error
        except FileRefused as error:
            raise Refused("refused", "error_undo_refused") from error
        if done is None:
            return None
        return Reversal(path=done.path, whole=done.whole, removed=done.taken_back, restored=done.restored, forgotten=done.forgotten)

    async def apply(self, scope: Scope, person: Person, proposal_id: str) -> Sequence[DiffLine] | None:
        found = await self._db.read(lambda connection: proposal_store.find(connection, str(scope), proposal_id))
        if found is None or found.kind not in SHOWN:
            return None
        try:
            if found.kind == "change":
                change = await self._changes.accept(scope, proposal_id)
                return dream_look.lines(change.removed, change.added)
            done = await self._dreaming.apply(scope, proposal_id, person.id)
            return dream_look.lines(done.dropped, (*done.added, *done.changed))
        except NoSuchChange:
            return None
        except (ProposalGone, ChangeStale) as error:
            raise Refused("gone", "error_proposal_gone") from error
        except (DreamFailed, FileRefused, FileUnreadable) as error:
            raise Refused("refused", "error_proposal_refused") from error

    async def discard(self, scope: Scope, person: Person, proposal_id: str) -> bool:
        try:
            await self._changes.discard(scope, proposal_id)
        except NoSuchChange:
            return await self._db.write(lambda connection: self._dreaming.discard(connection, scope, proposal_id))
        return True

    async def _difference(self, scope: Scope, proposal: Proposal) -> tuple[DiffLine, ...]:
        """What a refused dream would change in the file as it is now; nothing when it fits no more."""
        if proposal.kind != "dream":
            return ()
        try:
            return await self._dreaming.show(scope, proposal.id)
        except (ProposalGone, FileUnreadable):
            return ()

    async def _curated(self, scope: Scope) -> str:
        try:
            found = await self._files.read(lambda workspace: workspace.read(scope, CURATED))
        except FileUnreadable:
            return ""
        return found.content if found else ""


def _look(connection: sa.Connection, *, scope: str, before: str, limit: int, now: datetime) -> tuple[DreamList, list[Proposal]]:
    every = dream_store.all_of(connection, scope)
    ids = [dream.id for dream in every]
    start = ids.index(before) + 1 if before in ids else 0
    change = next(
        (each for each in provenance.changes_of(connection, scope, LOOKED_AT) if each.undone_at is None and each.cause in CAUSES), None
    )
    undo = None
    if change is not None:
        undo = NextUndo(cause=change.cause, path=change.path, lines=len(change.added) + len(change.removed), at=change.created_at or now)
    running, ended = dream_runs.at_work(connection, scope), dream_runs.last_ended(connection, scope)
    views = DreamList(
        dreams=tuple(map(dream_look.dream_view, every[start : start + limit])),
        more=len(every) > start + limit,
        running_since=running.since if running else None,
        last=LastRun(at=ended.at, state=ended.state, skipped=ended.skipped) if ended else None,
        undo=undo,
    )
    return views, [each for each in proposal_store.open_proposals(connection, scope, now) if each.kind in SHOWN]


def _worth_asking(proposals: Sequence[ProposalView]) -> tuple[ProposalView, ...]:
    """A proposal that would change nothing any more is no question."""
    return tuple(each for each in proposals if each.difference)

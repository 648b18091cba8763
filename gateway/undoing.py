"""Taking back the last change of a memory by a dream or a tool (WD-89, WD-90)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from gateway.dreams.reading import barred
from gateway.file_writer import FileWriter
from memory import dream_store, provenance
from memory.database import Database
from memory.dream_text import NewLine, TextBroken, edit
from memory.file_errors import FileRefused
from memory.lines import entries, line_hash
from memory.provenance import Bar, Change, ChangedLine
from memory.scopes import Scope
from memory.texts import Conflict
from memory.workspace_threads import WorkspaceThreads

CAUSES = ("dream", "accepted", "tool")
LOOKED_AT = 500  # changes; older ones are beyond undoing


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """`whole`: the file is byte for byte what it was before; else only the lines of that change were reversed, for somebody changed the file since.
    `taken_back`: lines that are gone again; `restored`: lines that are back; `forgotten`: how many do not come back, for they were forgotten."""

    path: str
    cause: str
    changed_at: datetime | None
    whole: bool
    taken_back: tuple[str, ...]
    restored: tuple[str, ...]
    forgotten: int = 0


class Undoing:
    def __init__(self, *, db: Database, files: WorkspaceThreads, clock: Callable[[], datetime], writer: FileWriter) -> None:
        self._db = db
        self._files = files
        self._clock = clock
        self._writer = writer

    async def undo(self, scope: Scope) -> Undone | None:
        """Reverse the last change that is not undone yet; None when there is none. Called again it goes one further back.

        FileRefused when the lines cannot be put back, with nothing changed; StoreUnavailable; FileUnreadable.
        """
        change, bars = await self._db.read(lambda connection: _last(connection, str(scope)))
        if change is None:
            return None
        back = tuple(line for line in change.removed if not _forgotten(line, bars))
        exact = "" if not change.before_hash else await self._old_text(scope, change) if len(back) == len(change.removed) else None
        rows = {line.row.hash: line.row for line in back if line.row is not None}
        live = await self._files.read(lambda workspace: workspace.read(scope, change.path))
        whole = exact is not None and live is not None and live.hash == change.after_hash
        gone = _standing(change.added, live.content if live else "")
        if whole and not change.before_hash:
            await self._remove(scope, change)
        else:

            def compose(text: str) -> str:
                if exact is not None and whole and live is not None and text == live.content:
                    return exact
                return _reversed(text, change, back)

            await self._writer.change(
                scope, change.path, compose, cause="undo", cause_id=str(change.id), row_of=lambda entry: rows.get(entry.hash)
            )
        now = self._clock()
        await self._db.write(lambda connection: _settle(connection, change, now))
        return Undone(
            path=change.path,
            cause=change.cause,
            changed_at=change.created_at,
            whole=whole,
            taken_back=gone,
            restored=tuple(line.text for line in back),
            forgotten=len(change.removed) - len(back),
        )

    async def _old_text(self, scope: Scope, change: Change) -> str | None:
        return await self._files.read(lambda workspace: workspace.revision(scope, change.path, change.revision)) if change.revision else None

    async def _remove(self, scope: Scope, change: Change) -> None:
        """The file came by this change and nobody touched it since: it goes."""
        done = await self._files.write(scope, lambda workspace: workspace.remove(scope, change.path, based_on=change.after_hash))
        if isinstance(done, Conflict):
            raise FileRefused(f"{change.path} was changed at this very moment: try again")
        hashes = [line.row.hash for line in change.added if line.row is not None]
        await self._db.write(lambda connection: provenance.drop_lines(connection, str(scope), change.path, hashes))
        self._writer.on_written(scope, change.path)


def _last(connection: sa.Connection, scope: str) -> tuple[Change | None, tuple[Bar, ...]]:
    changes = provenance.changes_of(connection, scope, LOOKED_AT)
    found = next((change for change in changes if change.undone_at is None and change.cause in CAUSES), None)
    return found, provenance.bars_of(connection, scope)


def _reversed(text: str, change: Change, back: tuple[ChangedLine, ...]) -> str:
    """`text` without the lines of the change that still stand, and with those it took, each in the place of one that goes where there is one."""
    there = {entry.hash for entry in entries(text)}
    gone = [digest for line in change.added if (digest := line_hash(line.text)) in there]
    missing = [line for line in back if line_hash(line.text) not in there]
    places = list(gone)
    lines = [NewLine(text=line.text, section=line.section, replaces=(places.pop(0),) if places else ()) for line in missing]
    try:
        return edit(text, lines, gone)
    except TextBroken as error:
        raise FileRefused(f"{change.path} cannot be taken back line by line ({error}); its older texts are kept as revisions") from error


def _standing(added: tuple[ChangedLine, ...], text: str) -> tuple[str, ...]:
    there = {entry.hash for entry in entries(text)}
    return tuple(line.text for line in added if line_hash(line.text) in there)


def _forgotten(line: ChangedLine, bars: tuple[Bar, ...]) -> bool:
    """Forgetting is final: what it took does not come back by undoing (WD-92)."""
    final = [bar for bar in bars if bar.reason == "forgotten"]
    sources = {each for bar in final for each in bar.sources}
    said = line.row.sources if line.row else ()
    return line_hash(line.text) in {bar.hash for bar in final} or (bool(said) and sources.issuperset(said))


def _settle(connection: sa.Connection, change: Change, now: datetime) -> None:
    """What was undone is not promoted again from the same evidence (WD-90); its daily lines stay used."""
    provenance.bar(connection, change.scope, [barred(line.row, "undone") for line in change.added if line.row is not None], now)
    provenance.mark_undone(connection, change.id, now)
    if change.cause in ("dream", "accepted"):
        dream_store.mark_undone(connection, change.cause_id)

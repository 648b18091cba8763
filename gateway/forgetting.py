"""Forgetting in two steps: list what matches, then remove it everywhere, for good (WD-92, N33).

What may not come back is written down first, as hashes and ids without words; then the files, then everything else that holds the words. A kill in
between leaves the question open: the same yes does the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

import sqlalchemy as sa

from gateway.dreams.writing import DreamWriting
from gateway.forget_rows import clean_rows, found_rows
from gateway.language import guess, say
from memory import proposal_store, provenance
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.file_errors import FileUnreadable
from memory.forget_match import Held, Wanted, headings, redacted_diary, without_headings
from memory.layout import CURATED, ROLES, Role, day_of
from memory.lines import Entry, entries, without
from memory.provenance import Bar, LineRow
from memory.scopes import Scope
from memory.texts import Conflict
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads

KIND = "forget"
OPEN_FOR = timedelta(minutes=10)
TRIES = 4
_STORES = {Role.CURATED: "memory", Role.ABOUT: "about", Role.DAILY: "daily", Role.KNOWLEDGE: "knowledge", Role.PUBLIC: "knowledge"}


class Forgetter(Protocol):
    """A store beside the files (saved rows …) that forgets along. `name` counts it in the answer."""

    @property
    def name(self) -> str: ...

    async def find(self, scope: Scope, held: Held) -> Sequence[str]:
        """The texts that match, to be listed."""
        ...

    async def forget(self, scope: Scope, held: Held) -> int:
        """Remove them, and keep them from returning; how many. A repeated call is safe."""
        ...


class ForgettingExpired(Exception):
    """There is no open question of that id for this person here: answered, older than ten minutes, or never asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One thing that would go. `store`: memory, about, daily, knowledge, diary, candidate, dream, block, change, backup, message, or a further
    store's name; `id`: of a line; `where`: its path."""

    store: str
    text: str
    where: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The list, and the id of the question that a yes within ten minutes answers."""

    proposal_id: str
    matches: tuple[Match, ...]
    messages: int


@dataclass(frozen=True, slots=True)
class _Line:
    path: str
    entry: Entry
    row: LineRow | None


class Forgetting:
    """`on_written` is told of each file that changed; `also`: further stores."""

    def __init__(
        self,
        *,
        db: Database,
        files: WorkspaceThreads,
        clock: Callable[[], datetime],
        writing: DreamWriting,
        on_written: Callable[[Scope, str], None],
        also: Sequence[Forgetter] = (),
    ) -> None:
        self._db = db
        self._files = files
        self._clock = clock
        self._writing = writing
        self._on_written = on_written
        self._also = tuple(also)

    async def find(
        self, scope: Scope, text: str, *, person: str, own_only: bool = False, questions: Collection[str] = ()
    ) -> Asked | None:
        """Step one: what matches `text`, words or a line's id. None when nothing does. It changes nothing.

        `own_only`: for a member of a space, only lines that rest on nothing but this person's own messages. `questions`: ids of messages that say it
        only because they ask this; they are no find.
        """
        wanted = Wanted.of(text)
        if wanted is None:
            return None
        lines = await self._lines(scope, wanted, person if own_only else "")
        held = _held(wanted, lines, {line.entry.hash for line in lines}, own_only)
        author = person if own_only else ""
        matches = [Match(store=_store(scope, line), text=line.entry.text, where=line.path, id=line.entry.id) for line in lines]
        rows = await self._db.read(lambda connection: found_rows(connection, str(scope), held, held.hashes, author=author))
        matches += [Match(store=store, text=words) for store, words in rows.texts]
        matches += await self._files.read(lambda workspace: _elsewhere(workspace, scope, held, rows.paths))
        for store in self._also:
            matches += [Match(store=store.name, text=words) for words in await store.find(scope, held)]
        said = set(rows.messages) - set(questions)
        if not matches and not said:
            return None
        listed = [[line.path, line.entry.hash] for line in lines]
        payload = {"words": list(wanted.words), "id": wanted.id, "own": own_only, "lines": listed}
        now = self._clock()
        asked = partial(proposal_store.propose, scope=str(scope), kind=KIND, payload=payload, now=now, expires_at=now + OPEN_FOR, person_id=person)
        return Asked(proposal_id=await self._db.write(asked), matches=tuple(matches), messages=len(said))

    async def confirm(self, scope: Scope, proposal_id: str, *, person: str, messages: bool = False) -> dict[str, int]:
        """Step two: remove all that was listed; counts per store. `messages`: the words of the raw messages too. ForgettingExpired."""
        now = self._clock()
        asked = await self._db.read(lambda connection: proposal_store.find(connection, str(scope), proposal_id))
        if (
            asked is None
            or asked.kind != KIND
            or asked.state != "open"
            or asked.person_id != person
            or asked.expires_at is None
            or asked.expires_at <= now
        ):
            raise ForgettingExpired("there is nothing open to confirm: ask again what to forget")
        own = bool(asked.payload["own"])
        wanted = Wanted(tuple(asked.payload["words"]), asked.payload["id"])
        listed: set[tuple[str, str]] = {(path, digest) for path, digest in asked.payload["lines"]}
        lines = [line for line in await self._all_lines(scope) if (line.path, line.entry.hash) in listed]
        hashes = {digest for _, digest in listed}
        held = _held(wanted, lines, hashes, own)
        author = person if own else ""
        rows = await self._db.read(lambda connection: found_rows(connection, str(scope), held, hashes, author=author))
        bars = _bars(lines, listed, rows.messages)
        await self._db.write(lambda connection: provenance.bar(connection, str(scope), bars, now))
        await self._writing.recover(str(scope))  # a dream that was staged before the bars stood; a later one finds them
        followed = await self._followed(scope, held, listed, frozenset(rows.messages), author, since=asked.created_at or now)
        more = _bars(followed, {(line.path, line.entry.hash) for line in followed}, ())
        await self._db.write(lambda connection: provenance.bar(connection, str(scope), more, now))
        lines += followed
        listed |= {(line.path, line.entry.hash) for line in lines}
        hashes = {digest for _, digest in listed}
        held = _held(wanted, lines, hashes, own)
        counts = Counter(_store(scope, line) for line in lines)
        for path in sorted({path for path, _ in listed}):
            here = {digest for at, digest in listed if at == path}
            await self._rewrite(scope, path, lambda text, here=here: without_headings(without(text, here), here))
        counts.update(await self._clean_files(scope, held, {path for path, _ in listed} | rows.paths))
        for store in self._also:
            counts[store.name] += await store.forget(scope, held)
        done = partial(clean_rows, scope=str(scope), held=held, hashes=hashes, messages=messages, sources=rows.messages, now=now)

        def settle(connection: sa.Connection) -> dict[str, int]:
            for path, digest in listed:
                provenance.drop_lines(connection, str(scope), path, [digest])
            cleaned = done(connection, removed=say(_language(lines), "diary_removed"))
            proposal_store.decide(connection, str(scope), proposal_id, "applied", now)
            return cleaned

        counts.update(await self._db.write(settle))
        return {store: number for store, number in counts.items() if number}

    # -- inside

    async def _all_lines(self, scope: Scope) -> list[_Line]:
        there = await self._files.read(lambda workspace: _entries(workspace, scope))
        rows = await self._db.read(
            lambda connection: {path: provenance.lines_of(connection, str(scope), path) for path in dict.fromkeys(path for path, _ in there)}
        )
        return [_Line(path, entry, rows[path].get(entry.hash)) for path, entry in there]

    async def _lines(self, scope: Scope, wanted: Wanted, own: str) -> list[_Line]:
        """The lines that match, the daily lines that these rest on, and the lines of memory that rest on nothing else (SC-19) or say one of them
        among other things."""
        there = await self._all_lines(scope)
        found = {(line.path, line.entry.hash) for line in there if wanted.is_entry(line.entry)}
        rests = {digest for line in there if (line.path, line.entry.hash) in found and line.row for digest in line.row.evidence}
        found |= {(line.path, line.entry.hash) for line in there if day_of(line.path) and line.entry.hash in rests}
        gone = {digest for _, digest in found}
        found |= {(line.path, line.entry.hash) for line in there if line.row and _rests_on(line.row.evidence, gone)}
        words = Held.of(Wanted(), [line.entry.text for line in there if (line.path, line.entry.hash) in found], gone)
        merged = [line for line in there if line.row and gone.intersection(line.row.evidence) and words.in_text(line.entry.text)]
        found |= {(line.path, line.entry.hash) for line in merged}
        lines = {(line.path, line.entry.hash): line for line in there if (line.path, line.entry.hash) in found}
        return [line for line in lines.values() if not own or (line.row is not None and set(line.row.speakers) == {own})]

    async def _followed(
        self, scope: Scope, held: Held, listed: set[tuple[str, str]], messages: frozenset[str], own: str, *, since: datetime
    ) -> list[_Line]:
        """What the program has made of it since the list was shown, in a night between the question and the yes. People's new lines stay."""

        def holds(entry: Entry, row: LineRow) -> bool:
            new = row.created_at is None or row.created_at >= since
            return held.in_text(entry.text) or _rests_on(row.evidence, held.hashes) or (new and _rests_on(row.sources, messages))

        return [
            line
            for line in await self._all_lines(scope)
            if (line.path, line.entry.hash) not in listed
            and line.row is not None
            and (not own or set(line.row.speakers) == {own})
            and holds(line.entry, line.row)
        ]

    async def _rewrite(self, scope: Scope, path: str, compose: Callable[[str], str]) -> bool:
        """Change a file and let go of all its older texts; whether it changed."""
        for _ in range(TRIES):
            if await self._files.write(scope, lambda workspace: _swap(workspace, scope, path, compose)) is not None:
                self._on_written(scope, path)
                return True
        raise StoreUnavailable(f"{path} is being changed by another program all the time: try again")

    async def _clean_files(self, scope: Scope, held: Held, touched: set[str]) -> Counter[str]:
        """Diaries and older texts of files that hold what is forgotten."""
        counts: Counter[str] = Counter()
        diaries, backups = await self._files.read(lambda workspace: _holding(workspace, scope, held, touched))
        for path, text in diaries:
            removed = say(guess(text), "diary_removed")
            await self._rewrite(scope, path, lambda old, removed=removed: redacted_diary(old, held, removed))
        for path in backups:
            await self._files.write(scope, lambda workspace, path=path: workspace.forget_revisions(scope, path))
        counts["diary"] += len(diaries)
        counts["backup"] += len(backups)
        return counts


def _held(wanted: Wanted, lines: Sequence[_Line], hashes: Collection[str], own_only: bool) -> Held:
    """What other stores are searched for: in a space, a member's wish reaches no further than the listed lines."""
    return Held.of(Wanted() if own_only else wanted, [line.entry.text for line in lines], hashes)


def _rests_on(what: Collection[str], gone: Collection[str]) -> bool:
    """On that and on nothing else."""
    return bool(what) and set(what) <= set(gone)


def _store(scope: Scope, line: _Line) -> str:
    if line.path == CURATED:
        return "memory"
    return "about" if line.path == scope.about else "daily" if day_of(line.path) else "knowledge"


def _entries(workspace: Workspace, scope: Scope) -> list[tuple[str, Entry]]:
    found: list[tuple[str, Entry]] = []
    for file in workspace.files(scope):
        if file.role not in _STORES or not ROLES[file.role].searchable:
            continue
        try:
            text = workspace.read(scope, file.path)
        except FileUnreadable:
            continue
        words = text.content if text else ""
        found += [(file.path, entry) for entry in entries(words)]
        found += [(file.path, entry) for entry in headings(words) if file.role is not Role.DAILY or entry.text.startswith("### ")]
    return found


def _holding(workspace: Workspace, scope: Scope, held: Held, paths: set[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Diaries that tell of it, and files with older texts that hold it."""
    diaries: list[tuple[str, str]] = []
    backups: list[str] = []
    files = {file.path: file.role for file in workspace.files(scope)}
    for path, role in files.items():
        try:
            text = workspace.read(scope, path) if role is Role.DIARY else None
        except FileUnreadable:
            continue
        if text is not None and held.in_text(text.content):
            diaries.append((path, text.content))
    for path in sorted({*files, *paths}):
        kept = (workspace.revision(scope, path, each.id) for each in workspace.revisions(scope, path))
        if any(old is not None and held.in_text(old) for old in kept):
            backups.append(path)
    return diaries, backups


def _elsewhere(workspace: Workspace, scope: Scope, held: Held, paths: set[str]) -> list[Match]:
    diaries, backups = _holding(workspace, scope, held, paths)
    return [Match(store="diary", text="", where=path) for path, _ in diaries] + [Match(store="backup", text="", where=path) for path in backups]


def _swap(workspace: Workspace, scope: Scope, path: str, compose: Callable[[str], str]) -> bool | None:
    """None when somebody else was quicker."""
    old = workspace.read(scope, path)
    if old is not None:
        new = compose(old.content)
        if new != old.content and isinstance(workspace.replace(scope, path, new, based_on=old.hash), Conflict):
            return None
    workspace.forget_revisions(scope, path)
    return True


def _bars(lines: Sequence[_Line], listed: set[tuple[Any, Any]], messages: Sequence[str]) -> list[Bar]:
    """Tombstones: hashes and ids of messages, no words."""
    known = {line.entry.hash: line.row for line in lines}
    bars = [
        Bar(reason="forgotten", hash=digest, evidence=row.evidence if row else (), sources=row.sources if row else ())
        for digest in dict.fromkeys(digest for _, digest in sorted(listed))
        for row in (known.get(digest),)
    ]
    return [*bars, *([Bar(reason="forgotten", hash="", sources=tuple(messages))] if messages else [])]


def _language(lines: Sequence[_Line]) -> str:
    return guess("".join(line.entry.text for line in lines))

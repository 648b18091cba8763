"""Dreams as people meet them, for commands and the page: asking for one, deciding what one proposed, reading diaries (WD-63, WD-64, WD-68, WD-81)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime

import sqlalchemy as sa

from gateway.config import Config
from gateway.dreams import runs as dream_runs
from gateway.dreams.errors import ForgottenMeanwhile
from gateway.dreams.night import can_dream
from gateway.dreams.reading import DreamReading, Seen
from gateway.dreams.writing import DreamWriting
from gateway.zones import zone_of
from memory import dream_store, proposal_store, provenance
from memory.database import Database
from memory.dream_rules import Dropped, Judged, Taken, is_barred
from memory.dream_store import Booking, Dream
from memory.dream_text import TextBroken, rewrite
from memory.errors import StoreUnavailable
from memory.file_hash import file_hash
from memory.layout import Role, day_of, diary_path
from memory.line_diff import DiffLine, difference
from memory.proposal_store import Candidate, Proposal
from memory.provenance import Bar, ChangedLine, Origin
from memory.schedule import local_date
from memory.scopes import ROOT, Scope
from memory.workspace_threads import WorkspaceThreads

TRIES = 3
KINDS = ("dream", "candidate")
"""Proposals that are decided here. A tool's change has a service of its own, and forgetting two steps."""


class ProposalGone(Exception):
    """There is no such open proposal here: decided, expired, or what it rests on is there no more. A sentence of ours says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """`days`: as taken, `clamped` when another number was asked for. `running_since`: a dream of this scope runs or waits already, and this is it.
    `refused`: why none was started: `per_day`, `no_model` (WD-79) or empty."""

    job_id: int = 0
    days: int = dream_runs.DAYS
    clamped: bool = False
    running_since: datetime | None = None
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What a yes changed: lines new, said anew, gone; `left`: what could not stand any more."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class Dreaming:
    def __init__(
        self,
        *,
        db: Database,
        files: WorkspaceThreads,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        reading: DreamReading,
        writing: DreamWriting,
    ) -> None:
        self._db = db
        self._files = files
        self._clock = clock
        self._config = config
        self._reading = reading
        self._writing = writing

    # -- asking for one

    def request(
        self, connection: sa.Connection, scope: Scope, *, days: int | None, force: bool, person: str, now: datetime
    ) -> Requested:
        """Enqueue a dream of the last `days` local dates with today; wake the job runner after the commit. Works with `deep_dream_enabled` false."""
        wanted = dream_runs.DAYS if days is None else days
        taken = dream_runs.clamped(wanted)
        clamped = taken != wanted
        if there := dream_runs.at_work(connection, str(scope)):
            return Requested(job_id=there.job_id, days=taken, clamped=clamped, running_since=there.since)
        if not can_dream(self._config()):
            return Requested(days=taken, clamped=clamped, refused="no_model")
        today = local_date(now, zone_of(connection, str(scope), self._config().timezone))
        if scope != ROOT:
            most = self._config().dream.manual_per_day
            if dream_runs.asked_for(connection, str(scope), today, most) >= most:
                return Requested(days=taken, clamped=clamped, refused="per_day")
        job_id = dream_runs.ask(connection, str(scope), today, now, days=taken, force=force, person=person)
        return Requested(job_id=job_id, days=taken, clamped=clamped)

    async def recover(self) -> int:
        """At the start: bring every dream that a crash cut short to its end (WD-83); how many."""
        return len(await self._writing.recover())

    # -- what waits for a yes

    def proposals(self, connection: sa.Connection, scope: Scope) -> list[Proposal]:
        """Refused dreams and candidates that are open, oldest first."""
        return [each for each in proposal_store.open_proposals(connection, str(scope), self._clock()) if each.kind in KINDS]

    async def show(self, scope: Scope, proposal_id: str) -> tuple[DiffLine, ...]:
        """What a yes would change in MEMORY.md as it is now. ProposalGone."""
        seen = await self._reading.look(scope)
        _, judged, _ = await self._proposed(scope, seen, proposal_id)
        return difference(seen.text, _rewritten(seen, judged), context=2)

    async def apply(self, scope: Scope, proposal_id: str, person: str) -> Accepted:
        """Write a proposal that a person said yes to. Every check but the guard on its size is made again on the files as they are (WD-81).

        ProposalGone; DreamFailed; StoreUnavailable when somebody edits MEMORY.md all the time.
        """
        await self._writing.recover(str(scope))
        for _ in range(TRIES):
            seen = await self._reading.look(scope)
            before, judged, left = await self._proposed(scope, seen, proposal_id)
            staged = _rewritten(seen, judged)
            if staged == seen.text:
                raise ProposalGone("nothing is left of this proposal: what it rests on is gone, or it stands in the memory already")
            today = await self._db.read(lambda connection: local_date(self._clock(), zone_of(connection, str(scope), self._config().timezone)))
            dream = replace(
                before,
                id=dream_store.new_id(),
                local_date=today.isoformat(),
                state="applying",
                trigger="accepted",
                old_hash=seen.live.hash if seen.live else "",
                new_hash=file_hash(staged),
                staged=staged,
                booking=_booking(before.booking, judged, proposal_id),
                reason="",
                calls=0,
                ended_at=None,
            )
            try:
                written = await self._writing.write(dream, self._db.write, seen.forgettings)
            except ForgottenMeanwhile:
                continue
            if written:
                return Accepted(
                    added=tuple(line.text for line in judged.taken if not line.replaces),
                    changed=tuple(line.text for line in judged.taken if line.replaces),
                    dropped=tuple(drop.line.text for drop in judged.dropped),
                    left=left,
                )
        raise StoreUnavailable("MEMORY.md is being changed by another program all the time: try again")

    def discard(self, connection: sa.Connection, scope: Scope, proposal_id: str) -> bool:
        """A no. False when there is nothing open of that id here."""
        found = proposal_store.find(connection, str(scope), proposal_id)
        if found is None or found.kind not in KINDS:
            return False
        return proposal_store.decide(connection, str(scope), proposal_id, "discarded", self._clock())

    # -- diaries

    async def diaries(self, scope: Scope) -> tuple[date, ...]:
        """Dates that have a diary, newest first."""
        files = await self._files.read(lambda workspace: workspace.files(scope))
        return tuple(sorted((on for file in files if file.role is Role.DIARY and (on := day_of(file.path))), reverse=True))

    async def diary(self, scope: Scope, on: date | None = None) -> tuple[date, str] | None:
        """One diary, the newest when no date is named; None when there is none. FileUnreadable."""
        wanted = on or next(iter(await self.diaries(scope)), None)
        if wanted is None:
            return None
        found = await self._files.read(lambda workspace: workspace.read(scope, diary_path(wanted)))
        return None if found is None else (wanted, found.content)

    def last(self, connection: sa.Connection, scope: Scope) -> Dream | None:
        """The newest dream, for `/memory status`; `diary.numbers` of its changes gives +a ~c −d."""
        return dream_store.last(connection, str(scope))

    # -- inside

    async def _proposed(self, scope: Scope, seen: Seen, proposal_id: str) -> tuple[Dream, Judged, tuple[str, ...]]:
        """The dream of a proposal, what of it may still stand, and the words of what may not."""
        now = self._clock()
        found = await self._db.read(lambda connection: proposal_store.find(connection, str(scope), proposal_id))
        if found is None or found.state != "open" or found.kind not in KINDS or (found.expires_at or now) <= now:
            raise ProposalGone(f"there is no open proposal {proposal_id} here")
        bars = await self._db.read(lambda connection: provenance.dated_bars(connection, str(scope)))
        if found.kind == "dream":
            dream = await self._db.read(lambda connection: dream_store.read(connection, str(found.payload["dream"])))
            if dream is None:
                raise ProposalGone(f"the dream of proposal {proposal_id} is gone")
            return dream, *_of_dream(dream, seen, bars)
        candidate = Candidate.of_json(found.payload)
        empty = Dream(id="", scope=str(scope), local_date="", state="applying", trigger="accepted")
        line = ChangedLine(text=candidate.text, section=candidate.section, row=replace(candidate.row, origin=Origin.PERSON))
        taken = _still(line, candidate.replaces, seen, bars)
        return empty, Judged(taken=(taken,) if taken else ()), () if taken else (candidate.text,)


def _of_dream(dream: Dream, seen: Seen, bars: tuple[tuple[Bar, datetime], ...]) -> tuple[Judged, tuple[str, ...]]:
    replaced = {each.hashes[0]: each.hashes[1:] for each in dream.changes if each.kind in ("added", "changed", "merged")}
    lines = [(line, _still(line, replaced.get(line.row.hash if line.row else "", ()), seen, bars)) for line in dream.booking.added]
    old = {line.hash: line for line in seen.old}
    gone = [each for each in dream.changes if each.kind == "dropped" and each.hashes[0] in old]
    dropped = tuple(Dropped(line=old[each.hashes[0]], reason=each.reason) for each in gone)
    return Judged(taken=tuple(taken for _, taken in lines if taken), dropped=dropped), tuple(line.text for line, taken in lines if not taken)


def _still(line: ChangedLine, replaces: tuple[str, ...], seen: Seen, bars: tuple[tuple[Bar, datetime], ...]) -> Taken | None:
    """A proposed line, if its evidence and its old lines still stand in the files and nobody took it back since (WD-66, WD-90)."""
    if line.row is None:
        return None
    old = {each.hash: each for each in seen.old}
    notes = {each.hash: each for day in seen.days for each in day.lines}
    inherited = {each for hash_ in replaces if hash_ in old for each in old[hash_].row.evidence}
    own = [each for each in line.row.evidence if each not in inherited]
    if any(each not in old for each in replaces) or any(each not in notes for each in own) or line.row.hash in {each.hash for each in seen.fixed}:
        return None
    taken = Taken(
        text=line.text,
        hash=line.row.hash,
        section=line.section,
        replaces=tuple(old[each] for each in replaces),
        evidence=tuple(notes[each] for each in own),
        settled=line.row,
    )
    standing = set(old) - set(replaces)
    return None if taken.hash in standing or is_barred(taken, bars) else taken


def _rewritten(seen: Seen, judged: Judged) -> str:
    try:
        return rewrite(seen.text, judged)
    except TextBroken as error:
        raise ProposalGone(f"this proposal does not fit MEMORY.md any more: {error}") from error


def _booking(before: Booking, judged: Judged, proposal_id: str) -> Booking:
    removed = [old for line in judged.taken for old in line.replaces] + [drop.line for drop in judged.dropped]
    return replace(
        before,
        removed=tuple(ChangedLine(text=old.text, section=old.section, row=old.row) for old in removed),
        added=tuple(ChangedLine(text=line.text, section=line.section, row=line.row) for line in judged.taken),
        proposal_id=proposal_id,
    )

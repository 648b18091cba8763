"""Bullets into the day's file, with what they rest on and what they cover (WD-5, WD-18, WD-50): each step may be repeated and happens once.

Provenance comes before the file, so that a kill in between leaves a row without a line and never a line of ours that counts as a human's. Coverage
comes behind it, so that a stretch counts as written only when it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, time

import sqlalchemy as sa

from gateway.file_writer import OnWritten
from gateway.jobs.handling import JobContext
from gateway.leases import Clock
from gateway.summaries.digesting import Digest
from gateway.summaries.plan import Segment
from memory import coverage, provenance
from memory.coverage import Covered
from memory.errors import StoreUnavailable
from memory.layout import daily_path
from memory.lines import entries, line_hash
from memory.provenance import LineRow
from memory.restating import restated
from memory.scopes import Scope
from memory.summaries import Bullet
from memory.texts import Appended, Section, Written
from memory.workspace_threads import WorkspaceThreads

AUTHOR = "summary"
SECTIONS: Mapping[str, Section] = {
    "trimmed": Section.TRIMMED, "summary": Section.SUMMARY, "late": Section.LATE, "overflow": Section.OVERFLOW,
}  # fmt: skip
_TRIES = 4  # an editor that saves while lines are made anew


class DayFiles:
    """`on_written` is told of every file that changed, on the event loop: the index listens (WD-112)."""

    def __init__(self, *, files: WorkspaceThreads, clock: Clock, on_written: OnWritten) -> None:
        self._files = files
        self._clock = clock
        self._on_written = on_written

    async def append(self, context: JobContext, scope: Scope, segment: Segment, digest: Digest, *, fallback: bool = False) -> None:
        """Write a segment's bullets and count it as covered; without bullets only the latter."""
        day = date.fromisoformat(segment.local_date)
        path = daily_path(day)
        bullets = digest.bullets
        if bullets:
            await self._know(context, scope, path, bullets, segment.local_date)
            done: Appended = await self._files.write(
                scope,
                lambda workspace: workspace.append_daily(
                    scope, day, SECTIONS[segment.section], segment.label, time.fromisoformat(segment.at), [each.text for each in bullets]
                ),
            )
            if done.changed:
                self._on_written(scope, path)
            if done.refused:
                await self._forget_absent(context, scope, path, bullets, done.text.content if done.text else "")
        rows = [
            Covered(
                conversation_id=segment.conversation_id,
                scope=str(scope),
                first_seq=first,
                last_seq=last,
                local_date=segment.local_date,
                section=segment.section,
                run_id=run_id(context),
                fallback=fallback,
                created_at=digest.read_at,
            )
            for first, last in segment.ranges
        ]
        await context.write(lambda connection: coverage.add(connection, rows))

    async def restate(
        self, context: JobContext, scope: Scope, local_date: str, gone: Collection[str], digest: Digest, covered: Collection[int]
    ) -> None:
        """Put `digest` in the place of the program lines `gone` of a day's file; the covered stretches with these ids are good again.

        Lines that a person has removed meanwhile stay away, and so does what would have come in their place (WD-19).
        """
        path = daily_path(date.fromisoformat(local_date))
        await self._know(context, scope, path, digest.bullets, local_date)
        content = await self._replace(scope, path, gone, [each.text for each in digest.bullets])
        await self._forget_absent(context, scope, path, digest.bullets, content, gone)

        def work(connection: sa.Connection) -> None:
            coverage.made_good(connection, covered, digest.read_at)

        await context.write(work)

    async def take_back(self, context: JobContext, scope: Scope, local_date: str, written: Digest, stands: Digest) -> None:
        """Remove what rests on messages that were forgotten at the very moment it was written, its revision too (WD-92)."""
        path = daily_path(date.fromisoformat(local_date))
        gone = {line_hash(each.text) for each in written.bullets} - {line_hash(each.text) for each in stands.bullets}
        content = await self._replace(scope, path, gone, [])
        await self._files.write(scope, lambda workspace: workspace.forget_revisions(scope, path))
        await self._forget_absent(context, scope, path, written.bullets, content, gone)

    async def human_lines(self, context: JobContext, scope: Scope, local_date: str) -> list[str]:
        """Ids of the lines of a day's file that people wrote, for their review (WD-59)."""
        path = daily_path(date.fromisoformat(local_date))
        text = await self._files.read(lambda workspace: workspace.read(scope, path))
        known = await context.write(lambda connection: provenance.lines_of(connection, str(scope), path))
        return [entry.id for entry in entries(text.content if text else "") if entry.hash not in known]

    async def _replace(self, scope: Scope, path: str, gone: Collection[str], lines: Sequence[str]) -> str:
        """The text as it then is."""
        for _ in range(_TRIES):
            old = await self._files.read(lambda workspace: workspace.read(scope, path))
            before = old.content if old else ""
            after = restated(before, gone, lines)
            if old is None or after == before:
                return before
            done = await self._files.write(
                scope, lambda workspace, after=after, based_on=old.hash: workspace.replace(scope, path, after, based_on=based_on)
            )
            if isinstance(done, Written):
                self._on_written(scope, path)
                return after
        raise StoreUnavailable(f"{path} is being changed by another program all the time: try again")

    async def _know(self, context: JobContext, scope: Scope, path: str, bullets: Sequence[Bullet], local_date: str) -> None:
        rows = [
            LineRow(
                hash=line_hash(each.text),
                origin=each.origin,
                author=AUTHOR,
                run_id=run_id(context),
                sources=each.sources,
                speakers=each.speakers,
                local_date=local_date,
            )
            for each in bullets
        ]
        now = self._clock()
        await context.write(lambda connection: provenance.put_lines(connection, str(scope), path, rows, now))

    async def _forget_absent(
        self, context: JobContext, scope: Scope, path: str, bullets: Sequence[Bullet], content: str, gone: Collection[str] = ()
    ) -> None:
        """Rows of lines that do not stand in the file: refused ones, and those that were replaced."""
        there = {entry.hash for entry in entries(content)}
        absent = ({line_hash(each.text) for each in bullets} | set(gone)) - there
        if absent:
            await context.write(lambda connection: provenance.drop_lines(connection, str(scope), path, absent))


def run_id(context: JobContext) -> str:
    """What provenance and coverage call the job."""
    return str(context.id)

"""The jobs that write what happened into the day's files: daily summaries, turns that left the context or were too much for it (WD-42 to WD-60).

Each settles its stretches first (`summary_plan`), then makes and writes them one by one; a kill anywhere leads to the same text, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from agent.errors import ContextOverflow, ModelError, NoRoom
from gateway.config import Config
from gateway.day_files import DayFiles, run_id
from gateway.dreams.job import KIND as DREAM
from gateway.dreams.night import dreams_by_itself
from gateway.jobs.failures import ATTEMPTS
from gateway.jobs.handling import Handler, JobContext, JobResult
from gateway.jobs.parts import drop_paid, input_hash
from gateway.jobs.table import Job, enqueue
from gateway.summaries import plan as summary_plan
from gateway.summaries.digesting import Digest, Digester, plain
from gateway.summaries.plan import DAILY, OVERFLOW, PLAN, TRIM, Segment
from gateway.summaries.stale_days import Restated, StaleDays
from gateway.zone_names import otherwise
from gateway.zones import zone_of
from memory import blocks, coverage, provenance, tokens
from memory.coverage import Covered, Talk
from memory.database import Database
from memory.layout import daily_path
from memory.lines import line_hash
from memory.schema import jobs, people
from memory.scopes import ROOT, Kind, Scope, parse_scope
from memory.summaries import AnswerUnusable

UNCHANGED = "unchanged"
NIGHT_PRIORITY = {str(ROOT): 1}  # the owner's scope goes first at night (WD-87, WD-99)

_RESERVED = sa.select(people.c.id).where(people.c.privacy == "partial")
_OTHERS = (
    sa.select(jobs.c.id)
    .where(jobs.c.kind == DAILY, jobs.c.scope == sa.bindparam("scope"), jobs.c.state.in_(["waiting", "running"]), jobs.c.id != sa.bindparam("me"))
    .limit(1)
)


@dataclass(slots=True)
class _Report:
    """What the job's result says: numbers only, no words of people."""

    counts: Counter[str] = field(default_factory=Counter[str])
    dates: set[str] = field(default_factory=set[str])
    demo: bool = False
    failed: Exception | None = None

    def add(self, segment: Segment, digest: Digest) -> None:
        self.counts["bullets"] += len(digest.bullets)
        self.counts["unsupported"] += digest.unsupported
        self.counts["secrets"] += len(digest.secrets)
        self.dates.add(segment.local_date)

    def as_json(self) -> dict[str, Any]:
        return {**self.counts, "dates": sorted(self.dates), **({"model": "demo"} if self.demo else {})}


class Summarizing:
    """The handlers, by kind of job."""

    def __init__(
        self,
        *,
        db: Database,
        digester: Digester,
        day_files: DayFiles,
        config: Callable[[], Config],
        clock: Callable[[], datetime],
    ) -> None:
        self._db = db
        self._digester = digester
        self._day_files = day_files
        self._stale = StaleDays(db=db, digester=digester, day_files=day_files, clock=clock)
        self._config = config
        self._clock = clock

    @property
    def handlers(self) -> dict[str, Handler]:
        return {DAILY: self.daily, TRIM: self.left, OVERFLOW: self.left}

    async def daily(self, job: Job, context: JobContext) -> JobResult:
        """One date of one scope. Payload: `date`; `zone`, settled when the run was planned; `manual` takes all dates and wakes no dream."""
        scope, day, manual = parse_scope(job.scope), date.fromisoformat(job.payload["date"]), bool(job.payload.get("manual"))
        zone = otherwise(job.payload.get("zone", ""))

        def plan(connection: sa.Connection) -> list[dict[str, Any]]:
            found = summary_plan.daily(connection, job.scope, day, zone, job_id=context.id, manual=manual)
            return [segment.as_json() for segment in found]

        segments = [Segment.of_json(value) for value in await context.settled(PLAN, plan)]
        reserved = await self._reserved(scope)
        report, _ = await self._segments(context, scope, zone, segments, reserved)
        if report.failed is not None:
            raise report.failed
        restated = await self._stale.run(context, scope, zone, reserved)

        def commit(connection: sa.Connection) -> None:
            if not manual:
                self._then_dream(connection, job, context.id)

        if not segments and not restated.dates:
            return JobResult(skipped=UNCHANGED, commit=commit)
        return JobResult(output=report.as_json() | _restated_json(restated), commit=commit)

    async def left(self, job: Job, context: JobContext) -> JobResult:
        """A stretch that left the context: to the day's file what is not there yet, and one block for the context (WD-42, WD-50).

        Payload: `conversation`, `first`, `last`; `round` when a message of it was changed and the block is to be made anew.
        """
        scope, chat = parse_scope(job.scope), str(job.payload["conversation"])
        first, last, again = int(job.payload["first"]), int(job.payload["last"]), str(job.payload.get("round", ""))
        zone = await self._db.read(lambda connection: zone_of(connection, job.scope, self._config().timezone))
        section = "overflow" if job.kind == OVERFLOW else "trimmed"

        def plan(connection: sa.Connection) -> list[dict[str, Any]]:
            found = summary_plan.stretch(connection, job.scope, chat, first, last, zone, job_id=context.id, section=section)
            return [segment.as_json() for segment in found]

        segments = [Segment.of_json(value) for value in await context.settled(f"{PLAN}{again}", plan)]
        reserved = await self._reserved(scope)
        report, digests = await self._segments(context, scope, zone, segments, reserved, again=again)
        if report.failed is not None:
            raise report.failed
        if report.demo:  # the extract stays what stands in the context
            return JobResult(output=report.as_json())
        lines = [bullet.text for digest in digests for bullet in digest.bullets]
        begin, lines = await self._block(context, chat, first, last, lines, segments[0].character if segments else "")

        def commit(connection: sa.Connection) -> None:
            there = {message.id for message in coverage.talk_in(connection, chat, job.scope, [(first, last)])}
            if any(digest.resting_on(there) != digest for digest in digests):
                return  # the extract says less, and nothing that was forgotten at this very moment (WD-92)
            blocks.become_summary(connection, chat, begin, last, "\n".join(lines), self._clock())

        return JobResult(output=report.as_json(), commit=commit)

    # -- one stretch after the other

    async def _segments(
        self, context: JobContext, scope: Scope, zone: ZoneInfo, segments: Sequence[Segment], reserved: Collection[str], *, again: str = ""
    ) -> tuple[_Report, list[Digest]]:
        """Make and write them all. One that fails holds up no other; the first failure is told at the end, for the job to be tried again."""
        report = _Report()
        digests: list[Digest] = []
        for number, segment in enumerate(segments):
            written = await self._written(context, scope, segment)
            try:
                if report.failed is not None and _is_permanent(report.failed):  # a wrong key is wrong for all of them
                    raise report.failed
                digest = await self._digest(context, scope, zone, segment, f"text {number}{again}", reserved, report)
            except (AnswerUnusable, ModelError) as error:
                report.failed = report.failed or error
                if segment.file and not written and (_is_permanent(error) or context.attempts + 1 >= ATTEMPTS):
                    fallback = plain(await self._talk(scope, segment), reserved=reserved, read_at=self._clock())
                    await self._day_files.append(context, scope, segment, fallback, fallback=True)
                continue
            digest = await self._standing(context, scope, segment, digest)
            if segment.file and not written:
                await self._day_files.append(context, scope, segment, digest)
            elif segment.file and any(row.fallback for row in written):
                await self._replace_fallback(context, scope, segment, digest, written)
            stands = await self._standing(context, scope, segment, digest)
            if segment.file and stands != digest:
                await self._day_files.take_back(context, scope, segment.local_date, digest, stands)
            digests.append(stands)
            report.add(segment, stands)
        return report, digests

    async def _digest(
        self, context: JobContext, scope: Scope, zone: ZoneInfo, segment: Segment, part: str, reserved: Collection[str], report: _Report
    ) -> Digest:
        """What the job once made of a segment, word for word the same in every later run of it."""

        async def make() -> dict[str, Any]:
            read_at, talk = self._clock(), await self._talk(scope, segment)
            if not talk or self._digester.is_demo(segment.character):
                return plain(talk, reserved=reserved, read_at=read_at).as_json()
            digest = await self._digester.digest(
                context, talk, zone, label=segment.label, character=segment.character, reserved=reserved, read_at=read_at
            )
            return digest.as_json()

        report.demo = report.demo or self._digester.is_demo(segment.character)
        return Digest.of_json(await context.paid(part, input_hash(segment.as_json()), make))

    async def _standing(self, context: JobContext, scope: Scope, segment: Segment, digest: Digest) -> Digest:
        """Without what rests on a message that was deleted or forgotten while the model was asked, or since (WD-59, WD-92)."""
        stands = digest.resting_on({message.id for message in await self._talk(scope, segment)})
        if stands != digest:
            await context.write(lambda connection: drop_paid(connection, context.id))
        return stands

    async def _replace_fallback(self, context: JobContext, scope: Scope, segment: Segment, digest: Digest, written: Sequence[Covered]) -> None:
        path, mine = daily_path(date.fromisoformat(segment.local_date)), {message.id for message in await self._talk(scope, segment)}
        new = {line_hash(bullet.text) for bullet in digest.bullets}
        known = await self._db.read(lambda connection: provenance.lines_of(connection, str(scope), path))
        gone = [row.hash for row in known.values() if row.run_id == run_id(context) and row.hash not in new and mine.issuperset(row.sources)]
        await self._day_files.restate(context, scope, segment.local_date, gone, digest, [row.id for row in written])

    async def _written(self, context: JobContext, scope: Scope, segment: Segment) -> list[Covered]:
        """What an earlier run of this job covered of a segment."""
        rows = await self._db.read(lambda connection: coverage.of_run(connection, str(scope), run_id(context)))
        return [row for row in rows if row.conversation_id == segment.conversation_id and row.range in segment.ranges]

    async def _talk(self, scope: Scope, segment: Segment) -> list[Talk]:
        return await self._db.read(lambda connection: coverage.talk_in(connection, segment.conversation_id, str(scope), segment.ranges))

    async def _reserved(self, scope: Scope) -> set[str]:
        """People of whom nothing may be promoted: in spaces, those with privacy `partial` (WD-51, SM-13)."""
        if scope.kind is not Kind.SPACE:
            return set()
        return await self._db.read(lambda connection: {row.id for row in connection.execute(_RESERVED)})

    # -- what follows

    async def _block(self, context: JobContext, chat: str, first: int, last: int, lines: list[str], character: str) -> tuple[int, list[str]]:
        """The block's first number and its lines: with the older summaries merged in, when all of them say too much (WD-46)."""
        standing = await self._db.read(lambda connection: blocks.blocks_of(connection, chat))
        older = [block for block in standing if block.kind == "summary" and block.last_seq < first]
        everything = [line for block in older for line in block.text.split("\n") if line.strip()] + lines
        if sum(tokens.count(f"- {line}\n") for line in everything) <= blocks.TOKENS_MAX - tokens.count(blocks.HEAD):
            return first, lines
        try:
            merged = await self._digester.merged(context, everything, character=character, conversation_id=chat)
        except (AnswerUnusable, ContextOverflow, NoRoom):
            merged = everything  # the newest lines that fit: less is said of the oldest talk, nothing wrong
        return min(block.first_seq for block in older) if older else first, blocks.fitting(merged, blocks.TOKENS_MAX - tokens.count(blocks.HEAD))

    def _then_dream(self, connection: sa.Connection, job: Job, job_id: int) -> None:
        """The dream of the night follows the last daily summary of its scope that is still to come (WD-55, WD-61)."""
        config = self._config()
        if not dreams_by_itself(config, job.scope):
            return
        if connection.execute(_OTHERS, {"scope": job.scope, "me": job_id}).first() is not None:
            return
        payload = {"date": job.payload["date"], "zone": job.payload.get("zone", "")}
        enqueue(
            connection,
            Job(
                kind=DREAM,
                key=f"{job.scope}:{job.payload['date']}",
                scope=job.scope,
                local_date=job.payload["date"],
                payload=payload,
                priority=NIGHT_PRIORITY.get(job.scope, 0),
            ),
        )


def _is_permanent(error: Exception) -> bool:
    return getattr(error, "permanent", False) is True


def _restated_json(restated: Restated) -> dict[str, Any]:
    return {"restated": restated.dates, **({"review": restated.review} if restated.review else {})} if restated.dates else {}

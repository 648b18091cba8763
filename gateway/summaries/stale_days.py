"""Program lines of daily files whose messages were edited or deleted since: made anew by the next run of the scope (WD-59)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from gateway.day_files import AUTHOR, DayFiles
from gateway.jobs.handling import JobContext
from gateway.jobs.parts import drop_paid, input_hash
from gateway.summaries.digesting import Digest, Digester, plain
from memory import coverage, provenance
from memory.coverage import Talk
from memory.database import Database
from memory.layout import daily_path
from memory.scopes import Scope

STALE = "stale"  # the part of a job under which is kept what it found stale


@dataclass(slots=True)
class Restated:
    """How many dates were made anew; `review`: ids of people's lines on each of them, which are theirs to look at."""

    dates: int = 0
    review: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


class StaleDays:
    def __init__(self, *, db: Database, digester: Digester, day_files: DayFiles, clock: Callable[[], datetime]) -> None:
        self._db = db
        self._digester = digester
        self._day_files = day_files
        self._clock = clock

    async def run(self, context: JobContext, scope: Scope, zone: ZoneInfo, reserved: Collection[str]) -> Restated:
        """Rewrite what is stale in the scope. Raises as `Digester.digest`."""
        done = Restated()
        for found in await context.settled(STALE, lambda connection: _stale(connection, str(scope))):
            local_date: str = found["date"]
            read_at, talk = self._clock(), await self._talk(scope, found["messages"])
            key = input_hash(found)

            async def make(talk: list[Talk] = talk, read_at: datetime = read_at) -> dict[str, Any]:
                digest = await self._digest(context, talk, zone, reserved, read_at)
                return digest.as_json()

            paid = Digest.of_json(await context.paid(f"restated {local_date}", key, make))
            digest = paid.resting_on({message.id for message in await self._talk(scope, found["messages"])})
            await self._day_files.restate(context, scope, local_date, found["gone"], digest, found["covered"])
            stands = digest.resting_on({message.id for message in await self._talk(scope, found["messages"])})
            if stands != paid:
                await context.write(lambda connection: drop_paid(connection, context.id))
            if stands != digest:
                await self._day_files.take_back(context, scope, local_date, digest, stands)
            done.dates += 1
            if human := await self._day_files.human_lines(context, scope, local_date):
                done.review[local_date] = human
        return done

    async def _talk(self, scope: Scope, ids: list[str]) -> list[Talk]:
        return await self._db.read(lambda connection: coverage.talk_by_id(connection, str(scope), ids))

    async def _digest(self, context: JobContext, talk: list[Talk], zone: ZoneInfo, reserved: Collection[str], read_at: datetime) -> Digest:
        if not talk:
            return Digest(bullets=(), read_at=read_at)
        if self._digester.is_demo():
            return plain(talk, reserved=reserved, read_at=read_at)
        return await self._digester.digest(context, talk, zone, label="", character="", reserved=reserved, read_at=read_at)


def _stale(connection: sa.Connection, scope: str) -> list[dict[str, Any]]:
    """By date: hashes of the lines that rest on a changed message, ids of the messages that are to be read anew, ids of the covered stretches."""
    found: dict[str, dict[str, Any]] = {}
    for row in coverage.stale(connection, scope):
        changed = coverage.changed_in(connection, row)
        known = provenance.lines_of(connection, scope, daily_path(date.fromisoformat(row.local_date)))
        gone = {line.hash: line for line in known.values() if line.author == AUTHOR and changed & set(line.sources)}
        day = found.setdefault(row.local_date, {"date": row.local_date, "gone": [], "messages": [], "covered": []})
        day["gone"] += [each for each in gone if each not in day["gone"]]
        day["messages"] += [each for line in gone.values() for each in line.sources if each not in day["messages"]]
        day["messages"] += sorted(changed - set(day["messages"]))
        day["covered"].append(row.id)
    return list(found.values())

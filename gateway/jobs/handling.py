"""What a handler of jobs is given and what it hands back.

A handler is a coroutine per kind of job; what it wants to change it hands back in its `JobResult`, to be committed together with the end of the job,
so that after a kill at any point each job has had its effect once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

import sqlalchemy as sa

from gateway.jobs.claims import Claim, check
from gateway.jobs.parts import TOLD, keep_part, read_part
from gateway.jobs.table import Job
from memory.database import Database

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """`output`: JSON, kept with the job. `skipped`: why there was nothing to do; then `output` is not kept (WD-98).

    `commit` runs in the transaction that ends the job, if the lease is still held: the job's effect and its follow-up jobs belong there. It may
    enqueue this very job again. What it raises counts as a failed attempt and nothing of it stays.
    """

    output: Mapping[str, Any] = field(default_factory=dict[str, Any])
    skipped: str = ""
    commit: Callable[[sa.Connection], object] | None = None


class JobContext:
    """What a handler may ask of the runner. `attempts`: failed runs before this one. `now` as in `table`."""

    def __init__(self, db: Database, claim: Claim, now: Callable[[], datetime | None]) -> None:
        self.id = claim.row.id
        self.attempts = claim.row.attempts
        self._db = db
        self._claim = claim
        self._now = now

    async def paid(self, part: str, hashed: str, make: Callable[[], Awaitable[T]]) -> T:
        """The output of one paid step: kept from an earlier run with the same `hashed` (`parts.input_hash`), or made and kept (WD-60, RS-191).

        Only what is good may be returned by `make`: JSON, not null, with the types it was made of. Raises what it raises, and LeaseLost.
        """
        kept = await self._db.read(lambda connection: read_part(connection, self.id, part, hashed))
        if kept is not None:
            return kept
        output = await make()
        await self._db.write(lambda connection: keep_part(connection, self._claim, part, hashed, output, now=self._now()))
        return output

    async def settled(self, part: str, make: Callable[[sa.Connection], T]) -> T:
        """What `make` (JSON, not null) found in the database at the job's first look, kept in that very transaction: every later run sees the same.

        Raises LeaseLost.
        """

        def work(connection: sa.Connection) -> T:
            check(connection, self._claim)
            kept = read_part(connection, self.id, part, "")
            if kept is not None:
                return kept
            output = make(connection)
            keep_part(connection, self._claim, part, "", output, now=self._now())
            return output

        return await self._db.write(work)

    async def tell(self, part: str, output: object) -> None:
        """What others may know of the paid work so far (`parts.read_told`), in place of what was told before. Raises LeaseLost."""
        await self._db.write(lambda connection: keep_part(connection, self._claim, part, TOLD, output, now=self._now()))

    async def write(self, work: Callable[[sa.Connection], T]) -> T:
        """Commit a step in the middle of a job, by the job's holder only. Raises LeaseLost: let it pass, the runner knows what to do."""

        def fenced(connection: sa.Connection) -> T:
            check(connection, self._claim)
            return work(connection)

        return await self._db.write(fenced)


Handler = Callable[[Job, JobContext], Awaitable[JobResult]]

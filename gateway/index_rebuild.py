"""`/memory rebuild-index` as a job: the index is built anew beside the old one and swapped by the live service; the result says before and after."""

from __future__ import annotations

from typing import Protocol

from gateway.indexing import Rebuilt
from gateway.jobs.handling import JobContext, JobResult
from gateway.jobs.table import Job

KIND = "rebuild-index"


class Rebuilds(Protocol):
    async def rebuild(self) -> Rebuilt: ...


def job(key: str) -> Job:
    return Job(kind=KIND, key=key, scope=KIND)  # one scope for all of them: they never run side by side


class IndexRebuild:
    """The handler. Its output: files and chunks `before` and `after`; `vectors`: why there are none, empty when the embedder works."""

    def __init__(self, index: Rebuilds) -> None:
        self._index = index

    async def run(self, _job: Job, _context: JobContext) -> JobResult:
        done = await self._index.rebuild()
        return JobResult(
            output={"before": [done.files_before, done.chunks_before], "after": [done.files, done.chunks], "vectors": done.vectors_reason}
        )

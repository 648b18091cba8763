"""A worker process that makes the memory of the talk until nothing is left: `python -m tests.acceptance.memory_worker URL FOLDER`.

Prints one line for each model call and each finished job: `asked NUMBER-OF-CHAT` and `done KIND KEY`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path

from agent.llm.port import ModelRequest
from gateway.jobs.handling import Handler, JobContext, JobResult
from gateway.jobs.runner import JobRunner
from gateway.jobs.table import Job, list_jobs
from gateway.recall.talk_indexing import TalkIndexing
from memory.database import Database
from memory.recall import chunks, real_talk
from tests.conftest import FakeClock
from tests.gateway.rows_house import RowsHouse, lines
from tests.harness import eventually


def told(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def answer(request: ModelRequest) -> str:
    told("asked", *lines(request)[:1])
    return json.dumps({"text": "They talked."})


async def run(handler: Handler, job: Job, context: JobContext) -> JobResult:
    result = await handler(job, context)
    told("done", job.kind, job.key)
    return result


async def work(url: str, folder: Path) -> None:
    db = Database(url)
    house = RowsHouse(db, folder, FakeClock(), answer, companion={"messages": 10, "block": 5}, background={"daily_token_budget": 0})
    index = TalkIndexing(
        db=db, clock=house.clock, embedder=None, home=None, gap=lambda: timedelta(hours=6), record=lambda: "full", look_every_s=0.05
    )  # fmt: skip
    runner = JobRunner(db, {kind: partial(run, handler) for kind, handler in house.rolling.handlers.items()}, concurrency=4)
    told("ready")
    await asyncio.to_thread(sys.stdin.readline)

    async def nothing_left() -> bool:
        waiting = await db.read(lambda c: real_talk.with_work(c, chunks.SIZE))
        return not waiting and not await db.read(lambda c: list_jobs(c, "waiting", 1) or list_jobs(c, "running", 1))

    async with asyncio.TaskGroup() as group:
        jobs, indexing = group.create_task(runner.run()), group.create_task(index.run())
        await eventually(nothing_left, within_s=120)
        runner.close()
        await jobs
        indexing.cancel()
    await house.close()
    await db.close()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], Path(sys.argv[2])))

"""A child process that writes the day's files until it is killed: `python -m tests.gateway.killed_summary FOLDER`."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply
from memory.database import Database, sqlite_url
from tests.conftest import FakeClock
from tests.gateway.nights import Night, each_said


def slow(request: ModelRequest) -> Reply:
    time.sleep(0.01)
    return each_said(request)


async def work(folder: Path, hours: int) -> None:
    clock = FakeClock()
    clock.advance(hours=hours)  # so that the lease of the one before has ended
    night = Night(Database(sqlite_url(folder / "yumegate.db")), folder, clock, slow)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await night.look()
    await night.run()
    await night.close()
    await night.db.close()


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1]), int(sys.argv[2])))

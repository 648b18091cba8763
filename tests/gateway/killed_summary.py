"""A child process that writes the day's files until it is killed. It tells when it begins, and then of each question to the model."""

from __future__ import annotations

import asyncio
import time
from multiprocessing.connection import Connection
from pathlib import Path

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply
from memory.database import Database, sqlite_url
from tests.conftest import FakeClock
from tests.gateway.nights import Night, each_said


async def work(folder: Path, hours: int, tell: Connection) -> None:
    def slow(request: ModelRequest) -> Reply:
        tell.send(request.purpose)
        time.sleep(0.01)
        return each_said(request)

    clock = FakeClock()
    clock.advance(hours=hours)  # so that the lease of the one before has ended
    night = Night(Database(sqlite_url(folder / "yumegate.db")), folder, clock, slow)
    tell.send("ready")
    await night.look()
    await night.run()
    await night.close()
    await night.db.close()


def main(folder: Path, hours: int, tell: Connection) -> None:
    asyncio.run(work(folder, hours, tell))

"""What a changed configuration does to the running gateway, through `/reload`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.llm.scripted import ScriptedModel
from gateway.config import Config
from gateway.jobs.table import Job, enqueue
from gateway.store import open_database
from memory.database import Database
from memory.schema import jobs, settings
from tests.harness import Running, eventually, running

KIND = "of-nobody"  # no runner has a handler for it, so it stays as it is put
SECRET = "quite-another-key"


async def reloaded(gateway: Running, chat: str, **changes: Any) -> None:
    """With `changes` in the file; returns when the command is answered."""
    whole = json.loads(gateway.config_path.read_text(encoding="utf-8"))
    gateway.config_path.write_text(json.dumps(whole | changes), encoding="utf-8")

    async def answers() -> int:
        return sum(message["role"] == "notice" for message in await gateway.messages(chat))

    before = await answers()
    await gateway.say(chat, "/reload")

    async def answered() -> bool:
        return await answers() > before

    await eventually(answered)


def opening() -> tuple[list[Database], Callable[[Config], Database]]:
    """The databases that gateways open, and how they open them."""
    opened: list[Database] = []

    def open_it(wanted: Config) -> Database:
        opened.append(open_database(wanted))
        return opened[-1]

    return opened, open_it


def park(connection: sa.Connection) -> None:
    enqueue(connection, Job(kind=KIND, key="1"))
    connection.execute(sa.update(jobs).where(jobs.c.kind == KIND).values(state="parked"))


@pytest.mark.rule("WD-100")
async def test_jobs_that_are_parked_run_at_once_when_a_model_or_its_key_changes_and_only_then(tmp_path: Path) -> None:
    opened, open_it = opening()

    async with running(tmp_path, ScriptedModel([]), database=open_it) as gateway:
        chat = await gateway.chat()

        async def waits() -> bool:
            found = await opened[0].read(lambda connection: connection.execute(sa.select(jobs.c.state).where(jobs.c.kind == KIND)).scalar_one())
            return found == "waiting"

        await opened[0].write(park)
        await reloaded(gateway, chat, command_prefixes=["/", "!"])
        assert not await waits()
        for change in ({"model": {"api_key": "another"}}, {"models": {"small": {"name": "tiny"}}}, {"summary": {"model": "small"}}):
            await reloaded(gateway, chat, **change)
            await eventually(waits)  # the watch may have seen the file before the command did
            await opened[0].write(park)


@pytest.mark.rule("WD-100")
async def test_a_model_or_key_that_changed_while_the_gateway_was_off_frees_parked_jobs_at_the_next_start(tmp_path: Path) -> None:
    """A start with the same models leaves them: one that is parked because it killed its workers would else kill each start."""
    opened, open_it = opening()

    async def started_with(**config: Any) -> str:
        """The state of the job after a start; it is parked again before the end."""
        async with running(tmp_path, ScriptedModel([]), database=open_it, config=config):
            db = opened[-1]
            state = await db.read(lambda connection: connection.execute(sa.select(jobs.c.state).where(jobs.c.kind == KIND)).scalar())
            kept = await db.read(lambda connection: connection.execute(sa.select(settings.c.value)).scalars().all())
            assert SECRET not in json.dumps(kept)
            await db.write(park)
        return str(state)

    await started_with()
    assert await started_with() == "parked"
    assert await started_with(command_prefixes=["/", "!"]) == "parked"
    keyed = {"models": {"small": {"name": "tiny", "api_key": SECRET}}}
    for change in (
        {"models": {"small": {"name": "tiny"}}},
        keyed,
        {**keyed, "summary": {"model": "small"}},
        {**keyed, "characters": {"default": {"model": "small"}}},
    ):
        assert await started_with(**change) == "waiting"
        assert await started_with(**change) == "parked"

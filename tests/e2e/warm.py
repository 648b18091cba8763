"""Imported by the fork server alone: a gateway has run here once, so that its children find warm what a first start makes for every later one."""

from __future__ import annotations

import asyncio
import gc
import tempfile
from pathlib import Path

from agent.llm.scripted import ScriptedModel
from tests.harness import running


async def _once() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with running(Path(folder), ScriptedModel(lambda _: "warm")) as gateway:
            chat = await gateway.chat()
            await gateway.say(chat, "hello")
            await gateway.answers(chat)


asyncio.run(_once())
gc.collect()
gc.freeze()

"""A message that stands in a chunk, a day, a week, a receipt and a snapshot is forgotten: no store says it any more, then or later (AT-19)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply, ScriptedModel
from memory.columns import metadata
from tests.conftest import FakeClock
from tests.gateway.nights import MODEL
from tests.gateway.rows_house import said, utc_now_at
from tests.gateway.test_forgetting_whole import notice, rows_of
from tests.harness import Running, eventually, running
from tests.talks import asked

CONFIG = {**MODEL, "characters": {"default": {"profile": "calendar"}}, "days": {"tail": 0}}
TALKS = {
    "en": ("marzipan", "My aunt hides the marzipan in the piano", "where does my aunt hide the marzipan, in the piano?", "the bus was late again"),
    "ja": ("マジパン", "叔母はマジパンをピアノに隠している", "叔母はマジパンをピアノのどこに隠す?", "またバスが遅れた"),
    "zh": ("杏仁糖", "我阿姨把杏仁糖藏在钢琴里", "阿姨把杏仁糖藏在钢琴哪里?", "公交车又晚点了"),
}


def script(request: ModelRequest) -> Reply:
    if request.purpose == "chat-summary":
        return said(request)
    return f"Noted: {asked(request)}" if request.purpose == "reply" else "A title"


async def talk(gateway: Running, chat: str, *texts: str, before: int = 0) -> str:
    """Say these and wait for each answer; the id of the last turn. `before`: answers that are there already."""
    for n, text in enumerate(texts, start=before + 1):
        message = (await gateway.say(chat, text))["message_id"]
        await gateway.answers(chat, n)
    return next(each["turn_id"] for each in await gateway.messages(chat) if each["id"] == message)


def holding(folder: Path, word: str, *names: str) -> Callable[[], Any]:
    async def look() -> bool:
        return all([word in await rows_of(folder, {name}) for name in names])

    return look


async def stores(folder: Path, word: str) -> list[str]:
    """Tables and files that say the word."""
    tables = [name for name in metadata.tables if word in await rows_of(folder, {name})]
    files = [path for path in (folder / "workspace").rglob("*") if path.is_file() and not path.name.startswith("yumegate.db")]
    return [*tables, *(str(path) for path in files if word in path.read_text("utf-8", "replace").casefold())]


@pytest.mark.slow
@pytest.mark.rule("RS-189", "RS-21", "RS-166")
@pytest.mark.case("AT-19", "AT-9", "K13")
@pytest.mark.parametrize("language", TALKS)
async def test_what_is_forgotten_stands_in_no_store_after_the_jobs(tmp_path: Path, clock: FakeClock, language: str) -> None:
    word, fact, question, chatter = TALKS[language]
    clock.now = utc_now_at("2026-03-02T12:00")  # a Monday
    async with running(tmp_path, ScriptedModel(script), config=CONFIG, clock=clock) as gateway:
        chat = await gateway.chat()
        await talk(gateway, chat, fact, *(f"{chatter} {n}" for n in range(7)))
    clock.now = utc_now_at("2026-03-10T12:00")
    async with running(tmp_path, ScriptedModel(script), config=CONFIG, clock=clock) as gateway:
        await eventually(holding(tmp_path, word, "message_chunks", "summaries"), within_s=20)
        turn = await talk(gateway, chat, question, before=8)
        receipt = await gateway.get(f"/api/chats/{chat}/turns/{turn}/receipt")
        assert receipt["recall"]["used"]
        await gateway.say(chat, f"/memory forget {word}")
        yes = re.search(r"/memory forget confirm \S+ messages", await notice(gateway, chat, "forget confirm"))
        assert yes is not None
        await gateway.say(chat, yes[0])

        async def forgotten() -> bool:
            return not await stores(tmp_path, word)

        await eventually(forgotten, within_s=20)
        document = await gateway.get(f"/api/recall/chats/{chat}/chunks/export")
        assert word not in json.dumps([document, await gateway.messages(chat)], ensure_ascii=False)
    clock.now = utc_now_at("2026-03-20T12:00")
    async with running(tmp_path, ScriptedModel(script), config=CONFIG, clock=clock):  # what is made anew says it no more
        await eventually(holding(tmp_path, chatter, "message_chunks", "summaries"), within_s=20)
    assert await stores(tmp_path, word) == []

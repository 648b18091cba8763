"""Settings that can be seen and that do something (cases CF-12 and CF-13), letters and names on their way out (CF-03, CF-14), and what an idle
gateway costs (MD-22): through the real doors."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply, Say, ScriptedModel
from channels.message import Account, Address
from gateway.access import Rules
from memory.database import Database
from memory.embedders.hashed import hash_embedder
from memory.ports import Vector
from tests.conftest import FakeClock
from tests.gateway.nights import Night
from tests.harness import Running, eventually, running
from tests.patience import patience
from tests.talks import asked, model, talk

SCRIPTED = {"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "scripted"}


async def told(gateway: Running, command: str) -> str:
    """What a command answers on the page."""
    chat = await gateway.chat()
    await gateway.say(chat, command)

    async def answered() -> str:
        return "\n".join(message["text"] for message in await gateway.messages(chat) if message["role"] == "notice")

    return await eventually(answered)


@pytest.mark.case("CF-12")
@pytest.mark.rule("CH-116", "CH-119", "WO-30")
async def test_the_rule_that_blocks_a_group_is_named_there_and_shown_to_the_operator_with_its_source(tmp_path: Path) -> None:
    rules = Rules(allow=frozenset({"u1"}), groups=frozenset({"g1"}))
    async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}"), rules=rules) as chat:
        chat.says("anybody here?", chat="g1", group=True)
        chat.says("@yume and now?", chat="g1", group=True)
        (answer,) = await chat.shown(chat="g1")
        assert answer.endswith("and now?") and len(chat.requests) == 1
        chat.says("nobody?", chat="g1", group=True)
        await chat.received()
        chat.says("@yume /why", chat="g1", group=True)
        why = (await chat.shown(2, chat="g1"))[-1]
        assert "not-mentioned" in why and "/allow mention off" in why
        (group,) = (await chat.gateway.get("/api/operator/groups"))["groups"]
        assert group.pop("id").startswith("s-")
        assert group == {
            "title": "", "channel": "loopback", "account": "main", "platform_space_id": "g1", "answered": "config", "mention": True,
            "mention_from": "default",
        }  # fmt: skip


@pytest.mark.case("CF-12")
@pytest.mark.rule("WD-119", "WO-30")
async def test_what_counts_is_shown_to_the_operator_with_where_it_comes_from(tmp_path: Path) -> None:
    async with running(
        tmp_path, model(lambda _: "Yes."), config={"summary": {"time": "22:00"}, "model": {**SCRIPTED, "api_key": "sk-TEST-1111"}}
    ) as gateway:

        async def settled() -> dict[str, Any]:
            report = await gateway.get("/api/operator/config")
            assert "sk-TEST-1111" not in str(report)
            return {each["key"]: (each["value"], each["default"], each["source"]) for each in report["settled"]}

        first = await settled()
        assert first["summary.time"] == ('"22:00"', '"23:55"', "file")
        assert first["model.api_key"][2] == "file" and "busy.mode" not in first
        await told(gateway, "/config busy.mode queue")
        assert (await settled())["busy.mode"] == ('"queue"', '"steer"', "override")
        await told(gateway, "/config busy.mode -")
        assert await settled() == first


@pytest.mark.case("CF-13")
@pytest.mark.rule("WD-63", "WD-119")
async def test_the_nightly_rewrite_is_switched_off_in_the_file_or_on_the_page_and_may_be_asked_for(tmp_path: Path, clock: FakeClock) -> None:
    def dreams(request: ModelRequest) -> Reply:
        (note,) = [json.loads(line) for line in request.messages[-1].text.split("\n") if "Likes tea" in line]
        return json.dumps({"entries": [{"text": "Likes tea", "evidence": [note["id"]]}], "dropped": [], "diary": "Tea was spoken of."})

    script, config = ScriptedModel(dreams), {"deep_dream_enabled": False, "model": SCRIPTED}
    async with running(tmp_path, script, config=config, clock=clock) as gateway:

        async def at_night() -> bool:
            page, told = await gateway.get("/api/memory/dreams"), await gateway.get("/api/memory/status")
            assert page["at_night"] == told["dream"]["at_night"]
            return page["at_night"]

        assert not await at_night()
        await told(gateway, "/config deep_dream_enabled true")
        assert await at_night()
        await told(gateway, "/config deep_dream_enabled false")
        assert not await at_night()
        folder = gateway.data_dir.parent
        (folder / "memory").mkdir(exist_ok=True)
        (folder / "memory" / f"{clock():%Y-%m-%d}.md").write_text("- Likes tea\n", encoding="utf-8")
        assert script.requests == []
        await gateway.post("/api/memory/dreams", {"days": 1}, status=202)
        await gateway.settled()
        assert "Likes tea" in (folder / "MEMORY.md").read_text(encoding="utf-8")
        assert len(script.requests) == 1


@pytest.mark.case("CF-13")
@pytest.mark.rule("WD-61", "WD-63")
@pytest.mark.parametrize("on", [True, False])
async def test_switched_off_no_night_rewrites_anything_and_no_call_is_made_for_it(
    sqlite: Database, tmp_path: Path, clock: FakeClock, on: bool
) -> None:
    night = Night(sqlite, tmp_path, clock, deep_dream_enabled=on)
    chat = await night.chat()
    for day in range(3):
        await night.says(chat, f"Word of day {day}")
        clock.advance(days=1)
        await night.look()
        await night.run()
    assert len(night.dreams) == (3 if on else 0)
    assert night.calls == 3, "the summaries of the days"
    await night.close()


@pytest.mark.case("MD-22")
@pytest.mark.rule("WD-52", "WD-62")
async def test_twelve_days_without_talk_cost_no_call_however_long_the_talk_was(sqlite: Database, tmp_path: Path, clock: FakeClock) -> None:
    """There is no heartbeat: what wakes by itself looks every half hour here, and finds nothing to pay for."""
    night = Night(sqlite, tmp_path, clock)
    chat = await night.chat()
    for number in range(40):
        await night.says(chat, f"{number} " + "word " * 1_000)
    clock.advance(days=1)
    await night.look()
    await night.run()
    before = night.calls
    assert before > 0
    for _ in range(12 * 48):
        clock.advance(timedelta(minutes=30))
        await night.look()
        await night.run()
    assert (night.calls, len(night.dreams)) == (before, 1)
    await night.close()


WORDS = "你好 😀 𠮷"


@pytest.mark.case("CF-03")
async def test_words_leave_in_their_own_letters_and_not_as_escapes(tmp_path: Path) -> None:
    async with running(tmp_path, model(lambda _: f"Re: {WORDS}")) as gateway:
        chat = await gateway.chat(title=WORDS)
        async with gateway.http.get(f"{gateway.url}/api/chats/{chat}/events") as stream, asyncio.timeout(patience(10)):
            heard = await stream.content.readline()
            await gateway.say(chat, WORDS)
            while b"event: done" not in heard:
                heard += await stream.content.readany()
        await gateway.post("/api/memories", {"list": "global", "content": WORDS})
        told = [heard.decode()]
        for path in ("/api/chats", f"/api/chats/{chat}/messages", "/api/memories", "/api/memories/export"):
            async with gateway.http.get(f"{gateway.url}{path}") as answer:
                told.append(await answer.text())
    assert [WORDS in each for each in told] == [True] * 5
    assert not any("\\u" in each for each in told)


ODD_IDS = ["tg:GroupMessage:-100", "a%3Ab:c%25", "con", "..", "../../up", "x/y\\z", "中文:😀", " ", 'a<b>"|?*', "aux.md", "n" * 200]


@pytest.mark.case("CF-14")
@pytest.mark.rule("CH-13")
@pytest.mark.parametrize("given", ODD_IDS)
def test_the_name_of_a_chat_reads_back_exactly_whatever_ids_a_platform_has(given: str) -> None:
    for thread in ("", given):
        address = Address(account=Account(channel="loopback", name=given), chat_id=given, thread_id=thread)
        assert Address.parse(str(address)) == address
        assert len(str(address).split(":")) == (4 if thread else 3)


@pytest.mark.case("CF-14")
@pytest.mark.rule("WD-3")
async def test_no_id_of_a_platform_becomes_a_file_name(tmp_path: Path) -> None:
    """Folders are named by ids of ours, which every system takes."""
    async with talk(tmp_path, model(lambda _: Say("Yes.")), rules=Rules(groups=frozenset({"*"}))) as chat:
        for number, given in enumerate(ODD_IDS):
            chat.says("@yume hello", chat=given, sender=f"{number}!{given}"[:200], group=True)
            await chat.until(lambda given=given: chat.texts(given))
        await chat.gateway.settled()
        files = [path.relative_to(tmp_path) for path in tmp_path.rglob("*")]
    assert len([path for path in files if path.parent.name == "spaces"]) == len(ODD_IDS)
    for path in files:
        assert re.fullmatch(r"[\w.-]*\w", path.name, re.ASCII), path
        assert path.stem.lower() not in ("con", "aux", "nul", "prn")


class Held:
    """A hash embedder whose documents wait until they may be made; `sizes` are those of the batches that were asked for."""

    def __init__(self) -> None:
        self._inner = hash_embedder(32)
        self.fingerprint, self.label, self.batch, self.passage_tokens = self._inner.fingerprint, "held", 16, 0
        self.go, self.sizes = asyncio.Event(), list[int]()

    async def dimension(self) -> int:
        return await self._inner.dimension()

    async def documents(self, texts: list[str]) -> list[Vector | None]:
        self.sizes.append(len(texts))
        await self.go.wait()
        return await self._inner.documents(texts)

    async def questions(self, texts: list[str]) -> list[Vector | None]:
        return await self._inner.questions(texts)

    async def close(self) -> None:
        await self._inner.close()


@pytest.mark.case("VX-25")
@pytest.mark.rule("RS-181", "WD-125")
async def test_a_burst_is_answered_while_no_vector_can_be_made_and_they_come_in_batches(tmp_path: Path) -> None:
    held, count, chats = Held(), 200, 20
    unlimited = {"person_per_minute": 0, "chat_per_minute": 0}
    async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}"), config={"rate": unlimited}, embedder=lambda _config: held) as chat:
        for number in range(count):
            chat.says(f"message {number}. " + f"tea{number} " * 90, chat=f"c{number % chats}")
        last = {f"c{number % chats}": f"message {number}." for number in range(count - chats, count)}
        await chat.until(lambda: all(any(words in text for text in chat.texts(at)) for at, words in last.items()), within_s=60)
        assert not held.go.is_set(), "all of them were answered, and not one vector is there"
        held.go.set()

        async def covered() -> bool:
            with closing(sqlite3.connect(f"file:{chat.gateway.data_dir / 'yumegate.db'}?mode=ro", uri=True)) as store:
                (chunks, vectors) = store.execute("SELECT (SELECT count(*) FROM message_chunks), (SELECT count(*) FROM vectors)").fetchone()
            return chunks > chats and vectors >= chunks

        await eventually(covered, within_s=60)
    assert max(held.sizes) > 4 and sum(held.sizes) > 2 * len(held.sizes), held.sizes

"""What was sent for a reply and what would be sent now: looking starts nothing, shows the truth, and only to whom it belongs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agent.llm.port import ModelRequest, Role
from agent.llm.scripted import Call, Reply, ScriptedModel
from channels.loopback import LoopbackPlatform
from channels.message import Account, ChatType, EventKind, InboundEvent
from gateway.arrivals import inbox
from gateway.config import Config
from gateway.prompt_desk import room_of
from memory.recall import chunks, real_talk
from tests.conftest import FakeClock
from tests.gateway.test_challenges import another_person
from tests.gateway.test_memory_files import store
from tests.gateway.test_recall_whole import ask, fill
from tests.harness import Running, eventually, loopback_plan, running
from tests.talks import asked

KEY = "sk-in-config-0123456789abcdef"
TRACES = ("messages", "turns", "memories", "memory_journal", "message_chunks", "summaries", "model_calls", "outbox", "inbox", "jobs", "conversations")


def answers(request: ModelRequest) -> Reply:
    if request.purpose == "reply" and "look it up" in asked(request) and request.messages[-1].role is Role.USER:
        return [Call("memory_search", {"query": "lanterns"})]
    return "A title" if request.purpose != "reply" else "noted"


async def got(gateway: Running, path: str) -> tuple[int, Any]:
    async with gateway.http.get(f"{gateway.url}{path}") as answer:
        return answer.status, await answer.json()


def texts(found: Any) -> list[tuple[str, str]]:
    return [(each["role"], each["text"]) for each in found["messages"]]


def sent(request: ModelRequest) -> list[tuple[str, str]]:
    return [(message.role.value, message.text) for message in request.messages]


def replies(model: ScriptedModel) -> list[ModelRequest]:
    return [request for request in model.requests if request.purpose == "reply"]


def traces(gateway: Running) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(f"file:{gateway.data_dir / 'yumegate.db'}?mode=ro", uri=True)) as store:
        return {name: store.execute(f"SELECT * FROM {name}").fetchall() for name in TRACES}


@pytest.mark.rule("RS-78")
async def at_rest(gateway: Running) -> None:
    """No job waits and the talk is cut for recall: only what is looked at could change something."""
    await gateway.settled()

    async def cut() -> bool:
        return not store(gateway, lambda connection: real_talk.with_work(connection, chunks.SIZE))

    await eventually(cut)


@pytest.mark.parametrize("words", ["Where are the lanterns? Please look it up.", "灯籠はどこ? look it up", "灯笼在哪里？look it up"])
async def test_the_inspector_shows_every_request_of_a_reply_as_it_was_sent(tmp_path: Path, words: str) -> None:
    model = ScriptedModel(answers)
    async with running(tmp_path, model, config={"recall": {"enabled": "on"}}) as gateway:
        chat = await gateway.chat()
        await ask(gateway, chat, "The lanterns hang in the shed.")
        turn = await ask(gateway, chat, words)
        _, first, second = replies(model)
        _, last = await got(gateway, f"/api/chats/{chat}/turns/{turn}/prompt")
        assert texts(last) == sent(second)
        assert [each["name"] for each in last["tools"]] == [tool.name for tool in second.tools]
        assert (last["number"], last["requests"], last["model"], last["attempt"]) == (2, 2, model.name, 1)
        assert last["messages"][-2]["calls"] == [{"name": "memory_search", "arguments": '{"query": "lanterns"}'}]
        _, before = await got(gateway, f"/api/chats/{chat}/turns/{turn}/prompt?number=1")
        assert texts(before) == sent(first)
        assert (await got(gateway, f"/api/chats/{chat}/turns/{turn}/prompt?number=3"))[1]["error"]["code"] == "not_kept"


@pytest.mark.rule("RS-78", "RS-15")
async def test_a_preview_calls_no_model_recalls_nothing_and_leaves_no_trace(tmp_path: Path) -> None:
    model = ScriptedModel(answers)
    fact = "My sister Kaede opened a bakery in Sapporo."
    async with running(tmp_path, model, config={"agent_max_context_turns": 3}) as gateway:
        await gateway.post("/api/memories", {"list": "global", "content": "Kaede is the sister of the person."})
        chat = await gateway.chat()
        await fill(gateway, chat, fact, [f"bus {n}" for n in range(8)])
        await at_rest(gateway)
        before, calls = traces(gateway), len(model.requests)
        status, found = await got(gateway, f"/api/chats/{chat}/preview")
        assert (status, len(model.requests)) == (200, calls)
        assert traces(gateway) == before
        told = "\n".join(text for _, text in texts(found))
        assert "Kaede is the sister" in told
        assert "[recalled from earlier talk" not in told
        assert fact not in "\n".join(text for role, text in texts(found) if role == "user")
        await ask(gateway, chat, "what did my sister open in Sapporo?")
        assert fact in sent(replies(model)[-1])[-1][1]  # the same question, asked in earnest, recalls it


@pytest.mark.rule("RS-78")
@pytest.mark.parametrize("profile", ["assistant", "companion", "calendar"])
async def test_a_preview_is_what_the_next_reply_sends_but_for_the_message(tmp_path: Path, profile: str) -> None:
    model = ScriptedModel(answers)
    config = {"recall": {"enabled": "off"}, "channel_profiles": {"web": profile}, "characters": {"default": {"prompt": "You tend the lanterns."}}}
    async with running(tmp_path, model, config=config) as gateway:
        await gateway.post("/api/memories", {"list": "global", "content": "The person rows."})
        chat = await gateway.chat()
        await fill(gateway, chat, "one", ["two", "three"])
        _, shown = await got(gateway, f"/api/chats/{chat}/preview")
        turn = await ask(gateway, chat, "four")
        request = replies(model)[-1]
        assert texts(shown)[:-1] == sent(request)[:-1]
        assert texts(shown)[-1][1].endswith("(your next message)")
        assert [tool["name"] for tool in shown["tools"]] == [tool.name for tool in request.tools]
        receipt = await gateway.get(f"/api/chats/{chat}/turns/{turn}/receipt")
        sizes = {each["name"]: each["tokens"] for each in receipt["sections"]}
        foreseen = {each["name"]: each["tokens"] for each in shown["sections"]}
        assert {name: foreseen[name] for name in ("tools", "instructions", "saved", "history")} == {
            name: sizes[name] for name in ("tools", "instructions", "saved", "history")
        }


@pytest.mark.rule("RS-78")
@pytest.mark.parametrize(("role", "status"), [("admin", 403), ("user", 200)])
async def test_only_the_person_of_a_chat_looks_and_only_from_the_set_role_on(tmp_path: Path, role: str, status: int) -> None:
    model = ScriptedModel(answers)
    async with running(tmp_path, model, config={"inspector": {"role": role}}) as gateway:
        mine = await gateway.chat()
        turn = await ask(gateway, mine, "a word of the owner")
        async with another_person(gateway) as sakura:
            chat = await sakura.chat()
            said = await sakura.say(chat, "a word of Sakura")
            await eventually(lambda: _told(model, "a word of Sakura"))
            paths = [f"/api/chats/{chat}/preview", f"/api/chats/{chat}/turns/{said['turn_id']}/prompt"]

            async def hers_now() -> bool:
                return [(await got(sakura, path))[0] for path in paths] == [status, status]

            await eventually(hers_now)
            for path in paths:  # an owner reads no private chat of others
                assert (await got(gateway, path))[0] == 404
            others = 404 if status == 200 else 403
            for path in (f"/api/chats/{mine}/preview", f"/api/chats/{mine}/turns/{turn}/prompt"):
                assert (await got(sakura, path))[0] == others
                assert (await got(gateway, path))[0] == 200
            async with aiohttp.ClientSession() as nobody:
                assert (await got(replace(gateway, http=nobody), paths[0]))[0] == 401


async def _told(model: ScriptedModel, words: str) -> bool:
    return any(words in asked(request) for request in replies(model))


@pytest.mark.rule("RS-78")
async def test_of_a_group_nothing_is_shown(tmp_path: Path) -> None:
    model, platform = ScriptedModel(answers), LoopbackPlatform()
    async with running(tmp_path, model, channels=(loopback_plan(platform),)) as gateway:
        platform.says("g1", "@yume hello", group=True)

        async def answered() -> bool:
            return bool(replies(model))

        await eventually(answered)
        with closing(sqlite3.connect(gateway.data_dir / "yumegate.db")) as store:
            [(chat, turn)] = store.execute("SELECT conversation_id, id FROM turns").fetchall()
        for path in (f"/api/chats/{chat}/preview", f"/api/chats/{chat}/turns/{turn}/prompt"):
            assert (await got(gateway, path))[0] == 404


@pytest.mark.rule("RS-78", "SM-88")
async def test_of_a_challenge_nothing_is_shown_to_who_plays_it(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel(answers)) as gateway:
        chat = await gateway.chat(kind="challenge")
        turn = await ask(gateway, chat, "open the gate")
        for path in (f"/api/chats/{chat}/preview", f"/api/chats/{chat}/turns/{turn}/prompt"):
            assert (await got(gateway, path))[0] == 404


@pytest.mark.rule("RS-78")
async def test_prompts_are_few_and_go_after_a_while(tmp_path: Path, clock: FakeClock) -> None:
    async with running(tmp_path, ScriptedModel(answers), config={"inspector": {"replies": 2, "minutes": 5}}, clock=clock) as gateway:
        chat, other = await gateway.chat(), await gateway.chat()
        kept_elsewhere = await ask(gateway, other, "elsewhere")
        turns = [await ask(gateway, chat, word) for word in ("one", "two", "three")]

        async def shown() -> list[int]:
            return [(await got(gateway, f"/api/chats/{chat}/turns/{turn}/prompt"))[0] for turn in turns]

        assert await shown() == [404, 200, 200]
        assert (await got(gateway, f"/api/chats/{other}/turns/{kept_elsewhere}/prompt"))[0] == 200
        clock.advance(minutes=6)
        assert await shown() == [404, 404, 404]
        code = (await got(gateway, f"/api/chats/{chat}/turns/{turns[2]}/prompt"))[1]["error"]
        assert (code["code"], "not kept" in code["message"]) == ("not_kept", True)


@pytest.mark.rule("RS-78")
async def test_switched_off_nothing_is_kept(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel(answers), config={"inspector": {"replies": 0}}) as gateway:
        chat = await gateway.chat()
        turn = await ask(gateway, chat, "one")
        assert (await got(gateway, f"/api/chats/{chat}/turns/{turn}/prompt"))[1]["error"]["code"] == "not_kept"
        assert (await got(gateway, f"/api/chats/{chat}/preview"))[0] == 200


@pytest.mark.rule("RS-78", "WD-92")
async def test_a_prompt_goes_with_a_word_of_it_that_is_taken_back(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel(answers)) as gateway:
        chat = await gateway.chat()
        await ask(gateway, chat, "the safe opens with 4711")
        turn = await ask(gateway, chat, "what a day")
        other = await gateway.chat()
        elsewhere = await ask(gateway, other, "hello")
        assert (await got(gateway, f"/api/chats/{chat}/turns/{turn}/prompt"))[0] == 200
        first = (await gateway.messages(chat))[0]["id"]
        await gateway.say(chat, "the safe is open", replaces=first)  # edited and sent again: what came after leaves the talk
        assert (await got(gateway, f"/api/chats/{chat}/turns/{turn}/prompt"))[0] == 404
        assert (await got(gateway, f"/api/chats/{other}/turns/{elsewhere}/prompt"))[0] == 200


@pytest.mark.rule("RS-78", "RS-189")
@pytest.mark.parametrize("kind", [EventKind.EDITED, EventKind.DELETED])
async def test_a_prompt_goes_too_when_what_is_taken_back_is_only_in_a_summary_of_it(tmp_path: Path, kind: EventKind) -> None:
    """A message of long ago that its platform reports as edited or deleted."""
    async with running(tmp_path, ScriptedModel(answers)) as gateway:
        chat, other = await gateway.chat(), await gateway.chat()
        turn, elsewhere = await ask(gateway, chat, "what a day"), await ask(gateway, other, "hello")
        event = InboundEvent(
            kind=kind, platform_event_id="e1", account=Account(channel="web"), chat_id=chat, chat_type=ChatType.DM, received_at=datetime.now(UTC)
        )
        store(gateway, lambda c: inbox.store(c, event, state="done", conversation_id=chat, now=datetime.now(UTC)))
        assert (await got(gateway, f"/api/chats/{chat}/turns/{turn}/prompt"))[0] == 404
        assert (await got(gateway, f"/api/chats/{other}/turns/{elsewhere}/prompt"))[0] == 200


@pytest.mark.rule("RS-78", "RL-32")
async def test_a_secret_of_the_configuration_is_never_shown(tmp_path: Path) -> None:
    model = ScriptedModel(answers)
    account = {"provider": "openai", "base_url": "http://127.0.0.1:9", "name": "m", "api_key": KEY}
    async with running(tmp_path, model, config={"model": account}) as gateway:
        chat = await gateway.chat()
        turn = await ask(gateway, chat, f"my key is {KEY}")
        for path in (f"/api/chats/{chat}/turns/{turn}/prompt", f"/api/chats/{chat}/preview"):
            _, found = await got(gateway, path)
            assert KEY not in str(found)
            assert "my key is ***" in str(found)


@pytest.mark.rule("RS-64", "RS-63")
@pytest.mark.parametrize(
    ("context", "advised", "memory"),
    [({}, False, 6_500), ({"memory_budget": 6_499}, True, 6_499), ({"ceiling": 200_000}, True, 6_500), ({"ceiling": 8_000}, False, 2_000)],
)
def test_a_budget_below_a_tenth_of_its_ceiling_is_advised_against(context: dict[str, int], advised: bool, memory: int) -> None:
    room = room_of(Config.model_validate({"context": context}), 1_000_000, 1_000_000)
    assert (room.advised, room.memory) == (advised, memory)


@pytest.mark.rule("RS-63")
async def test_each_kind_of_content_raises_the_estimate_and_it_is_called_one(tmp_path: Path) -> None:
    async def sizes(name: str, config: dict[str, Any], *said: str, files: tuple[bytes, ...] = ()) -> dict[str, int]:
        async with running(tmp_path / name, ScriptedModel(answers), config=config) as gateway:
            chat = await gateway.chat()
            for words in said[:-1]:
                await ask(gateway, chat, words)
            ids = [await _upload(gateway, data) for data in files]
            turn = (await gateway.say(chat, said[-1], attachments=ids))["turn_id"]
            await gateway.answers(chat, len(said))
            receipt = await gateway.get(f"/api/chats/{chat}/turns/{turn}/receipt")
            assert receipt["estimates"] == ["sections"]
            found = {each["name"]: each["tokens"] for each in receipt["sections"]}
            return {**found, "all": sum(found.values())}

    plain = await sizes("plain", {}, "hi there")
    instructed = await sizes("instructed", {"characters": {"default": {"prompt": "You are a lighthouse keeper of few words."}}}, "hi there")
    talked = await sizes("talked", {}, "the harbour is full of boats", "hi there")
    filed = await sizes("filed", {}, "hi there", files=(b"a list of boats: heron, tern, plover",))
    facts = ("The heron sleeps by the northern lighthouse.", *(f"bus {n}" for n in range(8)), "where does the heron sleep?")
    off = await sizes("off", {"agent_max_context_turns": 3, "recall": {"enabled": "off"}}, *facts)
    recalled = await sizes("on", {"agent_max_context_turns": 3}, *facts)
    assert plain["tools"] > 0
    assert instructed["instructions"] > plain["instructions"]
    assert talked["history"] > plain["history"]
    assert filed["message"] > plain["message"]
    assert recalled["all"] > off["all"]


async def _upload(gateway: Running, data: bytes) -> str:
    form = aiohttp.FormData()
    form.add_field("file", data, filename="boats.txt", content_type="text/plain")
    async with gateway.http.post(f"{gateway.url}/api/attachments", data=form) as answer:
        assert answer.status < 300, await answer.text()
        return (await answer.json())["id"]

"""Window profiles in the running gateway: which one a chat has, what leaves and when, and that switching changes nothing stored (RS-1 to RS-8)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.llm.port import ModelRequest, Role
from agent.llm.scripted import Reply, Say, ScriptedModel, Until
from gateway import windows
from gateway.config import Config
from gateway.config.load import load
from memory import conversations
from memory.database import Database
from memory.profiles import BUILT_IN
from memory.recall.kinds import ROLLING, Kind
from memory.schema import jobs
from tests.conftest import FakeClock
from tests.gateway.nights import MODEL, each_said
from tests.gateway.rows_house import RowsHouse, utc_now_at
from tests.harness import eventually, running
from tests.talks import asked


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[RowsHouse]:
    clock.now = utc_now_at("2026-03-09T12:00")
    made = RowsHouse(database, tmp_path, clock)
    await made.person()
    yield made
    await made.close()


def config_of(**values: Any) -> Config:
    return Config.model_validate(values, strict=False)


def loaded(tmp_path: Path, **values: Any) -> Any:
    (tmp_path / "config.json").write_text(json.dumps({"timezone": "UTC", **values}), encoding="utf-8")
    return load(tmp_path / "config.json", {})


async def a_chat(house: RowsHouse) -> conversations.Conversation:
    return await house.conversation(await house.chat())


@pytest.mark.rule("RS-1")
async def test_the_profile_is_that_of_the_chat_else_the_character_else_the_account_else_the_channel(house: RowsHouse) -> None:
    chat = await a_chat(house)
    assert windows.profile_of(config_of(), chat).name == "assistant"
    channel = {"telegram": "companion", "telegram:other": "calendar"}
    assert windows.profile_of(config_of(channel_profiles=channel), chat).name == "companion"
    account = channel | {"telegram:main": "calendar"}
    assert windows.profile_of(config_of(channel_profiles=account), chat).name == "calendar"
    both = config_of(channel_profiles=account, characters={"default": {"profile": "companion"}})
    assert windows.profile_of(both, chat).name == "companion"
    assert windows.profile_of(both, replace(chat, profile="assistant")).name == "assistant"
    assert windows.profile_of(both, replace(chat, profile="unheard of")).name == "companion", "an unknown name counts as none"


@pytest.mark.rule("RS-3", "RS-5")
def test_the_built_in_ones_have_the_limits_of_the_configuration() -> None:
    known = windows.known(config_of())
    assert {name: known[name] for name in BUILT_IN} == dict(BUILT_IN)
    companion = {"messages": 7, "tokens": 900, "context_share": 0.5, "block": 3}
    known = windows.known(config_of(agent_max_context_turns=4, agent_max_context_tokens=5_000, companion=companion))
    assert (known["assistant"].turns, known["assistant"].tokens) == (4, 5_000)
    found = known["companion"]
    assert (found.messages, found.tokens, found.context_share, found.block) == (7, 900, 0.5, 3)


@pytest.mark.rule("RS-2")
@pytest.mark.parametrize("fault", [{"tokns": 5}, {"messages": 501}, {"drop": "everything"}, {"sent": 7}], ids=str)
def test_one_bad_profile_is_named_with_its_key_and_left_out_and_the_others_load(tmp_path: Path, fault: dict[str, Any]) -> None:
    good = {"messages": 30, "drop": "block", "sent": "rolling"}
    found = loaded(tmp_path, profiles={"one": good, "bad": good | fault, "two": {"turns": 5, "stored": "calendar"}})
    assert found.config is not None
    known = windows.known(found.config)
    assert sorted(set(known) - set(BUILT_IN)) == ["one", "two"]
    assert (known["one"].messages, known["one"].drop, known["one"].sent) == (30, "block", ROLLING)
    assert known["two"].turns == 5
    assert Kind.DAY in known["two"].stored
    [told] = found.faults
    assert (told.path, told.severity, told.fails_check) == (f"profiles.bad.{next(iter(fault))}", "warning", True)
    assert "left out" in told.message


@pytest.mark.rule("RS-2")
def test_a_profile_that_is_not_there_is_told_where_it_is_named(tmp_path: Path) -> None:
    named: dict[str, Any] = {"characters": {"c": {"profile": "companon"}}, "channel_profiles": {"web": "nothing"}, "profiles": {"assistant": {}}}
    found = loaded(tmp_path, **named)
    assert found.config is not None
    assert {fault.path for fault in found.faults} == {"characters.c.profile", "channel_profiles.web", "profiles.assistant"}
    assert any('did you mean "companion"' in fault.hint for fault in found.faults)
    assert windows.known(found.config)["assistant"].turns == 20, "the built-in one holds"


@pytest.mark.rule("RS-6")
@pytest.mark.parametrize(("block", "kept"), [(10, 41), (1, 50)])
async def test_with_the_51st_message_a_block_leaves_and_never_more_than_50_are_sent(house: RowsHouse, block: int, kept: int) -> None:
    await house.set(companion={"block": block})
    chat = await house.made()
    for n in range(50):
        await house.asks(chat, f"m{n}")
    assert len(await house.live(chat)) == 50
    await house.asks(chat, "m50")
    assert await house.live(chat) == [f"m{n}" for n in range(51 - kept, 51)]
    for n in range(51, 75):
        await house.asks(chat, f"m{n}")
        assert len(await house.live(chat)) <= 50


@pytest.mark.rule("RS-6")
async def test_twelve_long_messages_lose_a_fifth_of_the_limit(house: RowsHouse) -> None:
    await house.set(model={**house.config.model.model_dump(), "context_window": 40_000, "api_key": ""})
    chat = await house.made()
    for n in range(12):
        await house.asks(chat, f"m{n:02} " + "word " * 663)  # about 900 tokens each
    live = await house.live(chat)
    assert [each[:3] for each in live] == [f"m{n:02}" for n in range(3, 12)]


@pytest.mark.rule("RS-7")
async def test_a_message_that_alone_is_too_large_is_sent_whole_and_everything_older_leaves(house: RowsHouse) -> None:
    chat = await house.made()
    for n in range(5):
        await house.asks(chat, f"m{n}")
    await house.asks(chat, "long " * 9_000)
    assert await house.live(chat) == ["long " * 9_000]


@pytest.mark.rule("RS-1")
@pytest.mark.parametrize("other", ["companion", "calendar"])
async def test_switching_there_and_back_gives_the_first_prompt_again(house: RowsHouse, other: str) -> None:
    house.profile = "assistant"
    chat = await house.made()
    first = [(await house.says(chat, f"m{n}")).seq for n in range(12)]
    await house.leaves(chat, first[0], first[5])
    house.script = each_said
    await house.run("trim-summary")
    before = await house.live(chat), await house.stands(chat)
    assert "Said: m0" in before[1]
    await house.change(chat, profile=other)
    middle = await house.live(chat), await house.stands(chat)
    assert "Said: m0" in middle[1], "what stood for turns that left stands until a row of this profile does"
    await house.change(chat, profile="assistant")
    assert (await house.live(chat), await house.stands(chat)) == before


@pytest.mark.rule("RS-12", "RS-52")
@pytest.mark.parametrize(
    ("record", "base", "kept"), [("", "full", True), ("recall_only", "full", False), ("full", "recall_only", False), ("none", "full", False)]
)
async def test_where_no_summary_may_be_kept_what_leaves_leaves_without_extract_and_job(house: RowsHouse, record: str, base: str, kept: bool) -> None:
    await house.set(recall={"record": base}, companion={"messages": 5, "block": 5})
    chat = await house.made(record=record)
    for n in range(7):
        await house.asks(chat, f"m{n}")
    assert ("m0" in await house.stands(chat)) is kept
    found = await house.db.read(lambda c: c.execute(sa.select(jobs.c.kind)).scalars().all())
    assert (list(found) == ["rolling"]) is kept


@pytest.mark.rule("RS-5", "RS-43", "RS-44", "RS-71")
async def test_a_companion_answers_at_once_with_extracts_and_later_with_summaries(tmp_path: Path) -> None:
    """A whole gateway; the helper is blocked until the replies are there."""
    held = asyncio.Event()

    def answer(request: ModelRequest) -> Reply:
        if request.purpose == "chat-summary":
            return [Until(held), Say('{"text": "They counted."}')]
        return "A title" if request.purpose != "reply" else f"Re: {asked(request)}"

    own = {**MODEL, "companion": {"messages": 6, "block": 2}, "channel_profiles": {"web": "companion"}}
    scripted = ScriptedModel(answer)

    def replies() -> list[ModelRequest]:
        return [request for request in scripted.requests if request.purpose == "reply"]

    async with running(tmp_path, scripted, config=own) as gateway:
        page = await gateway.chat()
        for n in range(1, 8):
            await gateway.say(page, f"number {n}")
            await gateway.answers(page, n)
        last = replies()[-1].messages
        talk = [message.text for message in last if message.role is not Role.SYSTEM]
        assert len(talk) <= 6
        assert "not summarised yet" in last[0].text
        assert "number 1" in last[0].text

        async def summarised() -> bool:
            return sum(request.purpose == "chat-summary" for request in scripted.requests) >= 1

        await eventually(summarised)
        held.set()

        async def told() -> bool:
            await gateway.say(page, "and now")
            await gateway.answers(page, len(replies()))
            return "They counted." in replies()[-1].messages[0].text

        await eventually(told, every_s=0.2)

"""The edge of the window at the ceiling of a prompt, in a whole gateway: one jump, what it leaves, the way back (RS-7, RS-67 to RS-69)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.errors import ContextOverflow
from agent.llm.port import ModelRequest
from agent.llm.scripted import Call, Fail, Reply, ScriptedModel
from memory import tokens
from tests.agent.turns import FakeTool
from tests.harness import Running, eventually, running
from tests.talks import asked

CEILING = 8_000
LONG = "word " * 700  # about 950 tokens
PROFILES = ("assistant", "companion", "calendar", "own")


def config(profile: str, *, ceiling: int = CEILING, **more: Any) -> dict[str, Any]:
    return {
        "model": {"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "name": "scripted", "context_window": 400_000},
        "agent_max_context_turns": 500,
        "companion": {"messages": 500, "tokens": 200_000},
        "profiles": {"own": {"turns": 400, "sent": "blocks"}},
        "channel_profiles": {"web": profile, "loopback": profile},
        "context": {"ceiling": ceiling},
        "recall": {"enabled": "off"},
        **more,
    }


def answer(request: ModelRequest) -> Reply:
    if request.purpose == "chat-summary":
        return '{"text": "They counted.", "details": []}'
    return f"Re: {asked(request)[:4]}" if request.purpose == "reply" else "A title"


def scripted(script: Any = answer) -> ScriptedModel:
    return ScriptedModel(script, context_window=400_000, supports_tools=False, count_tokens=tokens.count)


def sent(model: ScriptedModel) -> list[int]:
    """The numbers of the questions that the last prompt for a reply shows word for word."""
    request = [each for each in model.requests if each.purpose == "reply"][-1]
    return [int(found) for message in request.messages[1:] for found in re.findall(r"\bm(\d+) word", message.text)]


def head(model: ScriptedModel) -> str:
    return next(each for each in reversed(model.requests) if each.purpose == "reply").messages[0].text


async def ask(gateway: Running, chat: str, text: str) -> dict[str, Any]:
    """Say something, wait for the answer; its receipt."""
    said = (await gateway.say(chat, text))["message_id"]

    async def answered() -> str | None:
        log = await gateway.messages(chat)
        turn = next((each["turn_id"] for each in log if each["id"] == said), None)
        return turn if turn and any(each["turn_id"] == turn and each["role"] == "assistant" for each in log) else None

    return await gateway.get(f"/api/chats/{chat}/turns/{await eventually(answered)}/receipt")


async def until_it_jumps(gateway: Running, chat: str, *, first: int = 0) -> tuple[int, dict[str, Any]]:
    """Asks `m0 …`, `m1 …` until the edge jumps: the number of that question, and its receipt."""
    for n in range(first, first + 60):
        told = await ask(gateway, chat, f"m{n} {LONG}")
        assert size(told) < told["window"]["ceiling"]
        if told["window"]["jump"] is not None:
            return n, told
    raise AssertionError("it never jumped")


def size(told: Mapping[str, Any]) -> int:
    return sum(section["tokens"] for section in told["sections"])


@pytest.mark.rule("RS-67", "RS-63")
@pytest.mark.parametrize("profile", PROFILES)
async def test_the_edge_jumps_once_and_the_window_grows_again(tmp_path: Path, profile: str) -> None:
    model = scripted()
    async with running(tmp_path, model, config=config(profile)) as gateway:
        chat = await gateway.chat()
        n, told = await until_it_jumps(gateway, chat)
        kept = sent(model)
        assert told["window"]["ceiling"] == pytest.approx(CEILING, rel=0.35)
        assert told["window"]["jump"]["messages"] == 2 * (n + 1 - len(kept)), "questions and answers leave together"
        assert kept == list(range(kept[0], n + 1))
        assert size(told) < 0.6 * told["window"]["ceiling"], "under 60 % after it"
        assert size(told) + 1_000 > 0.6 * told["window"]["ceiling"], "and the next older turn would not have been"
        later = await ask(gateway, chat, f"m{n + 1} {LONG}")
        assert later["window"]["jump"] is None
        assert sent(model) == list(range(kept[0], n + 2))
        again, _ = await until_it_jumps(gateway, chat, first=n + 2)
        assert again > n + 2


@pytest.mark.rule("RS-67")
@pytest.mark.parametrize("profile", PROFILES)
async def test_room_that_comes_later_brings_nothing_back_and_what_left_is_stood_for(tmp_path: Path, profile: str) -> None:
    model = scripted()
    async with running(tmp_path, model, config=config(profile)) as gateway:
        chat = await gateway.chat()
        n, _ = await until_it_jumps(gateway, chat)
        kept = sent(model)
        assert "summary of earlier talk" in head(model), "in the very prompt of the jump"
    model = scripted()
    async with running(tmp_path, model, config=config(profile, ceiling=60_000)) as gateway:
        told = await ask(gateway, chat, f"m{n + 1} {LONG}")
        assert told["window"]["jump"] is None
        assert sent(model) == list(range(kept[0], n + 2))


@pytest.mark.rule("RS-12", "RS-67")
@pytest.mark.parametrize("profile", ["assistant", "companion", "calendar"])
async def test_where_no_summary_may_be_kept_nothing_stands_for_what_left(tmp_path: Path, profile: str) -> None:
    model = scripted()
    async with running(tmp_path, model, config=config(profile, recall={"record": "none"})) as gateway:
        chat = await gateway.chat()
        await until_it_jumps(gateway, chat)
        await ask(gateway, chat, "and now")
        assert "summary of earlier talk" not in head(model)
        assert "earlier today" not in head(model)
        assert all(request.purpose != "chat-summary" for request in model.requests)


@pytest.mark.rule("RS-68")
@pytest.mark.parametrize("profile", PROFILES)
async def test_what_was_undone_stays_undone_until_the_rest_fills_the_prompt_by_itself(tmp_path: Path, profile: str) -> None:
    model = scripted()
    async with running(tmp_path, model, config=config(profile)) as gateway:
        chat = await gateway.chat()
        n, told = await until_it_jumps(gateway, chat)
        kept = sent(model)
        await gateway.say(chat, "/context undo")

        async def undone() -> bool:
            return any("in the context again" in each["text"] for each in await gateway.messages(chat))

        await eventually(undone)
        for more in (n + 1, n + 2):
            told = await ask(gateway, chat, f"m{more} {LONG}")
            assert told["window"]["jump"] is None, "no jump back at once"
            assert told["trimmed_messages"] > 0, "what does not fit is left out of this prompt, and the receipt says so"
            assert sent(model)[0] < kept[0], "more is sent than the jump had left"
            assert sent(model)[-1] == more
        again, told = await until_it_jumps(gateway, chat, first=n + 3)
        assert told["window"]["jump"]["edge"] > told["window"]["jump"]["before"]
        assert sent(model)[0] > kept[0]
        assert size(told) < 0.6 * told["window"]["ceiling"]
        assert head(model).count("m0 word") <= 1, "nothing stands there twice"
        assert again > n + 3


@pytest.mark.rule("RS-69")
@pytest.mark.parametrize(("profile", "refused"), [*((profile, False) for profile in PROFILES), ("calendar", True), ("assistant", True)])
async def test_a_tool_result_that_crosses_the_ceiling_causes_no_jump(tmp_path: Path, profile: str, refused: bool) -> None:
    """Neither before the next call, nor when the provider refuses that one as too long."""
    refusals: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Reply:
        called = any(message.tool_calls for message in request.messages)
        if request.purpose == "reply" and asked(request).startswith("read") and not called:
            return [Call("read_it", {"q": "all"})]
        if called and refused and not refusals:
            refusals.append(request)
            return Fail(ContextOverflow("too long", limit=19_800, sent=20_000))
        return f"Re: {asked(request)[:4]}" if request.purpose == "reply" else "A title"

    model = ScriptedModel(answer, context_window=400_000, count_tokens=tokens.count)
    tool = FakeTool("read_it", answer="begin " + "word " * 9_000 + "end")
    async with running(tmp_path, model, config=config(profile, ceiling=20_000), tools=[tool]) as gateway:
        chat = await gateway.chat()
        for n in range(6):
            await ask(gateway, chat, f"m{n} {LONG}")
        told = await ask(gateway, chat, "read all")
        assert told["calls"] == 2 + refused
        assert told["window"]["jump"] is None
        later = await ask(gateway, chat, "m6 word")
        assert later["window"]["jump"] is None
        assert sent(model) == list(range(7)), "the whole talk is there again"


@pytest.mark.rule("RS-7")
@pytest.mark.parametrize(("profile", "limits"), [
    ("assistant", {"agent_max_context_tokens": 6_000}), ("companion", {"companion": {"messages": 500, "tokens": 6_000}}), ("calendar", {}),
    ("own", {"profiles": {"own": {"messages": 400, "tokens": 6_000}}}),
])  # fmt: skip
async def test_the_receipt_says_when_the_newest_message_alone_passed_the_limit(tmp_path: Path, profile: str, limits: dict[str, Any]) -> None:
    model = scripted()
    async with running(tmp_path, model, config=config(profile, ceiling=12_000, **limits)) as gateway:
        chat = await gateway.chat()
        plain = await ask(gateway, chat, f"m0 {LONG}")
        assert plain["window"]["newest_alone"] is False
        huge = "m1 " + "word " * (9_500 if profile == "calendar" else 5_000)
        told = await ask(gateway, chat, huge)
        assert told["window"]["newest_alone"] is True
        assert (await ask(gateway, chat, "m2 word"))["window"]["newest_alone"] is False

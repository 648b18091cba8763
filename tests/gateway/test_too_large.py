"""What cannot fit a prompt stops the turn before anything leaves the window, in a whole gateway; that and the jump are foretold (RS-70, RS-78)."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agent.llm.estimate import input_tokens
from agent.llm.port import ModelRequest, Usage
from agent.llm.scripted import End, Reply, Say, ScriptedModel
from gateway.config.load import load
from gateway.language import say
from memory import tokens
from tests.conftest import FakeClock
from tests.gateway.test_edge_jump import LONG, answer, ask, config, scripted, size
from tests.gateway.test_preview import at_rest, got, replies, sent, texts, traces
from tests.harness import Running, eventually, running
from tests.talks import asked

WORDS = {"en": "A keeper of lanterns. ", "ja": "灯籠の番人です。", "zh": "看守灯笼的人。"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """`says`: in the sentence that the person is told; `foretold`: it is known before there is a message."""

    code: str
    language: str
    says: tuple[str, ...]
    ceiling: int = 5_000
    prompt: str = ""
    pins: int = 0
    files: int = 0
    window: int = 400_000
    longest_answer: int = 0
    foretold: bool = True


def keeper(language: str) -> str:
    return WORDS[language] * (5_500 // tokens.count(WORDS[language]))


CASES = {
    "instructions": Case(
        code="instructions_room", language="en", prompt=keeper("en"), says=("instructions alone", "Shorten", "or raise context.ceiling (now 5,000)")
    ),
    "instructions in Japanese": Case(
        code="instructions_room", language="ja", prompt=keeper("ja"), says=("指示だけで", "短くするか", "context.ceiling（現在 5,000）を上げて")
    ),
    "instructions in Chinese": Case(
        code="instructions_room", language="zh", prompt=keeper("zh"), says=("仅指令", "请缩短", "或调高 context.ceiling（现为 5,000）")
    ),
    "a small model": Case(
        code="instructions_room", language="en", prompt=keeper("en"), ceiling=60_000, window=6_000, says=("a larger window",)
    ),
    "pins": Case(code="pins_room", language="ja", pins=20, ceiling=2_000, says=("ピン留めされた記憶だけで", "ピンを外すか", "（現在 2,000）")),
    "attachments": Case(code="attachments_room", language="zh", files=1, says=("附件太大", "更少或更小的文件", "（现为 5,000）"), foretold=False),
    "answer": Case(
        code="answer_room", language="en", ceiling=60_000, window=6_000, longest_answer=5_900,
        says=("5,900 tokens, leaves too little of its 6,000", "Lower max_output_tokens"),
    ),
}  # fmt: skip


def model_of(case: Case) -> ScriptedModel:
    return ScriptedModel(answer, context_window=case.window, answer_tokens=case.longest_answer, supports_tools=False, count_tokens=tokens.count)


async def stopped(gateway: Running, chat: str, text: str, **more: Any) -> str:
    """Say something that cannot be answered: what is told instead."""
    before = len(await gateway.messages(chat))
    await gateway.say(chat, text, **more)

    async def told() -> str:
        found = (await gateway.messages(chat))[before:]
        return found[1]["text"] if len(found) > 1 else ""

    return await eventually(told)


def without_numbers(text: str) -> str:
    return re.sub(r"\d[\d,]*", "#", text)


def moved(gateway: Running) -> list[Any]:
    """What a jump would change: the edge, what is kept with it, what stands for the talk, jobs."""
    with closing(sqlite3.connect(f"file:{gateway.data_dir / 'yumegate.db'}?mode=ro", uri=True)) as store:
        edge = store.execute("SELECT window_edge, settings FROM conversations").fetchall()
        return [edge, *(store.execute(f"SELECT * FROM {name}").fetchall() for name in ("summary_blocks", "summaries", "jobs"))]


@pytest.mark.rule("RS-70", "SM-28")
@pytest.mark.case("AT-23")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_what_is_too_large_by_itself_stops_the_turn_before_anything_leaves(tmp_path: Path, case: Case) -> None:
    clock = FakeClock()  # a day that began meanwhile would have its jobs
    async with running(tmp_path, scripted(), config=config("companion", ceiling=60_000), clock=clock) as gateway:
        async with gateway.http.patch(f"{gateway.url}/api/me", json={"language": case.language}) as done:
            assert done.status == 200
        chat = await gateway.chat()
        for n in range(4):
            await ask(gateway, chat, f"m{n} {LONG}")
        for n in range(case.pins):
            row = (await gateway.post("/api/memories", {"list": "global", "content": f"{n} {'rows on the lake at dusk ' * 15}"}))["memory"]
            await gateway.post(f"/api/memories/{row['id']}/pin")
        files = [await upload(gateway, b"heron, tern, plover\n" * 1_400) for _ in range(case.files)]
    tight = config("companion", ceiling=case.ceiling, characters={"default": {"prompt": case.prompt}})
    model = model_of(case)
    async with running(tmp_path, model, config=tight, clock=clock) as gateway:
        await gateway.settled()
        before = moved(gateway)
        _, foretold = await got(gateway, f"/api/chats/{chat}/preview")
        told = await stopped(gateway, chat, "m4 word", attachments=files)
        assert all(words in told for words in case.says), told
        said = foretold["fault"] and without_numbers(foretold["fault"]["message"])  # the words of the message are counted too
        assert said == (without_numbers(told).removesuffix(f" {say(case.language, 'room_kept')}") if case.foretold else None)
        assert (foretold["fault"] and foretold["fault"]["code"]) == (case.code if case.foretold else None)
        assert moved(gateway) == before, "nothing jumps, no job is queued"
        assert told.endswith(say(case.language, "room_kept"))
        assert replies(model) == []
    async with running(tmp_path, model := scripted(), config=config("companion", ceiling=60_000), clock=clock) as gateway:
        await gateway.post(f"/api/chats/{chat}/regenerate")
        await eventually(lambda: answered(gateway, chat, "Re: m4 w"))
        assert asked(replies(model)[-1]).startswith("m4 word"), "the message was kept"
        assert "m0 word" in sent(replies(model)[-1])[1][1]


async def answered(gateway: Running, chat: str, text: str) -> bool:
    return any(message["text"] == text for message in await gateway.messages(chat))


async def upload(gateway: Running, data: bytes) -> str:
    form = aiohttp.FormData()
    form.add_field("file", data, filename="boats.txt", content_type="text/plain")
    async with gateway.http.post(f"{gateway.url}/api/attachments", data=form) as done:
        return (await done.json())["id"]


@pytest.mark.rule("RS-70")
@pytest.mark.case("AT-23")
async def test_standing_text_too_large_is_an_excerpt_and_the_receipt_says_so(tmp_path: Path) -> None:
    def at_length(request: ModelRequest) -> Reply:
        return json.dumps({"text": "They counted lamps. " * 80, "details": []}) if request.purpose == "chat-summary" else answer(request)

    async with running(tmp_path, scripted(at_length), config=config("companion", ceiling=8_000)) as gateway:
        chat = await gateway.chat()
        for n in range(9):
            await ask(gateway, chat, f"m{n} {LONG}")
        await gateway.settled()  # what stands in is as long as it is going to be
        told = await ask(gateway, chat, "and now")
        assert told["window"]["summaries_cut"] is False
        around = size(told) - next(each["tokens"] for each in told["sections"] if each["name"] == "history")
    prompt = "lamp " * round((8_000 - around + 100) / tokens.count("lamp " * 1_000) * 1_000)  # a hundred tokens more than there are
    nearly = config("companion", ceiling=8_000, characters={"default": {"prompt": prompt}})
    async with running(tmp_path, model := scripted(at_length), config=nearly) as gateway:
        told = await ask(gateway, chat, "last one")
        assert told["window"]["summaries_cut"] is True
        head = sent(replies(model)[-1])[0][1]
        assert "summary of earlier talk" in head and "left out: too long" in head
        assert size(told) <= told["window"]["ceiling"]


@pytest.mark.rule("RS-78", "RS-67")
@pytest.mark.parametrize("profile", ["assistant", "companion", "calendar", "own"])
async def test_a_preview_foretells_the_jump_and_the_prompt_after_it_and_moves_nothing(tmp_path: Path, profile: str) -> None:
    model = scripted()
    async with running(tmp_path, model, config=config(profile, ceiling=60_000)) as gateway:
        chat = await gateway.chat()
        for n in range(9):
            await ask(gateway, chat, f"m{n} {LONG}")
        _, plain = await got(gateway, f"/api/chats/{chat}/preview")
        assert (plain["jump"], plain["fault"]) == (None, None)
    model = scripted()
    async with running(tmp_path, model, config=config(profile, ceiling=8_000)) as gateway:
        await at_rest(gateway)
        before, calls = traces(gateway), len(model.requests)
        _, foretold = await got(gateway, f"/api/chats/{chat}/preview")
        assert (traces(gateway), len(model.requests)) == (before, calls), "looking moves nothing and asks no model"
        jump = foretold["jump"]
        assert jump["messages"] > 0 and foretold["fault"] is None
        assert foretold["tokens"] < 0.6 * 8_000
        assert texts(foretold)[1][1].startswith(jump["begins"]["text"][:-1])
        told = await ask(gateway, chat, "on we go")
        assert told["window"]["jump"] == {"before": jump["before"], "edge": jump["edge"], "messages": jump["messages"]}
        request = replies(model)[-1]
        assert texts(foretold)[:-1] == sent(request)[:-1], "the very prompt, but for the message"
        _, after = await got(gateway, f"/api/chats/{chat}/preview")
        assert after["jump"] is None


COMMANDS = {
    "en": ("with the next message the oldest {n} messages leave", "The talk would begin with: m", "could not be sent"),
    "ja": ("次のメッセージで古い方から {n} 件が外れ", "次のメッセージから始まります：m", "モデルに送れません"),
    "zh": ("下一条消息会让最早的 {n} 条离开", "对话将从这条开始：m", "无法发给模型"),
}


@pytest.mark.rule("RS-78", "RS-70")
@pytest.mark.parametrize("language", COMMANDS)
async def test_the_command_foretells_the_jump_and_what_cannot_be_sent(tmp_path: Path, language: str) -> None:
    jumps, begins, fault = COMMANDS[language]
    async with running(tmp_path, scripted(), config=config("companion", ceiling=60_000)) as gateway:
        async with gateway.http.patch(f"{gateway.url}/api/me", json={"language": language}) as done:
            assert done.status == 200
        chat = await gateway.chat()
        for n in range(9):
            await ask(gateway, chat, f"m{n} {LONG}")
        said = await stopped(gateway, chat, "/context")
        assert begins not in said
    async with running(tmp_path, model := scripted(), config=config("companion", ceiling=8_000)) as gateway:
        _, foretold = await got(gateway, f"/api/chats/{chat}/preview")
        said = await stopped(gateway, chat, "/context")
        assert jumps.format(n=foretold["jump"]["messages"]) in said and begins in said
        assert replies(model) == []
    large = config("companion", ceiling=5_000, characters={"default": {"prompt": keeper(language)}})
    async with running(tmp_path, scripted(), config=large) as gateway:
        said = await stopped(gateway, chat, "/context")
        assert fault in said and "5,000" in said and begins not in said


@pytest.mark.rule("RS-63", "RS-67")
async def test_the_command_names_the_ceiling_that_counts_for_a_model_whose_tokens_are_smaller_than_ours(tmp_path: Path) -> None:
    def reported(request: ModelRequest) -> Reply:
        return [Say("Noted."), End(usage=Usage(input_tokens=input_tokens(request, tokens.count) * 5 // 4, output_tokens=2))]

    async with running(tmp_path, scripted(reported), config=config("companion", ceiling=8_000)) as gateway:
        chat = await gateway.chat()
        for n in range(3):
            await ask(gateway, chat, f"m{n} {LONG}")
        said = await stopped(gateway, chat, "/context")
        ceiling = (await ask(gateway, chat, "and now"))["window"]["ceiling"]
        assert 6_000 < ceiling < 7_000, "by the tokens that the provider reported"
        assert f"reaches about {ceiling:,} tokens" in said


@pytest.mark.rule("RS-70")
@pytest.mark.parametrize("language", WORDS)
async def test_a_program_is_told_in_the_form_it_knows(tmp_path: Path, language: str) -> None:
    large = config("companion", characters={"default": {"prompt": keeper(language) * 10}})  # above agent_max_context_tokens
    async with running(tmp_path, model := scripted(), config=large) as gateway:
        body = {"model": "default", "messages": [{"role": "user", "content": "hi"}]}
        async with gateway.http.post(f"{gateway.url}/v1/chat/completions", json=body, headers={"Accept-Language": language}) as raw:
            status, fault = raw.status, (await raw.json())["error"]
        assert (status, fault["code"], fault["message"]) == (400, "context_length_exceeded", say(language, "unkept_instructions_room"))
        assert model.requests == []


@pytest.mark.rule("RS-70")
@pytest.mark.parametrize(
    ("window", "most", "told"), [(2_000, 4_000, True), (8_000, 7_000, True), (8_000, 6_000, False), (0, 9_000, False), (2_000, 0, False)]
)
def test_a_longest_answer_that_cannot_fit_its_model_is_told_with_the_configuration(tmp_path: Path, window: int, most: int, told: bool) -> None:
    account = {"provider": "openai", "base_url": "http://127.0.0.1:9", "name": "m", "context_window": window, "max_output_tokens": most}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"timezone": "UTC", "models": {"small": account}}), encoding="utf-8")
    loaded = load(path, {})
    faults = [fault for fault in loaded.faults if fault.path == "models.small.max_output_tokens"]
    assert [(fault.severity, fault.fails_check) for fault in faults] == ([("warning", True)] if told else [])
    assert loaded.config is not None and all(f"a window of {window}" in fault.message for fault in faults)

"""A receipt names what stood in the prompt for unsent talk, and tells each person of what they may read (RS-77, RS-196)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply, ScriptedModel
from gateway import receipt_view
from gateway.receipts import SUMMARIES_NAMED, summaries
from memory.conversations import Conversation
from memory.database import Database
from memory.recall import summary_rows
from memory.recall.audiences import audience_key
from memory.recall.fitting import CUT, Standing, Stood
from memory.recall.kinds import Kind
from memory.recall.summary_rows import NewSummary
from tests.conftest import FakeClock
from tests.gateway.command_house import CommandHouse, command_house, person_id
from tests.gateway.test_commands_recall import receipt
from tests.gateway.test_edge_jump import ask
from tests.gateway.test_standing_excerpts import LITTLE, numbered
from tests.harness import eventually, running


@pytest.mark.rule("RS-77")
def test_a_receipt_names_the_newest_and_counts_the_others() -> None:
    stood = tuple(Stood(id=n, kind="week", begin="2026-03-02", end="2026-03-08", first=n, last=n) for n in range(1, SUMMARIES_NAMED + 6))
    found = summaries(Standing(text="…", stood=stood, left_out=3))
    assert (len(found["summaries"]), found["summaries_more"], found["summaries_left_out"]) == (SUMMARIES_NAMED, 5, 3)
    assert [each["id"] for each in found["summaries"]] == list(range(6, SUMMARIES_NAMED + 6))
    assert found["summaries"][0] == {"id": 6, "kind": "week", "from": "2026-03-02", "to": "2026-03-08", "first": 6, "last": 6, "cut": False}


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    async with command_house(sqlite, tmp_path, clock) as made:
        yield made


async def entry(house: CommandHouse, chat: Conversation, text: str, seqs: list[int], **more: Any) -> dict[str, Any]:
    """An entry, as a receipt names it."""
    new = NewSummary(conversation_id=chat.id, kind=Kind.ENTRY, text=text, sources=seqs, **more)
    number = await house.do(lambda c: summary_rows.add(c, new, house.clock()))
    return named(Stood(id=number, kind="entry", first=min(seqs), last=max(seqs)))


def named(*stood: Stood) -> dict[str, Any]:
    return summaries(Standing(stood=stood))["summaries"][0]


def window(*each: dict[str, Any], more: int = 0, left_out: int = 0) -> dict[str, Any]:
    return {"window": {"summaries": list(each), "summaries_more": more, "summaries_left_out": left_out}}


@pytest.mark.rule("RS-77", "RS-196")
@pytest.mark.parametrize(
    ("language", "lines"),
    [
        ("en", ["Summaries in the prompt: 5.", "- older ones that are not named: 2", "- week · 2026-03-02 – 2026-03-08",
                "- day · 2026-03-09 · an excerpt", "- entry · messages 1 – 2", "Older summaries without room: 4."]),
        ("ja", ["プロンプトに入った要約: 5 件。", "- ここに挙げていない古いもの 2 件", "- 週 · 2026-03-02 – 2026-03-08", "- 日 · 2026-03-09 · 抜粋",
                "- 項目 · メッセージ 1 – 2", "入りきらなかった古い要約: 4 件。"]),
        ("zh", ["提示中的总结：5 条。", "- 另有 2 条更早的未列出", "- 周 · 2026-03-02 – 2026-03-08", "- 日 · 2026-03-09 · 节选",
                "- 条目 · 消息 1 – 2", "放不下的更早总结：4 条。"]),
    ],
)  # fmt: skip
async def test_why_tells_what_stood_in_the_prompt_in_the_askers_language(house: CommandHouse, language: str, lines: list[str]) -> None:
    said = await house.talk("Where is the boat?", "At the quay.")
    chat = await house.chat_of()
    recap = await entry(house, chat, "They spoke of a boat.", [said.seq, said.seq + 1])
    week = named(Stood(kind="week", id=900, begin="2026-03-02", end="2026-03-08", first=1, last=1))
    day = named(Stood(kind="day", id=901, begin="2026-03-09", end="2026-03-09", first=1, last=1, cut=True))
    await receipt(house, chat, window(week, day, recap, more=2, left_out=4))
    told = (await house.says("/memory why", language=language)).splitlines()
    assert told[1:] == lines


@pytest.mark.rule("RS-77", "RS-171")
async def test_why_says_when_all_of_them_gave_way_to_the_rest_of_the_prompt(house: CommandHouse) -> None:
    await house.talk("Where is the boat?", "At the quay.")
    chat, day = await house.chat_of(), named(Stood(kind="day", id=901, begin="2026-03-09", end="2026-03-09", first=1, last=1))
    report = window(day)
    report["window"]["summaries_cut"] = True
    await receipt(house, chat, report)
    assert "sent as an excerpt" in (await house.says("/memory why")).splitlines()[-1]


@pytest.mark.rule("RS-196", "RS-93")
async def test_a_later_joiner_hears_of_no_row_that_is_not_for_them(house: CommandHouse) -> None:
    said = await house.talk("Where is the boat?", "At the quay.", by="uma", group=True)
    chat, seqs = await house.chat_of(by="uma", group=True), [said.seq]
    everybodys = await entry(house, chat, "They spoke of a boat.", seqs)
    umas = await entry(house, chat, "Uma's plan.", seqs, audience=audience_key([person_id("uma")], None))
    secret = await entry(house, chat, '{{#if char == "Uma"}}Uma sold it.{{/if}}', seqs)
    partly = await entry(house, chat, 'It is sold. {{#if char == "Uma"}}By Uma.{{/if}}', seqs)
    gone = named(Stood(kind="entry", id=99_999, first=said.seq, last=said.seq))
    block = named(Stood(kind="block", id=1, first=said.seq, last=said.seq))
    report = window(everybodys, umas, secret, partly, gone, block)

    async def seen(by: str) -> tuple[list[int], int]:
        found = await house.db.read(lambda c: receipt_view.for_person(c, chat, report, person_id(by)))
        return [each["id"] for each in found["window"]["summaries"]], found["window"]["summaries_hidden"]

    assert await seen("uma") == ([everybodys["id"], umas["id"], secret["id"], partly["id"], block["id"]], 1)
    assert await seen("ada") == ([everybodys["id"], partly["id"], block["id"]], 3), "who came later"
    await receipt(house, chat, report)
    told = await house.says("/memory why", by="ada", group=True)
    assert (told.count("- entry ·"), told.count("you may not read")) == (2, 1)
    assert "- 3 that you may not read" in told
    other = replace(chat, id="c-another")
    found = await house.db.read(lambda c: receipt_view.for_person(c, other, window(everybodys), person_id("uma")))
    assert found["window"]["summaries"] == [], "of another chat"


@pytest.mark.rule("RS-77")
async def test_a_receipt_of_before_summaries_were_named_is_shown_as_it_is(house: CommandHouse) -> None:
    await house.talk("Hello", "Hi.")
    chat, old = await house.chat_of(), {"window": {"profile": "assistant", "summaries_cut": True}}
    assert await house.db.read(lambda c: receipt_view.for_person(c, chat, old, person_id("owen"))) == old
    await receipt(house, chat, old)
    assert "Summaries" not in await house.says("/memory why")


@pytest.mark.rule("RS-77", "RS-70", "RS-171")
@pytest.mark.case("AT-23")
async def test_the_receipt_of_a_reply_names_the_summary_whose_excerpt_was_sent(tmp_path: Path) -> None:
    text = numbered("en", 60)

    def script(request: ModelRequest) -> Reply:
        if request.purpose == "chat-summary":
            return f'{{"text": "{text}", "details": []}}'
        return "A title" if request.purpose != "reply" else "Re."

    model = ScriptedModel(script)
    own = {
        "model": {"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "name": "scripted"}, "channel_profiles": {"web": "companion"},
        "companion": {"messages": 6, "block": 2}, "context": LITTLE, "recall": {"enabled": "off"},
    }  # fmt: skip
    async with running(tmp_path, model, config=own) as gateway:
        chat = await gateway.chat()
        for n in range(7):
            await ask(gateway, chat, f"the bus was late {n}")

        async def excerpted() -> dict[str, Any] | None:
            told = await ask(gateway, chat, "and now?")
            return told["window"] if any(each["kind"] == "recent" for each in told["window"]["summaries"]) else None

        window = await eventually(excerpted)
    prompt = [each for each in model.requests if each.purpose == "reply"][-1].messages[0].text
    assert CUT in prompt and "059Ana" in prompt
    newest = next(each for each in reversed(window["summaries"]) if each["kind"] == "recent")
    assert newest.keys() == {"id", "kind", "from", "to", "messages", "cut"}
    assert newest["id"] > 0 and newest["messages"][0] >= 1
    assert (newest["cut"], window["summaries_cut"], window["summaries_hidden"]) == (True, True, 0)
    assert text not in prompt

"""Entries in a whole gateway: made after the reply and never in its way, told by the prompt, and gone from it with what they hid."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply, Say, ScriptedModel, Until
from tests.gateway.test_recall_whole import ask
from tests.harness import Running, eventually, running

WRITES = {"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "scripted"}  # the demo model writes no summaries
HIDES = {"model": WRITES, "entries": {"automatic": True, "every": 2, "hide": True, "tail": 0}}


def prompts(model: ScriptedModel) -> list[str]:
    """The prompts of replies, whole."""
    return ["\n".join(message.text for message in request.messages) for request in model.requests if request.purpose == "reply"]


async def entries_of(gateway: Running, chat: str) -> list[dict[str, str]]:
    return (await gateway.get(f"/api/chats/{chat}/entries"))["items"]


@pytest.mark.rule("RS-81", "RS-86", "RS-90")
async def test_an_entry_is_made_after_the_second_reply_and_stands_in_the_next_prompt_for_what_it_hides(tmp_path: Path) -> None:
    def plays(request: ModelRequest) -> Reply:
        if request.purpose == "chat-summary":
            return json.dumps({"title": "The trip", "text": "They planned a trip to Otaru."})
        return "A title" if request.purpose != "reply" else "noted"

    model = ScriptedModel(plays)
    async with running(tmp_path, model, config=HIDES) as gateway:
        chat = await gateway.chat()
        for line in ("we leave on the ninth", "the ferry is booked"):
            await ask(gateway, chat, line)

        async def made() -> bool:
            return bool(await entries_of(gateway, chat))

        await eventually(made)
        await ask(gateway, chat, "and now?")
        told = prompts(model)[-1]
        assert "The trip: They planned a trip to Otaru." in told
        assert "we leave on the ninth" not in told
        assert "the ferry is booked" not in told
        assert "we leave on the ninth" in "\n".join(each["text"] for each in await gateway.messages(chat)), "the log keeps all"


@pytest.mark.rule("RS-193", "RS-71")
async def test_a_helper_that_never_answers_holds_no_reply(tmp_path: Path) -> None:
    never = asyncio.Event()

    def plays(request: ModelRequest) -> Reply:
        return [Until(never), Say("late")] if request.purpose == "chat-summary" else "noted"

    model = ScriptedModel(plays)
    async with running(tmp_path, model, config=HIDES) as gateway:
        chat = await gateway.chat()
        for n in range(4):
            await ask(gateway, chat, f"line {n}")

        async def asks() -> bool:
            return any(request.purpose == "chat-summary" for request in model.requests)

        await eventually(asks)
        await ask(gateway, chat, "line 4")
        assert all(f"line {n}" in prompts(model)[-1] for n in range(5)), "nothing is hidden that no entry stands for"
        never.set()


@pytest.mark.rule("RS-90", "RS-73")
async def test_what_is_hidden_can_be_recalled_and_the_block_tells_the_numbers_that_people_see(tmp_path: Path) -> None:
    def plays(request: ModelRequest) -> Reply:
        if request.purpose == "chat-summary":
            return json.dumps({"title": "Plans", "text": "They made plans."})
        return "A title" if request.purpose != "reply" else "noted"

    model = ScriptedModel(plays)
    async with running(tmp_path, model, config=HIDES) as gateway:
        other = await gateway.chat()
        await ask(gateway, other, "another chat moves the numbers of the log")
        chat = await gateway.chat()
        await ask(gateway, chat, "the lighthouse keeper is called Ottilie")
        await ask(gateway, chat, "the bus was late")

        async def made() -> bool:
            return bool(await entries_of(gateway, chat))

        await eventually(made)
        await ask(gateway, chat, "tell me more")
        await ask(gateway, chat, "who is the lighthouse keeper?")
        told = prompts(model)[-1]
        assert "the lighthouse keeper is called Ottilie" in told.split("[recalled from earlier talk")[1]
        assert "the message to answer is number 7]" in told


@pytest.mark.rule("RS-93")
async def test_each_character_of_a_chat_reads_its_own_parts_of_an_entry(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _request: "noted")
    cast = {"characters": {"mira": {"name": "Mira"}, "ren": {"name": "Ren"}}}
    async with running(tmp_path, model, config=HIDES | {"entries": {"hide": True, "tail": 0}} | cast) as gateway:
        chat = await gateway.chat(characters=["mira", "ren"])
        await ask(gateway, chat, "Mira, where were we?")
        text = 'They met at the inn. {{#if char == "Mira"}}Mira hid the key.{{/if}}{{#if character == "Ren"}}Ren lost the map.{{/if}}'
        await gateway.post(f"/api/chats/{chat}/entries", {"action": "write", "first": 1, "to": 2, "text": text}, status=201)
        await ask(gateway, chat, "Mira, what now?")
        await ask(gateway, chat, "Ren, and you?")
        miras, rens = prompts(model)[-2:]
        for told in (miras, rens):
            assert "They met at the inn." in told
            assert "{{" not in told
        assert ("hid the key" in miras, "lost the map" in miras) == (True, False)
        assert ("hid the key" in rens, "lost the map" in rens) == (False, True)

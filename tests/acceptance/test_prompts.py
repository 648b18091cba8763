"""What a prompt holds: nothing newer than a reply that is tried again, nothing twice, the same beginning (AT-20 to AT-22, AT-29)."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent.llm.port import ModelMessage, ModelRequest
from agent.llm.scripted import Reply, ScriptedModel
from tests.gateway.nights import MODEL, each_said
from tests.gateway.rows_house import said
from tests.gateway.test_memory_files import store
from tests.harness import Running, eventually, running
from tests.talks import asked

PROFILES = ("assistant", "companion", "calendar")
PLACES = ("attic", "barn", "cellar", "dairy", "engine", "forge", "garden", "harbour", "inn", "jetty", "kiln", "loft", "mill", "nursery", "orchard")
SMALL: dict[str, Any] = {**MODEL, "agent_max_context_turns": 4, "companion": {"messages": 8, "block": 4}, "recall": {"time_limit_s": 5}}


def script(request: ModelRequest) -> Reply:
    match request.purpose:
        case "reply":
            return f"Noted, the {asked(request).split()[-1]}"
        case "summary":
            return each_said(request)
        case "chat-summary":
            return said(request)
        case _:
            return "A title"


def replies(model: ScriptedModel) -> list[ModelRequest]:
    return [request for request in model.requests if request.purpose == "reply"]


def whole(request: ModelRequest) -> str:
    return "\n".join(message.text for message in request.messages)


async def talk(gateway: Running, chat: str, *texts: str, before: int = 0) -> list[str]:
    """Say these and wait for each answer; the ids of the turns. `before`: answers that are there already."""
    turns: list[str] = []
    for n, text in enumerate(texts, start=before + 1):
        message = (await gateway.say(chat, text))["message_id"]
        await gateway.answers(chat, n)
        turns.append(next(each["turn_id"] for each in await gateway.messages(chat) if each["id"] == message))
    return turns


async def again(gateway: Running, model: ScriptedModel, chat: str, turn: str) -> tuple[ModelRequest, dict[str, Any]]:
    """Try the reply of a turn again: what was sent, and what its receipt says of recall."""
    before = len(replies(model))
    tries = (await gateway.get(f"/api/chats/{chat}/turns/{turn}/receipt"))["attempt"]
    await gateway.post(f"/api/chats/{chat}/regenerate", {"turn_id": turn})

    async def receipt() -> Any:
        if len(replies(model)) == before:
            return None
        told = await gateway.get(f"/api/chats/{chat}/turns/{turn}/receipt")
        return told if told["attempt"] > tries else None

    told = await eventually(receipt)
    return replies(model)[before], told["recall"]


@pytest.mark.rule("RS-76", "RS-19")
@pytest.mark.case("AT-20", "K12", "K15")
@pytest.mark.parametrize("profile", PROFILES)
async def test_nothing_newer_than_the_tenth_newest_reply_is_in_its_prompt_when_it_is_tried_again(tmp_path: Path, profile: str) -> None:
    model = ScriptedModel(script)
    config = SMALL | {"characters": {"default": {"profile": profile}}}
    async with running(tmp_path, model, config=config) as gateway:
        chat = await gateway.chat()
        turns = await talk(gateway, chat, *(f"we hid treasure number {n} in the {place}" for n, place in enumerate(PLACES)))
        await gateway.settled()
        request, _ = await again(gateway, model, chat, turns[5])
        text = whole(request)
        assert asked(request).endswith(PLACES[5])
        assert "Noted, the forge" not in text, text
        assert [place for place in PLACES[6:] if place in text] == [], "what was said later"


@pytest.mark.rule("RS-79", "RS-76", "RS-19")
@pytest.mark.case("AT-20", "K12")
async def test_a_retry_keeps_its_first_recall_until_a_source_is_edited_and_discarded_tries_are_not_remembered(tmp_path: Path) -> None:
    model = ScriptedModel(script)
    async with running(tmp_path, model, config=SMALL) as gateway:
        chat = await gateway.chat()
        await talk(gateway, chat, *(f"we hid treasure number {n} in the {place}" for n, place in enumerate(PLACES)))
        [turn] = await talk(gateway, chat, "where did we hide treasure number 0, in the attic", before=len(PLACES))
        _, first = await again(gateway, model, chat, turn)
        assert first["again"] is True
        request, second = await again(gateway, model, chat, turn)
        assert second["again"] is True and "number 0" in whole(request)
        log = await gateway.messages(chat)
        source = next(each["id"] for each in log if each["text"].endswith("number 0 in the attic"))
        edit = "UPDATE messages SET text = 'we hid treasure number 0 in the attic of Edo', edited_at = created_at + 1 WHERE id = ?"
        store(gateway, lambda c: c.exec_driver_sql(edit, (source,)).close())
        request, third = await again(gateway, model, chat, turn)
        assert not third.get("again"), "an edited source voids the snapshot"
        held = store(gateway, lambda c: list(c.exec_driver_sql("SELECT text FROM message_chunks").scalars()))
        assert sum(text.count("in the attic\n") + text.endswith("in the attic") for text in held) <= 2


THEY_MET = {"summary": '{"bullets": []}', "chat-summary": '{"text": "They met."}'}
SENTENCES = ("The heron of {n} slept by the lighthouse", "{n}番の鷺は灯台のそばで眠った", "第{n}只鹭在灯塔旁睡着了")


@pytest.mark.slow
@pytest.mark.rule("RS-72", "RS-18", "RS-44", "RS-57")
@pytest.mark.case("AT-21")
@pytest.mark.parametrize("seed", range(3))
async def test_no_message_stands_twice_in_a_prompt_whatever_window_and_tail(tmp_path: Path, seed: int) -> None:
    chooser = random.Random(seed)
    model = ScriptedModel(lambda request: THEY_MET.get(request.purpose, "Noted."))
    config = {
        **MODEL, "characters": {"default": {"profile": PROFILES[seed]}}, "agent_max_context_turns": chooser.randint(2, 6),
        "companion": {"messages": chooser.randint(5, 12), "block": chooser.randint(1, 5)}, "days": {"tail": chooser.choice((0, 3, 10))},
        "rate": {"person_per_minute": 0, "chat_per_minute": 0},
    }  # fmt: skip
    async with running(tmp_path, model, config=config) as gateway:
        chat = await gateway.chat()
        for n in range(24):
            back = chooser.randrange(n) if n > 6 else n
            text = SENTENCES[n % 3].format(n=f"ship{n}x") + (f" {SENTENCES[back % 3].format(n='')} [{back}]" if n > 6 else "")
            await talk(gateway, chat, text, before=n)
            said = "\n".join(message.text for message in replies(model)[-1].messages[1:])  # summaries and extracts stand in the head
            assert [word for word, times in Counter(re.findall(r"ship\d+x", said)).items() if times > 1] == []
    assert any("[recalled" in whole(request) for request in replies(model)) or PROFILES[seed] == "calendar"


@pytest.mark.slow
@pytest.mark.rule("RS-169", "RS-170")
@pytest.mark.case("AT-22", "AT-29", "K18", "K37")
@pytest.mark.parametrize("profile", PROFILES)
async def test_what_stands_before_the_newest_message_is_the_same_for_fifty_turns_but_where_the_edge_or_a_summary_moved(
    tmp_path: Path, profile: str
) -> None:
    model = ScriptedModel(script)
    config = {
        **MODEL, "characters": {"default": {"profile": profile}}, "agent_max_context_turns": 12, "companion": {"messages": 24, "block": 10},
        "rate": {"person_per_minute": 0, "chat_per_minute": 0},
    }  # fmt: skip
    async with running(tmp_path, model, config=config) as gateway:
        chat = await gateway.chat()
        for n in range(50):
            place = PLACES[n % 15] if n < 15 else f"{PLACES[n % 15]} again, where was treasure number {n % 15} of the {PLACES[n % 15]}"
            await talk(gateway, chat, f"we hid treasure number {n} in the {place}", before=n)
            await gateway.settled()
        sent = [request.messages for request in replies(model)]
    kept = [before[:-1] == after[: len(before) - 1] for before, after in itertools.pairwise(sent)]
    moved = [head_or_edge(before, after) for before, after in itertools.pairwise(sent)]
    assert all(same or why for same, why in zip(kept, moved, strict=True))
    assert sum(kept) >= 30, "it moves in blocks, not with every turn"
    assert len({block(messages[-1].text) for messages in sent[16:]}) > 20 or profile == "calendar", "recall changed all the while"
    for messages in sent:
        standing = [n for n, message in enumerate(messages) if "[summary of earlier talk" in message.text.casefold()]
        recalled = [n for n, message in enumerate(messages) if "[recalled from earlier talk" in message.text]
        assert standing in ([], [0]) and recalled in ([], [len(messages) - 1]), "each once: before the history, and after it"


def head_or_edge(before: tuple[ModelMessage, ...], after: tuple[ModelMessage, ...]) -> bool:
    """Whether the standing text or the first message of the window changed."""
    return before[0] != after[0] or before[1:2] != after[1:2]


def block(text: str) -> str:
    found = re.search(r"\[recalled from.*\[end of recalled talk\]", text, re.DOTALL)
    return found[0] if found else ""



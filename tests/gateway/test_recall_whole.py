"""Recall in a whole gateway: what was said long ago is in the prompt of the reply that asks for it, and the receipt says so."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent.llm.port import ModelRequest, Role
from agent.llm.scripted import Reply, ScriptedModel
from gateway.recall.recalling import Recalling, RecallTurn
from gateway.turn_store import TurnStart
from memory.embedders.local import LocalEmbedder
from memory.ports import Matrix
from memory.recall.reach import Reach
from memory.recall.talk_search import Asked, Recalled, TalkSearch
from tests.harness import Running, eventually, running
from tests.talks import asked

CONFIG = {"agent_max_context_turns": 3}


def answers(request: ModelRequest) -> Reply:
    return "A title" if request.purpose != "reply" else f"you said: {asked(request)}"


def last(model: ScriptedModel) -> ModelRequest:
    """The last reply's, whatever work behind the replies has asked since."""
    return [each for each in model.requests if each.purpose == "reply"][-1]


def newest(model: ScriptedModel) -> str:
    """The newest message of the last reply's prompt, notes and all."""
    return next(message.text for message in reversed(last(model).messages) if message.role is Role.USER)


async def receipt(gateway: Running, chat: str, turn: str) -> dict[str, Any]:
    return (await gateway.get(f"/api/chats/{chat}/turns/{turn}/receipt"))["recall"]


async def ask(gateway: Running, chat: str, text: str) -> str:
    """Say something and wait for the answer; the id of the turn."""
    said = (await gateway.say(chat, text))["message_id"]

    async def answered() -> str | None:
        log = await gateway.messages(chat)
        turn = next((each["turn_id"] for each in log if each["id"] == said), None)
        return turn if turn and any(each["turn_id"] == turn and each["role"] == "assistant" for each in log) else None

    return await eventually(answered)


async def fill(gateway: Running, chat: str, fact: str, chatter: Sequence[str]) -> None:
    for line in (fact, *chatter):
        await ask(gateway, chat, line)


FACTS = {
    "en": ("My sister Kaede opened a bakery in Sapporo.", "what did my sister open in Sapporo?", "the bus was late"),
    "ja": ("妹の楓は札幌でパン屋を開いた。", "札幌のパン屋は誰の店?", "バスが遅れた"),
    "zh": ("我妹妹小枫在札幌开了面包店。", "札幌的面包店是谁开的?", "公交车晚点了"),
}


@pytest.mark.rule("RS-30", "RS-17", "RS-77", "RS-169", "RS-10")
@pytest.mark.parametrize("language", FACTS)
async def test_what_left_the_window_comes_back_when_talk_returns_to_it(tmp_path: Path, language: str) -> None:
    model = ScriptedModel(answers)
    fact, question, chatter = FACTS[language]
    async with running(tmp_path, model, config=CONFIG) as gateway:
        chat = await gateway.chat()
        await fill(gateway, chat, fact, [f"{chatter} {n}" for n in range(8)])
        turn = await ask(gateway, chat, question)
        assert fact in newest(model)
        assert newest(model).index(fact) < newest(model).index("[end of notes]")
        told = await receipt(gateway, chat, turn)
        assert (told["mode"], told["reason"]) == ("text", "")
        assert told["used"][0]["messages"]
        assert all(fact not in message.text for message in last(model).messages[:-1] if message.role is not Role.SYSTEM)


@pytest.mark.rule("RS-31", "RS-33", "RS-77", "RS-12")
@pytest.mark.parametrize(
    ("question", "reason"), [("how are you today my friend", "nothing_relevant"), ("ok", "query_too_short"), ("👍", "query_too_short")]
)
async def test_the_receipt_says_why_nothing_was_recalled(tmp_path: Path, question: str, reason: str) -> None:
    model = ScriptedModel(answers)
    async with running(tmp_path, model, config=CONFIG) as gateway:
        chat = await gateway.chat()
        first = await ask(gateway, chat, "The heron sleeps by the northern lighthouse.")
        assert (await receipt(gateway, chat, first))["reason"] == "nothing_earlier"
        await fill(gateway, chat, "Parcels arrive on Thursdays.", [f"bus {n}" for n in range(8)])
        turn = await ask(gateway, chat, question)
        assert (await receipt(gateway, chat, turn))["reason"] == reason
        assert "[recalled from earlier talk" not in newest(model)


@pytest.mark.rule("RS-9", "RS-12", "RS-77")
@pytest.mark.parametrize(("recall", "reason"), [({"enabled": "off"}, "off"), ({"record": "none"}, "record_rule")])
async def test_switched_off_it_stays_away_and_says_so(tmp_path: Path, recall: dict[str, str], reason: str) -> None:
    model = ScriptedModel(answers)
    async with running(tmp_path, model, config={**CONFIG, "recall": recall}) as gateway:
        chat = await gateway.chat()
        await fill(gateway, chat, FACTS["en"][0], [f"bus {n}" for n in range(8)])
        turn = await ask(gateway, chat, FACTS["en"][1])
        assert FACTS["en"][0] not in newest(model)
        assert (await receipt(gateway, chat, turn))["reason"] == reason


@pytest.mark.rule("RS-34", "RS-36", "RS-20")
async def test_a_stalled_embedder_holds_no_reply(tmp_path: Path) -> None:
    over = threading.Event()  # not before every reply is there

    class Stalled:
        dimension = 8

        def documents(self, texts: list[str]) -> Matrix:
            return np.random.default_rng(1).normal(size=(len(texts), 8)).astype(np.float32)

        def questions(self, texts: list[str]) -> Matrix:
            if len(texts) < 16:  # a reply's; the calibration asks for many
                over.wait()
            return self.documents(texts)

    model = ScriptedModel(answers)
    config = {**CONFIG, "recall": {"time_limit_s": 0.5}}
    async with running(tmp_path, model, config=config, embedder=lambda _c: LocalEmbedder(Stalled, fingerprint="stalled", label="stalled")) as gateway:
        chat = await gateway.chat()
        await fill(gateway, chat, FACTS["en"][0], [f"bus {n}" for n in range(5)])
        turn = await ask(gateway, chat, FACTS["en"][1])
        told = await receipt(gateway, chat, turn)
        assert told["mode"] in ("text", "none")
        over.set()


@pytest.mark.rule("RS-79", "RS-76")
async def test_a_retry_recalls_the_same(tmp_path: Path) -> None:
    model = ScriptedModel(answers)
    fact, question, chatter = FACTS["en"]
    async with running(tmp_path, model, config=CONFIG) as gateway:
        chat = await gateway.chat()
        await fill(gateway, chat, fact, [f"{chatter} {n}" for n in range(8)])
        turn = await ask(gateway, chat, question)
        before = newest(model)
        await gateway.post(f"/api/chats/{chat}/regenerate", {})

        async def again() -> bool:
            return (await receipt(gateway, chat, turn)).get("again") is True

        await eventually(again)
        assert fact in newest(model)
        quoted = before[before.index("\n", before.index("[recalled")) : before.index("[end of recalled talk]")]
        assert quoted in newest(model)  # the line above says what is live, and the window may have moved


@pytest.mark.rule("RS-15")
async def test_it_runs_once_for_the_reply_and_for_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: list[str] = []
    recalled = Recalling.of

    async def counted(self: Recalling, start: TurnStart, *given: Any, **sizes: Any) -> RecallTurn:
        wanted.append(start.questions[-1].text)
        return await recalled(self, start, *given, **sizes)

    monkeypatch.setattr(Recalling, "of", counted)
    model = ScriptedModel(answers)
    async with running(tmp_path, model, config=CONFIG) as gateway:
        chat = await gateway.chat()
        await ask(gateway, chat, "The heron sleeps by the lighthouse.")

        await gateway.post("/v1/chat/completions", {"model": "default", "messages": [{"role": "user", "content": "where does the heron sleep"}]})
        await gateway.get(f"/api/chats/{chat}/messages")
        assert wanted == ["The heron sleeps by the lighthouse."]


@pytest.mark.rule("RS-77", "RL-8")
async def test_a_chat_that_is_sent_whole_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    search = TalkSearch.search

    async def counted(self: TalkSearch, asked: Asked, reaches: Sequence[Reach]) -> Recalled:
        searched.append(asked.text)
        return await search(self, asked, reaches)

    monkeypatch.setattr(TalkSearch, "search", counted)
    async with running(tmp_path, ScriptedModel(answers), config=CONFIG) as gateway:
        chat = await gateway.chat()
        for words in ("The heron sleeps by the lighthouse.", "Where does the heron sleep?"):
            told = await receipt(gateway, chat, await ask(gateway, chat, words))
            assert told["reason"] == "nothing_earlier"
    assert searched == []

"""Titles of web chats (WO-16)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import ModelMisconfigured
from agent.llm.port import ModelRequest
from agent.llm.scripted import Fail, Reply, Say, ScriptedModel, Until
from gateway.titles import WORDS_MAX, clean_title, from_words
from tests.harness import Running, eventually, running

pytestmark = pytest.mark.rule("WO-16")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Hello there", "Hello there"),
        ("  spaces   and\ttabs \nsecond line", "spaces and tabs"),
        ("", ""),
        ("word " * 30, "word word word word word word word word word…"),
        ("今日は天気がいいから散歩に行きましょう" * 4, ("今日は天気がいいから散歩に行きましょう" * 4)[:WORDS_MAX] + "…"),
        ("x" * 100, "x" * WORDS_MAX + "…"),
    ],
)
def test_the_first_words_are_a_title_cut_where_the_script_has_words(text: str, title: str) -> None:
    assert from_words(text) == title


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("A walk in Kyoto", "A walk in Kyoto"),
        ('"A walk in Kyoto."', "A walk in Kyoto"),
        ('# Title: "A walk in Kyoto"\n\nI hope you like it!', "A walk in Kyoto"),
        ("**Title:** A walk", "A walk"),
        ("\n\n- TITLE : A walk", "A walk"),
        ("タイトル：「京都の散歩」", "京都の散歩"),
        ("「夢」の話", "「夢」の話"),
        ("标题：《红楼梦》", "红楼梦"),
        ("標題:红楼梦。", "红楼梦"),
        ('"Hello" in three languages', '"Hello" in three languages'),
        ("**Boat** plans", "Boat plans"),
        ("Plans for a **boat** and *its* ~~old~~ `sail`", "Plans for a boat and its old sail"),
        ("## __Boat__ plans", "Boat plans"),
        ("[Boat](https://boats.example/a) plans", "Boat plans"),
        ("Plans of [the boat](boat.md)", "Plans of the boat"),
        ("**「船の計画」**", "船の計画"),
        ("「**船**の計画」", "船の計画"),
        ("重要な**船**の`計画`", "重要な船の計画"),
        ("『船の計画』", "船の計画"),
        ("**标题：** 《*造船*计划》", "造船计划"),
        ("“造船计划”", "造船计划"),
        ("「船」と「海」", "「船」と「海」"),
        ("《船》与《海》", "《船》与《海》"),
        ('"Boats" and "sails"', '"Boats" and "sails"'),
        ("'Don't rock the boat'", "Don't rock the boat"),
        ("snake_case_names and 2 * 3 * 4", "snake_case_names and 2 * 3 * 4"),
        ("***", ""),
        ("", ""),
        ("word " * 40, "word word word word word word word word word…"),
    ],
)
def test_what_a_model_says_becomes_a_bare_title(said: str, title: str) -> None:
    assert clean_title(said) == title


@given(st.text())
def test_any_words_become_one_short_line(said: str) -> None:
    title = clean_title(said)
    assert len(title) <= WORDS_MAX + 1 and len(title.splitlines()) <= 1
    assert title == title.strip()


# -- through the whole gateway -----------------------------------------------------------------------------------------


# The demo model is never asked for a title; any other account is.
MODEL = {"model": {"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "name": "scripted"}}


class Asked:
    """A model whose replies and titles are told apart; `title` may be changed on the way."""

    def __init__(self, title: Reply = "Title: A walk in Kyoto") -> None:
        self.title = title
        self.model = ScriptedModel(self._answer)

    def _answer(self, request: ModelRequest) -> Reply:
        return self.title if request.purpose == "title" else "Yes."

    @property
    def titles(self) -> list[ModelRequest]:
        return [request for request in self.model.requests if request.purpose == "title"]


async def titled(gateway: Running, chat: str, wanted: str) -> None:
    async def look() -> bool:
        return (await gateway.get(f"/api/chats/{chat}"))["title"] == wanted

    await eventually(look)


async def test_a_new_chat_is_called_by_its_first_words_then_by_the_model_and_never_again(tmp_path: Path) -> None:
    asked = Asked()
    async with running(tmp_path, asked.model, config=MODEL) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "Shall we walk in Kyoto?")
        await gateway.answers(chat)
        await titled(gateway, chat, "A walk in Kyoto")
        await gateway.say(chat, "And in Nara?")
        await gateway.answers(chat, 2)
        assert (await gateway.get(f"/api/chats/{chat}"))["title"] == "A walk in Kyoto"
        usage = await gateway.get("/api/operator/usage")
        assert {row["purpose"]: row["calls"] for row in usage["rows"]} == {"reply": 2, "title": 1}
    assert len(asked.titles) == 1
    assert "Shall we walk in Kyoto?" in asked.titles[0].messages[-1].text
    assert asked.titles[0].tools == ()


@pytest.mark.parametrize("title", ["", "***", Fail(ModelMisconfigured("no key"))])
async def test_without_a_fit_title_the_first_words_stay(tmp_path: Path, title: Any) -> None:
    asked = Asked(title)
    async with running(tmp_path, asked.model, config=MODEL) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "おはよう")
        await gateway.answers(chat)

        async def tried() -> bool:
            return bool(asked.titles)

        await eventually(tried)
        await gateway.settled()
        assert (await gateway.get(f"/api/chats/{chat}"))["title"] == "おはよう"


async def test_a_title_given_by_a_person_is_never_replaced(tmp_path: Path) -> None:
    asked = Asked()
    async with running(tmp_path, asked.model, config=MODEL) as gateway:
        chat = await gateway.chat(title="Mine")
        await gateway.say(chat, "Hello")
        await gateway.answers(chat)
        assert (await gateway.get(f"/api/chats/{chat}"))["title"] == "Mine"
    assert asked.titles == []


async def test_a_title_given_while_the_first_answer_is_made_stays(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    model = ScriptedModel(lambda request: [Say("Ye"), Until(go_on), Say("s.")] if request.purpose == "reply" else "Wrong")
    async with running(tmp_path, model, config=MODEL) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "Hello")
        async with gateway.http.patch(f"{gateway.url}/api/chats/{chat}", json={"title": "Mine"}) as answer:
            assert answer.status == 200
        go_on.set()
        await gateway.answers(chat)
        assert (await gateway.get(f"/api/chats/{chat}"))["title"] == "Mine"
    assert [request.purpose for request in model.requests] == ["reply"]


async def test_the_demo_model_is_never_asked_for_a_title(tmp_path: Path) -> None:
    asked = Asked()
    async with running(tmp_path, asked.model) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "Hello")
        await gateway.answers(chat)
        await titled(gateway, chat, "Hello")
    assert asked.titles == []

"""Saved memories in a whole gateway: what the model writes is in the next prompt, is told, and is taken back with the attempt that wrote it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa

from agent.errors import ModelMisconfigured
from agent.llm.port import ModelRequest, Role
from agent.llm.scripted import Call, Fail, Reply, ScriptedModel, Until
from channels.loopback import LoopbackPlatform
from gateway.config import Config
from gateway.store import open_database
from memory.database import Database
from memory.saved import journal, store, stored
from memory.saved.rows import Memory
from memory.saved.writing import Limits
from memory.saved_schema import memories
from memory.schema import people
from tests.conftest import FakeClock
from tests.gateway.saved_house import Meanings, meaning
from tests.harness import Running, eventually, loopback_plan, running
from tests.talks import asked

T = TypeVar("T")


class Shelf:
    """The database of a running gateway, to look into."""

    def __init__(self) -> None:
        self.db: Database | None = None

    def open(self, config: Config) -> Database:
        self.db = open_database(config)
        return self.db

    async def do(self, work: Callable[[sa.Connection], T]) -> T:
        assert self.db is not None
        return await self.db.write(work)

    async def rows(self) -> list[Memory]:
        return await self.do(lambda connection: stored.rows_where(connection, memories.c.id > 0))

    async def texts(self) -> list[str]:
        return [row.content for row in await self.rows()]


def block(request: ModelRequest) -> str:
    found = re.search(r"\[saved memories.*?\[end of saved memories\]", request.messages[0].text, re.DOTALL)
    return found[0] if found else ""


def results(request: ModelRequest) -> list[str]:
    return [message.text for message in request.messages if message.role is Role.TOOL]


def obedient(request: ModelRequest) -> Reply:
    """Saves, changes or deletes what the person says, once; then answers with what the tools said."""
    if request.purpose not in ("reply", "api"):
        return "A title"
    if done := results(request):
        return f"done: {done[-1]}"
    words = asked(request)
    match words.split(" ", 2):
        case ["save", *rest]:
            return [Call("memory_save", {"content": " ".join(rest)})]
        case ["update", number, text]:
            return [Call("memory_update", {"id": int(number), "content": text})]
        case ["delete", number]:
            return [Call("memory_delete", {"id": int(number)})]
        case ["fail", *rest]:
            return [Call("memory_save", {"content": " ".join(rest)})]
        case _:
            return f"you said: {words}"


def replies(model: ScriptedModel) -> list[ModelRequest]:
    return [request for request in model.requests if request.purpose == "reply"]


async def says(gateway: Running, chat: str, text: str, **more: Any) -> dict[str, str]:
    """Also right after the clock has jumped: the page's channel is started anew then, for it was not heard of so long."""

    async def said() -> dict[str, str] | None:
        try:
            return await gateway.say(chat, text, client_id=f"say {text}", **more)
        except AssertionError:
            return None

    return await eventually(said)


async def receipt(gateway: Running, chat: str, turn: str) -> dict[str, Any]:
    return await gateway.get(f"/api/chats/{chat}/turns/{turn}/receipt")


@pytest.mark.rule("SM-50", "SM-7", "SM-61", "WO-15")
async def test_what_the_model_saves_stands_in_the_next_prompt_and_is_told(tmp_path: Path) -> None:
    model, shelf = ScriptedModel(obedient), Shelf()
    async with running(tmp_path, model, database=shelf.open) as gateway:
        chat = await gateway.chat()
        async with gateway.following(chat, until="notice") as heard:
            await gateway.say(chat, "save アンは緑茶が好き")
        events = heard.result()
        (answer,) = await gateway.answers(chat)
        assert answer.startswith("done: saved: It has the number 1")
        assert events[-1][2]["changes"][0]["text"] == "アンは緑茶が好き" and "1" in events[-1][2]["text"]
        accepted = await gateway.say(chat, "hello")
        await gateway.answers(chat, 2)
        kept = await receipt(gateway, chat, accepted["turn_id"])
    before, _, after = replies(model)
    assert block(before) == ""
    assert "- 1 (recent): アンは緑茶が好き" in block(after)
    assert "memory_save" in before.messages[0].text, "the instructions name the tool that is there"
    assert kept["memories"]["saved"]["sent"] == [{"id": 1, "list": "character", "why": "active"}]
    assert {"name": "saved", "tokens": kept["sections"][2]["tokens"]} == kept["sections"][2] and kept["sections"][2]["tokens"] > 0


@pytest.mark.rule("SM-61", "SM-62")
@pytest.mark.parametrize(("policy", "count"), [("full", 2), ("short", 2), ("hidden", 1)])
async def test_on_a_platform_the_notice_follows_the_reply_as_loud_as_the_policy_says(tmp_path: Path, policy: str, count: int) -> None:
    model, shelf, platform = ScriptedModel(obedient), Shelf(), LoopbackPlatform()
    config = {"policies": {"telegram": {"notice": policy}}}  # the row of platforms without one of their own
    async with running(tmp_path, model, channels=(loopback_plan(platform),), database=shelf.open, config=config):
        platform.says("c1", "save Ann likes tea")

        async def shown() -> bool:
            return len(platform.texts("c1")) >= count

        await eventually(shown)
        platform.says("c1", "hello")

        async def answered() -> bool:
            return any("hello" in text for text in platform.texts("c1"))

        await eventually(answered)
        texts = platform.texts("c1")
    assert len(texts) == count + 1
    if count == 2:
        assert ("Ann likes tea" in texts[1]) == (policy == "full")


@pytest.mark.rule("SM-65", "SM-66", "SM-68", "SM-74")
async def test_regenerating_takes_back_what_the_last_attempt_wrote_but_not_a_pin(tmp_path: Path) -> None:
    model, shelf = ScriptedModel(obedient), Shelf()
    clock = FakeClock()
    async with running(tmp_path, model, database=shelf.open, clock=clock) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "save Ann likes tea")
        await gateway.answers(chat, 1)
        turn = (await gateway.say(chat, "update 1 Ann likes coffee"))["turn_id"]
        await gateway.answers(chat, 2)
        assert await shelf.texts() == ["Ann likes coffee"]
        seen: list[str] = []

        async def again(count: int) -> None:
            async with gateway.following(chat):
                await gateway.post(f"/api/chats/{chat}/regenerate", {"turn_id": turn, "client_id": f"again-{count}"})
            seen.append(block([request for request in replies(model) if not results(request)][-1]))

        await again(1)
        await again(2)
        assert all("Ann likes tea" in each for each in seen), "each attempt begins with what was before the first"
        assert await shelf.texts() == ["Ann likes coffee"]
        await shelf.do(lambda connection: store.pin(connection, 1, clock(), by="", limits=Limits()))
        await again(3)
        assert "Ann likes coffee" in seen[-1], "the person pinned it meanwhile"
        assert await shelf.texts() == ["Ann likes coffee"]


@pytest.mark.rule("SM-69", "SM-65", "SM-73")
async def test_taking_talk_back_takes_back_what_its_turns_wrote(tmp_path: Path) -> None:
    model, shelf, clock = ScriptedModel(obedient), Shelf(), FakeClock()
    async with running(tmp_path, model, database=shelf.open, clock=clock) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "save Ann likes tea")
        await gateway.answers(chat, 1)
        first = (await gateway.say(chat, "save Ann has a cat"))["message_id"]
        await gateway.answers(chat, 2)
        await gateway.say(chat, "update 1 Ann likes coffee")
        await gateway.answers(chat, 3)
        await gateway.say(chat, "delete 2")
        await gateway.answers(chat, 4)
        assert await shelf.texts() == ["Ann likes coffee"]
        await gateway.say(chat, "hello again", replaces=first)
        await gateway.answers(chat, 2)
        assert await shelf.texts() == ["Ann likes tea"], "made, changed and deleted rows, the newest turn first"
        old = (await gateway.say(chat, "save Ann has a dog"))["message_id"]
        await gateway.answers(chat, 3)
        clock.advance(days=31)
        await shelf.do(lambda connection: journal.sweep(connection, clock()))
        await says(gateway, chat, "never mind", replaces=old)

        async def told() -> bool:
            return any("too old to be taken back" in message["text"] for message in await gateway.messages(chat))

        await eventually(told)
        assert await shelf.texts() == ["Ann likes tea", "Ann has a dog"]


@pytest.mark.rule("SM-71", "SM-62", "SM-84")
async def test_a_turn_that_ends_without_a_reply_keeps_nothing_and_tells_nothing(tmp_path: Path) -> None:
    def fails(request: ModelRequest) -> Reply:
        if request.purpose == "reply" and results(request):
            return [Fail(ModelMisconfigured("no key"))]
        return obedient(request)

    model, shelf = ScriptedModel(fails), Shelf()
    async with running(tmp_path, model, database=shelf.open) as gateway:
        chat = await gateway.chat()
        async with gateway.following(chat) as heard:
            await gateway.say(chat, "fail Ann likes tea")
        events = heard.result()
        assert await shelf.texts() == []
        assert "notice" not in [name for _, name, _ in events]
        entries = await shelf.do(lambda connection: connection.execute(journal.memory_journal.select()).all())
        assert [entry.undone_at is not None for entry in entries] == [True]


@pytest.mark.rule("SM-40", "SM-37", "SM-35", "SM-27", "SM-29")
async def test_the_worked_example_day_by_day_in_a_whole_gateway(tmp_path: Path) -> None:
    model, shelf, clock, meanings = ScriptedModel(obedient), Shelf(), FakeClock(), Meanings(["cello"])
    async with running(tmp_path, model, database=shelf.open, clock=clock, embedder=lambda _config: meaning(meanings)) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "save Ann plays the cello")
        await gateway.answers(chat, 1)

        async def covered() -> bool:
            count = await shelf.do(lambda connection: connection.exec_driver_sql("SELECT count(*) FROM vectors").scalar())
            return bool(count)

        await eventually(covered)
        count = 1

        async def talk(text: str) -> ModelRequest:
            nonlocal count
            await says(gateway, chat, f"{text} {count}")
            count += 1
            await gateway.answers(chat, count)
            return replies(model)[-1]

        heads: list[str] = []
        for day in range(7):
            clock.advance(days=1)
            heads.append(block(await talk("what a long game")))
            assert (await shelf.rows())[0].unused_days == day + 1
        assert (await shelf.rows())[0].dormant and "cello" in heads[-1]
        assert block(await talk("another game")) == ""
        clock.advance(days=30)
        recalled = await talk("how is the cello going?")
        assert block(recalled) == ""
        assert "- 1: Ann plays the cello" in recalled.messages[-1].text
        row = (await shelf.rows())[0]
        assert (row.unused_days, row.dormant, row.last_matched_at) == (0, False, clock())
        assert "cello" in block(await talk("what a long game"))


@pytest.mark.rule("SM-88")
async def test_a_challenge_reads_and_writes_nothing_and_has_no_memory_tool(tmp_path: Path) -> None:
    model, shelf = ScriptedModel(obedient), Shelf()
    async with running(tmp_path, model, database=shelf.open) as gateway:

        async def play() -> list[tuple[Any, ...]]:
            model.requests.clear()
            chat = await gateway.chat(kind="challenge")
            await gateway.say(chat, "hello")
            await gateway.answers(chat)
            return [(request.messages, request.tools) for request in replies(model)]

        empty = await play()
        chat = await gateway.chat()
        await gateway.say(chat, "save Ann likes tea")
        await gateway.answers(chat)
        await shelf.do(lambda connection: store.pin(connection, 1, FakeClock()(), by="", limits=Limits()))
        full = await play()
    assert empty == full
    assert not {tool.name for _, tools in full for tool in tools} & {"memory_save", "memory_update", "memory_delete"}


@pytest.mark.rule("SM-71", "SM-68", "SM-65")
async def test_a_try_that_was_cut_off_is_taken_back_before_its_message_is_answered_again(tmp_path: Path) -> None:
    never = asyncio.Event()

    def stuck(request: ModelRequest) -> Reply:
        return [Until(never)] if results(request) else obedient(request)

    first, second, shelf = ScriptedModel(stuck), ScriptedModel(obedient), Shelf()
    config = {"delivery": {"drain_s": 0}}
    async with running(tmp_path, first, database=shelf.open, config=config) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "save Ann likes tea")

        async def hangs() -> bool:
            return any(results(request) for request in first.requests)

        await eventually(hangs)
        assert await shelf.texts() == ["Ann likes tea"]
    async with running(tmp_path, second, database=shelf.open, config=config) as gateway:
        (answer,) = await gateway.answers(chat)
        assert block(replies(second)[0]) == "", "as if the first try had never been"
        assert answer.startswith("done: saved: It has the number 2")
        assert [(row.id, row.content) for row in await shelf.rows()] == [(2, "Ann likes tea")]


@pytest.mark.rule("SM-13")
async def test_words_of_who_wants_none_of_it_leave_the_prompt_of_a_shared_place(tmp_path: Path) -> None:
    model, shelf, platform = ScriptedModel(obedient), Shelf(), LoopbackPlatform()
    async with running(tmp_path, model, channels=(loopback_plan(platform),), database=shelf.open):

        async def says(text: str, sender: str, count: int) -> ModelRequest:
            platform.says("g1", f"@yume {text}", group=True, sender=sender)

            async def answered() -> bool:
                return len(replies(model)) >= count and len(platform.texts("g1")) >= count

            await eventually(answered)
            return replies(model)[-1]

        await says("my code is 4711", "ann", 1)
        both = await says("hello", "bob", 2)
        assert "4711" in "".join(message.text for message in both.messages)
        await shelf.do(lambda connection: connection.execute(sa.update(people).where(people.c.name == "ann").values(privacy="full")))
        alone = await says("hello again", "bob", 3)
    assert "4711" not in "".join(message.text for message in alone.messages)
    assert "hello" in "".join(message.text for message in alone.messages[:-1])


@pytest.mark.rule("SM-29", "WD-139")
async def test_rows_and_pages_are_searched_with_one_request_of_the_embedder(tmp_path: Path) -> None:
    model, shelf, meanings = ScriptedModel(obedient), Shelf(), Meanings(["cello"])
    page = tmp_path / "workspace" / "knowledge" / "music.md"
    page.parent.mkdir(parents=True)
    page.write_text("---\nlore: match\n---\nThe cello of the harbour has five strings.\n", encoding="utf-8")
    async with running(tmp_path, model, database=shelf.open, embedder=lambda _config: meaning(meanings)) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "save Ann plays the cello")
        await gateway.answers(chat, 1)

        async def covered() -> bool:
            count = await shelf.do(lambda connection: connection.exec_driver_sql("SELECT count(*) FROM vectors").scalar())
            return (count or 0) >= 2

        await eventually(covered)
        await shelf.do(lambda connection: stored.set_decay(connection, 1, unused_days=7, dormant=True))
        number = 0

        async def both() -> bool:
            nonlocal number
            number += 1
            await gateway.say(chat, f"how is the cello? {number}")
            await gateway.answers(chat, 1 + number)
            newest = replies(model)[-1].messages[-1].text
            return "five strings" in newest

        await eventually(both)
        asked_before = len(meanings.asked)
        await both()
        assert len(meanings.asked) == asked_before + 1
    recalled = next(text for request in replies(model) if "recalled memories" in (text := request.messages[-1].text))
    assert "- 1 (recent): Ann plays the cello" in recalled

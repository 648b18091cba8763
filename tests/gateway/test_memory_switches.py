"""Learning, privacy, sharing and blacklists: by command and over HTTP (SM-13 to SM-15, SM-87)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.llm.scripted import ScriptedModel
from gateway import audit, memory_switches
from gateway.config import Config
from memory.conversations import change
from memory.database import Database
from memory.saved import switches
from memory.saved.lineages import lineages
from memory.saved.lists import LEARNING_ON, Learning, Privacy
from tests.conftest import FakeClock
from tests.gateway.command_house import CommandHouse, command_house
from tests.harness import running

CAST = Config.model_validate({"characters": {"luna": {"name": "Luna", "aliases": ("ルナ",)}}}).characters
OFF = Learning(learn=False, use=False)


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    async with command_house(sqlite, tmp_path, clock, characters=CAST) as made:
        yield made


async def own(house: CommandHouse, by: str = "uma") -> dict[str, Learning]:
    person = (await house.chat_of(by=by)).person_id
    found = await house.do(lambda c: memory_switches.own(c, house.config, str(person), house.clock()))
    return {each.character: each.learning for each in found.characters}


@pytest.mark.rule("SM-87")
async def test_a_person_turns_learning_off_and_on_for_the_character_of_the_chat_or_a_named_one(house: CommandHouse) -> None:
    await house.talk("hello", "hi", by="uma")
    assert await own(house) == {"default": LEARNING_ON, "luna": LEARNING_ON}
    assert (await house.says("/memory learn off", by="uma")).startswith("Yume neither learns from you")
    assert await own(house) == {"default": OFF, "luna": LEARNING_ON}
    assert (await house.says("/memory learn off luna", by="uma")).startswith("Luna neither learns from you")
    assert (await house.says("/memory learn on Yume", by="uma")).startswith("Yume learns from you")
    assert await own(house) == {"default": LEARNING_ON, "luna": OFF}
    said = await house.says("/memory learn", by="uma")
    assert [line.split()[0] for line in said.splitlines()] == ["Yume", "Luna"] and "neither" in said.splitlines()[1]
    assert (await house.says("/memory learn off nobody", by="uma")).startswith("There is no character nobody.")
    assert (await house.says("/memory learn perhaps", by="uma")).startswith("Write /memory learn on")
    await house.talk("hello", "hi", by="ada")
    assert await own(house, "ada") == {"default": LEARNING_ON, "luna": LEARNING_ON}, "others are unaffected"


@pytest.mark.rule("SM-87")
async def test_with_several_characters_all_of_the_chat_are_meant(house: CommandHouse) -> None:
    await house.talk("hello", "hi", by="uma")
    chat = await house.chat_of(by="uma")
    await house.do(lambda c: change(c, chat.id, character="luna", characters=["luna", "default"]))
    await house.says("/memory learn off", by="uma")
    assert await own(house) == {"default": OFF, "luna": OFF}


@pytest.mark.rule("SM-87")
async def test_in_a_group_a_manager_sets_the_groups_own_switch_and_nobody_elses(house: CommandHouse) -> None:
    await house.talk("hello", "hi", by="mia", group=True)
    space = (await house.chat_of(by="mia", group=True)).space_id
    assert "manager" in await house.says("/memory learn off", by="uma", group=True)
    assert (await house.says("/memory learn off", by="mia", group=True)).startswith("Yume neither learns in this group")

    def look(connection: sa.Connection) -> tuple[Learning, str]:
        known = lineages(connection)["default"]
        return switches.space_learning_of(connection, str(space), known), audit.newest(connection, 1)[0].action

    assert await house.do(look) == (OFF, "space.learning")


@pytest.mark.rule("SM-13", "SM-15")
async def test_privacy_and_sharing_are_set_in_private(house: CommandHouse) -> None:
    await house.talk("hello", "hi", by="uma")
    person = str((await house.chat_of(by="uma")).person_id)
    assert (await house.says("/memory privacy", by="uma")).startswith("Privacy: normal.")
    for word in ("partial", "full", "normal"):
        assert (await house.says(f"/memory privacy {word}", by="uma")).startswith(f"Privacy: {word}.")
        assert await house.do(lambda c: switches.privacy_of(c, person)) == Privacy(word)
    assert (await house.says("/memory privacy secret", by="uma")).startswith("Write /memory privacy with")
    assert (await house.says("/memory share", by="uma")).endswith("stay out of groups.")
    assert (await house.says("/memory share on", by="uma")).endswith("may be used in groups.")
    assert await house.do(lambda c: switches.shares_private(c, person)) is True
    assert (await house.says("/memory share maybe", by="uma")).startswith("Write /memory share on")
    assert "private chat" in await house.says("/memory privacy full", by="uma", group=True)


@pytest.mark.rule("SM-14")
async def test_a_manager_puts_somebody_on_the_blacklist_of_the_group_and_takes_them_off(house: CommandHouse) -> None:
    await house.talk("hello", "hi", by="uma", group=True)
    await house.talk("hello", "hi", by="mia", group=True)
    space = str((await house.chat_of(by="mia", group=True)).space_id)
    assert (await house.says("/memory blacklist", by="mia", group=True)).startswith("Nobody is on the blacklist")
    assert (await house.says("/memory blacklist uma", by="mia", group=True)).startswith("Uma is on the blacklist")
    assert list((await house.do(lambda c: memory_switches.barred(c, space))).values()) == ["Uma"]
    assert "Uma" in await house.says("/memory blacklist", by="mia", group=True)
    assert "manager" in await house.says("/memory blacklist ada", by="uma", group=True)
    assert (await house.says("/memory blacklist nobody", by="mia", group=True)).startswith("I know nobody")
    assert (await house.says("/memory blacklist uma off", by="mia", group=True)).startswith("Uma is no longer")
    assert await house.do(lambda c: memory_switches.barred(c, space)) == {}
    assert (await house.says("/memory blacklist", by="owen")) == "/memory blacklist works in a group only."


@pytest.mark.rule("SM-13", "SM-14", "SM-15", "SM-87")
async def test_the_api_may_set_the_bits_apart_and_refuses_what_is_not_there(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel([]), config={"characters": {"luna": {"name": "Luna"}}}) as gateway:

        async def patch(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            async with gateway.http.patch(f"{gateway.url}{path}", json=body) as answer:
                return answer.status, await answer.json()

        mine = await gateway.get("/api/memory/switches")
        assert (mine["privacy"], mine["share_private"]) == ("normal", False)
        assert mine["characters"][1] == {"id": "luna", "name": "Luna", "learn": True, "use": True, "returnable": 0}
        status, mine = await patch("/api/memory/switches", {"privacy": "partial", "share_private": True, "characters": {"luna": {"learn": False}}})
        assert status == 200 and (mine["privacy"], mine["share_private"]) == ("partial", True)
        assert [(each["learn"], each["use"]) for each in mine["characters"]] == [(True, True), (False, True)]
        assert (await patch("/api/memory/switches", {"characters": {"nobody": {"use": False}}}))[0] == 422
        assert (await patch("/api/memory/switches", {"privacy": "odd"}))[0] == 400
        assert (await patch("/api/operator/spaces/s-none/switches", {}))[0] == 404

"""Chats with several characters: who answers, what each is told, what is kept of it (WO-40)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply, ScriptedModel
from channels.loopback import LoopbackPlatform
from gateway.access import Rules
from gateway.config import Config
from memory.database import Database
from tests.conftest import FakeClock
from tests.gateway.command_house import command_house
from tests.harness import Running, eventually, loopback_plan, running

CAST = {
    "characters": {
        "luna": {"name": "Luna", "aliases": ["ルナ", "露娜"], "prompt": "You are the moon."},
        "hana": {"name": "花", "aliases": ["Hana"], "prompt": "You are a flower."},
        "bob": {"name": "Bob"},
    }
}


OPEN = Rules(allow=frozenset({"*"}), groups=frozenset({"*"}))


class Voices:
    """A model that says whose head it was given."""

    def __init__(self) -> None:
        self.model = ScriptedModel(self._answer)

    def _answer(self, request: ModelRequest) -> Reply:
        head = request.messages[0].text
        return next((f"{name} speaks" for name in ("Luna", "花", "Bob", "Yume") if head.startswith(f"You are {name},")), "nobody")

    def asked(self) -> list[ModelRequest]:
        return [request for request in self.model.requests if request.purpose == "reply"]


CALLS = (
    ("Good morning", "Luna"),
    ("花、元気？", "花"),
    ("And then?", "花"),
    ("@ルナ 月は？", "Luna"),
    ("露娜，你好", "Luna"),
    ("bob?", "Luna"),  # who is not of this chat is nobody's name
)


async def spoke(gateway: Running, chat_id: str, count: int) -> list[str]:
    """Who gave each answer."""
    await gateway.answers(chat_id, count)
    return [message["name"] for message in await gateway.messages(chat_id) if message["role"] == "assistant"]


@pytest.mark.rule("WO-40", "WO-51", "SM-9")
async def test_who_is_called_answers_else_who_spoke_last_else_the_first(tmp_path: Path) -> None:
    voices = Voices()
    async with running(tmp_path, voices.model, config=CAST) as gateway:
        chat_id = await gateway.chat(characters=["luna", "hana", "luna"])
        chat = await gateway.get(f"/api/chats/{chat_id}")
        assert (chat["character"], chat["characters"], chat["kind"]) == ("luna", ["luna", "hana"], "web")
        for number, (text, who) in enumerate(CALLS, start=1):
            await gateway.say(chat_id, text)
            assert (await spoke(gateway, chat_id, number))[-1] == who, text
        answers = [message for message in await gateway.messages(chat_id) if message["role"] == "assistant"]
        assert [message["character"] for message in answers] == ["luna", "hana", "hana", "luna", "luna", "luna"]
    head = voices.asked()[1].messages[0].text
    assert "You are a flower." in head and "you, 花, and also Luna" in head and "moon" not in head


@pytest.mark.rule("WO-40")
async def test_each_character_hears_the_others_by_name_and_itself_as_itself(tmp_path: Path) -> None:
    voices = Voices()
    async with running(tmp_path, voices.model, config=CAST) as gateway:
        chat_id = await gateway.chat(characters=["luna", "hana"])
        for number, text in enumerate(["Luna, hello", "Hana, hello", "Luna, and you?"], start=1):
            await gateway.say(chat_id, text)
            await gateway.answers(chat_id, number)
    said = [(message.role.value, message.text.partition("[notes")[0]) for message in voices.asked()[2].messages[1:]]
    assert said[:2] == [("user", "Luna, hello"), ("assistant", "Luna speaks")]
    assert said[2][0] == "user" and said[2][1].startswith("Hana, hello\n花: 花 speaks")
    assert len(said) == 3, "people and model take turns"


@pytest.mark.rule("WO-40")
async def test_a_regenerated_answer_is_by_the_same_character(tmp_path: Path) -> None:
    async with running(tmp_path, Voices().model, config=CAST) as gateway:
        chat_id = await gateway.chat(characters=["luna", "hana"])
        await gateway.say(chat_id, "Hana, hello")
        await gateway.answers(chat_id, 1)
        await gateway.post(f"/api/chats/{chat_id}/regenerate")

        async def again() -> list[Any]:
            return [message for message in await gateway.messages(chat_id) if message["role"] == "assistant" and message["attempt"] == 2]

        assert [message["name"] for message in await eventually(again)] == ["花"]


@pytest.mark.rule("WO-40", "WO-51")
async def test_members_change_and_a_fork_keeps_them(tmp_path: Path) -> None:
    async with running(tmp_path, Voices().model, config=CAST) as gateway:
        chat_id = await gateway.chat(characters=["luna", "hana"])
        fork = (await gateway.post(f"/api/chats/{chat_id}/fork"))["id"]
        assert (await gateway.get(f"/api/chats/{fork}"))["characters"] == ["luna", "hana"]
        changes: tuple[tuple[dict[str, Any], tuple[str, list[str]]], ...] = (
            ({"characters": ["bob", "hana"]}, ("bob", ["bob", "hana"])),
            ({"characters": ["hana"]}, ("hana", [])),
            ({"characters": ["luna", "bob"]}, ("luna", ["luna", "bob"])),
            ({"character": "bob"}, ("bob", [])),
        )
        for change, wanted in changes:
            async with gateway.http.patch(f"{gateway.url}/api/chats/{chat_id}", json=change) as answer:
                chat = await answer.json()
            assert (chat["character"], chat["characters"]) == wanted
        refused = await gateway.post("/api/chats", {"characters": ["luna", "nobody"]}, status=400)
        assert refused["error"]["code"] == "unknown_character"
        await gateway.post("/api/chats", {"characters": ["luna"] * 9}, status=400)
        refused = await gateway.post("/api/chats", {"kind": "challenge", "characters": ["luna", "hana"]}, status=422)
        assert refused["error"]["code"] == "one_character"


@pytest.mark.rule("WO-40")
async def test_in_a_space_whoever_is_called_answers_and_is_told_who_spoke(tmp_path: Path) -> None:
    platform, voices = LoopbackPlatform(), Voices()
    async with running(tmp_path, voices.model, config=CAST, channels=(loopback_plan(platform, rules=OPEN),)):

        async def said(text: str, count: int, sender: str = "ann") -> str:
            platform.says("g1", f"@yume {text}", sender=sender, group=True)
            await eventually(lambda: _at_least(platform, count))
            return platform.texts("g1")[-1]

        assert await said("hello", 1) == "Yume speaks"
        await said("/character Luna、花", 2, sender="admin1")
        assert await said("Hana, hello", 3) == "花:\n\n花 speaks"
        assert await said("and you?", 4, sender="bob") == "花:\n\n花 speaks"
        assert await said("Luna?", 5) == "Luna:\n\nLuna speaks"
    said_before = voices.asked()[-1].messages[-1].text
    assert "bob: and you?" in said_before and "花: 花 speaks" in said_before


async def _at_least(platform: LoopbackPlatform, count: int) -> bool:
    return len(platform.texts("g1")) >= count


@pytest.mark.rule("WO-40")
async def test_the_command_takes_any_name_for_a_name(sqlite: Database, tmp_path: Path, clock: FakeClock) -> None:
    cast = {"ada": {"name": "Ada"}, "adele": {"name": "Adele"}, "luna": {"name": "Luna", "aliases": ("ルナ",)}}
    config = Config.model_validate({"characters": cast}).characters
    async with command_house(sqlite, tmp_path, clock, characters=config) as house:
        await house.says("/character")
        assert await house.says("/character Ada") == "Ada answers here."
        assert (await house.chat_of()).members == ("ada",)
        assert await house.says("/character Adele, Luna") == "Here answer Adele, Luna. Call one by name; otherwise the one who spoke last answers."
        assert (await house.chat_of()).members == ("adele", "luna")
        assert await house.says("/character") == "Adele, Luna answers here. Others: Yume, Ada."
        assert (await house.says("/character Luna, Nobody")).startswith("There is no character Nobody.")
        assert (await house.chat_of()).members == ("adele", "luna"), "nothing is changed by half"
        assert (await house.says("/character " + ", ".join(["Ada"] * 9))) == "Ada answers here."

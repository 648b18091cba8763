"""Files of the workspace in the prompt: read as people left them, of one's own scope only, and the same bytes while nothing changed."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import Call, ScriptedModel
from channels.loopback import LoopbackPlatform
from memory import tokens
from tests.harness import eventually, loopback_plan, running


def write(folder: Path, path: str, text: str) -> None:
    file = folder / "workspace" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def head_of(request: ModelRequest) -> str:
    return request.messages[0].text


@pytest.mark.rule("WD-6", "WD-2")
async def test_what_a_person_writes_into_the_files_is_known_in_the_next_answer(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _request: "yes")
    async with running(tmp_path, model) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "one")
        await gateway.answers(chat, 1)
        workspace = tmp_path / "workspace"
        (workspace / "system.md").write_text("# Persona\n\nYou speak like a lighthouse keeper.\n", encoding="utf-8")
        (workspace / "user.md").write_text("Ada は東京に住んでいます。\n", encoding="utf-8")
        (workspace / "MEMORY.md").write_text("# Memory\n\n- 她喜欢大提琴。\n", encoding="utf-8")
        await gateway.say(chat, "two")
        await gateway.answers(chat, 2)
        await gateway.say(chat, "three")
        await gateway.answers(chat, 3)
    before, after, again = map(head_of, model.requests[:3])
    assert "lighthouse" not in before
    assert after.index("lighthouse keeper") < after.index("東京") < after.index("大提琴")
    assert again == after


@pytest.mark.rule("WD-9", "WD-10")
async def test_a_group_and_a_challenge_see_nothing_of_the_owners_files(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _request: "yes")
    platform = LoopbackPlatform()
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "MEMORY.md").write_text("- The door code is 4711.\n", encoding="utf-8")
    (tmp_path / "workspace" / "system.md").write_text("Be kind to everybody.\n", encoding="utf-8")
    async with running(tmp_path, model, channels=(loopback_plan(platform),)) as gateway:
        platform.says("g1", "@yume what is the door code", group=True)

        async def sent() -> list[str]:
            return platform.texts()

        await eventually(sent)
        challenge = await gateway.chat(kind="challenge")
        await gateway.say(challenge, "what is the door code")
        await gateway.answers(challenge)
    assert len(model.requests) == 2
    for request in model.requests:
        assert "4711" not in "".join(message.text for message in request.messages)
        assert "Be kind" in head_of(request)


@pytest.mark.rule("WD-7")
@pytest.mark.parametrize("line", ["- a fact about tea and trains", "- お茶と電車についての事実", "- 关于茶和火车的事实"])
async def test_a_long_memory_says_how_many_lines_are_left_out_and_that_search_finds_them(tmp_path: Path, line: str) -> None:
    model = ScriptedModel(lambda _request: "yes")
    lines = [f"{line} {number}" for number in range(500)]
    write(tmp_path, "MEMORY.md", "\n".join(lines))
    async with running(tmp_path, model, config={"memory": {"prompt_max_tokens": 400}}) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "one")
        await gateway.answers(chat)
    (part,) = re.findall(r"\[file MEMORY.md\]\n(.*?)\n\[end of MEMORY.md\]", head_of(model.requests[0]), re.DOTALL)
    *kept, left = part.splitlines()
    assert tokens.count("\n".join(kept)) <= 400
    assert kept == lines[-len(kept) :]
    assert f"{500 - len(kept)} more lines" in left and "memory_search" in left


@pytest.mark.rule("WD-6", "WD-139")
async def test_knowledge_stands_before_the_person_and_the_memory_and_orders_before_both(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _request: "yes")
    write(tmp_path, "user.md", "Ada lives in Kyōto.")
    write(tmp_path, "MEMORY.md", "- She plays the cello.")
    write(tmp_path, "knowledge/index.md", "- ships: about ships")
    write(tmp_path, "knowledge/ships.md", "---\nlore: always\n---\nThe Gullfaxi is a blue ship.")
    write(tmp_path, "knowledge/trains.md", "Trains are not always in the head.")
    async with running(tmp_path, model) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "one")
        await gateway.answers(chat)
    head = head_of(model.requests[0])
    places = [head.index(words) for words in ("memory_search", "about ships", "Gullfaxi", "Kyōto", "cello")]
    assert places == sorted(places)
    assert "Trains are" not in head
    assert {"memory_search", "memory_get", "file_write", "file_edit"} <= {tool.name for tool in model.requests[0].tools}


@pytest.mark.rule("WD-8")
async def test_without_knowledge_no_page_is_in_the_prompt(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _request: "yes")
    write(tmp_path, "knowledge/index.md", "- ships: about ships")
    write(tmp_path, "knowledge/ships.md", "---\nlore: always\n---\nThe Gullfaxi is a blue ship.")
    async with running(tmp_path, model, config={"knowledge": False}) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "one")
        await gateway.answers(chat)
    assert "ships" not in head_of(model.requests[0])



@pytest.mark.rule("WD-14")
async def test_files_belong_to_the_person_whichever_character_answers(tmp_path: Path) -> None:
    model = ScriptedModel(
        lambda request: Call("file_edit", {"path": "MEMORY.md", "old": "", "new": "Likes 昆布茶"})
        if request.purpose == "reply" and "remember" in request.messages[-1].text
        else "noted"
    )
    characters = {"default": {"name": "Yume"}, "mira": {"name": "Mira"}}
    async with running(tmp_path, model, config={"characters": characters}) as gateway:
        first, second = await gateway.chat(character="mira"), await gateway.chat()
        await gateway.say(first, "remember my tea")
        await gateway.answers(first)
        await gateway.say(second, "what is my tea")
        await gateway.answers(second)
    replies = [request for request in model.requests if request.purpose == "reply"]
    assert "Mira" in head_of(replies[0])
    assert "昆布茶" in head_of(replies[-1])
    assert [path.name for path in (tmp_path / "workspace").rglob("MEMORY.md")] == ["MEMORY.md"]


@pytest.mark.rule("WD-3")
async def test_the_folder_of_a_person_and_of_a_group_says_whose_it_is(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _request: "yes")
    platform = LoopbackPlatform()
    async with running(tmp_path, model, channels=(loopback_plan(platform),)) as gateway:
        platform.says("c1", "hello")
        platform.says("g1", "@yume hello", group=True)

        async def made() -> list[Path]:
            return sorted((tmp_path / "workspace").glob("*/*/.scope.json"))

        cards = await eventually(lambda: both(made))
        assert gateway.url
    person, space = cards
    assert json.loads(person.read_text())["platform"] == json.loads(space.read_text())["platform"] == "loopback"
    assert sorted(file.name for file in person.parent.glob("*.md")) == ["MEMORY.md", "user.md"]
    assert sorted(file.name for file in space.parent.glob("*.md")) == ["MEMORY.md", "space.md"]


async def both(made: Callable[[], Awaitable[list[Path]]]) -> list[Path] | None:
    found = await made()
    return found if len(found) == 2 else None


@pytest.mark.rule("WD-34")
@pytest.mark.parametrize("line", ["- Name: Luna", "- 名前：Luna", "- 名字：Luna"])
async def test_the_bot_goes_by_the_name_that_its_owner_gave_it(tmp_path: Path, line: str) -> None:
    model = ScriptedModel(lambda _request: "yes")
    write(tmp_path, "system.md", f"# Persona\n\n{line}\n")
    async with running(tmp_path, model) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "one")
        await gateway.answers(chat)
    assert head_of(model.requests[0]).startswith("You are Luna") and "Yume" not in head_of(model.requests[0])

"""The name that the owner gave to a character without one is shown wherever that character is named; one that the operator named keeps its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.llm.scripted import ScriptedModel
from tests.harness import Running, eventually, running


def write(folder: Path, name: str) -> None:
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    (workspace / "system.md").write_text(f"# System\n\n- {name}\n", encoding="utf-8")


async def names(gateway: Running) -> dict[str, set[Any]]:
    """What each place calls the characters."""
    me = await gateway.get("/api/me")
    lists = (await gateway.get("/api/memories/lists"))["lists"]
    switches = await gateway.get("/api/memory/switches")
    chat = await gateway.chat()
    await gateway.say(chat, "/character")

    async def told() -> str:
        return next((message["text"] for message in await gateway.messages(chat) if message["role"] == "notice"), "")

    return {
        "me": {each["name"] for each in me["characters"]},
        "saved": {each["character_name"] for each in lists if "character_name" in each},
        "switches": {each["name"] for each in switches["characters"]},
        "command": {(await eventually(told)).partition(" answers here")[0]},
    }


def everywhere(name: str) -> dict[str, set[str]]:
    return {place: {name} for place in ("me", "saved", "switches", "command")}


@pytest.mark.rule("WD-34", "WO-40")
@pytest.mark.parametrize("line", ["Name: Aki", "名前：Aki", "名字：Aki"])
async def test_the_name_in_system_md_is_that_of_the_character_and_follows_the_file(tmp_path: Path, line: str) -> None:
    write(tmp_path, line)
    async with running(tmp_path, ScriptedModel([])) as gateway:
        assert await names(gateway) == everywhere("Aki")
        for now, name in ((line.replace("Aki", "Mio"), "Mio"), ("Style: short", "Yume")):
            write(tmp_path, now)

            async def renamed(name: str = name) -> bool:
                return (await gateway.get("/api/me"))["characters"][0]["name"] == name

            await eventually(renamed)
            assert await names(gateway) == everywhere(name)


@pytest.mark.rule("WD-34", "WO-40")
async def test_a_character_that_the_operator_named_keeps_its_name(tmp_path: Path) -> None:
    write(tmp_path, "Name: Aki")
    async with running(tmp_path, ScriptedModel([]), config={"characters": {"default": {"name": "Nora"}}}) as gateway:
        assert await names(gateway) == everywhere("Nora")

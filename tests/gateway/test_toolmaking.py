"""The tools of a turn, as the gateway builds them: what they read, with its origin, and what the settings say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.llm.port import Role
from agent.llm.scripted import Call, ScriptedModel
from agent.turn import Record, ToolUse
from memory.database import Database
from tests.conftest import FakeClock
from tests.gateway.memory_desk import Desk, desk, use


@pytest.fixture
async def house(sqlite: Database, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk(sqlite, clock, tmp_path) as house:
        await house.person()
        yield house


@pytest.mark.rule("WD-103", "WD-114")
async def test_a_read_line_shows_whose_words_it_rests_on(house: Desk) -> None:
    house.put("memory/2026-03-08.md", "- 手で書いた\n")
    own, foreign = await house.tools(), await house.tools(foreign=True)
    await use(own["file_edit"], path="memory/2026-03-08.md", new="I moved")
    await use(foreign["file_edit"], path="memory/2026-03-08.md", new="有人说要下雨")
    shown = await use(own["memory_get"], path="memory/2026-03-08.md")
    assert "memory/2026-03-08.md, 2026-03-08, lines 1 to 3 of 3" in shown
    assert "1 [human]: - 手で書いた\n2 [person]: - I moved\n3 [mixed]: - 有人说要下雨" in shown


@pytest.mark.rule("WD-78", "WD-103")
async def test_a_diary_is_not_read_by_the_model(house: Desk) -> None:
    house.put("memory/dreams/2026-03-08.md", "I dreamt of trains.\n")
    tools = await house.tools()
    answer = await use(tools["memory_get"], path="memory/dreams/2026-03-08.md")
    assert answer.startswith("error: ") and "trains" not in answer


@pytest.mark.rule("WD-102")
async def test_the_setting_says_how_many_hits_there_are_and_a_failure_is_told(house: Desk) -> None:
    house.settings["memory"] = {"search_results": 3}
    house.put("MEMORY.md", "".join(f"- tea number {number}\n" for number in range(20)))
    tools = await house.tools()
    assert (await use(tools["memory_search"], query="tea")).count("MEMORY.md:") == 3
    assert (await use(tools["memory_search"], query="tea", max_results=12)).count("MEMORY.md:") == 12
    house.search.mode = "failed"
    assert "the search failed" in await use(tools["memory_search"], query="tea")


@pytest.mark.rule("WD-105", "WD-67")
async def test_what_came_into_the_run_counts_from_the_moment_it_came(house: Desk) -> None:
    start, record = await house.start("remember this"), Record()
    facts = house.facts(start, record)
    assert not facts.foreign()
    record.tools.append(ToolUse(name="memory_get", ok=True, milliseconds=1))
    assert not facts.foreign()
    record.tools.append(ToolUse(name="web_fetch", ok=True, milliseconds=1, foreign=True))
    assert facts.foreign()
    assert house.facts(await house.start("see", foreign=True)).foreign()


@pytest.mark.rule("WD-106", "WD-104")
async def test_a_model_remembers_and_finds_again_in_one_turn(house: Desk) -> None:
    script = ScriptedModel(
        [
            Call("memory_search", {"query": "Lyon"}),
            Call("file_edit", {"path": "MEMORY.md", "new": "Ada moved to Lyon on 2026-03-14"}),
            Call("memory_search", {"query": "Lyon"}),
            "Noted.",
        ]
    )
    house.settings["onboarding"] = False
    assert await house.run(await house.start("remember that I moved to Lyon"), script) == "Noted."
    results = [message.text for message in script.requests[-1].messages if message.role is Role.TOOL]
    assert "Nothing was found" in results[0]
    assert results[1].startswith("Written: MEMORY.md, 1 added, 0 removed.")
    assert "Ada moved to Lyon on 2026-03-14" in results[2]


@pytest.mark.rule("WD-17")
async def test_many_tools_at_once_lose_no_line(house: Desk) -> None:
    tools = await house.tools()
    answers = await asyncio.gather(*(use(tools["file_edit"], path="MEMORY.md", new=f"事実 {number}") for number in range(3)))
    assert all(answer.startswith("Written") for answer in answers)
    assert sorted(house.text("MEMORY.md").splitlines()) == [f"- 事実 {number}" for number in range(3)]

"""Running the calls of one turn: whatever a model asks for, it gets a result it can read (RL-23)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from agent.llm.port import Role, ToolCall
from agent.tools.port import spec_of
from agent.tools.toolbox import BAD_CALL_MAX, LEGAL_NAME, RESULT_MAX, SAME_CALL_MAX, Toolbox, skipped
from tests.agent.turns import FakeTool, Needs


def call(name: str = "search", arguments: str = "{}", call_id: str = "c1") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def test_a_tool_is_described_by_its_arguments() -> None:
    class Wanted(BaseModel):
        q: str = Field(description="What to look for.")

    spec = spec_of(FakeTool(arguments=Wanted))
    assert (spec.name, spec.description) == ("search", "The tool search.")
    assert spec.parameters == {
        "type": "object", "properties": {"q": {"type": "string", "title": "Q", "description": "What to look for."}}, "required": ["q"],
    }  # fmt: skip


@pytest.mark.rule("RL-20", "RL-51")
@given(name=st.text(max_size=200), arguments=st.text(max_size=200))
def test_any_call_gets_a_bounded_result_under_its_own_id(name: str, arguments: str) -> None:
    async def run() -> None:
        toolbox = Toolbox([FakeTool(), FakeTool("say", arguments=Needs)], seconds=1)
        result, use = await toolbox.run(call(name, arguments))
        assert (result.role, result.tool_call_id) == (Role.TOOL, "c1")
        assert 0 < len(result.text) < RESULT_MAX + 100
        assert use.name in ("search", "say", LEGAL_NAME)
        assert toolbox.legal(call(name, arguments)).name in ("search", "say", LEGAL_NAME)

    asyncio.run(run())


@pytest.mark.case("MD-10")
async def test_arguments_in_any_script_arrive_whole() -> None:
    tool = FakeTool("say", "ok", Needs)
    await Toolbox([tool], seconds=1).run(call("say", '{"text":"\\u4f60好、😀"}'))
    assert tool.calls[0].text == "你好、😀"


@pytest.mark.case("MD-13")
async def test_the_same_call_is_run_three_times_and_not_a_fourth() -> None:
    tool = FakeTool()
    toolbox = Toolbox([tool], seconds=1)
    for _ in range(SAME_CALL_MAX):
        assert not toolbox.stuck
        await toolbox.run(call())
    assert toolbox.stuck
    result, use = await toolbox.run(call())
    assert (len(tool.calls), use.ok) == (SAME_CALL_MAX, False)
    assert "answer with what you have" in result.text


@pytest.mark.case("MD-11")
async def test_calls_of_tools_that_do_not_exist_are_counted_together() -> None:
    toolbox = Toolbox([FakeTool()], seconds=1)
    for number in range(BAD_CALL_MAX):
        assert not toolbox.stuck
        await toolbox.run(call(f"nothing_{number}"))
    assert toolbox.stuck


@pytest.mark.rule("RL-23")
async def test_the_time_limit_is_the_tools_and_not_a_stop_of_the_turn() -> None:
    async def slow(_: Any) -> str:
        await asyncio.sleep(60)
        return ""

    toolbox = Toolbox([FakeTool(answer=slow)], seconds=60)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):  # as a stop or the turn's own wall time does it
            await toolbox.run(call())


def test_a_skipped_call_has_a_result_too() -> None:
    assert skipped(call(call_id="c9")).tool_call_id == "c9"

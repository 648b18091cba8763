"""Running the calls of one turn: unknown names, broken arguments, time-outs and failures all become results that the model can read."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence

from pydantic import ValidationError

from agent.llm.port import ModelMessage, Role, ToolCall, ToolSpec
from agent.tools.port import Tool, ToolFailed, spec_of
from agent.turn import ToolUse

RESULT_MAX = 20_000  # characters of a tool's answer that reach the model
SAME_CALL_MAX = 3  # the same name and arguments: the model is going in circles (MD-13)
BAD_CALL_MAX = 3  # calls of tools that do not exist (MD-11)
CALLS_MAX = 64  # calls of one turn, however many come in one answer (RL-23)
STUCK = "error: not run, too many calls or the same one again; answer with what you have"
LEGAL_NAME = "unknown_tool"  # stored in place of an empty or illegal name, which providers refuse in the history


class Toolbox:
    """The tools of one turn. `stuck` turns true when going on would only repeat what was tried."""

    def __init__(self, tools: Sequence[Tool], *, seconds: float) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._seconds = seconds
        self._seen: Counter[tuple[str, str]] = Counter()
        self._bad = 0
        self._made = 0

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(spec_of(tool) for tool in self._tools.values())

    @property
    def stuck(self) -> bool:
        return self._bad >= BAD_CALL_MAX or self._made >= CALLS_MAX or any(times >= SAME_CALL_MAX for times in self._seen.values())

    def legal(self, call: ToolCall) -> ToolCall:
        """The call as it may stand in the history."""
        return call if call.name in self._tools else ToolCall(id=call.id, name=LEGAL_NAME, arguments="{}")

    async def run(self, call: ToolCall) -> tuple[ModelMessage, ToolUse]:
        """The result message for `call`, and how it went. Never raises for what the model or the tool did wrong."""
        started = time.monotonic()
        ok, text = (False, STUCK) if self.stuck else await self._result(call)
        if len(text) > RESULT_MAX:
            text = f"{text[:RESULT_MAX]}\n[… cut: {len(text)} characters in all]"
        tool = self._tools.get(call.name)
        foreign = tool is not None and tool.foreign
        use = ToolUse(name=self.legal(call).name, ok=ok, milliseconds=round((time.monotonic() - started) * 1000), foreign=foreign)
        return ModelMessage(role=Role.TOOL, text=text, tool_call_id=call.id), use

    async def _result(self, call: ToolCall) -> tuple[bool, str]:
        self._made += 1
        self._seen[call.name, call.arguments] += 1
        tool = self._tools.get(call.name)
        if tool is None:
            self._bad += 1
            known = ", ".join(self._tools) or "none"
            return False, f"error: there is no tool {call.name.strip()[:64]!r}; tools: {known}"
        try:
            arguments = tool.arguments.model_validate_json(call.arguments.strip() or "{}")
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in error.errors())
            return False, f"error: {faults}"
        try:
            async with asyncio.timeout(self._seconds):
                return True, await tool.call(arguments)
        except TimeoutError:
            return False, f"error: no result within {self._seconds:g} s"
        except ToolFailed as error:
            return False, f"error: {error}"


def skipped(call: ToolCall) -> ModelMessage:
    """The synthetic result of a call that was announced and not run, so that the transcript stays well formed (CH-70)."""
    return ModelMessage(role=Role.TOOL, text="skipped: the person added something first", tool_call_id=call.id)

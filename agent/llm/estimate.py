"""Tokens counted by ourselves, for providers that name none (MD-04). A guess by design: `Usage.estimated` says so wherever it is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache

from agent.llm.port import ModelRequest, ToolCall, ToolSpec
from memory.tokens import IMAGE_TOKENS

PER_MESSAGE = 4
"""Tokens of the role and the separators around each message."""
CountTokens = Callable[[str], int]


def input_tokens(request: ModelRequest, count: CountTokens) -> int:
    """Tokens of everything the request sends."""
    total = sum(PER_MESSAGE + count(message.text) + IMAGE_TOKENS * len(message.images) for message in request.messages)
    total += sum(_calls(message.tool_calls, count) for message in request.messages)
    return total + tool_tokens(request.tools, count)


def tool_tokens(tools: Iterable[ToolSpec], count: CountTokens) -> int:
    """Tokens of the descriptions of tools."""
    return sum(_tool_tokens(tool, count) for tool in tools)


@lru_cache(maxsize=512)  # the same tools with every request
def _tool_tokens(tool: ToolSpec, count: CountTokens) -> int:
    return count(tool.name + tool.description + json.dumps(dict(tool.parameters), ensure_ascii=False))


def output_tokens(texts: Iterable[str], calls: Iterable[ToolCall], count: CountTokens) -> int:
    """Tokens of what the model wrote: text, thinking, calls."""
    return count("".join(texts)) + _calls(calls, count)


def _calls(calls: Iterable[ToolCall], count: CountTokens) -> int:
    return sum(PER_MESSAGE + count(call.name + call.arguments) for call in calls)

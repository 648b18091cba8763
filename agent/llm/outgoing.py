"""A `ModelRequest` becomes the JSON body of a chat completion.

Only fields every compatible server takes: what is not built here is not sent, so reasoning never goes back (MD-15). What providers refuse on sight is
made legal: no assistant message without content (MD-05), no empty tool name (MD-11), no arguments that are no JSON object (MD-09), no lone surrogates
(MD-19). The same request gives the same bytes, so that prompt caches hit.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TypeAlias, cast

from agent.llm.dialect import Dialect
from agent.llm.port import Image, ModelMessage, ModelRequest, Role, ToolCall, ToolSpec
from agent.llm.surrogates import mend

Json: TypeAlias = dict[str, object]

NAMELESS = "unknown_tool"
UNSEEN = "[a picture this model cannot see]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What the model takes. A model without tools is sent neither tools nor the calls and results of earlier turns."""

    tools: bool
    images: bool


def legal_tool_name(name: str) -> str:
    """`name` as providers accept it in history: letters, digits, `_` and `-`, 64 at most; `unknown_tool` when nothing is left (MD-11)."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name.strip())[:64].strip("_") or NAMELESS


def body(request: ModelRequest, *, model: str, dialect: Dialect, abilities: Abilities) -> Json:
    """The whole body. Field names that differ between servers come from the dialect."""
    fields: Json = {"model": model, "messages": messages(request.messages, abilities), "stream": True}
    if dialect.stream_options:
        fields["stream_options"] = {"include_usage": True}
    if request.tools and abilities.tools:
        fields["tools"] = [_tool(tool) for tool in request.tools]
    if request.temperature is not None and dialect.temperature:
        fields["temperature"] = request.temperature
    if request.max_output_tokens is not None:
        fields[dialect.limit_field] = request.max_output_tokens
    return fields


def messages(history: tuple[ModelMessage, ...], abilities: Abilities) -> list[Json]:
    """The messages worth sending, in order. One with nothing to say is left out, a tool's result excepted: its call needs it."""
    return [message for message in (_message(each, abilities) for each in history) if message is not None]


def _message(message: ModelMessage, abilities: Abilities) -> Json | None:
    match message.role:
        case Role.ASSISTANT:
            return _assistant(message, abilities)
        case Role.TOOL:
            if not abilities.tools:
                return None
            return {"role": "tool", "tool_call_id": message.tool_call_id, "content": mend(message.text)}
        case Role.USER | Role.SYSTEM:
            content = _content(message, abilities)
            return {"role": message.role.value, "content": content} if content else None


def _assistant(message: ModelMessage, abilities: Abilities) -> Json | None:
    """With calls but no text the content is null, the form of the interface; "" is refused by strict servers (MD-05)."""
    text = mend(message.text) if message.text.strip() else None
    calls = [_call(call) for call in message.tool_calls] if abilities.tools else []
    if calls:
        return {"role": "assistant", "content": text, "tool_calls": calls}
    return {"role": "assistant", "content": text} if text else None


def _content(message: ModelMessage, abilities: Abilities) -> str | list[Json]:
    text = mend(message.text)
    if not message.images:
        return text
    if not abilities.images:
        return "\n".join([text, *[UNSEEN] * len(message.images)]).strip()
    words: list[Json] = [{"type": "text", "text": text}] if text.strip() else []
    return words + [_picture(image) for image in message.images]


def _picture(image: Image) -> Json:
    return {"type": "image_url", "image_url": {"url": f"data:{image.mime};base64,{image.data}"}}


def _tool(tool: ToolSpec) -> Json:
    return {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}}


def _call(call: ToolCall) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": legal_tool_name(call.name), "arguments": _arguments(mend(call.arguments))}}


def _arguments(text: str) -> str:
    """Some servers parse them when they read the history and answer 500 to broken ones, on every later turn (RL-21)."""
    if not text.strip():
        return "{}"
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    return text if isinstance(cast("object", parsed), dict) else json.dumps({"unreadable": text}, ensure_ascii=False)

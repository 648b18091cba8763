"""What a strict provider refuses with 400. The fake model endpoint applies all of it, so that a request which passes here is legal everywhere."""

from __future__ import annotations

import re
from typing import Any

MESSAGE_FIELDS = {"role", "content", "tool_calls", "tool_call_id", "name"}


def refusal(body: dict[str, Any]) -> str | None:
    """The provider's words, or None for a legal request."""
    asked: list[str] = []
    messages: list[dict[str, Any]] = body.get("messages", [])
    if not messages:
        return "messages: at least one message is required"
    for at, message in enumerate(messages):
        if unknown := sorted(set(message) - MESSAGE_FIELDS):
            return f"unsupported field: messages.{at}.{unknown[0]}"
        role: str = message.get("role", "")
        calls: list[dict[str, Any]] = message.get("tool_calls", [])
        if role != "tool" and asked:
            return f"messages.{at}: tool_call_ids did not have response messages: {', '.join(asked)}"
        if role == "assistant" and not calls and not message.get("content"):
            return f"messages.{at}: all messages must have non-empty content"
        if role == "assistant" and message.get("content") == "":
            return f"messages.{at}: text content blocks must be non-empty"
        if role == "tool":
            if message.get("tool_call_id") not in asked:
                return f"messages.{at}: tool_call_id {message.get('tool_call_id')!r} not found in the message before"
            asked.remove(message["tool_call_id"])
        for call in calls:
            if not call.get("id") or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["function"]["name"]):
                return f"messages.{at}.tool_calls: invalid id or function name"
            asked.append(call["id"])
    return f"tool_call_ids did not have response messages: {', '.join(asked)}" if asked else None

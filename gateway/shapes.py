"""Conversations and messages as the HTTP API shows them (docs/http-api.md). Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from channels.html import to_html
from gateway.language import say
from memory.conversations import Conversation, Message


@lru_cache(maxsize=2_000)
def _html(text: str) -> str:
    return to_html(text)  # the same answer is asked for by every viewer and every reload


def message_json(message: Message, *, waiting: bool = False) -> dict[str, Any]:
    """`html` is sanitised; a person's own words have none, they are shown as they are."""
    return {
        "id": message.id,
        "role": message.role,
        "text": message.text,
        "html": "" if message.role == "user" else _html(message.text),
        "turn_id": message.turn_id,
        "created_at": message.created_at.isoformat().replace("+00:00", "Z"),
        "attachments": [
            {"id": item.get("fetch_ref", ""), "name": item["name"], "mime": item["mime"], "size": item["size"]} for item in message.attachments
        ],
        "state": "waiting" if waiting else {"stopped": "stopped", "failed": "failed"}.get(message.outcome, "done"),
        "attempt": message.attempt,
    }


def chat_json(chat: Conversation, *, language: str, running: bool, snippet: str = "") -> dict[str, Any]:
    return {
        "id": chat.id,
        "title": chat.title or say(language, "new_chat"),
        "kind": chat.kind,
        "character": chat.character,
        "created_at": chat.created_at.isoformat().replace("+00:00", "Z"),
        "updated_at": chat.updated_at.isoformat().replace("+00:00", "Z"),
        "unread": chat.last_seq > chat.seen_seq,
        "running": running,
        "turns_left": chat.turns_left,
        "snippet": snippet,
    }

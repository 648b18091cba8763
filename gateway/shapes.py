"""Conversations and messages as the HTTP API shows them (docs/http-api.md). Pure, but for `prepare`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from channels.html import to_html
from gateway.attempts import Attempt
from gateway.challenges import SUCCESS, Challenge, in_language, played
from gateway.language import say
from memory.conversations import SPOKEN, Conversation, Message

LONG = 2_000  # characters: a text of so many that is all marks takes 50 ms


@lru_cache(maxsize=2_000)
def _html(text: str) -> str:
    return to_html(text)  # the same answer is asked for by every viewer and every reload


async def prepare(messages: Iterable[Message]) -> None:
    """Make the HTML of long messages in a thread, so that `message_json` finds it: a table of 60,000 characters takes more than a second."""
    long = [message.text for message in messages if message.role != "user" and len(message.text) > LONG]
    if long:
        await asyncio.to_thread(lambda: [_html(text) for text in long])


def message_json(message: Message, *, waiting: bool = False) -> dict[str, Any]:
    """`html` is sanitised; a person's own words have none, they are shown as they are. `spoken`: talk, which memories can be saved from (SM-58)."""
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
        "spoken": message.origin in SPOKEN and message.role != "notice",
        "character": message.author_character,
        "name": message.author_name if message.role == "assistant" else "",
    }


def challenge_json(challenge_id: str, challenge: Challenge, *, language: str) -> dict[str, Any]:
    """What people may know of a challenge; what its character and its judge are told stays here."""
    return {
        "id": challenge_id,
        "title": in_language(challenge.title, language),
        "scenario": in_language(challenge.scenario, language),
        "goal": in_language(challenge.goal, language),
        "difficulty": challenge.difficulty,
        "turns": challenge.turns,
        "character": challenge.character,
    }


def attempt_json(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "state": attempt.state,
        "turns": attempt.turns,
        "score": attempt.score,
        "needed": SUCCESS,
        "verdict": attempt.verdict,
        "ended_at": attempt.ended_at.isoformat().replace("+00:00", "Z") if attempt.ended_at else None,
    }


def judged_json(chat_id: str, attempt: Attempt) -> dict[str, Any]:
    """What changes of a chat when its attempt was judged: for whoever has it open."""
    return {"id": chat_id, "turns_left": 0, "attempt": attempt_json(attempt)}


def chat_json(chat: Conversation, *, language: str, running: bool, snippet: str = "", attempt: Attempt | None = None) -> dict[str, Any]:
    challenge = played(chat)
    return {
        "id": chat.id,
        "title": chat.title or say(language, "new_chat"),
        "kind": chat.kind,
        "character": chat.character,
        "characters": list(chat.characters),
        "created_at": chat.created_at.isoformat().replace("+00:00", "Z"),
        "updated_at": chat.updated_at.isoformat().replace("+00:00", "Z"),
        "unread": chat.last_seq > chat.seen_seq,
        "running": running,
        "turns_left": chat.turns_left,
        "challenge": challenge_json(chat.challenge, challenge, language=language) if challenge else None,
        "attempt": attempt_json(attempt) if attempt else None,
        "snippet": snippet,
    }

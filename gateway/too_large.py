"""What a person is told when a prompt does not fit, whatever gives way (RS-70): what is too large, by how much, and what to do. Pure."""

from __future__ import annotations

from agent.errors import AnswerTooLarge, TooLarge
from gateway import windows
from gateway.config import Config
from gateway.language import say
from memory.conversations import Conversation

UNKEPT = {  # what is said where there is no chat whose settings could be named, by the code
    "answer_room": "unkept_answer_room",
    "attachments_room": "unkept_attachments_room",
    "instructions_room": "unkept_instructions_room",
    "pins_room": "unkept_pins_room",
}


def told(error: TooLarge, config: Config, chat: Conversation, language: str) -> str:
    """`error`: of a turn in `chat`."""
    if isinstance(error, AnswerTooLarge):
        sizes = {"answer": f"{error.answer:,}", "window": f"{error.window:,}"}
        return say(language, error.code, needed=f"{error.needed:,}", **sizes)
    return say(
        language,
        error.code,
        needed=f"{error.needed:,}",
        room=f"{error.room:,}",
        over=f"{error.needed - error.room:,}",
        way=_way(error, config, chat, language),
    )


def _way(error: TooLarge, config: Config, chat: Conversation, language: str) -> str:
    """What would make room: another model, or the setting that holds here."""
    if not error.by_setting:
        return say(language, "room_by_model")
    limit = windows.prompt_limit(config, chat)
    setting = "context.ceiling" if limit == config.context.ceiling else "agent_max_context_tokens"
    return say(language, "room_by_setting", setting=setting, value=f"{limit:,}")

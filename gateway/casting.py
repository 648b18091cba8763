"""Who of a chat's characters answers, and what the prompt says of the others and of a challenge (WO-40, SM-88). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.characters import Character, addressed
from agent.prompt import words
from gateway.cast import character_of
from gateway.challenges import played
from gateway.config import DEFAULT_NAME, Config
from memory.conversations import Conversation, Message
from memory.profile_lines import answered

MEMBERS_MAX = 8  # characters of one chat


def members(config: Config, chat: Conversation) -> tuple[Character, ...]:
    """The characters that answer in a chat, as the configuration has them now; the default one when it has none of them any more."""
    known = [name for name in chat.members if name in config.characters]
    return tuple(character_of(config, name) for name in dict.fromkeys(known or [chat.character]))


def who_answers(config: Config, chat: Conversation, questions: Sequence[Message], history: Sequence[Message]) -> Character:
    """Decided anew for each message: who is addressed by name or alias, else who spoke last, else the first. `history`: the talk before it."""
    said = "\n".join(question.text for question in questions)
    last_spoke = next((message.author_character for message in reversed(history) if message.role == "assistant"), "")
    return addressed(said, members(config, chat), last_spoke)


def named(character: Character, system: str) -> Character:
    """A character that the configuration gives no name has the one that its owner gave it in system.md (WD-34)."""
    name = answered(system, "bot_name") if character.name == DEFAULT_NAME else ""
    return replace(character, name=name) if name else character


def name_given(config: Config, name: str) -> Config:
    """The configuration in which a character without a name of the operator's has `name`, the owner's for it; as it is for an empty one."""
    unnamed = {key: each.model_copy(update={"name": name}) for key, each in config.characters.items() if name and each.name == DEFAULT_NAME}
    return config.model_copy(update={"characters": {**config.characters, **unnamed}}) if unnamed else config


def one_of_several(chat: Conversation, character: Character) -> str:
    """The id of who answers, where several characters talk; empty where one does."""
    return character.id if len(chat.characters) > 1 else ""


def head_notes(config: Config, chat: Conversation, character: Character) -> tuple[str, ...]:
    """Standing texts of this chat: who else is in it, and the scene of a challenge. Nothing of them changes between its turns."""
    others = [other.name for other in members(config, chat) if other.id != character.id]
    company = (words("group").replace("{name}", character.name).replace("{others}", ", ".join(others)),) if others else ()
    challenge = played(chat)
    scene = (words("challenge").replace("{scene}", challenge.scene),) if challenge else ()
    return (*company, *scene)

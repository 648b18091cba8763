"""What a challenge is: a scene, a goal, a number of turns (WO-16, SM-88). Pure; the files are read by `challenge_files`.

A chat keeps a copy of the challenge it plays, so that an attempt begins, goes on and is judged by one and the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias, cast

from pydantic import AfterValidator, Field, StringConstraints, ValidationError

from gateway.config.types import Section
from memory.conversations import Conversation
from memory.languages import LANGUAGES

SUCCESS = 80  # points of 100 from which an attempt is won
OVER = "challenge-over"  # the rule by which nothing more is answered
SETTING = "challenge"  # key of a chat's settings
TEXT_MAX = 8_000  # characters

Text: TypeAlias = Annotated[str, StringConstraints(max_length=TEXT_MAX)]


def _known_languages(texts: str | Mapping[str, str]) -> str | Mapping[str, str]:
    if not isinstance(texts, str) and (not texts or any(name not in LANGUAGES for name in texts)):
        raise ValueError(f"wanted a text, or texts under {', '.join(LANGUAGES)}")
    return texts


Words: TypeAlias = Annotated[Text | Mapping[str, Text], AfterValidator(_known_languages)]


class Challenge(Section):
    """One definition. `title`, `scenario` and `goal` are for people: one text, or one for each language. `prompt` and `criteria` are for models."""

    title: Words
    goal: Words
    scenario: Words = ""
    prompt: Text = Field(default="", description="What the character is told; empty is the scenario.")
    criteria: Text = Field(default="", description="By what an attempt is judged; empty is the goal.")
    character: str = "default"
    difficulty: Literal["easy", "normal", "hard"] = "normal"
    turns: int = Field(default=10, ge=1, le=200)

    @property
    def scene(self) -> str:
        """What the character is told. In one language for everybody: two attempts have equal prompts, whoever makes them (SM-88)."""
        return self.prompt or in_language(self.scenario, "en") or in_language(self.title, "en")

    @property
    def measure(self) -> str:
        """By what it is judged."""
        return self.criteria or in_language(self.goal, "en")


def in_language(words: str | Mapping[str, str], language: str) -> str:
    """The text in `language`, else in English, else in whatever there is."""
    if isinstance(words, str):
        return words
    return words.get(language) or words.get("en") or next(iter(words.values()), "")


def played(chat: Conversation) -> Challenge | None:
    """The challenge that a chat plays; None for other chats, and for one whose copy cannot be read any more."""
    kept = chat.settings.get(SETTING)
    if chat.kind != "challenge" or not isinstance(kept, dict):
        return None
    try:
        return Challenge.model_validate(cast("dict[str, object]", kept))
    except ValidationError:
        return None


def is_over(chat: Conversation) -> bool:
    """Whether nothing more may be said in a challenge: its turns are used up, or it was ended."""
    return chat.kind == "challenge" and chat.turns_left is not None and chat.turns_left <= 0

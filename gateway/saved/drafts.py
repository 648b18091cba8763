"""Drafts of memories by the helper model: from a description (SM-57), or out of picked messages (SM-58). A person looks at them first.

What the model gets to generate from is the description alone: this part reads no chat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.llm.port import Finish, ModelMessage, ModelRequest, Role
from agent.prompt import words
from gateway.background import Background
from gateway.config import Config
from gateway.models import Models
from memory.conversations import Message
from memory.lenient_json import object_in
from memory.saved.rows import clean, norm_hash
from memory.secret_patterns import find_secret

PURPOSE = "memory_drafts"
DESCRIPTION_MAX = 1_000  # code points
DEMO = "demo"  # a provider whose model cannot answer in JSON


class NoHelper(Exception):
    """The only model there is cannot do this."""


class NoDrafts(Exception):
    """The model's answer is of no use."""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, hide_input_in_errors=True)

    memories: list[str]


class Drafting:
    """`length`: code points of a memory now."""

    def __init__(self, *, models: Models, background: Background, config: Callable[[], Config], length: Callable[[], int]) -> None:
        self._models = models
        self._background = background
        self._config = config
        self._length = length

    async def generate(self, description: str, *, most: int, person_id: str) -> list[str]:
        """At most `most` texts. Raises NoHelper, NoDrafts, ModelError, BudgetSpent."""
        system = words("memory_generate").replace("{most}", str(most)).replace("{length}", str(self._length()))
        return (await self._drafts(system, description, character_model="", of={"person_id": person_id}))[:most]

    async def extract(
        self, messages: Sequence[Message], *, name: str, character_model: str, zone: ZoneInfo, person_id: str, conversation_id: str
    ) -> list[str]:
        """All that the model found, the most important first; the caller shows as many as may be saved. `name`: of the character. Raises as above."""
        system = words("memory_extract").replace("{name}", name).replace("{length}", str(self._length()))
        said = "\n".join(_said(message, name, zone) for message in messages)
        return await self._drafts(system, said, character_model=character_model, of={"person_id": person_id, "conversation_id": conversation_id})

    async def _drafts(self, system: str, text: str, *, character_model: str, of: dict[str, object]) -> list[str]:
        if self._models.helper_account(character_model).provider == DEMO:
            raise NoHelper("the built-in demo model cannot make drafts of memories: set a model up, or write them yourself")
        request = ModelRequest(messages=(ModelMessage(role=Role.SYSTEM, text=system), ModelMessage(role=Role.USER, text=text)), purpose=PURPOSE)
        async with self._models.helper(character_model) as model:
            answer, end = await self._background.ask(model, request, of)
        if end.reason is not Finish.STOP:
            raise NoDrafts(f"the answer ended with {end.reason.value}")
        kept = (clean(each) for each in _parsed(answer))
        fitting = [each for each in kept if each and len(each) <= self._length() and find_secret(each) is None]
        return list({norm_hash(each): each for each in reversed(fitting)}.values())[::-1]


def _parsed(answer: str) -> list[str]:
    found = object_in(answer)
    if found is None:
        raise NoDrafts("the answer is no JSON object")
    try:
        return _Answer.model_validate(found).memories
    except ValidationError as error:
        raise NoDrafts("the answer has another form") from error


def _said(message: Message, name: str, zone: ZoneInfo) -> str:
    at: datetime = message.created_at.astimezone(zone)
    author = name if message.role == "assistant" else message.author_name or "the person"
    return f"[{at:%Y-%m-%d %H:%M}] {author}: " + message.text.strip().replace("\n", "\n  ")

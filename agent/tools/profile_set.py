"""`profile_set`: the owner's answers to the first-start questions, as they come (WD-34, WD-35)."""

from __future__ import annotations

import difflib
import zoneinfo
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeAlias, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from agent.onboarding import Answers, language_tag, zone_name
from agent.tools.file_write import failure
from agent.tools.port import ToolFailed
from memory.errors import StoreUnavailable
from memory.file_errors import FileRefused, FileUnreadable
from memory.markdown_lines import one_line


def _language(text: str) -> str:
    if text and not language_tag(text):
        raise ValueError("give a language tag such as en, ja, zh or pt-BR")
    return language_tag(text)


def _zone(text: str) -> str:
    if text and not zone_name(text):
        near = difflib.get_close_matches(text, zoneinfo.available_timezones(), 1, 0.5)
        raise ValueError("give an IANA time zone such as Asia/Tokyo" + (f"; did you mean {near[0]}?" if near else ""))
    return zone_name(text)


def _text(value: object) -> object:
    """Models send null for what was not said."""
    return "" if value is None else one_line(value) if isinstance(value, str) else value


def _list(value: object) -> object:
    return [] if value is None else [value] if isinstance(value, str) else value


Text: TypeAlias = Annotated[str, BeforeValidator(_text)]


class ProfileArguments(BaseModel):
    bot_name: Annotated[Text, Field(max_length=60)] = Field(default="", description="Name for you.")
    style: Annotated[Text, Field(max_length=300)] = Field(default="", description="Your manner. Everybody sees it: nothing about the person.")
    address: Annotated[Text, Field(max_length=80)] = Field(default="", description="What to call the person.")
    language: Annotated[Text, AfterValidator(_language)] = Field(default="", description="Language tag.")
    timezone: Annotated[Text, AfterValidator(_zone)] = Field(default="", description="IANA name.")
    facts: Annotated[list[Annotated[Text, Field(max_length=300)]], BeforeValidator(_list), Field(max_length=10)] = Field(
        default=[], description="Other things the person said of themself."
    )
    skip: bool = Field(default=False, description="The person would rather not answer.")


Store: TypeAlias = Callable[[Answers], Awaitable[str]]


class ProfileSet:
    name = "profile_set"
    description = "Store what the person answered to the first-start questions; give only what they said, partial answers are fine."
    arguments: type[BaseModel] = ProfileArguments
    foreign = False

    def __init__(self, store: Store) -> None:
        """`store` writes the answers and says what became of them; it raises what the workspace raises."""
        self._store = store

    async def call(self, arguments: BaseModel) -> str:
        asked = cast("ProfileArguments", arguments)
        answers = Answers(
            bot_name=asked.bot_name, style=asked.style, address=asked.address, language=asked.language, timezone=asked.timezone,
            facts=tuple(filter(None, asked.facts)), skip=asked.skip,
        )  # fmt: skip
        if not answers.values and not answers.facts and not answers.skip:
            raise ToolFailed("nothing was given: name at least one answer, or set skip")
        try:
            return await self._store(answers)
        except (FileRefused, FileUnreadable, StoreUnavailable) as error:
            raise failure(error) from error

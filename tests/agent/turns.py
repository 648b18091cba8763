"""What the tests of the runtime share: a turn, a page that notes what it is shown, tools that do as told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from agent.characters import Character
from agent.tools.port import ToolFailed
from agent.turn import Said, Turn

YUME = Character(id="default", name="Yume")
NOON = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def turn(text: str = "hi", *history: str, **more: Any) -> Turn:
    """A turn whose history alternates, the person first."""
    said = tuple(Said(text=words, by_us=bool(at % 2)) for at, words in enumerate(history))
    return Turn(**{"character": YUME, "newest": Said(text=text, by_us=False), "now": NOON, "zone": "UTC", "history": said, **more})


class Page:
    """A sink that shows what a person sees: `text` is the draft now, `seen` every state it had, `tools` what was told of tools."""

    def __init__(self) -> None:
        self.text = ""
        self.seen: list[str] = []
        self.tools: list[tuple[str, str]] = []

    def delta(self, text: str) -> None:
        self.text += text
        self.seen.append(self.text)

    def reset(self) -> None:
        self.text = ""
        self.seen.append("")

    def tool(self, name: str, state: str) -> None:
        self.tools.append((name, state))


class Sleeper:
    """A sleep that notes its waits and takes no time."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)


class Query(BaseModel):
    model_config = ConfigDict(extra="forbid")
    q: str = ""


class Needs(BaseModel):
    text: str


class FakeTool:
    """`answer` is the result, or a function of the arguments."""

    def __init__(
        self,
        name: str = "search",
        answer: str | Exception | Callable[[Any], Awaitable[str]] = "found",
        arguments: type[BaseModel] = Query,
    ) -> None:
        self.name = name
        self.description = f"The tool {name}."
        self.arguments: type[BaseModel] = arguments
        self.foreign = False
        self.calls: list[Any] = []
        self._answer = answer

    async def call(self, arguments: BaseModel) -> str:
        self.calls.append(arguments)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer if isinstance(self._answer, str) else await self._answer(arguments)


def failing(words: str) -> FakeTool:
    return FakeTool("search", ToolFailed(words))

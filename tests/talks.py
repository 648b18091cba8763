"""Talks on the loopback platform with a whole gateway: what people write there, and what they see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.llm.port import ModelRequest, Role
from agent.llm.scripted import Reply, ScriptedModel
from agent.tools.port import Tool
from channels.loopback import CAPABILITIES, LoopbackPlatform, Shown
from channels.port import Capabilities
from gateway.access import Rules
from tests.harness import Running, loopback_plan, running
from tests.patience import patience


def asked(request: ModelRequest) -> str:
    """The newest words of a person in a request, without the notes before them."""
    newest = next(message.text for message in reversed(request.messages) if message.role is Role.USER)
    return newest.rpartition("[end of notes]")[2].strip()


def model(answer: Callable[[ModelRequest], Reply]) -> ScriptedModel:
    """Plays `answer` for replies; chats are named plainly."""
    return ScriptedModel(lambda request: answer(request) if request.purpose == "reply" else "A title")


@dataclass
class Talk:
    platform: LoopbackPlatform
    gateway: Running
    model: ScriptedModel

    @property
    def requests(self) -> list[ModelRequest]:
        return [request for request in self.model.requests if request.purpose == "reply"]

    @property
    def questions(self) -> list[str]:
        return [asked(request) for request in self.requests]

    def says(self, text: str, *, chat: str = "c1", **more: Any) -> str:
        """A person writes; the id of the message."""
        return self.platform.says(chat, text, **more)["message"]

    def texts(self, chat: str = "c1") -> list[str]:
        return self.platform.texts(chat)

    async def until(self, look: Callable[[], Any], *, within_s: float = 10.0) -> None:
        async with asyncio.timeout(patience(within_s)):
            while not look():  # noqa: ASYNC110  # what people see has no event to wait for
                await asyncio.sleep(0.01)

    async def received(self) -> None:
        """Until everything that was said, edited or deleted so far has been taken in."""
        await self.until(lambda: self.platform.acknowledged >= self.platform.updates[-1]["n"])

    async def shown(self, count: int = 1, *, chat: str = "c1") -> list[str]:
        """What is on show in a chat once there are so many messages, and no more a moment later."""
        await self.until(lambda: len(self.texts(chat)) >= count)
        await asyncio.sleep(0.1)
        return self.texts(chat)

    async def thinking(self, count: int = 1) -> None:
        """Until the model has been asked so often."""
        await self.until(lambda: len(self.requests) >= count)

    async def shows(self, texts: list[str], *, chat: str = "c1", within_s: float = 10.0) -> None:
        """Until exactly this is on show in a chat; and it still is a moment later."""
        try:
            await self.until(lambda: self.texts(chat) == texts, within_s=within_s)
        except TimeoutError:
            pass  # the difference says more
        await asyncio.sleep(0.1)
        assert self.texts(chat) == texts

    def messages(self, chat: str = "c1") -> list[Shown]:
        return [shown for shown in self.platform.shown if shown.address.chat_id == chat]


@asynccontextmanager
async def talk(
    folder: Path,
    script: ScriptedModel,
    *,
    platform: LoopbackPlatform | None = None,
    can: Capabilities = CAPABILITIES,
    rules: Rules | None = None,
    tools: Sequence[Tool] = (),
    **more: Any,
) -> AsyncGenerator[Talk]:
    platform = platform or LoopbackPlatform(hold_s=0.05)
    plan = loopback_plan(platform, rules=rules, capabilities=can, start_after=lambda: platform.acknowledged)
    async with running(folder, script, channels=(plan,), tools=tools, **more) as gateway:
        yield Talk(platform, gateway, script)

"""A talk with a whole gateway on a chat app, the same for all of them: what the model was asked, and what people see in the end."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from agent.llm.port import ModelRequest
from agent.llm.scripted import ScriptedModel
from channels.message import Attachment
from gateway.access import Rules
from tests.harness import Running
from tests.patience import patience
from tests.talks import asked

EVERYBODY = Rules(allow=frozenset({"*"}), groups=frozenset({"*"}))
Server = TypeVar("Server")


@dataclass
class AppTalk(Generic[Server]):
    """`server`: the fake of the platform. An app says in `texts` which chat is meant when none is named."""

    server: Server
    gateway: Running
    model: ScriptedModel

    @property
    def requests(self) -> list[ModelRequest]:
        return [request for request in self.model.requests if request.purpose == "reply"]

    @property
    def questions(self) -> list[str]:
        return [asked(request) for request in self.requests]

    def texts(self, at: Any = None) -> list[str]:
        """What the bot said in a chat, as it is on show now."""
        raise NotImplementedError

    async def until(self, look: Callable[[], Any], *, within_s: float = 10.0) -> None:
        async with asyncio.timeout(patience(within_s)):
            while not look():  # noqa: ASYNC110  # what people see has no event to wait for
                await asyncio.sleep(0.01)

    async def shows(self, texts: list[str], *, at: Any = None, within_s: float = 10.0) -> None:
        """Until exactly this is on show in a chat; and it still is a moment later."""
        try:
            await self.until(lambda: self.texts(at) == texts, within_s=within_s)
        except TimeoutError:
            pass  # the difference says more
        await asyncio.sleep(0.15)
        assert self.texts(at) == texts


def stored_cursors(folder: Path, channel: str) -> dict[str, str]:
    """Where the accounts of a platform go on, as a gateway over `folder` has stored it."""
    with closing(sqlite3.connect(next(folder.rglob("yumegate.db")))) as connection:
        rows: list[tuple[str, str]] = connection.execute("SELECT name, value FROM cursors WHERE channel = ?", (channel,)).fetchall()
    return dict(rows)


def file_reader(folder: Path) -> Callable[[Attachment], Awaitable[bytes]]:
    """The bytes of what a gateway over `folder` has stored."""

    async def read_file(attachment: Attachment) -> bytes:
        return next(folder.rglob(attachment.stored_path)).read_bytes()

    return read_file

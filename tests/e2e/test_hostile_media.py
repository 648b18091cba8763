"""Files that are not what they say, on the wire of each app: they cost little, open nothing, and the message they came with is answered (CH-7)."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.llm.port import ModelRequest
from tests.e2e.app_talk import AppTalk
from tests.e2e.discord_talk import discord_talk
from tests.e2e.telegram_talk import ADA, telegram_talk
from tests.peers.discord.server import FakeDiscord
from tests.peers.discord.world import DM
from tests.peers.telegram.server import FakeBotApi
from tests.talks import asked, model

TWO_GB = 2_000_000_000


def bomb() -> bytes:
    """Ten megabytes of nothing in ten kilobytes."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("notes.txt", b"0" * 10_000_000)
    return held.getvalue()


def vast() -> bytes:
    """A picture of 50,000 × 50,000 pixels in a hundred bytes."""
    head = b"IHDR" + struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))


@dataclass(frozen=True, kw_only=True)
class File:
    """`says`: what the platform says of it; the bytes are another matter."""

    name: str
    says: str
    data: bytes
    announced: int = 0
    seen: str  # what the model reads of it


FILES = {
    "giant": File(name="film.txt", says="text/plain", data=b"small", announced=TWO_GB, seen="film.txt: could not be fetched]"),
    "text as picture": File(name="cat.png", says="image/png", data=b"no cat at all", seen="no cat at all"),
    "zip as text": File(name="notes.txt", says="text/plain", data=bomb(), seen=": notes.txt]"),
    "vast picture": File(name="map.png", says="image/png", data=vast(), seen="map.png: 50000 × 50000 pixels, too large to look at]"),
}


def thanks(_: ModelRequest) -> str:
    return "Thanks."


class Posts:
    """A chat where somebody sends a file, and how often the app was asked for it."""

    def __init__(self, chat: AppTalk[Any]) -> None:
        self.chat = chat

    def post(self, file: File) -> None:
        raise NotImplementedError

    def asked(self) -> int:
        raise NotImplementedError


class OnTelegram(Posts):
    def post(self, file: File) -> None:
        about = self.chat.server.world.file(file.name, file.data, file.announced or None)
        self.chat.server.says(ADA, document=about | {"mime_type": file.says}, caption="look")

    def asked(self) -> int:
        return len(self.chat.server.world.called("getFile"))


class OnDiscord(Posts):
    def post(self, file: File) -> None:
        about = self.chat.server.world.file(file.name, file.data, file.says)
        self.chat.server.says(DM, "look", attachments=[about | ({"size": file.announced} if file.announced else {})])

    def asked(self) -> int:
        return self.chat.server.count("message")


@asynccontextmanager
async def telegram(folder: Path) -> AsyncGenerator[Posts]:
    with FakeBotApi() as server:
        server.world.chat(ADA)
        async with telegram_talk(folder, model(thanks), server) as chat:
            yield OnTelegram(chat)


@asynccontextmanager
async def discord(folder: Path) -> AsyncGenerator[Posts]:
    with FakeDiscord() as server:
        async with discord_talk(folder, model(thanks), server) as chat:
            yield OnDiscord(chat)


@pytest.mark.rule("CH-7", "CH-30", "CH-64")
@pytest.mark.parametrize("app", [telegram, discord], ids=["telegram", "discord"])
async def test_files_that_lie_are_told_by_their_bytes_and_giants_are_not_asked_for(tmp_path: Path, app: Any) -> None:
    async with app(tmp_path) as posts:
        for count, file in enumerate(FILES.values(), start=1):
            posts.post(file)
            await posts.chat.until(lambda count=count: len(posts.chat.requests) == count)
            request = posts.chat.requests[-1]
            assert file.seen in asked(request), f"{file.name}: {asked(request)}"
            assert not any(message.images for message in request.messages), file.name
            assert posts.asked() == count - 1, "the first is a giant: nobody asks for it"
        await posts.chat.shows(["Thanks."] * len(FILES))
    kept = sum(path.stat().st_size for path in tmp_path.rglob("attachments/**/*") if path.is_file())
    assert kept < 100_000

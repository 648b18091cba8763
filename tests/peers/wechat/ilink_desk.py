"""What tests of the iLink adapter stand on: the fake server, a store that outlives the adapter, a clock that both share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from channels.message import Account, Address, Attachment
from channels.port import OutboundPart
from channels.wechat.ilink.adapter import IlinkChannel
from channels.wechat.ilink.login import IlinkLogin
from channels.wechat.ilink.settings import IlinkSettings
from tests.conftest import FakeClock
from tests.contracts.channel_contract import Journal, until
from tests.patience import patience
from tests.peers.wechat.ilink_server import FakeIlink
from tests.peers.wechat.ilink_vault import Kept
from tests.peers.wechat.ilink_world import BOT_ID, TOKEN, World

ACCOUNT = Account(channel="wechat_ilink")
ANN, BOB = "ann@im.wechat", "bob@im.wechat"


@dataclass(slots=True)
class Desk:
    server: FakeIlink
    clock: FakeClock
    kept: Kept = field(default_factory=Kept)
    journal: Journal = field(default_factory=Journal)
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    more: dict[str, Any] = field(default_factory=dict[str, Any])  # settings beside the addresses
    pace_s: float = 0
    margin_s: float = 5

    @property
    def world(self) -> World:
        return self.server.world

    @property
    def settings(self) -> IlinkSettings:
        return IlinkSettings(base_url=self.server.url, cdn_url=self.server.cdn_url, **self.more)

    def logged_in(self, *, proven: bool = True) -> None:
        self.kept.logged_in(TOKEN, BOT_ID, self.server.url, proven=proven)

    def adapter(self) -> IlinkChannel:
        """A new process: it knows what the store knows."""

        async def read_file(file: Attachment) -> bytes:
            return self.files[file.stored_path]

        return IlinkChannel(
            self.settings, vault=self.kept, account=ACCOUNT, load_cursor=self.kept.load_cursor, read_file=read_file, clock=self.clock,
            pause_s=0.02, again_s=0.02, pace_s=self.pace_s, hold_s=1, margin_s=self.margin_s,
        )  # fmt: skip

    def login(self, **seconds: float) -> IlinkLogin:
        return IlinkLogin(self.settings, account=ACCOUNT, vault=self.kept, **{"pause_s": 0.005, "poll_limit_s": patience(0.2)} | seconds)

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[IlinkChannel]:
        channel = self.adapter()
        task = asyncio.ensure_future(channel.run(self.kept.delivering(self.journal)))
        try:
            await until(lambda: channel.proven_at is not None or task.done(), within_s=5)
            yield channel
        finally:
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=patience(1.0))
            assert done, "the adapter did not end within a second"
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    @asynccontextmanager
    async def spoken_to(self, *people: str) -> AsyncGenerator[IlinkChannel]:
        """Connected, and each of `people` (ann alone unless said) has just written."""
        async with self.connected() as channel:
            for person in people or (ANN,):
                self.server.says(person, "hello")
            await self.journal.until(len(people or (ANN,)))
            yield channel

    def advance(self, **time: float) -> None:
        self.clock.advance(**time)


def part(text: str, *, number: int = 1, person: str = ANN, **more: Any) -> OutboundPart:
    return OutboundPart(part_id=f"p{number}", address=Address(account=ACCOUNT, chat_id=person), text=text, **more)


def file(name: str, path: str, *, mime: str = "application/octet-stream", size: int = 1) -> Attachment:
    return Attachment(kind="file", name=name, mime=mime, size=size, stored_path=path)



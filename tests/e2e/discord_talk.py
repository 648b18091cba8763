"""A whole gateway with a Discord account, for tests: what people write on the fake Discord, and what they see there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.llm.scripted import ScriptedModel
from channels.discord.adapter import DiscordChannel
from channels.discord.settings import CAPABILITIES, DiscordSettings
from channels.message import Account
from channels.port import Channel
from gateway.access import Rules
from gateway.channel_set import Plan
from gateway.config import Config
from gateway.store import open_database
from memory.database import Database
from tests.e2e.app_talk import EVERYBODY, AppTalk, file_reader, stored_cursors
from tests.harness import running
from tests.peers.discord.server import FakeDiscord
from tests.peers.discord.world import ANN, DM, TOKEN

ACCOUNT = Account(channel="discord")


class DiscordTalk(AppTalk[FakeDiscord]):
    def says(self, text: str = "", *, channel: str = DM, sender: str = ANN, **more: Any) -> dict[str, Any]:
        return self.server.says(channel, text, user_id=sender, **more)

    def texts(self, at: str | None = None) -> list[str]:
        return self.server.texts(at or DM)


def plan(folder: Path, server: FakeDiscord, *, rules: Rules = EVERYBODY, hold_s: float = 0.05, edit_s: float = 0.1) -> Plan:
    """The account as the gateway makes it from its configuration, only quicker: its place is read from the store."""
    settings = DiscordSettings(token=TOKEN, api_base=server.url, gateway_url=server.gateway_url)
    can = replace(CAPABILITIES, hold_s=hold_s, edit_interval_s=edit_s)

    async def load_cursor(name: str) -> str:
        return stored_cursors(folder, "discord").get(name, "")

    def build() -> Channel:
        channel = DiscordChannel(
            settings, account=ACCOUNT, load_cursor=load_cursor, read_file=file_reader(folder), check_s=0.05, identify_pause_s=0.05
        )
        channel.capabilities = can
        return channel

    return Plan(account=ACCOUNT, settings=settings, capabilities=can, build=build, rules=lambda: rules)


@asynccontextmanager
async def discord_talk(
    folder: Path,
    script: ScriptedModel,
    server: FakeDiscord,
    *,
    rules: Rules = EVERYBODY,
    config: Mapping[str, Any] | None = None,
    database: Callable[[Config], Database] = open_database,
    **more: Any,
) -> AsyncGenerator[DiscordTalk]:
    channels = (plan(folder, server, rules=rules, **more),)
    async with running(folder, script, channels=channels, config=config, database=database) as gateway:
        talk = DiscordTalk(server, gateway, script)
        await talk.until(lambda: server.identified and server.connections)
        await asyncio.sleep(0.1)
        yield talk

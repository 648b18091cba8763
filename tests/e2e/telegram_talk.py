"""A whole gateway with a Telegram account, for tests: what people write on the fake Bot API, and what they see there."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.llm.scripted import ScriptedModel
from channels.message import Account
from channels.port import Channel
from channels.telegram.adapter import TelegramChannel
from channels.telegram.settings import TelegramSettings
from gateway.access import Rules
from gateway.channel_set import Plan
from tests.e2e.app_talk import EVERYBODY, AppTalk, file_reader, stored_cursors
from tests.harness import running
from tests.peers.telegram.server import FakeBotApi
from tests.peers.telegram.world import TOKEN

ACCOUNT = Account(channel="telegram")
ADA, BEN = 700001, 700002
GROUP, FORUM, TOPIC = -1001234500001, -1001234500002, 42


class TelegramTalk(AppTalk[FakeBotApi]):
    def says(self, text: str = "", *, chat: int = ADA, sender: int = ADA, **content: Any) -> dict[str, Any]:
        """A person writes; the message as the server has it."""
        name = {ADA: "Ada", BEN: "Ben"}.get(sender, "Somebody")
        return self.server.says(chat, text, sender={"id": sender, "is_bot": False, "first_name": name}, **content)["message"]

    def texts(self, at: int | None = None) -> list[str]:
        return self.server.world.texts(at or ADA)

    def calls(self, *methods: str) -> list[str]:
        """The texts of calls in order, what was refused included."""
        return [call.given.get("text", "") for call in self.server.world.calls if call.method in methods]


def plan(folder: Path, url: str, *, rules: Rules = EVERYBODY, hold_s: float = 0.05, edit_s: float = 0.1) -> Plan:
    """The account as the gateway makes it from its configuration, only quicker: its place in the feed is read from the store."""
    settings = TelegramSettings(token=TOKEN, base_url=url)
    can = replace(settings.capabilities, hold_s=hold_s, edit_interval_s=edit_s, group_edit_interval_s=edit_s)

    async def load_cursor() -> str:
        return stored_cursors(folder, "telegram").get("updates", "")

    def build() -> Channel:
        channel = TelegramChannel(settings, account=ACCOUNT, load_cursor=load_cursor, read_file=file_reader(folder))
        channel.capabilities = can
        return channel

    return Plan(account=ACCOUNT, settings=settings, capabilities=can, build=build, rules=lambda: rules)


@asynccontextmanager
async def telegram_talk(
    folder: Path,
    script: ScriptedModel,
    server: FakeBotApi,
    *,
    rules: Rules = EVERYBODY,
    config: Mapping[str, Any] | None = None,
    **more: Any,
) -> AsyncGenerator[TelegramTalk]:
    async with running(folder, script, channels=(plan(folder, server.url, rules=rules, **more),), config=config) as gateway:
        yield TelegramTalk(server, gateway, script)

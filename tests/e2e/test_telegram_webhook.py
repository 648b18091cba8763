"""A Telegram account in webhook mode, from the configuration to the answer: the fake Bot API posts to the gateway's second port."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.llm.scripted import ScriptedModel
from tests.harness import eventually, running
from tests.peers.telegram.server import FakeBotApi
from tests.peers.telegram.world import TOKEN
from tests.ports import free_port

ADA = 700001


@pytest.mark.rule("CH-12", "WX-10")
async def test_telegram_calls_the_second_port_and_is_answered(tmp_path: Path) -> None:
    port = free_port()
    with FakeBotApi() as server:
        server.world.chat(ADA)
        config = {
            "webhooks": {"port": port},
            "channels": {
                "telegram": {
                    "enabled": True,
                    "token": TOKEN,
                    "base_url": server.url,
                    "mode": "webhook",
                    "webhook_url": f"http://127.0.0.1:{port}",
                    "allow": [str(ADA)],
                }
            },
        }
        async with running(tmp_path, ScriptedModel(lambda _request: "Good evening."), config=config):

            async def hooked() -> bool:
                return any(call.method == "setWebhook" for call in server.world.calls)

            await eventually(hooked)
            server.says(ADA, "hello", sender={"id": ADA, "is_bot": False, "first_name": "Ada"})

            async def shown() -> list[str]:
                return server.world.texts(ADA)

            assert await eventually(shown) == ["Good evening."]

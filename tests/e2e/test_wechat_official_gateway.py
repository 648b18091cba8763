"""A whole gateway with an Official Account, from its configuration: the vendor's side calls the webhook port, and judges every answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import Say, ScriptedModel, Wait
from gateway.language import say
from tests.contracts.channel_contract import until
from tests.harness import Running, running
from tests.peers.wechat.official_server import AES_KEY, APP_ID, APP_SECRET, TOKEN, UNAVAILABLE, FakeOfficial, World
from tests.ports import free_port
from tests.talks import asked, model

ANN = "o_user_A"


@pytest.fixture
def server() -> Iterator[FakeOfficial]:
    with FakeOfficial(World(second=1.0)) as server:
        yield server
        assert UNAVAILABLE not in [shown.text for shown in server.world.shown]


@asynccontextmanager
async def talk(folder: Path, script: ScriptedModel, server: FakeOfficial, **more: Any) -> AsyncGenerator[Running]:
    port = free_port()
    account = {
        "enabled": True, "app_id": APP_ID, "app_secret": APP_SECRET, "token": TOKEN, "aes_key": AES_KEY, "api_base": server.url, "allow": [ANN],
        "menu": {"menu_1": "/help"},
    }  # fmt: skip
    config = {"channels": {"wechat_official": account | more}, "webhooks": {"port": port}, "delivery": {"drain_s": 8}}
    async with running(folder, script, config=config) as gateway:
        server.callback = f"http://127.0.0.1:{port}/wechat"
        assert (await asyncio.to_thread(server.check))[0] == 200
        yield gateway


def echo(request: ModelRequest) -> str:
    return f"Re: {asked(request)}"


@pytest.mark.rule("CH-12", "CH-20", "WX-10", "WX-67", "WX-70", "CH-210")
async def test_a_question_and_a_command_are_answered_in_the_reply(tmp_path: Path, server: FakeOfficial) -> None:
    async with talk(tmp_path, model(echo), server) as gateway:
        server.says(ANN, "hello")
        await until(lambda: server.world.view(ANN) == ["Re: hello"])
        server.happens(ANN, "CLICK", "menu_1")
        await until(lambda: len(server.world.view(ANN)) == 2)
        assert "/help" in server.world.view(ANN)[1]
        server.says("o_stranger", "hello?")
        await until(lambda: len(server.world.tries) == 3)
        ready = await gateway.get("/readyz")
        assert "wechat_official" in str(ready)
    assert [shown.way for shown in server.world.shown if shown.person == ANN] == ["reply", "reply"]


@pytest.mark.case("WE-08")
@pytest.mark.rule("WX-69", "WX-72", "CH-82")
async def test_a_late_answer_waits_for_the_next_message_also_over_a_restart(tmp_path: Path, server: FakeOfficial) -> None:
    def script() -> ScriptedModel:
        return model(lambda request: [Wait(6), Say("at last")] if asked(request) == "slow?" else "and this")

    async with talk(tmp_path, script(), server, passive_tries=1):
        server.says(ANN, "slow?")
        await until(lambda: server.world.view(ANN) == [say("en", "wechat_thinking")])
        await asyncio.sleep(3)
    async with talk(tmp_path, script(), server, passive_tries=1):
        server.says(ANN, "hello?")
        await until(lambda: len(server.world.view(ANN)) == 2)
    last = server.world.view(ANN)[-1]
    assert "at last" in last
    assert "and this" in last


@pytest.mark.rule("WX-69", "WX-80", "WX-11")
async def test_with_the_api_a_late_answer_comes_by_itself(tmp_path: Path, server: FakeOfficial) -> None:
    async with talk(tmp_path, model(lambda _: [Wait(6), Say("at last")]), server, passive_tries=1, customer_service=True):
        server.says(ANN, "slow?")
        await until(lambda: server.world.view(ANN) == ["at last"], within_s=15)
    assert server.world.shown[0].way == "api"

"""A whole gateway with a WeCom bot, as people see it: every frame goes over the wire of the fake WeCom, and so does every answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import Say, ScriptedModel, Wait
from channels.message import Account
from channels.wechat.wecom.adapter import WeComChannel
from channels.wechat.wecom.settings import WeComSettings
from gateway.access import Rules
from gateway.channel_set import Plan
from tests.contracts.channel_contract import until
from tests.harness import Running, running
from tests.peers.wechat.ilink_vault import Kept
from tests.peers.wechat.official_house import speak
from tests.peers.wechat.wecom_server import BOT_ID, SECRET, FakeWeCom
from tests.talks import asked, model

ACCOUNT = Account(channel="wecom")
ANN, BEN, GROUP = "ann", "ben", "wr-group-1"
SECOND = 0.2
STORY = "Once upon a time there was a lamp that was never afraid of the dark, and it stood at a window."


@pytest.fixture
def server() -> Iterator[FakeWeCom]:
    with FakeWeCom() as server:
        server.world.second = SECOND
        yield server
        assert server.world.violations == []


@pytest.fixture
def kept() -> Kept:
    return Kept()


@asynccontextmanager
async def talk(folder: Path, script: ScriptedModel, server: FakeWeCom, kept: Kept) -> AsyncGenerator[Running]:
    settings = WeComSettings(bot_id=BOT_ID, secret=SECRET, url=server.socket_url, trusted_hosts=("127.0.0.1",))
    rules = Rules(allow=frozenset({ANN, BEN}), groups=frozenset({GROUP}))
    plan = Plan(
        account=ACCOUNT, settings=settings, capabilities=settings.capabilities, rules=lambda: rules,
        build=lambda: WeComChannel(settings, vault=kept, account=ACCOUNT, say=speak, admits=rules.admits, second=SECOND),
    )  # fmt: skip
    async with running(folder, script, channels=(plan,), config={"delivery": {"drain_s": 1}}) as gateway:
        await until(lambda: server._live is not None)
        yield gateway


def echo(request: ModelRequest) -> str:
    return f"Re: {asked(request)}"


@pytest.mark.rule("CH-20", "WX-104", "WX-105", "WX-111")
async def test_a_question_is_answered_on_its_own_frame(tmp_path: Path, server: FakeWeCom, kept: Kept) -> None:
    async with talk(tmp_path, model(echo), server, kept):
        server.says(ANN, "good morning")
        await until(lambda: server.world.view(ANN) == ["Re: good morning"])
        server.says(BEN, "and to all", group=GROUP)
        await until(lambda: len(server.world.view(GROUP)) == 1)
        server.says("mallory", "let me in")
        await asyncio.sleep(0.5)
    assert [(shown.id, shown.way, shown.finished) for shown in server.world.shown if shown.chat != "mallory"] == [
        ("stream:r1", "stream", True), ("stream:r2", "stream", True),
    ]  # fmt: skip
    assert server.world.view(GROUP)[0].endswith("and to all")
    assert not any("Re:" in text for text in server.world.view("mallory"))


@pytest.mark.rule("CH-95", "CH-96", "WX-105")
async def test_an_answer_grows_in_place_and_ends_whole(tmp_path: Path, server: FakeWeCom, kept: Kept) -> None:
    words = STORY.split(" ")
    script = model(lambda _: [step for word in words for step in (Say(f"{word} " if word != words[-1] else word), Wait(0.15))])
    async with talk(tmp_path, script, server, kept):
        server.says(ANN, "tell me a story")
        await until(lambda: bool(server.world.shown) and server.world.shown[0].finished, within_s=15)
    (shown,) = server.world.shown
    assert shown.text == STORY
    assert shown.frames >= 2, "it was shown while it grew"


@pytest.mark.rule("CH-101", "WX-107")
async def test_after_a_restart_the_answer_is_a_message(tmp_path: Path, server: FakeWeCom, kept: Kept) -> None:
    script = model(lambda _: [Wait(60)])
    async with talk(tmp_path, script, server, kept) as gateway:
        server.says(ANN, "slow?")
        await until(lambda: bool(script.requests))
        gateway.stop.set()
        server.world.questions.clear()  # the platform knows the question no longer
    async with talk(tmp_path, model(echo), server, kept):
        await until(lambda: server.world.view(ANN) == ["Re: slow?"], within_s=15)
    assert server.world.shown[0].way == "message"


@pytest.mark.rule("CH-81", "WX-105", "WX-112")
async def test_a_long_answer_goes_on_in_a_new_message(tmp_path: Path, server: FakeWeCom, kept: Kept) -> None:
    long = "字" * 7000
    async with talk(tmp_path, model(lambda _: long), server, kept):
        server.says(ANN, "much")
        await until(lambda: len("".join(server.world.view(ANN))) == 7000)
    assert "".join(server.world.view(ANN)) == long
    assert [shown.way for shown in server.world.shown] == ["stream", "message"]

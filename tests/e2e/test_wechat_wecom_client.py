"""The fake WeCom proven by a client that this project did not write: what it does and the fake accepts is what our adapter does too."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import warnings
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest

from channels.wechat import crypto
from tests.contracts.channel_contract import until
from tests.peers.wechat.wecom_server import BOT_ID, FILE_KEY, SECRET, FakeWeCom, seal_file

NAME = "wecom-aibot-python-sdk"


@pytest.fixture
def server() -> Iterator[FakeWeCom]:
    with FakeWeCom() as server:
        yield server


@pytest.fixture
async def sdk() -> Any:
    if importlib.util.find_spec("aibot") is None:
        pytest.skip(f"{NAME} is not installed: make test installs it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("aibot")


@pytest.fixture
async def client(server: FakeWeCom, sdk: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Any]:
    manager = importlib.import_module("aibot.ws")
    connect = manager.websockets.connect
    # It would speak TLS on any address.
    monkeypatch.setattr(manager.websockets, "connect", lambda url, ssl=None, **more: connect(url, **more))
    options = sdk.WSClientOptions(bot_id=BOT_ID, secret=SECRET, ws_url=server.socket_url, heartbeat_interval=100, max_reconnect_attempts=0)
    client, others = sdk.WSClient(options), asyncio.all_tasks()
    yield client
    client.disconnect()
    await until(lambda: asyncio.all_tasks() - {asyncio.current_task()} <= others)  # it tells nobody when its connection is closed


@pytest.mark.rule("WX-100", "WX-101", "WX-102", "WX-105", "WX-151", "WX-190", "WX-191", "WX-192", "WX-193")
async def test_a_client_of_another_hand_subscribes_hears_and_answers(server: FakeWeCom, client: Any) -> None:
    heard: list[Any] = []
    welcomed: list[Any] = []
    client.on("message", heard.append)
    client.on("event.enter_chat", welcomed.append)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        await client.connect()
    await until(lambda: server._live is not None)
    server.says("ann", "你好")
    server.says("ann", msgtype="image", image=server.file("a", b"picture"))
    server.happens("ann", "enter_chat")
    await until(lambda: len(heard) == 2 and len(welcomed) == 1)
    assert heard[0]["body"]["text"]["content"] == "你好"
    for number, (text, finish) in enumerate([("He", False), ("Hello", False), ("Hello there", True)]):
        assert (await client.reply_stream(heard[0], "s1", text, finish))["errcode"] == 0, number
    await client.reply_welcome(welcomed[0], {"msgtype": "text", "text": {"content": "Hi"}})
    await client.send_message("ann", {"msgtype": "markdown", "markdown": {"content": "**later**"}})
    await until(lambda: any(frame["cmd"] == "ping" for frame in server.world.frames))
    image = heard[1]["body"]["image"]
    opened = importlib.import_module("aibot.crypto_utils").decrypt_file(server.world.files["a"], image["aeskey"])
    assert opened == b"picture"
    assert [(shown.text, shown.way, shown.finished) for shown in server.world.shown] == [
        ("Hello there", "stream", True), ("Hi", "welcome", True), ("**later**", "message", True),
    ]  # fmt: skip
    assert server.world.violations == []


@pytest.mark.rule("WX-191")
async def test_a_client_of_another_hand_meets_the_same_refusals(server: FakeWeCom, client: Any) -> None:
    heard: list[Any] = []
    client.on("message", heard.append)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        await client.connect()
    await until(lambda: server._live is not None)
    server.says("ann", "hello")
    await until(lambda: len(heard) == 1)
    await client.reply_stream(heard[0], "s1", "done", True)
    for body, code in (
        ({"msgtype": "stream", "stream": {"id": "s1", "finish": True, "content": "again"}}, "846608"),
        ({"msgtype": "text", "text": {"content": "x"}}, "40008"),
    ):
        with pytest.raises(RuntimeError, match=code):
            await client.reply(heard[0], body)
    with pytest.raises(RuntimeError, match="846605"):
        await client.reply_stream({"headers": {"req_id": "nobody"}}, "s2", "x", True)


@pytest.mark.rule("WX-110", "WX-151")
def test_a_client_of_another_hand_opens_what_the_fake_seals(sdk: Any) -> None:
    assert sdk is not None
    opened = importlib.import_module("aibot.crypto_utils").decrypt_file
    for data in (b"hello", b"", b"x" * 32, bytes(range(256)) * 100):
        assert opened(seal_file(data, crypto.file_key(FILE_KEY)), FILE_KEY) == data

"""The Telegram adapter against servers that this project did not write: `telegram-test-api` (npm) for polling, `mockpost` (PyPI) for webhooks.

`make peers` installs both, and they are used unmodified. Where that has not happened, the tests are skipped and say so: a test fetches nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from channels.message import Account, Address
from channels.port import OutboundPart, Sent
from channels.telegram.adapter import TelegramChannel
from channels.telegram.settings import TelegramSettings
from channels.telegram.webhook import TelegramWebhook
from tests.contracts.channel_contract import Journal, running, until
from tests.harness import eventually
from tests.peers.telegram.listener import listening
from tests.ports import free_port

PEERS = Path(sys.prefix) / "peers"  # where `make peers` puts them
TOKEN = "123456789:AAindependent-peer-token-0000000001"
ACCOUNT = Account(channel="telegram")
ADA = 700001
DM = Address(account=ACCOUNT, chat_id=str(ADA))


@pytest.fixture(scope="session")
def test_api_folder() -> Path:
    folder = PEERS / "test_api"
    if shutil.which("node") is None or not (folder / "node_modules").exists():
        pytest.skip("telegram-test-api is not here: make peers (it needs Node)")
    return folder


@pytest.fixture(scope="session")
def mockpost_python() -> Path:
    python = PEERS / "mockpost" / "bin" / "python"
    if not (PEERS / "mockpost.stamp").exists():
        pytest.skip("mockpost is not here: make peers")
    return python


@dataclass(slots=True)
class Http:
    """A peer and a way to play people on it."""

    url: str
    session: aiohttp.ClientSession

    async def post(self, path: str, body: Any, **headers: str) -> Any:
        async with self.session.post(f"{self.url}{path}", json=body, headers=headers) as answer:
            assert answer.status < 400, await answer.text()
            return await answer.json()

    async def get(self, path: str, **headers: str) -> Any:
        async with self.session.get(f"{self.url}{path}", headers=headers) as answer:
            assert answer.status < 400, await answer.text()
            return await answer.json()


@pytest.fixture
def test_api(test_api_folder: Path) -> Iterator[str]:
    """The address of a fresh telegram-test-api."""
    starter = Path(__file__).parent.parent / "peers" / "telegram" / "test_api.cjs"
    with subprocess.Popen(["node", str(starter), str(test_api_folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


@pytest.fixture
def mockpost(mockpost_python: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a fresh mockpost, with its store and its other servers out of the way."""
    ports = {f"MOCKPOST_{name}_PORT": free_port() for name in ("HTTP", "SMTP", "FTP", "FTPS", "FTPS_IMPLICIT", "SFTP")}
    settings = {name: str(port) for name, port in ports.items()} | {"MOCKPOST_DB_PATH": str(tmp_path / "mockpost.db"), "MOCKPOST_LOG_LEVEL": "error"}
    with subprocess.Popen([str(mockpost_python), "-m", "mockpost.cli"], env={**os.environ, **settings}, cwd=tmp_path) as process:
        yield f"http://127.0.0.1:{ports['MOCKPOST_HTTP_PORT']}"
        process.terminate()


@asynccontextmanager
async def connected(channel: TelegramChannel, journal: Journal) -> AsyncGenerator[None]:
    async with running(channel, journal) as task:
        await until(lambda: channel.proven_at is not None or task.done())
        yield


@pytest.mark.rule("CH-20", "CH-36", "CH-150", "CH-14")
async def test_a_talk_by_polling_with_a_server_of_others(test_api: str) -> None:
    journal = Journal()
    channel = TelegramChannel(TelegramSettings(token=TOKEN, base_url=test_api), account=ACCOUNT)
    async with aiohttp.ClientSession() as session, connected(channel, journal):
        http = Http(test_api, session)
        ada = {"id": ADA, "first_name": "Ada", "is_bot": False}
        for text in ("good morning 😀", "おはよう", "早上好"):
            said = {"botToken": TOKEN, "from": ada, "chat": {"id": ADA, "type": "private"}, "date": 1700000000, "text": text}
            await http.post("/sendMessage", said)
        events = await journal.until(3)
        assert [event.text for event in events] == ["good morning 😀", "おはよう", "早上好"]
        assert {(event.chat_id, event.sender_id, event.sender_name) for event in events} == {(str(ADA), str(ADA), "Ada")}
        sent = await channel.send(OutboundPart(part_id="p1", address=DM, text="Hel"))
        assert isinstance(sent, Sent)
        (shown,) = sent.platform_ids
        assert isinstance(await channel.edit(DM, shown, OutboundPart(part_id="p1", address=DM, text="Hello Ada", edit_of=shown)), Sent)
        heard = await http.post("/getUpdates", {"token": TOKEN, "chatId": str(ADA)})
        assert [each["message"]["text"] for each in heard["result"]] == ["Hello Ada"]


@pytest.mark.rule("CH-12", "CH-20", "CH-210")
async def test_a_talk_by_webhook_with_a_server_of_others(mockpost: str) -> None:
    """It sends no secret, so what stands between the two puts it in, as a proxy could."""
    async with aiohttp.ClientSession() as session, listening() as listener:
        http = Http(mockpost, session)
        await eventually(lambda: answers(session, mockpost), within_s=30)
        await http.post("/api/apps", {"name": "gw", "creds": {"telegram_token": TOKEN}})
        settings = TelegramSettings(token=TOKEN, base_url=f"{mockpost}/telegram", mode="webhook", webhook_url=listener.url)
        channel, journal = TelegramWebhook(settings, account=ACCOUNT), Journal()
        listener.target = channel
        async with connected(channel, journal):
            person = {"chat_id": ADA, "text": "hello there 你好", "from_user": "Ada"}
            await http.post("/telegram/client/sendMessage", person, **{"X-MockPost-App": "gw"})
            await until(lambda: bool(listener.statuses))
            assert (journal.events, set(listener.statuses)) == ([], {403}), "without the secret nobody is heard"
            listener.added = {"X-Telegram-Bot-Api-Secret-Token": settings.webhook_secret}
            await http.post("/telegram/client/sendMessage", person, **{"X-MockPost-App": "gw"})
            (event,) = await journal.until(1)
            assert (event.text, event.chat_id) == ("hello there 你好", str(ADA))
            sent = await channel.send(OutboundPart(part_id="p1", address=event.address, text="the answer", reply_to=event.platform_message_id))
            assert isinstance(sent, Sent)
            assert "the answer" in str(await http.get("/api/timeline", **{"X-MockPost-App": "gw"}))


async def answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/api/apps") as answer:
            return answer.status < 500
    except aiohttp.ClientError:
        return False

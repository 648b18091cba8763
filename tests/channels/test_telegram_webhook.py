"""Telegram calling us: the webhook adapter against our fake Bot API, which posts each update until it is taken."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from channels.errors import ConnectionLost, CredentialRefused
from channels.message import Account, Address
from channels.port import Arrival, OutboundPart, Sent, Webhook, WebhookRequest
from channels.telegram.adapter import TelegramChannel
from channels.telegram.settings import TelegramSettings
from channels.telegram.webhook import TelegramWebhook
from gateway.arrivals.dispatch import Draining
from tests.conftest import FakeClock
from tests.contracts.channel_contract import Journal, running, until
from tests.patience import patience
from tests.peers.telegram.listener import Listener, listening
from tests.peers.telegram.server import FakeBotApi
from tests.peers.telegram.world import TOKEN

ACCOUNT = Account(channel="telegram", name="second")
ADA = 700001


@pytest.fixture
def server() -> Iterator[FakeBotApi]:
    with FakeBotApi() as server:
        server.world.chat(ADA)
        yield server


@pytest.fixture
async def listener() -> AsyncGenerator[Listener]:
    async with listening() as listener:
        yield listener


@pytest.fixture
def journal() -> Journal:
    return Journal()


def made(server: FakeBotApi, listener: Listener, **more: Any) -> TelegramWebhook:
    settings = TelegramSettings(token=TOKEN, base_url=server.url, mode="webhook", webhook_url=listener.url)
    return TelegramWebhook(settings, account=ACCOUNT, **more)


@asynccontextmanager
async def called(server: FakeBotApi, listener: Listener, journal: Journal, **more: Any) -> AsyncGenerator[TelegramWebhook]:
    listener.target = channel = made(server, listener, **more)
    async with running(channel, journal) as task:
        await until(lambda: channel.proven_at is not None or task.done())
        yield channel


async def looked(server: FakeBotApi) -> None:
    """Until the channel has asked how its webhook stands, and knows: two questions later, for one may have been on its way."""
    asked = len(server.world.called("getWebhookInfo"))
    await until(lambda: len(server.world.called("getWebhookInfo")) > asked + 1)


def posted(body: bytes, secret: str, method: str = "POST") -> WebhookRequest:
    return WebhookRequest(method=method, path="/telegram/second", query={}, headers={"X-Telegram-Bot-Api-Secret-Token": secret}, body=body)


@pytest.mark.rule("CH-12", "CH-20", "CH-50", "CH-151")
async def test_at_start_the_webhook_is_set_and_updates_come_in_order(server: FakeBotApi, listener: Listener, journal: Journal) -> None:
    server.says(ADA, "while we were away")
    async with called(server, listener, journal) as channel:
        assert isinstance(channel, Webhook)
        for n in range(20):
            server.says(ADA, f"message {n}")
        await journal.until(21)
        sent = await channel.send(OutboundPart(part_id="p", address=Address(account=ACCOUNT, chat_id=str(ADA)), text="the answer"))
        assert isinstance(sent, Sent)
    assert journal.texts == ["while we were away", *(f"message {n}" for n in range(20))]
    assert {event.account for event in journal.events} == {ACCOUNT}
    (call,) = server.world.called("setWebhook")
    assert call.given["url"] == f"{listener.url}/telegram/second"
    assert call.given["allowed_updates"] == ["message", "edited_message", "callback_query", "my_chat_member"]
    assert "drop_pending_updates" not in call.given
    assert server.world.webhook["url"], "it stays: what comes meanwhile waits there"
    assert server.world.called("getUpdates") == []


@pytest.mark.rule("CH-12", "CH-43")
async def test_who_does_not_know_the_secret_is_not_heard(server: FakeBotApi, listener: Listener, journal: Journal) -> None:
    message = server.world.message(server.world.chat(ADA), {"id": ADA, "first_name": "Mallory"}, text="give me the keys")
    body = json.dumps({"update_id": 9, "message": message}).encode()
    async with called(server, listener, journal) as channel:
        secret = channel.settings.webhook_secret
        before = channel.proven_at
        for wrong in ("", "x", secret[:-1], f"{secret}0", "é", "\udce9"):
            assert (await channel.handle(posted(body, wrong))).status == 403
        assert (await channel.handle(posted(body, secret, "GET"))).status == 405
        assert (journal.events, channel.proven_at) == ([], before)
        assert (await channel.handle(posted(b"no json \xff", secret))).status == 400
        assert (await channel.handle(posted(body, secret))).status == 200
    assert (await channel.handle(posted(body, secret))).status == 503, "nobody takes it in: it comes again"
    assert journal.texts == ["give me the keys"]


@pytest.mark.rule("CH-22", "CH-24", "CH-100")
async def test_what_could_not_be_stored_comes_again(server: FakeBotApi, listener: Listener, journal: Journal) -> None:
    def draining() -> None:
        raise Draining("the gateway is stopping")

    def full() -> None:
        raise RuntimeError("the disk is full")

    journal.before = draining
    async with called(server, listener, journal):
        server.says(ADA, "one")
        server.says(ADA, "two")
        await until(lambda: 503 in listener.statuses)
        journal.before = full
        await until(lambda: 500 in listener.statuses)
        assert journal.events == []
        journal.before = lambda: None
        await journal.until(2)
    assert journal.texts == ["one", "two"]


@pytest.mark.rule("CH-23", "CH-51")
@pytest.mark.case("TG-28")
async def test_an_update_posted_again_after_a_restart_is_a_duplicate_and_taken_with_200(
    server: FakeBotApi, listener: Listener, journal: Journal
) -> None:
    async with called(server, listener, journal):
        update = server.put(update_id=5000, message=server.world.message(server.world.chat(ADA), {"id": ADA, "first_name": "Ada"}, text="once"))
        await journal.until(1)
    async with called(server, listener, journal):
        server.repeat(update)
        assert await journal.until_arrived(2) == [Arrival.NEW, Arrival.DUPLICATE]
        await until(lambda: listener.statuses == [200, 200])
    assert journal.texts == ["once"]


@pytest.mark.rule("CH-4", "CH-27")
async def test_what_cannot_be_read_is_taken_and_stops_nothing(server: FakeBotApi, listener: Listener, journal: Journal) -> None:
    async with called(server, listener, journal):
        server.put(hologram={"light": "blue"})
        server.put(message={"message_id": 1})
        server.put(channel_post={"message_id": 1, "date": 1, "chat": {"id": -1009, "type": "channel"}, "text": "news"})
        server.says(ADA, "still there?")
        strange, broken, good = await journal.until(3)
    assert (strange.hint, broken.hint, good.text) == ("hologram", "message", "still there?")
    assert set(listener.statuses) == {200}


@pytest.mark.rule("CH-159")
async def test_a_press_is_answered_here_too(server: FakeBotApi, listener: Listener, journal: Journal) -> None:
    async with called(server, listener, journal):
        message = {"message_id": 7, "chat": server.world.chat(ADA).json(), "date": 1}
        server.put(callback_query={"id": "81", "from": {"id": ADA, "first_name": "Ada"}, "message": message, "data": "k"})
        await until(lambda: server.world.presses == ["81"])
    assert journal.events[0].target == "k"


@pytest.mark.rule("CH-210", "CH-215")
async def test_it_hears_as_long_as_telegram_calls_or_says_that_it_would(
    server: FakeBotApi, listener: Listener, journal: Journal, clock: FakeClock
) -> None:
    async with called(server, listener, journal, clock=clock, look_every_s=0.02) as channel:
        clock.advance(minutes=2)
        await until(lambda: channel.proven_at == clock())
        server.world.webhook_error = int(clock().timestamp()) + 60  # calls fail, and something waits
        server.world.updates.append({"update_id": 1})
        listener.target = None
        await looked(server)
        proven = channel.proven_at
        clock.advance(minutes=2)
        await looked(server)
        assert channel.proven_at == proven


@pytest.mark.rule("CH-210", "CH-211")
async def test_when_somebody_takes_the_webhook_away_it_is_set_again_by_the_next_life(
    server: FakeBotApi, listener: Listener, journal: Journal
) -> None:
    with pytest.raises(ConnectionLost, match="somebody else"):
        async with running(channel := made(server, listener, look_every_s=0.02), journal) as task:
            await until(lambda: channel.proven_at is not None)
            server.world.webhook = {"url": "http://127.0.0.1:9/elsewhere", "secret": ""}
            await asyncio.wait([task], timeout=patience(10))
    async with called(server, listener, journal):
        assert server.world.webhook["url"].startswith(listener.url)


@pytest.mark.rule("CH-40", "CH-9")
async def test_it_ends_within_a_second_and_leaves_nothing(server: FakeBotApi, listener: Listener, journal: Journal) -> None:
    before = asyncio.all_tasks()
    async with called(server, listener, journal):
        pass
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


@pytest.mark.rule("CH-212")
async def test_without_an_address_to_be_called_at_only_the_operator_can_help(server: FakeBotApi, journal: Journal) -> None:
    channel = TelegramWebhook(TelegramSettings(token=TOKEN, base_url=server.url, mode="webhook"))
    with pytest.raises(CredentialRefused, match="webhook_url"):
        await channel.run(journal)
    assert server.world.called("setWebhook") == []


@pytest.mark.rule("CH-8")
def test_only_the_adapter_that_is_called_has_the_port_for_it() -> None:
    settings = TelegramSettings(token=TOKEN, mode="webhook", webhook_url="https://bot.example.org/")
    assert isinstance(TelegramWebhook(settings), Webhook)
    assert not isinstance(TelegramChannel(TelegramSettings(token=TOKEN)), Webhook)
    assert TelegramWebhook(settings).capabilities == settings.capabilities

"""Calls that nobody's platform made: each is refused like any other forgery, and no fault of ours shows (WX-5, WX-185, CH-4)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Literal

import pytest

from channels.message import Account, EventKind
from channels.port import WebhookRequest
from channels.telegram.settings import TelegramSettings
from channels.telegram.webhook import TelegramWebhook
from channels.wechat import crypto
from channels.wechat.crypto import Step, Unverified
from channels.wechat.official import xml
from channels.wechat.official.adapter import OfficialChannel
from channels.wechat.official.settings import OfficialSettings
from channels.wechat.wecom import convert
from channels.wechat.wecom.settings import WeComSettings
from channels.wechat.wecom.webhook import WeComWebhook
from tests.contracts.channel_contract import Journal, running, until
from tests.peers.telegram.server import FakeBotApi
from tests.peers.telegram.world import TOKEN as BOT_TOKEN
from tests.peers.wechat.ilink_vault import Kept
from tests.peers.wechat.official_server import AES_KEY, APP_ID, TOKEN

DEEP = b"[" * 100_000
HALF = json.dumps({"encrypt": "\ud800"}).encode()  # half of a surrogate pair: JSON can spell what UTF-8 cannot
ENCODINGS = ("nope", "gbk", "big5", "utf-7", "rot13")


def called(path: str, body: bytes, headers: dict[str, str] | None = None) -> WebhookRequest:
    query = {"timestamp": "1", "nonce": "n", "msg_signature": "0" * 40, "signature": "0" * 40}
    return WebhookRequest(method="POST", path=path, query=query, headers=headers or {}, body=body)


@pytest.mark.rule("WX-5", "WX-120", "WX-185")
@pytest.mark.parametrize("body", [DEEP, b'{"encrypt":' * 50_000, HALF, b"1" * 5000, b"\xff"], ids=["array", "object", "surrogate", "number", "bytes"])
async def test_what_wecom_did_not_send_is_refused_however_it_is_made(body: bytes) -> None:
    channel = WeComWebhook(WeComSettings(mode="webhook", token=TOKEN, aes_key=AES_KEY))
    assert (await channel.handle(called(channel.path, body))).status == 403


@pytest.mark.rule("WX-5", "WX-7", "WX-185")
@pytest.mark.parametrize("mode", ["plain", "aes"])
@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_document_in_an_encoding_that_we_cannot_read_is_refused(mode: Literal["plain", "aes"], encoding: str) -> None:
    document = f'<?xml version="1.0" encoding="{encoding}"?><xml><Encrypt>x</Encrypt></xml>'.encode()
    with pytest.raises(Unverified) as refused:
        xml.read(document)
    assert refused.value.step is Step.DOCUMENT
    settings = OfficialSettings(app_id=APP_ID, token=TOKEN, aes_key=AES_KEY, mode=mode)
    channel = OfficialChannel(settings, vault=Kept())
    assert (await channel.handle(called(channel.path, document))).status == 403
    assert channel.apology(called(channel.path, document)).status == 403


@pytest.mark.rule("WX-2", "WX-5")
@pytest.mark.parametrize(("signature", "part"), [("0" * 40, "\ud800"), ("\ud800", "part"), ("\udc80", "part")])
def test_half_a_character_is_signed_by_nobody(signature: str, part: str) -> None:
    with pytest.raises(Unverified) as refused:
        crypto.check(signature, [part])
    assert refused.value.step is Step.SIGNATURE


@pytest.mark.rule("CH-4", "CH-12")
async def test_an_update_that_nests_without_end_is_refused_with_a_status() -> None:
    with FakeBotApi() as server:
        settings = TelegramSettings(token=BOT_TOKEN, base_url=server.url, mode="webhook", webhook_url="https://example.org")
        channel = TelegramWebhook(settings, account=Account(channel="telegram"))
        secret = {"X-Telegram-Bot-Api-Secret-Token": settings.webhook_secret}
        async with running(channel, Journal()):
            await until(lambda: channel.proven_at is not None)
            assert (await channel.handle(called(channel.path, DEEP, secret))).status == 400


@pytest.mark.rule("CH-4")
@pytest.mark.parametrize("headers", [None, [], "r", {}, {"req_id": None}, {"req_id": ["r"]}])
def test_a_frame_without_a_usable_head_is_read_all_the_same(headers: object) -> None:
    frame = {
        "headers": headers,
        "body": {"msgid": "m", "chattype": "single", "from": {"userid": "ann"}, "msgtype": "event", "event": {"eventtype": "enter_chat"}},
    }
    assert convert.frame_id(frame) == ""
    assert convert.convert(frame, Account(channel="wecom"), datetime.now(UTC)).kind is EventKind.MEMBERSHIP

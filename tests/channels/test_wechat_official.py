"""The Official Account against the vendor's side: who is believed, what comes in as what, and what the API makes of a send (3.1, 3.3)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import secrets
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from channels.errors import AttachmentRefused, ChannelError, ConnectionLost, CredentialRefused
from channels.message import Account, Address, Attachment, EventKind, InboundEvent
from channels.port import Apologising, NeedsOperator, OutboundPart, Pull, Refused, Sent, TryLater, Unknown, Webhook, WebhookRequest
from channels.render import render
from channels.wechat import crypto
from channels.wechat.official import convert, passive, xml
from channels.wechat.official.adapter import OfficialChannel
from channels.wechat.official.people import key as person_key
from channels.wechat.official.sending import medium
from channels.wechat.official.settings import CAPABILITIES, OfficialSettings
from gateway.config import Webhooks
from gateway.webhooks import WebhookListener
from tests.conftest import FakeClock
from tests.contracts.channel_contract import Journal, running, until
from tests.patience import patience
from tests.peers.wechat.ilink_vault import Kept
from tests.peers.wechat.official_house import speak
from tests.peers.wechat.official_server import AES_KEY, APP_ID, APP_SECRET, TOKEN, US, FakeOfficial, World

ACCOUNT = Account(channel="wechat_official", name="second")
ANN = "o_user_A"
SECOND = min(patience(0.1), 0.3)  # of the vendor; longer where a busy machine would miss its deadlines
UNTIL_WRITTEN = TryLater(until_written=True)


@pytest.fixture
def server() -> Iterator[FakeOfficial]:
    with FakeOfficial(World(second=SECOND)) as server:
        yield server


@dataclass
class Desk:
    server: FakeOfficial
    clock: FakeClock
    kept: Kept = field(default_factory=Kept)
    journal: Journal = field(default_factory=Journal)
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def __post_init__(self) -> None:
        self.server.world.clock = self.clock
        self.world = self.server.world

    def make(self, **settings: Any) -> OfficialChannel:
        given = OfficialSettings(
            **{
                "app_id": APP_ID, "token": TOKEN, "aes_key": AES_KEY, "app_secret": APP_SECRET, "mode": self.world.mode,
                "api_base": self.server.url, "path": "/wechat/second",
            } | settings
        )  # fmt: skip

        async def read_file(attachment: Attachment) -> bytes:
            return self.files[attachment.name]

        return OfficialChannel(
            given, vault=self.kept, account=ACCOUNT, say=speak, read_file=read_file, clock=self.clock, second=SECOND, pace_s=0
        )

    @asynccontextmanager
    async def running(self, **settings: Any) -> AsyncGenerator[OfficialChannel]:
        """The account, called over a real listener and seen by the console to be ours."""
        channel = self.make(**settings)
        listener = WebhookListener(lambda: [channel], lambda: Webhooks(port=0), shutdown_s=0.02)
        async with listener, running(channel, self.journal):
            self.server.callback = f"http://127.0.0.1:{listener.port}/wechat/second"
            async with asyncio.timeout(patience(5)):
                while (await asyncio.to_thread(self.server.check))[0] != 200:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                await until(lambda: channel._answering.deliver is not None)
            yield channel

    async def tries(self, count: int) -> list[str]:
        await until(lambda: len(self.world.tries) >= count)
        return [each.verdict for each in self.world.tries]

    async def heard(self, message: dict[str, str]) -> InboundEvent:
        before = len(self.journal.events)
        self.server.deliver(message)
        return (await self.journal.until(before + 1))[-1]


@pytest.fixture
def desk(server: FakeOfficial, clock: FakeClock) -> Desk:
    return Desk(server, clock)


def part(text: str, *, number: int = 1, **more: Any) -> OutboundPart:
    return OutboundPart(part_id=f"p{number}", address=Address(account=ACCOUNT, chat_id=ANN), text=text, **more)


# Who is believed


@pytest.mark.rule("WX-60", "WX-180", "CH-12", "CH-210")
@pytest.mark.parametrize("mode", ["plain", "compatible", "aes"])
async def test_the_console_s_question_is_answered_byte_for_byte(desk: Desk, mode: str) -> None:
    desk.world.mode = mode
    async with desk.running() as channel:
        assert isinstance(channel, Webhook)
        assert isinstance(channel, Pull)
        assert isinstance(channel, Apologising)
        assert channel.proven_at == desk.clock()
        echo = "5927782489442352469 ü"
        query = desk.server.query() | {"echostr": echo}
        assert await asyncio.to_thread(desk.server.post, b"", query, method="GET") == (200, echo.encode())
        stamp, nonce = "1000000000", "9" * 9
        unsorted = hashlib.sha1(f"{TOKEN}{stamp}{nonce}".encode()).hexdigest()
        for wrong in (
            query | {"signature": query["signature"][:-1] + ("0" if query["signature"][-1] != "0" else "1")},
            {"timestamp": stamp, "nonce": nonce, "signature": unsorted, "echostr": "x"},
            {"echostr": "x"},
            {name: value for name, value in query.items() if name != "echostr"},
        ):
            assert await asyncio.to_thread(desk.server.post, b"", wrong, method="GET") == (403, b"")


@pytest.mark.case("WE-05")
@pytest.mark.rule("WX-5", "WX-7", "WX-9", "WX-61", "WX-185")
async def test_what_the_vendor_did_not_send_is_refused_without_a_trace(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    body, query = desk.server.envelope(desk.world.message(ANN, Content="hello"))
    plain = b"<xml><ToUserName>gh_yume</ToUserName><FromUserName>o</FromUserName><MsgType>text</MsgType><Content>x</Content></xml>"
    sealed_plain = crypto.encrypt("hello", crypto.key_of(AES_KEY), APP_ID, secrets.token_bytes(16))
    other_app = crypto.encrypt(plain.decode(), crypto.key_of(AES_KEY), "wx9999999999999999", secrets.token_bytes(16))
    bomb = crypto.encrypt('<!DOCTYPE x [<!ENTITY a "b">]><xml>&a;</xml>', crypto.key_of(AES_KEY), APP_ID, secrets.token_bytes(16))
    stale = str(int(desk.clock().timestamp()) - 600)

    def sealed(text: str) -> tuple[bytes, dict[str, str]]:
        return xml.write({"Encrypt": text}).encode(), desk.server.query(text)

    attacks = {
        "another signature": (body, query | {"msg_signature": "0" * 40}),
        "the plain signature only": (body, {name: value for name, value in query.items() if name != "msg_signature"}),
        "a plain body": (plain, desk.server.query()),
        "a plain body with a signature over it": (plain, desk.server.query("x")),
        "empty": (b"", query),
        "braces": (b"{}", query),
        "words": (b"hello", query),
        "no document inside": sealed(sealed_plain),
        "another app": sealed(other_app),
        "entities inside": sealed(bomb),
        "truncated": sealed(base64.b64encode(base64.b64decode(sealed_plain)[:-16]).decode()),
        "no base64": sealed("no base64"),
        "deep": (b"<a>" * 1000 + b"</a>" * 1000, query),
        "stale": (xml.write({"Encrypt": _encrypt_of(body)}).encode(), desk.server.query(_encrypt_of(body), timestamp=stale)),
        "no time": (body, {name: value for name, value in query.items() if name != "timestamp"}),
    }
    async with desk.running():
        for what, (wrong, asked) in attacks.items():
            assert await asyncio.to_thread(desk.server.post, wrong, asked) == (403, b""), what
        assert await asyncio.to_thread(desk.server.post, b"x" * 2_000_000, query) == (413, b"")
        assert desk.journal.events == []
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) >= len(attacks)
    for words in ("signature (-40001)", "parse (-40002)", "receive id (-40005)", "decrypt (-40007)", "base64 (-40010)", "time stamp"):
        assert any(words in line for line in told), words
    assert all(record.exc_info is None for record in caplog.records)


def _encrypt_of(body: bytes) -> str:
    return xml.read(body)["Encrypt"]


@pytest.mark.rule("WX-9", "WX-185")
async def test_a_replay_after_ten_minutes_is_refused_and_a_late_try_is_not(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    async with desk.running():
        message = desk.world.message(ANN, Content="hello")
        body, query = desk.server.envelope(message)
        assert (await asyncio.to_thread(desk.server.post, body, query))[0] == 200
        desk.clock.advance(seconds=50)
        late, its_query = desk.server.envelope(message)
        sealed = _encrypt_of(late)
        old = str(int(desk.clock().timestamp()) - 400)
        assert (await asyncio.to_thread(desk.server.post, late, desk.server.query(sealed, timestamp=old)))[0] == 200
        desk.clock.advance(minutes=10)
        for _ in range(3):
            assert (await asyncio.to_thread(desk.server.post, body, query))[0] == 403
        assert its_query
        assert len(desk.journal.events) == 1
    assert "check the clock" in caplog.text


@pytest.mark.rule("WX-61", "WX-180")
async def test_in_compatible_mode_only_what_is_sealed_is_believed(desk: Desk) -> None:
    desk.world.mode = "compatible"
    async with desk.running():
        event = await desk.heard(desk.world.message(ANN, Content="the truth"))
        assert (event.text, event.sender_id) == ("the truth", ANN)
        plain = b"<xml><ToUserName>gh</ToUserName><FromUserName>o</FromUserName><CreateTime>1</CreateTime><MsgType>text</MsgType></xml>"
        assert (await asyncio.to_thread(desk.server.post, plain, desk.server.query()))[0] == 403


@pytest.mark.case("WE-06")
@pytest.mark.rule("WX-73", "WX-182")
async def test_a_sealed_call_is_answered_sealed_with_fresh_bytes(desk: Desk) -> None:
    async with desk.running(welcome="welcome"):
        for person in (ANN, "o_user_B"):
            desk.server.happens(person, "subscribe")
        assert await desk.tries(2) == ["shown", "shown"]
    one, two = (xml.read(each.body) for each in desk.world.tries)
    assert one["Nonce"] != two["Nonce"]
    assert one["Encrypt"][:22] != two["Encrypt"][:22], "the random bytes come first"
    assert desk.world.view(ANN) == ["welcome"]


# What comes in


@pytest.mark.case("WE-02")
@pytest.mark.rule("WX-62", "WX-63", "WX-183", "CH-5", "CH-51")
async def test_every_kind_comes_in_as_what_it_is(desk: Desk) -> None:
    desk.world.media |= {"m1": b"\xff\xd8 cat", "m2": b"#!AMR hi"}
    async with desk.running(menu={"menu_1": "/help"}) as channel:
        text = await desk.heard(desk.world.message(ANN, Content="  你好 \U00020bb7 "))
        assert (text.kind, text.text, text.platform_event_id) == (EventKind.MESSAGE, "  你好 \U00020bb7 ", text.platform_message_id)
        assert int(text.platform_message_id) > 2**53
        assert (text.chat_id, text.sender_id, text.mentioned) == (ANN, ANN, True)
        assert text.platform_ts == desk.clock().replace(microsecond=0)

        image = await desk.heard(desk.world.message(ANN, MsgType="image", PicUrl=f"{desk.server.url}/pic/m1", MediaId="m1"))
        voice = await desk.heard(desk.world.message(ANN, MsgType="voice", MediaId="m2", Format="amr", Recognition="good morning"))
        video = await desk.heard(desk.world.message(ANN, MsgType="shortvideo", MediaId="m9", ThumbMediaId="m1"))
        assert await channel.fetch(image.attachments[0], 100) == b"\xff\xd8 cat"
        assert await channel.fetch(voice.attachments[0], 100) == b"#!AMR hi"
        assert (voice.attachments[0].transcript, voice.attachments[0].transcript_origin) == ("good morning", "platform")
        assert [each.attachments[0].kind for each in (image, voice, video)] == ["image", "audio", "video"]
        for attachment, limit in ((video.attachments[0], 100), (image.attachments[0], 3)):
            with pytest.raises(AttachmentRefused):
                await channel.fetch(attachment, limit)
        for elsewhere in ("http://example.org/x.jpg", "file:///etc/passwd", "http://127.0.0.1:1/x", "http://mp.weixin.qq.com.evil.example/x"):
            reference = f'{{"u": "{elsewhere}", "m": ""}}'
            with pytest.raises(AttachmentRefused):
                await channel.fetch(Attachment(kind="image", name="x", fetch_ref=reference), 100)

        desk.world.fail("get", {"status": 503})
        with pytest.raises(ConnectionLost, match="503"):  # not now
            await channel.fetch(voice.attachments[0], 100)

        place = await desk.heard(desk.world.message(ANN, MsgType="location", Location_X="23.1", Location_Y="113.3", Scale="20", Label="Canton"))
        link = await desk.heard(desk.world.message(ANN, MsgType="link", Title="News", Description="today", Url="https://example.org"))
        assert place.text == "[location Canton (23.1, 113.3)]"
        assert (link.text, link.forwarded) == ("[link] News\ntoday\nhttps://example.org", True)

        click = await desk.heard(desk.world.message(ANN, MsgType="event", Event="CLICK", EventKey="menu_1"))
        subscribe = await desk.heard(desk.world.message(ANN, MsgType="event", Event="subscribe", EventKey=""))
        assert (click.kind, click.text, click.hint) == (EventKind.MESSAGE, "/help", "CLICK")
        assert (subscribe.kind, subscribe.hint) == (EventKind.MEMBERSHIP, "subscribe")
        assert click.platform_event_id != subscribe.platform_event_id, "in one second, and two"
        for name in ("SCAN", "VIEW", "LOCATION", "TEMPLATESENDJOBFINISH", "CLICK"):
            other = await desk.heard(desk.world.message(ANN, MsgType="event", Event=name, EventKey=f"key of {name}"))
            assert (other.kind, other.hint, other.text) == (EventKind.MEMBERSHIP, name, "")
        before = len(desk.journal.arrivals)
        desk.server.deliver(desk.world.message(ANN, MsgType="event", Event="CLICK", EventKey="menu_1"))
        await desk.journal.until_arrived(before + 1)
        assert desk.journal.arrivals[-1] == "duplicate"

        strange = await desk.heard(desk.world.message(ANN, MsgType="hologram", Light="blue"))
        assert (strange.kind, strange.hint) == (EventKind.UNKNOWN, "hologram")
        assert "blue" in strange.text


@pytest.mark.rule("WX-7", "CH-4", "CH-27")
@pytest.mark.parametrize(
    "fields",
    [
        {"MsgType": "text"}, {"MsgType": "text", "FromUserName": ""}, {"MsgType": "text", "CreateTime": "soon"}, {"MsgType": "event"},
        {"MsgType": "image"}, {"MsgType": ""}, {"MsgType": "text", "ToUserName": "", "Content": "x"},
        {"MsgType": "text", "CreateTime": "99999999999", "Content": "x"}, {"MsgType": "text", "CreateTime": "¹", "Content": "x"},
    ],
)  # fmt: skip
def test_a_message_with_something_missing_is_unknown_and_keeps_what_it_had(fields: dict[str, str], clock: FakeClock) -> None:
    given = {"ToUserName": US, "FromUserName": ANN, "CreateTime": "1700000000", "MsgId": "7"} | fields
    event = convert.convert(given, ACCOUNT, {}, clock())
    assert event.kind is EventKind.UNKNOWN
    assert '"MsgId": "7"' in event.text


@pytest.mark.rule("WX-62")
async def test_who_left_is_sent_nothing_until_they_come_back(desk: Desk) -> None:
    async with desk.running(customer_service=True) as channel:
        await _opened(desk, channel)
        assert isinstance(await channel.send(part("one")), Sent)
        await desk.heard(desk.world.message(ANN, MsgType="event", Event="unsubscribe", EventKey=""))
        await desk.tries(2)
        assert isinstance(await channel.send(part("two", number=2)), Refused)
    async with desk.running(customer_service=True) as channel:  # it is known after a restart
        assert isinstance(await channel.send(part("two", number=2)), Refused)
        desk.clock.advance(seconds=1)
        await desk.heard(desk.world.message(ANN, MsgType="event", Event="subscribe", EventKey=""))
        await desk.tries(3)
        assert isinstance(await channel.send(part("two", number=2)), Sent)


# The API


async def _opened(desk: Desk, channel: OfficialChannel) -> None:
    """Ann has written, and nothing of her message is open any more."""
    before = len(desk.world.tries)
    await desk.heard(desk.world.message(ANN, Content="hello"))
    await desk.tries(before + 1)
    await until(lambda: not channel._answering.expects_a_try(ANN))


@pytest.mark.case("WE-14")
@pytest.mark.rule("WX-12", "WX-13", "WX-80", "WX-184")
async def test_a_part_goes_out_by_the_api_in_real_utf_8(desk: Desk) -> None:
    async with desk.running(customer_service=True) as channel:
        await _opened(desk, channel)
        outcome = await channel.send(part("Good morning, 你好 😀 \"quoted\" \\u0041"))
        assert isinstance(outcome, Sent)
    (shown,) = desk.world.shown
    assert (shown.text, shown.way, (shown.id,)) == ("Good morning, 你好 😀 \"quoted\" \\u0041", "api", outcome.platform_ids)
    (body,) = [body for name, body in desk.world.calls if name == "send"]
    assert "你好 😀".encode() in body


@pytest.mark.rule("WX-11", "WX-81", "WX-184")
async def test_the_token_is_asked_for_once_kept_and_renewed_early(desk: Desk) -> None:
    async with desk.running(customer_service=True) as channel:
        await _opened(desk, channel)
        await asyncio.gather(*(channel.send(part(f"{n}", number=n)) for n in range(3)))
    async with desk.running(customer_service=True) as channel:
        assert isinstance(await channel.send(part("again", number=4)), Sent)
        assert len(desk.world.tokens) == 1, "another life takes it from the vault"
        desk.clock.advance(seconds=7200 - 601)
        assert isinstance(await channel.send(part("still", number=5)), Sent)
        assert len(desk.world.tokens) == 1
        desk.clock.advance(seconds=2)
        await _opened(desk, channel)
        assert isinstance(await channel.send(part("renewed", number=6)), Sent)
        assert len(desk.world.tokens) == 2


@pytest.mark.rule("WX-81", "WX-184")
@pytest.mark.parametrize("code", [40001, 40014, 42001])
async def test_a_stale_token_is_renewed_once_and_the_call_repeated_once(desk: Desk, code: int) -> None:
    async with desk.running(customer_service=True) as channel:
        await _opened(desk, channel)
        desk.world.fail("send", {"errcode": code})
        assert isinstance(await channel.send(part("one")), Sent)
        desk.world.fail("send", {"errcode": code}, {"errcode": code})
        assert isinstance(await channel.send(part("two", number=2)), Refused)
    assert [name for name, _ in desk.world.calls] == ["token", "send", "token", "send", "send", "token", "send"]
    assert desk.world.view(ANN) == ["one"]


@pytest.mark.case("WE-14")
@pytest.mark.rule("WX-80", "WX-184", "CH-11")
async def test_each_answer_of_the_api_is_one_outcome(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with desk.running(customer_service=True) as channel:
        await _opened(desk, channel)
        desk.world.fail("send", {"errcode": 45015})
        assert await channel.send(part("outside")) == UNTIL_WRITTEN
        await _opened(desk, channel)
        desk.world.fail("send", {"errcode": 45047})
        assert await channel.send(part("too many", number=2)) == UNTIL_WRITTEN
        assert await channel.send(part("no loop", number=3)) == UNTIL_WRITTEN
        assert sum(name == "send" for name, _ in desk.world.calls) == 2
        await _opened(desk, channel)
        desk.world.fail("send", *[{"errcode": -1}] * 4)
        assert [await channel.send(part("busy", number=4)) for _ in range(3)] == [TryLater(2.0)] * 3
        assert isinstance(await channel.send(part("busy", number=4)), Refused)
        await _opened(desk, channel)
        desk.world.fail("send", {"errcode": 43004, "errmsg": "require subscribe"})
        refused = await channel.send(part("not wanted", number=5))
        assert isinstance(refused, Refused)
        assert "43004" in refused.reason
        desk.world.fail("send", {"body": "no json"}, {"body": ""}, {"status": 500}, {"cut": "after"})
        for number in range(6, 10):
            assert isinstance(await channel.send(part("who knows", number=number)), Unknown)
            await _opened(desk, channel)
        desk.world.fail("send", {"errcode": 45009})
        quota = await channel.send(part("quota", number=10))
        assert isinstance(quota, TryLater)
        there = desk.clock() + timedelta(hours=8)
        assert quota.after_s == pytest.approx(86400 - (there.hour * 3600 + there.minute * 60 + there.second + there.microsecond / 1e6))
        assert isinstance(await channel.send(part("quota", number=11)), TryLater)
        desk.clock.advance(seconds=quota.after_s + 1)
        await _opened(desk, channel)
        desk.world.fail("send", {"errcode": 48001})
        assert await channel.send(part("not authorised", number=12)) == UNTIL_WRITTEN
        assert await channel.send(part("switched off", number=13)) == UNTIL_WRITTEN
    for words in ("48 hours", "no more messages fit", "quota", "may not use the customer-service API"):
        assert words in caplog.text


@pytest.mark.rule("WX-80")
async def test_five_messages_a_window_of_48_hours_and_half_a_second_between(desk: Desk) -> None:
    async with desk.running(customer_service=True) as channel:
        assert await channel.send(part("never wrote")) == UNTIL_WRITTEN
        await _opened(desk, channel)
        assert [type(await channel.send(part(f"{n}", number=n))) for n in range(5)] == [Sent] * 5
        assert await channel.send(part("6", number=6)) == UNTIL_WRITTEN
        await _opened(desk, channel)
        desk.clock.advance(hours=47)
        assert isinstance(await channel.send(part("7", number=7)), Sent)
    async with desk.running(customer_service=True) as channel:  # counted in the vault
        assert b'"sent": 1' in desk.kept.entries[person_key(ANN)]
        desk.clock.advance(hours=2)
        assert await channel.send(part("8", number=8)) == UNTIL_WRITTEN
    quick = desk.make(customer_service=True)
    quick._pace_s = 0.5
    async with running(quick, desk.journal):
        await until(lambda: quick._answering.deliver is not None)
        await quick._acted(ANN)
        desk.world.acted[ANN] = desk.clock()
        assert isinstance(await quick.send(part("9", number=9)), Sent)
        assert await quick.send(part("10", number=10)) == TryLater(0.5)


@pytest.mark.rule("WX-83")
async def test_files_go_out_as_media_and_what_is_no_medium_in_words(desk: Desk) -> None:
    def file(name: str, mime: str, data: bytes) -> Attachment:
        desk.files[name] = data
        return Attachment(kind="file", name=name, mime=mime, stored_path=name, size=len(data))

    async with desk.running(customer_service=True) as channel:
        await _opened(desk, channel)
        pictures = (file("a.png", "image/png", b"png"), file("b.amr", "audio/amr", b"amr"))
        assert isinstance(await channel.send(part("see", attachments=pictures)), Sent)
        assert [shown.kind for shown in desk.world.shown] == ["text", "image", "voice"]
        assert sorted(desk.world.media.values()) == [b"amr", b"png"]
        await _opened(desk, channel)
        report = file("r.pdf", "application/pdf", b"pdf")
        assert isinstance(await channel.send(part("", number=2, attachments=(report,), file_note="The file could not be sent.")), Sent)
        assert isinstance(await channel.send(part("", number=3, attachments=(report,))), Refused)
        desk.world.fail("upload", {"status": 500})
        assert await channel.send(part("", number=4, attachments=pictures[:1])) == TryLater()
        large = file("large.png", "image/png", b"x" * 10_000_001)
        assert isinstance(await channel.send(part("", number=5, attachments=(large,), file_note="Too large.")), Sent)
    assert desk.world.view(ANN)[-2:] == ["The file could not be sent.", "Too large."]
    assert medium(Attachment(kind="video", name="v", mime="video/mp4")) == ("video", 10_000_000)


@pytest.mark.rule("WX-82", "CH-37")
async def test_typing_is_a_switch_that_is_off(desk: Desk) -> None:
    assert OfficialSettings(app_id="a", token="t").capabilities.typing_refresh_s is None
    assert OfficialSettings(app_id="a", token="t", typing=True).capabilities.typing_refresh_s is None, "it needs the API"
    async with desk.running(customer_service=True, typing=True) as channel:
        assert channel.capabilities.typing_refresh_s == 4
        for on in (True, False):
            await channel.typing(Address(account=ACCOUNT, chat_id=ANN), on)
        desk.world.fail("typing", {"errcode": 45081})
        with pytest.raises(ChannelError, match="45081"):
            await channel.typing(Address(account=ACCOUNT, chat_id=ANN), True)
    assert desk.world.typing == [(ANN, True), (ANN, False)]


@pytest.mark.rule("WX-80", "WX-6", "CH-21", "WX-81")
async def test_a_wrong_secret_or_key_is_the_operators_business(desk: Desk) -> None:
    for settings, words in (({"customer_service": True, "app_secret": "wrong"}, "app_secret"), ({"aes_key": "short"}, "aes_key")):
        with pytest.raises(CredentialRefused, match=words):
            await desk.make(**settings).run(desk.journal)
    wrong = desk.make(customer_service=True, app_secret="wrong")
    with pytest.raises(CredentialRefused):
        await wrong.run(desk.journal)
    assert isinstance(await wrong.send(part("hello")), NeedsOperator)
    desk.world.fail("token", {"status": 500})
    async with desk.running(customer_service=True) as channel:  # a vendor that is down keeps nobody from listening
        assert channel.proven_at is not None


@pytest.mark.case("WE-07")
@pytest.mark.rule("WX-14", "WX-71", "CH-8")
def test_texts_are_cut_in_bytes_and_joined_again() -> None:
    assert [len(piece.text) for piece in render("字" * 700, CAPABILITIES)] == [682, 18]
    assert [len(piece.text.encode()) for piece in render("a" * 2049, CAPABILITIES)] == [2048, 1]
    parts = [part("a" * 1000, number=1), part("b" * 1000, number=2), part("c" * 1000, number=3)]
    reply = passive.compose(parts, limit=2048, note=lambda count: f"({count} more)")
    assert reply.text == "a" * 1000 + "\n\n" + "b" * 1000 + "\n\n(1 more)"
    assert (reply.parts, reply.over) == (tuple(parts[:2]), tuple(parts[2:]))
    full = passive.compose([part("字" * 682), part("x", number=2)], limit=2048, head_of=lambda _: "“q”\n", note=lambda _: "(1 more)")
    assert (len(full.text), len(full.parts), len(full.over)) == (682, 1, 1), "words before notes"
    assert passive.compose([part("x" * 3000)], limit=2048).parts == ()


@pytest.mark.rule("CH-40", "CH-9", "WX-65")
async def test_without_its_gateway_it_is_silent_and_leaves_nothing(desk: Desk) -> None:
    before = asyncio.all_tasks()
    async with desk.running():
        pass
    await until(lambda: asyncio.all_tasks() == before)
    channel = desk.make()
    body, query = desk.server.envelope(desk.world.message(ANN, Content="hello"))
    answer = await channel.handle(WebhookRequest(method="POST", path=channel.path, query=query, headers={}, body=body))
    assert answer.silent
    with pytest.raises(ChannelError):
        await channel.fetch(Attachment(kind="image", name="x", fetch_ref='{"u": "", "m": "x"}'), 5)


@pytest.mark.rule("CH-43", "WX-11")
async def test_its_secrets_are_in_no_line_and_no_outcome(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[object] = []
    async with desk.running(customer_service=True) as channel:
        await _opened(desk, channel)
        for number, fault in enumerate([{"cut": "after"}, {"status": 500}, {"errcode": 1}, {"body": "x"}, {"errcode": 40001}, {}]):
            desk.world.fail("send", *([fault] if fault else []))
            said.append(await channel.send(part("words", number=number)))
        desk.server.refuse()
        said.append(await channel.send(part("words", number=9)))
        said += [channel, channel.account, channel._settings]
    everything = "\n".join([*(record.getMessage() + str(record.exc_info) for record in caplog.records), *(f"{each!s} {each!r}" for each in said)])
    for secret in (TOKEN, AES_KEY, APP_SECRET, *(token for token, _ in desk.world.tokens)):
        assert secret not in everything

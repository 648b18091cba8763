"""The WeCom bot on the long connection against the platform's side: frames in, streams and messages out, how a connection ends (4.1)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from channels.errors import AttachmentRefused, ConnectionLost, CredentialRefused
from channels.message import Account, Address, Attachment, ChatType, EventKind, InboundEvent
from channels.port import Editing, NeedsOperator, OutboundPart, Refused, Sent, TryLater, Unknown
from channels.render import render
from channels.wechat.wecom import convert
from channels.wechat.wecom.adapter import TAKEN_OVER_KEY, WeComChannel
from channels.wechat.wecom.files import medium
from channels.wechat.wecom.settings import CAPABILITIES, RECONNECT_S, WeComSettings
from channels.wechat.wecom.streams import rest
from gateway.access import Rules
from gateway.language import say
from gateway.supervise import Supervisor
from tests.conftest import FakeClock
from tests.contracts.channel_contract import Journal, running, until
from tests.patience import patience
from tests.peers.wechat.ilink_vault import Kept
from tests.peers.wechat.official_house import speak
from tests.peers.wechat.wecom_server import BOT_ID, FILE_KEY, SECRET, FakeWeCom, World

ACCOUNT = Account(channel="wecom")
ANN, GROUP = "ann", "wr-group-1"


@pytest.fixture
def server() -> Iterator[FakeWeCom]:
    with FakeWeCom() as server:
        yield server
        assert server.world.violations == []


@dataclass
class Desk:
    server: FakeWeCom
    clock: FakeClock
    second: float = field(default_factory=lambda: min(patience(0.05), 0.2))  # longer where a busy machine would miss the vendor's deadlines
    kept: Kept = field(default_factory=Kept)
    journal: Journal = field(default_factory=Journal)
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    rules: Rules = field(default_factory=lambda: Rules(allow=frozenset({ANN})))

    @property
    def world(self) -> World:
        self.server.world.second = self.second
        return self.server.world

    def make(self, **settings: Any) -> WeComChannel:
        given = WeComSettings(**{"bot_id": BOT_ID, "secret": SECRET, "url": self.server.socket_url, "trusted_hosts": ("127.0.0.1",)} | settings)

        async def read_file(attachment: Attachment) -> bytes:
            return self.files[attachment.name]

        return WeComChannel(
            given, vault=self.kept, account=ACCOUNT, say=speak, admits=self.rules.admits, read_file=read_file, clock=self.clock, second=self.second
        )

    @asynccontextmanager
    async def running(self, **settings: Any) -> AsyncGenerator[WeComChannel]:
        channel = self.make(**settings)
        async with running(channel, self.journal) as task:
            await until(lambda: channel._sender.connection is not None or task.done())
            yield channel

    async def asked(self, text: str = "question", **more: Any) -> InboundEvent:
        """Ann's question, as the gateway has it."""
        before = len(self.journal.events)
        self.server.says(ANN, text, **more)
        return (await self.journal.until(before + 1))[-1]


@pytest.fixture
def desk(server: FakeWeCom, clock: FakeClock) -> Desk:
    return Desk(server, clock)


def part(text: str, *, number: int = 1, chat: str = ANN, **more: Any) -> OutboundPart:
    return OutboundPart(part_id=f"p{number}", address=Address(account=ACCOUNT, chat_id=chat), text=text, **more)


# In


@pytest.mark.rule("WX-100", "WX-111", "WX-192", "CH-5")
async def test_every_kind_comes_in_as_what_it_is(desk: Desk) -> None:
    server = desk.server
    async with desk.running() as channel:
        single = await desk.asked("你好 😀")
        assert (single.chat_id, single.sender_id, single.chat_type, single.text) == (ANN, ANN, ChatType.DM, "你好 😀")
        assert single.platform_message_id == f"{single.platform_event_id}@r1"
        group = await desk.asked("hello all", group=GROUP)
        assert (group.chat_id, group.sender_id, group.chat_type, group.mentioned) == (GROUP, ANN, ChatType.GROUP, True)
        voice = await desk.asked(None, msgtype="voice", voice={"content": "good morning"})
        link = await desk.asked(None, msgtype="link", link={"title": "News", "desc": "today", "url": "https://example.org"})
        image = await desk.asked(None, msgtype="image", image=server.file("a", b"\xff\xd8 cat"))
        video = await desk.asked(None, msgtype="video", video=server.file("v.mp4", b"film"))
        document = await desk.asked(None, msgtype="file", file=server.file("report.pdf", b"pdf"))
        assert (voice.text, link.text, link.forwarded) == ("good morning", "[link] News\ntoday\nhttps://example.org", True)
        assert [each.attachments[0].kind for each in (image, video, document)] == ["image", "video", "file"]
        assert [await channel.fetch(each.attachments[0], 100) for each in (image, video, document)] == [b"\xff\xd8 cat", b"film", b"pdf"]
        items = [{"msgtype": "text", "text": {"content": "look"}}, {"msgtype": "image", "image": server.file("b", b"b")},
                 {"msgtype": "text", "text": {"content": "and tell"}}]  # fmt: skip
        mixed = await desk.asked(None, msgtype="mixed", mixed={"msg_item": items})
        assert (mixed.text, len(mixed.attachments)) == ("look\nand tell", 1)
        quoting = await desk.asked("why?", quote={"msgtype": "text", "text": {"content": "because"}})
        assert quoting.reply_to is not None
        assert quoting.reply_to.excerpt == "because"
        for name in ("template_card_event", "feedback_event"):
            before = len(desk.journal.events)
            server.happens(ANN, name)
            event = (await desk.journal.until(before + 1))[-1]
            assert (event.kind, event.hint) == (EventKind.MEMBERSHIP, name)
        last = server.world.sent[0]
        arrived = len(desk.journal.arrivals)
        server.put(last)
        await desk.journal.until_arrived(arrived + 1)
        assert desk.journal.arrivals[-1] == "duplicate"


@pytest.mark.rule("WX-190", "CH-4", "CH-27")
async def test_what_cannot_be_read_is_kept_and_stops_nothing(desk: Desk) -> None:
    async with desk.running():
        desk.server.raw("no json")
        desk.server.raw("[1, 2]")
        desk.server.raw(json.dumps({"cmd": "aibot_from_tomorrow", "headers": {"req_id": "x"}, "body": {"a": 1}}))
        desk.server.raw(json.dumps({"headers": {"req_id": "nobody"}, "errcode": 0}))
        desk.server.says(ANN, None, msgtype="hologram", hologram={"light": "blue"})
        good = await desk.asked("still there?")
        events = desk.journal.events
    assert [event.kind for event in events[:-1]] == [EventKind.UNKNOWN] * 4
    assert [event.hint for event in events[:-1]] == ["no json", "no json", "aibot_from_tomorrow", "hologram"]
    assert "light" in events[3].text
    assert good.text == "still there?"


@pytest.mark.parametrize(
    "body",
    [
        {}, {"msgid": ""}, {"from": {}}, {"from": "ann"}, {"chattype": "group"}, {"chattype": "channel"}, {"msgtype": "text", "text": {}},
        {"msgtype": "text", "text": "x"}, {"msgtype": "mixed", "mixed": {}}, {"msgtype": "mixed", "mixed": {"msg_item": [{"msgtype": "?"}]}},
        {"msgtype": "image", "image": {"url": ""}}, {"msgtype": ["text"]},
    ],
)  # fmt: skip
@pytest.mark.rule("CH-4", "CH-27")
def test_a_message_with_something_missing_is_unknown(body: dict[str, Any], clock: FakeClock) -> None:
    good = {"msgid": "m", "chattype": "single", "from": {"userid": ANN}, "msgtype": "text", "text": {"content": "x"}}
    assert convert.convert({"body": good}, ACCOUNT, clock()).kind is EventKind.MESSAGE
    event = convert.convert({"cmd": "aibot_msg_callback", "body": good | body if body else {}}, ACCOUNT, clock())
    assert event.kind is EventKind.UNKNOWN


@pytest.mark.rule("WX-110", "CH-7")
async def test_files_are_fetched_from_the_vendor_alone_and_opened_with_their_key(desk: Desk) -> None:
    async with desk.running() as channel:
        good = desk.server.file("a.txt", b"hello")
        for url, key, limit in (
            ("http://example.org/a", FILE_KEY, 9), ("https://weixin.qq.com.evil.example/a", FILE_KEY, 9), ("file:///etc/passwd", "", 9),
            ("https://u:p@wx.qlogo.qq.com/a", "", 9), (good["url"], "AAAA", 9), (good["url"], FILE_KEY[::-1], 9), (good["url"], FILE_KEY, 4),
            (f"{good['url']}-gone", FILE_KEY, 9),
        ):  # fmt: skip
            with pytest.raises(AttachmentRefused):
                await channel.fetch(Attachment(kind="file", name="a", fetch_ref=json.dumps({"u": url, "k": key})), limit)
        assert await channel.fetch(Attachment(kind="file", name="a", fetch_ref=json.dumps({"u": good["url"], "k": FILE_KEY})), 5) == b"hello"


# Out


@pytest.mark.rule("WX-104", "WX-105", "WX-191", "WX-192", "CH-95", "CH-96")
async def test_a_growing_answer_is_one_stream_of_snapshots_with_an_end(desk: Desk) -> None:
    desk.second = patience(0.5)  # so long that a busy machine asks for the second snapshot within it
    async with desk.running() as channel:
        assert isinstance(channel, Editing)
        first, second = await desk.asked("one"), await desk.asked("two")
        address = first.address
        shown = await channel.send(part("He", reply_to=first.platform_message_id, preview=True))
        assert isinstance(shown, Sent)
        (message,) = shown.platform_ids
        assert await channel.edit(address, message, part("Hel")) == TryLater(), "one frame a second"
        await asyncio.sleep(desk.second)
        assert await channel.edit(address, message, part("Hello")) == shown
        assert isinstance(await channel.send(part("second first", number=2, reply_to=second.platform_message_id)), Sent)
        assert [(each.text, each.finished) for each in desk.world.shown] == [("Hello", False), ("second first", True)]
        assert await channel.edit(address, message, part("Hello there", edit_of=message)) == shown, "the end is never skipped"
        assert isinstance(await channel.edit(address, "stream:nobody", part("x")), Refused)
    assert [(each.text, each.finished, each.id) for each in desk.world.shown] == [
        ("Hello there", True, "stream:r1"), ("second first", True, "stream:r2"),
    ]  # fmt: skip
    sent = [frame["body"] for frame in desk.world.frames if frame["cmd"] == "aibot_respond_msg"]
    assert {body["msgtype"] for body in sent} == {"stream"}
    assert [body["stream"]["content"] for body in sent if body["stream"]["id"] == sent[0]["stream"]["id"]] == ["He", "Hello", "Hello there"]


@pytest.mark.rule("WX-104", "WX-112", "CH-13")
async def test_what_answers_no_question_goes_to_its_chat(desk: Desk) -> None:
    async with desk.running() as channel:
        await desk.asked("hello", group=GROUP)
        assert isinstance(await channel.send(part("reminder", chat=GROUP)), Sent)
        assert isinstance(await channel.send(part("to you", number=2)), Sent)
    async with desk.running() as channel:  # which chats are groups is known after a restart
        assert isinstance(await channel.send(part("again", number=3, chat=GROUP)), Sent)
        long = "word " * 1000
        assert isinstance(await channel.send(part(long, number=4)), Sent)
    assert desk.world.view(GROUP) == ["reminder", "again"]
    assert desk.world.view(ANN)[0] == "to you"
    pieces = desk.world.view(ANN)[1:]
    assert len(pieces) == 2
    assert all(len(piece) <= 4000 for piece in pieces)
    assert " ".join(" ".join(pieces).split()) == long.strip()


@pytest.mark.case("WE-16")
@pytest.mark.rule("WX-108", "WX-191", "CH-11", "CH-80")
async def test_a_late_acknowledgement_settles_and_nothing_is_shown_twice(desk: Desk) -> None:
    async with desk.running() as channel:
        question = await desk.asked()
        desk.world.fail("aibot_respond_msg", {"delay": 15 * desk.second})
        final = part("done", reply_to=question.platform_message_id)
        assert isinstance(await channel.send(final), Unknown)
        again = part("done\n(Sent again)", reply_to=question.platform_message_id, sent_again=True)
        assert await channel.send(again) == Sent(("stream:r1",))
    assert desk.world.view(ANN) == ["done"]
    assert len([frame for frame in desk.world.frames if frame["cmd"] == "aibot_respond_msg"]) == 1


@pytest.mark.rule("WX-108", "CH-80", "CH-34")
async def test_an_end_that_nobody_acknowledged_within_30_seconds_is_said_once_more_and_marked(desk: Desk) -> None:
    async with desk.running() as channel:
        one, two = await desk.asked("one"), await desk.asked("two")
        loop = asyncio.get_running_loop()
        desk.world.fail("aibot_respond_msg", {"drop": True})
        began = loop.time()
        assert isinstance(await channel.send(part("done", reply_to=one.platform_message_id)), Unknown)
        assert isinstance(await channel.send(part("done (again)", reply_to=one.platform_message_id, sent_again=True)), Sent)
        assert loop.time() - began >= 29 * desk.second
        shown = await channel.send(part("gr", number=2, reply_to=two.platform_message_id, preview=True))
        assert isinstance(shown, Sent)
        (message,) = shown.platform_ids
        desk.world.fail("aibot_respond_msg", {"drop": True})
        end = part("grown", number=3, edit_of=message)
        assert isinstance(await channel.edit(two.address, message, end), Unknown)
        assert isinstance(await channel.edit(two.address, message, end), Sent)
    assert desk.world.view(ANN) == ["done", "grown", "done (again)", f"grown\n\n{say('en', 'sent_again')}"] or desk.world.view(ANN) == [
        "done", "done (again)", "grown", f"grown\n\n{say('en', 'sent_again')}",
    ]  # fmt: skip


@pytest.mark.rule("WX-108", "WX-191")
async def test_a_snapshot_without_acknowledgement_costs_nothing(desk: Desk) -> None:
    async with desk.running() as channel:
        question = await desk.asked()
        desk.world.fail("aibot_respond_msg", {"drop": True})
        shown = await channel.send(part("H", reply_to=question.platform_message_id, preview=True))
        assert shown == Sent(("stream:r1",))
        assert await channel.edit(question.address, "stream:r1", part("Hello", number=2, edit_of="stream:r1")) == shown
    assert desk.world.view(ANN) == ["Hello"]


@pytest.mark.case("WE-17")
@pytest.mark.rule("WX-106", "WX-109")
async def test_a_stream_is_ended_before_it_dies_and_the_rest_follows(desk: Desk) -> None:
    desk.second = min(patience(0.01), 0.05)
    assert desk.world.second == desk.second
    async with desk.running() as channel:
        question = await desk.asked()
        shown = await channel.send(part("The first half.", reply_to=question.platform_message_id, preview=True))
        assert isinstance(shown, Sent)
        await until(lambda: desk.world.shown[0].finished)
        more = part("The first half. And more")
        async with asyncio.timeout(patience(5)):
            while isinstance(after := await channel.edit(question.address, "stream:r1", more), TryLater):  # noqa: ASYNC110  # what we know of it has no event
                await asyncio.sleep(desk.second)  # the platform has the end, its acknowledgement is on the way
        assert after == shown, "nothing is shown after the end"
        await asyncio.sleep(50 * desk.second)
        whole = part("The first half.\n\nThe second half.", number=2, edit_of="stream:r1")
        assert isinstance(await channel.edit(question.address, "stream:r1", whole), Sent)
    assert desk.world.view(ANN) == [f"The first half.\n\n{say('en', 'wecom_continued')}", "The second half."]


@pytest.mark.case("WE-17")
@pytest.mark.rule("WX-106", "WX-107", "WX-191")
@pytest.mark.parametrize("code", [846608, 846605])
async def test_when_the_platform_knows_the_question_no_longer_the_answer_is_a_message(desk: Desk, code: int) -> None:
    async with desk.running() as channel:
        question = await desk.asked()
        desk.world.fail("aibot_respond_msg", {"errcode": code})
        assert isinstance(await channel.send(part("the answer", reply_to=question.platform_message_id)), Sent)
        assert isinstance(await channel.send(part("of before", number=2, reply_to="m99@r99")), Sent)
    assert desk.world.view(ANN) == ["the answer", "of before"]
    assert {shown.way for shown in desk.world.shown} == {"message"}


@pytest.mark.rule("CH-97", "WX-105", "WX-107")
async def test_another_run_ends_the_stream_that_an_earlier_one_left_growing(desk: Desk) -> None:
    async with desk.running() as channel:
        question = await desk.asked()
        left = await channel.send(part("The first", reply_to=question.platform_message_id, preview=True))
        assert left == Sent(("stream:r1",))
    async with desk.running() as channel:
        assert await channel.edit(question.address, "stream:r1", part("The first half.", number=2, edit_of="stream:r1")) == left
    (shown,) = desk.world.shown
    assert (shown.text, shown.finished) == ("The first half.", True)


@pytest.mark.rule("CH-97", "CH-80", "WX-105")
async def test_a_first_preview_sent_again_by_another_run_is_shown_once(desk: Desk) -> None:
    async with desk.running() as channel:
        question = await desk.asked()
        preview = part("The first", reply_to=question.platform_message_id, preview=True)
        left = await channel.send(preview)
    async with desk.running() as channel:
        assert await channel.send(preview) == left
    assert desk.world.view(ANN) == ["The first"]


@pytest.mark.rule("CH-97", "CH-80", "WX-107")
@pytest.mark.parametrize("code", [846608, 846605])
async def test_where_another_run_cannot_end_a_stream_the_answer_says_that_it_may_be_a_second_copy(desk: Desk, code: int) -> None:
    async with desk.running() as channel:
        question = await desk.asked()
        await channel.send(part("The first", reply_to=question.platform_message_id, preview=True))
    desk.world.fail("aibot_respond_msg", {"errcode": code})
    async with desk.running() as channel:
        assert isinstance(await channel.edit(question.address, "stream:r1", part("The first half.", number=2, edit_of="stream:r1")), Sent)
    assert desk.world.view(ANN) == ["The first", f"The first half.\n\n{say('en', 'sent_again')}"]


@pytest.mark.rule("WX-107", "WX-105", "WX-13", "WX-191")
async def test_each_refusal_is_one_outcome(desk: Desk) -> None:
    async with desk.running() as channel:
        one = await desk.asked("one")
        desk.world.fail("aibot_respond_msg", {"errcode": 6000}, {"errcode": 6000})
        assert isinstance(await channel.send(part("conflict", reply_to=one.platform_message_id)), Sent)
        two = await desk.asked("two")
        desk.world.fail("aibot_respond_msg", *[{"errcode": 6000}] * 4)
        assert await channel.send(part("conflict", number=2, reply_to=two.platform_message_id)) == TryLater(2.0)
        desk.world.fail("aibot_respond_msg", {"errcode": 40008})
        assert isinstance(await channel.send(part("x", number=3, reply_to=two.platform_message_id)), Refused)
        desk.world.fail("aibot_send_msg", {"errcode": 60011}, {"errcode": 6000})
        refused = await channel.send(part("x", number=4))
        assert isinstance(refused, Refused)
        assert "60011" in refused.reason
        assert isinstance(await channel.send(part("x", number=5)), TryLater)
        desk.world.fail("aibot_send_msg", {"drop": True})
        assert isinstance(await channel.send(part("x", number=6)), Unknown)
        assert isinstance(await channel.send(part("字" * 6827, number=7)), Refused)
        assert isinstance(await channel.send(part("\u200b", number=8)), Refused)


@pytest.mark.rule("CH-32", "WX-14", "WX-105")
def test_texts_are_cut_in_bytes() -> None:
    assert [len(piece.text) for piece in render("你" * 7000, CAPABILITIES)] == [6826, 174]


@pytest.mark.rule("WX-106")
@pytest.mark.parametrize(
    ("text", "shown", "left"),
    [
        ("one two", "one", " two"), ("one\n\ntwo", "one", "two"), ("one", "one", ""), ("something else", "one two three", "something else"),
        ("a **bold** word and more of it to come", "a **bold** word and more of it**", " to come"),
        ("same 👨\u200d👩\u200d👧 end", "same 👨\u200d👩", "👨\u200d👩\u200d👧 end"),
    ],
)  # fmt: skip
def test_what_was_not_on_show_is_what_follows(text: str, shown: str, left: str) -> None:
    assert rest(text, shown) == left


@pytest.mark.rule("WX-110", "WX-193")
async def test_files_go_up_in_pieces_and_are_shown_as_what_they_can_be(desk: Desk) -> None:
    def file(name: str, mime: str, size: int) -> Attachment:
        desk.files[name] = bytes(range(256)) * (size // 256) + bytes(size % 256)
        return Attachment(kind="file", name=name, mime=mime, stored_path=name, size=size)

    async with desk.running() as channel:
        question = await desk.asked()
        several = (file("a.png", "image/png", 1000), file("big.png", "image/png", 2_000_001), file("v.mp4", "video/mp4", 600_000))
        outcome = await channel.send(part("see", reply_to=question.platform_message_id, attachments=several))
        assert isinstance(outcome, Sent)
        assert len(outcome.platform_ids) == 4
        assert [(shown.kind, shown.text) for shown in desk.world.shown] == [
            ("markdown", "see"), ("image", "a.png"), ("file", "big.png"), ("video", "v.mp4"),
        ]  # fmt: skip
        assert sorted(data for _, _, data in desk.world.media.values()) == sorted(desk.files.values())
        desk.world.fail("aibot_upload_media_init", {"errcode": 40058}, {"errcode": 40058})
        assert isinstance(await channel.send(part("", number=2, attachments=several[:1], file_note="No file.")), Sent)
        assert isinstance(await channel.send(part("", number=3, attachments=several[:1])), Refused)
    assert medium(Attachment(kind="audio", name="a", mime="audio/amr"), 5) == "voice"


# Life


@pytest.mark.rule("WX-101", "CH-21", "CH-212")
async def test_a_wrong_secret_is_the_operators_business(desk: Desk) -> None:
    channel = desk.make(secret="wrong")
    with pytest.raises(CredentialRefused, match="secret"):
        await channel.run(desk.journal)
    assert isinstance(await channel.send(part("hello")), NeedsOperator)
    assert len(desk.world.frames) == 1


@pytest.mark.rule("WX-101", "WX-190")
async def test_a_subscription_that_is_not_acknowledged_ends_the_try(desk: Desk) -> None:
    desk.world.silent = True
    with pytest.raises(ConnectionLost, match="acknowledgement"):
        await desk.make().run(desk.journal)
    desk.world.silent, desk.world.refuses = False, 45009
    with pytest.raises(ConnectionLost, match="45009"):
        await desk.make().run(desk.journal)
    desk.server.network(False)
    with pytest.raises(ConnectionLost, match="reached"):
        await desk.make().run(desk.journal)


@pytest.mark.rule("WX-102", "WX-190", "CH-210")
async def test_two_missed_pongs_end_the_connection_and_one_does_not(desk: Desk) -> None:
    desk.second = min(patience(0.02), 0.05)
    channel = desk.make()
    task = asyncio.ensure_future(channel.run(desk.journal))
    await until(lambda: channel._sender.connection is not None)
    desk.clock.advance(seconds=40)
    await until(lambda: channel.proven_at == desk.clock())
    pings = [frame for frame in desk.world.frames if frame["cmd"] == "ping"]
    assert len({frame["headers"]["req_id"] for frame in pings}) == len(pings)
    desk.world.fail("ping", {"drop": True})
    await until(lambda: not desk.world.faults["ping"])
    desk.clock.advance(seconds=40)
    await until(lambda: channel.proven_at == desk.clock())
    assert not task.done()
    desk.world.drops_pongs = True
    done, _ = await asyncio.wait([task], timeout=patience(5))
    assert done
    assert isinstance(task.exception(), ConnectionLost)
    assert "ping" in str(task.exception())


@pytest.mark.rule("WX-103", "WX-190", "CH-104")
async def test_who_was_taken_over_leaves_the_bot_to_the_other_for_five_minutes(desk: Desk) -> None:
    desk.second = 1.0
    first = desk.make()
    task = asyncio.ensure_future(first.run(desk.journal))
    await until(lambda: first._sender.connection is not None)
    other = Desk(desk.server, desk.clock)
    async with other.running():
        done, _ = await asyncio.wait([task], timeout=patience(5))
        assert done
        assert isinstance(task.exception(), ConnectionLost)
        assert "taken over" in str(task.exception())
        connections = desk.server.connections
        with pytest.raises(ConnectionLost, match="taken over"):
            await desk.make().run(desk.journal)
        assert desk.server.connections == connections, "it is not fought for"
    assert TAKEN_OVER_KEY in desk.kept.entries
    desk.clock.advance(seconds=301)
    async with desk.running() as again:
        assert again.proven_at == desk.clock()


@pytest.mark.case("WE-19")
@pytest.mark.rule("WX-102", "CH-9", "CH-211")
async def test_a_server_that_always_hangs_up_costs_no_more_and_more_tasks(desk: Desk) -> None:
    assert CAPABILITIES.reconnect_s == RECONNECT_S == (2, 5, 10, 30, 60)
    supervisor = Supervisor(ACCOUNT, desk.make, clock=desk.clock, backoff_s=(0.001,), check_s=0.01)
    task = asyncio.ensure_future(supervisor.run(desk.journal))
    counts: list[int] = []
    for _ in range(60):
        await until(lambda: supervisor.channel is not None and supervisor.channel.proven_at is not None)
        counts.append(len(asyncio.all_tasks()))
        before = desk.server.connections
        await asyncio.to_thread(desk.server.close)
        await until(lambda before=before: desk.server.connections > before)
    task.cancel()
    await asyncio.wait([task])
    assert max(counts[10:]) <= max(counts[:10]) + 1


@pytest.mark.rule("WX-111", "WX-192")
async def test_who_opens_the_chat_is_welcomed_when_they_may_write(desk: Desk) -> None:
    async with desk.running(welcome="Hi"):
        desk.server.happens(ANN, "enter_chat")
        desk.server.happens("mallory", "enter_chat")
        await desk.journal.until(2)
        await until(lambda: len(desk.world.shown) == 1)
        await desk.asked("hello")
    assert [(shown.chat, shown.text, shown.way) for shown in desk.world.shown] == [(ANN, "Hi", "welcome")]


@pytest.mark.rule("CH-24", "CH-10")
async def test_what_cannot_be_stored_ends_the_connection_as_it_is(desk: Desk) -> None:
    def full() -> None:
        raise RuntimeError("the disk is full")

    desk.journal.before = full
    task = asyncio.ensure_future(desk.make().run(desk.journal))
    desk.server.says(ANN, "hello")
    done, _ = await asyncio.wait([task], timeout=patience(5))
    assert done
    assert isinstance(task.exception(), RuntimeError)


@pytest.mark.rule("CH-43", "WX-11")
async def test_the_secret_is_in_no_line_and_no_outcome(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[object] = []
    async with desk.running() as channel:
        await desk.asked()
        for number, fault in enumerate([{"drop": True}, {"errcode": 1}, {}]):
            desk.world.fail("aibot_send_msg", fault)
            said.append(await channel.send(part("words", number=number)))
        said += [channel, channel._settings, channel._sender.connection]
    wrong = desk.make(secret=f"{SECRET}x")
    with pytest.raises(CredentialRefused) as refused:
        await wrong.run(desk.journal)
    said += [refused.value, *(event for event in desk.journal.events)]
    everything = "\n".join([*(record.getMessage() for record in caplog.records), *(f"{each!s} {each!r}" for each in said)])
    assert SECRET not in everything

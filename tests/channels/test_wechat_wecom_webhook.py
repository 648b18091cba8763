"""The WeCom bot that is called (4.2): the stream that the platform asks for, its end, and what is ready too late. A second takes a twentieth."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from channels.errors import AttachmentRefused, CredentialRefused
from channels.message import Account, Address, Attachment
from channels.port import Editing, OutboundPart, Pull, Refused, Sent, TryLater, Webhook
from channels.wechat import crypto
from channels.wechat.wecom.settings import WeComSettings
from channels.wechat.wecom.webhook import UNTIL_WRITTEN, WeComWebhook
from gateway.access import Rules
from gateway.language import say
from memory.database import Database
from tests.contracts.channel_contract import Journal, until
from tests.patience import patience
from tests.peers.wechat.official_house import House, speak
from tests.peers.wechat.wecom_caller import AES_KEY, TOKEN, FakeWeComCaller, World
from tests.peers.wechat.wecom_server import seal_file

SECOND = min(patience(0.05), 0.2)  # of the vendor; longer where a busy machine would miss its deadlines
ACCOUNT = Account(channel="wecom", name="hook")
ANN = "ann"


@pytest.fixture
def server() -> Iterator[FakeWeComCaller]:
    with FakeWeComCaller(World(second=SECOND)) as server:
        yield server


class Scene:
    def __init__(
        self, db: Database, server: FakeWeComCaller, answers: dict[str, tuple[float, list[str]]], *, second: float = SECOND, **more: Any
    ) -> None:
        self.server = server
        self.world = server.world
        self.world.second = second
        self.files: dict[str, bytes] = {}
        settings = WeComSettings(mode="webhook", token=TOKEN, aes_key=AES_KEY, path="/wecom/hook", trusted_hosts=("127.0.0.1",), **more)

        async def read_file(file: Attachment) -> bytes:
            return self.files[file.name]

        def make() -> WeComWebhook:
            self.channel = WeComWebhook(settings, account=ACCOUNT, say=speak, read_file=read_file, second=second)
            return self.channel

        self.house = House(
            db=db, account=ACCOUNT, make=make, script=lambda text: answers.get(text, (0, [f"Re: {text}"])), clock=lambda: datetime.now(UTC),
            second=second,
        )  # fmt: skip

    def running(self) -> Any:
        return self.house.running(lambda url: setattr(self.server, "callback", url))

    async def shows(self, msgid: str, text: str, *, within_s: float = 8.0) -> None:
        await until(lambda: self.world.finished(msgid), within_s=within_s)
        assert self.world.text(msgid) == text


@pytest.mark.case("WE-18")
@pytest.mark.rule("WX-120", "WX-121", "WX-194", "WX-4", "CH-12")
async def test_a_message_opens_a_stream_and_a_poll_carries_the_answer(sqlite: Database, server: FakeWeComCaller) -> None:
    scene = Scene(sqlite, server, {"hello": (4, ["你好", "and more"])})
    async with scene.running() as channel:
        assert isinstance(channel, Webhook)
        assert isinstance(channel, Pull)
        assert isinstance(channel, Editing)
        scene.house.goes_on.clear()
        msgid = server.says(ANN, "hello")
        await until(lambda: len(server.world.answers) >= 3)
        scene.house.goes_on.set()
        await scene.shows(msgid, "你好\n\nand more")
        await scene.house.settled("sent", "sent")
    first = server.world.answers[0][1]
    assert (first["msgtype"], first["stream"]["finish"], first["stream"]["content"]) == ("stream", False, "")
    assert len(server.world.answers) >= 4


@pytest.mark.rule("WX-121", "CH-95", "CH-96")
async def test_each_poll_gets_the_snapshot_so_far(sqlite: Database, server: FakeWeComCaller) -> None:
    scene = Scene(sqlite, server, {"hello": (12, ["Hello there"])})
    async with scene.running() as channel:
        msgid = server.says(ANN, "hello")
        await until(lambda: len(server.world.answers) >= 1)
        address = Address(account=ACCOUNT, chat_id=ANN)
        preview = OutboundPart(part_id="x", address=address, text="Hel", reply_to=msgid, preview=True)
        shown = await channel.send(preview)
        assert isinstance(shown, Sent)
        await until(lambda: server.world.text(msgid) == "Hel")
        assert await channel.edit(address, shown.platform_ids[0], preview) == shown
        await scene.shows(msgid, "Hello there")
        assert isinstance(await channel.edit(address, "stream:nobody", preview), Refused)
    assert server.world.snapshots[msgid][0] == ""
    assert "Hel" in server.world.snapshots[msgid]


@pytest.mark.rule("WX-121", "CH-25")
async def test_two_questions_get_each_its_own_answer(sqlite: Database, server: FakeWeComCaller) -> None:
    scene = Scene(sqlite, server, {"slow": (8, ["slow answer"]), "quick": (3, ["quick answer"])})
    async with scene.running():
        slow, quick = server.says(ANN, "slow"), server.says(ANN, "quick")
        await scene.shows(quick, "quick answer")
        await scene.shows(slow, "slow answer")
        await scene.house.settled("sent", "sent")


@pytest.mark.rule("WX-121")
async def test_what_a_command_says_ends_its_own_stream_and_not_that_of_the_question_before(sqlite: Database, server: FakeWeComCaller) -> None:
    scene = Scene(sqlite, server, {"slow": (8, ["slow answer"]), "/status": (60, [])})
    async with scene.running():
        slow = server.says(ANN, "slow")
        await until(lambda: slow in server.world.shown)
        command = server.says(ANN, "/status")
        await until(lambda: command in server.world.shown)
        await scene.house.remind(ANN, "one answer is being written")  # what a command says answers no message either
        await scene.shows(command, "one answer is being written")
        await scene.shows(slow, "slow answer")


@pytest.mark.rule("WX-121", "CH-52")
async def test_a_message_that_is_repeated_takes_nothing_from_others(sqlite: Database, server: FakeWeComCaller) -> None:
    scene = Scene(sqlite, server, {})
    async with scene.running():
        told = server.message(ANN, "hello", msgid="m-again", with_url=False)
        server.says(ANN, "hello", msgid="m-again", with_url=False)
        await scene.shows("m-again", "Re: hello")
        await scene.house.settled("sent")
        assert (await asyncio.to_thread(server.ask, told))[1]["stream"]["content"] == "Re: hello", "its last answer once more"
    async with scene.running():  # another life, which knows of no stream
        assert await asyncio.to_thread(server.ask, told) == (200, {})
        await scene.house.remind(ANN, "a reminder")
        following = server.says(ANN, "anything")
        await until(lambda: server.world.finished(following))
        assert "a reminder" in server.world.text(following)


@pytest.mark.rule("WX-122", "WX-194")
async def test_what_is_ready_after_the_polls_goes_to_the_one_time_address_once(sqlite: Database, server: FakeWeComCaller) -> None:
    server.world.polls = 2
    scene = Scene(sqlite, server, {"late": (14, ["at last"])})
    async with scene.running():
        msgid = server.says(ANN, "late")
        await until(lambda: server.world.text(f"url:{msgid}") == "at last", within_s=15)
        await scene.house.settled("sent")
        await scene.house.remind(ANN, "a reminder")
        await scene.house.settled("sent", "waiting")  # the address is used
        server.world.polls = 20
        following = server.says(ANN, "anything")
        await until(lambda: server.world.finished(following))
        await until(lambda: len(server.world.answers) > 3)
    assert "a reminder" in server.world.text(following)


@pytest.mark.rule("WX-122")
async def test_without_an_address_a_late_answer_waits_for_the_next_message(sqlite: Database, server: FakeWeComCaller) -> None:
    server.world.polls = 2
    scene = Scene(sqlite, server, {"late": (14, ["at last"])})
    async with scene.running() as channel:
        server.says(ANN, "late", with_url=False)
        await asyncio.sleep(20 * SECOND)
        part = OutboundPart(part_id="x", address=Address(account=ACCOUNT, chat_id=ANN), text="x")
        assert await channel.send(part) == UNTIL_WRITTEN
        assert await scene.house.states() == ["queued"]
        server.world.polls = 20
        following = server.says(ANN, "and now?")
        await until(lambda: server.world.finished(following))
    assert "at last" in server.world.text(following)


@pytest.mark.case("WE-17")
@pytest.mark.rule("WX-106", "WX-109", "WX-122")
async def test_a_stream_ends_before_the_platform_ends_it(sqlite: Database, server: FakeWeComCaller) -> None:
    scene = Scene(sqlite, server, {"long": (345, ["The first half. The second half."])}, second=0.01)
    async with scene.running() as channel:
        msgid = server.says(ANN, "long")
        await until(lambda: len(server.world.answers) >= 1)
        part = OutboundPart(
            part_id="x", address=Address(account=ACCOUNT, chat_id=ANN), text="The first half.", reply_to=msgid, preview=True
        )
        assert isinstance(await channel.send(part), Sent)
        await scene.shows(msgid, f"The first half.\n\n{say('en', 'wecom_continued')}", within_s=15)
        await until(lambda: f"url:{msgid}" in server.world.shown, within_s=15)
    assert server.world.text(f"url:{msgid}").strip() == "The second half."


@pytest.mark.rule("WX-123", "WX-194", "CH-101")
async def test_a_stream_of_an_earlier_life_is_ended_with_what_is_stored(sqlite: Database, server: FakeWeComCaller) -> None:
    server.world.polls = 1
    scene = Scene(sqlite, server, {"hello": (10, ["stored"])})
    async with scene.running():
        server.says(ANN, "hello", with_url=False)
        await until(lambda: len(server.world.answers) == 2)
        stream_id = server.world.answers[0][1]["stream"]["id"]
        await asyncio.sleep(17 * SECOND)
    async with scene.running():
        status, answer = await asyncio.to_thread(server.ask, {"msgtype": "stream", "stream": {"id": stream_id}})
        assert (status, answer["stream"]["finish"], answer["stream"]["content"]) == (200, True, "stored")
        await scene.house.settled("sent")
        for unknown in ("nobody", "", "W10", "WyJhbm4iLCAibTk5Il0"):
            _, answer = await asyncio.to_thread(server.ask, {"msgtype": "stream", "stream": {"id": unknown}})
            assert (answer["stream"]["finish"], answer["stream"]["content"]) == (True, "")


@pytest.mark.rule("WX-123")
async def test_pictures_travel_in_the_finishing_answer(sqlite: Database, server: FakeWeComCaller) -> None:
    scene = Scene(sqlite, server, {})
    scene.files |= {"a.png": b"png", "big.png": b"x" * 600_000}
    async with scene.running() as channel:
        server.world.polls = 0
        msgid = server.says(ANN, "picture?")
        await until(lambda: channel._askings.of_question(msgid) is not None)
        await until(lambda: len(scene.house.questions) == 1)
        files = tuple(Attachment(kind="image", name=name, mime="image/png", stored_path=name) for name in ("a.png", "big.png"))
        asking = channel._askings.of_question(msgid)
        assert asking is not None
        asking.ready.append(
            OutboundPart(part_id="p", address=Address(account=ACCOUNT, chat_id=ANN), text="see", attachments=files, file_note="(a file)")
        )
        _, answer = await asyncio.to_thread(server.ask, {"msgtype": "stream", "stream": {"id": asking.id}})
    stream = answer["stream"]
    assert stream["finish"]
    assert "see" in stream["content"]
    assert "(a file)" in stream["content"]
    assert [item["image"]["base64"] for item in stream["msg_item"]] == ["cG5n"]


@pytest.mark.rule("WX-5", "WX-9", "WX-120", "WX-185", "WX-194")
async def test_what_the_platform_did_not_send_is_refused(sqlite: Database, server: FakeWeComCaller) -> None:
    scene = Scene(sqlite, server, {})
    message = server.message(ANN, "hello")
    good, query = server.envelope(message)
    old = str(int((datetime.now(UTC) - timedelta(minutes=10)).timestamp()))
    async with scene.running() as channel:
        assert channel.proven_at is None
        for body, asked in (
            (good, query | {"msg_signature": "0" * 40}), server.envelope(message, receive_id="ww1"), server.envelope("no json"),
            server.envelope("[1]"), (b"", query), (b"{}", query), (b"[]", query), server.envelope(message, stamp=old), (good, {}),
        ):  # fmt: skip
            assert await asyncio.to_thread(server.post, body, asked) == (403, b"")
        assert await scene.house.rows() == 0
        assert channel.proven_at is None
        sealed = crypto.encrypt("echo 你好", crypto.key_of(AES_KEY), "", b"0123456789abcdef")
        check = server.query(sealed) | {"echostr": sealed}
        assert await asyncio.to_thread(server.post, b"", check, method="GET") == (200, "echo 你好".encode())
        assert await asyncio.to_thread(server.post, b"", check | {"echostr": sealed[4:]}, method="GET") == (403, b"")
        assert channel.proven_at is not None
    with pytest.raises(CredentialRefused, match="aes_key"):
        await WeComWebhook(WeComSettings(mode="webhook", token=TOKEN, aes_key="short")).run(Journal())


@pytest.mark.rule("WX-110", "WX-111", "WX-121")
async def test_events_strangers_and_files(sqlite: Database, server: FakeWeComCaller) -> None:
    scene = Scene(sqlite, server, {}, welcome="Hi")
    server.world.files["f"] = seal_file(b"hello", crypto.key_of(AES_KEY))
    async with scene.running() as channel:
        _, welcome = await asyncio.to_thread(server.ask, server.message(ANN, msgtype="event", event={"eventtype": "enter_chat"}))
        assert welcome == {"msgtype": "text", "text": {"content": "Hi"}}
        assert (await asyncio.to_thread(server.ask, server.message(ANN, msgtype="event", event={"eventtype": "feedback_event"})))[0] == 200
        assert (await asyncio.to_thread(server.ask, server.message(ANN, msgtype="hologram")))[0] == 200
        reference = json.dumps({"u": f"{server.url}/file/f", "k": ""})
        assert await channel.fetch(Attachment(kind="file", name="f", fetch_ref=reference), 10) == b"hello"
        with pytest.raises(AttachmentRefused):
            await channel.fetch(Attachment(kind="file", name="f", fetch_ref=json.dumps({"u": "http://example.org/f", "k": ""})), 10)
        scene.house._setting = replace(scene.house._setting, rules=Rules())
        status, answer = await asyncio.to_thread(server.ask, server.message("mallory", "hello"))
        assert (status, answer) == (200, {}), "a stranger sees no stream that never ends"
        part = OutboundPart(part_id="x", address=Address(account=ACCOUNT, chat_id=ANN), text="\u200b")
        assert isinstance(await channel.send(part), Refused)
        assert channel.capabilities.called
        assert await channel.send(OutboundPart(part_id="y", address=part.address, text="x", preview=True)) == TryLater()

"""The Telegram adapter against our fake Bot API, on a socket: what the contract suite does not ask of every platform."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import aiohttp
import pytest

from channels.errors import AttachmentRefused, ConnectionLost
from channels.message import Account, Address, Attachment, Entity, EventKind
from channels.port import ChatMoved, Managers, NeedsOperator, OutboundPart, Refused, SendOutcome, Sent, TryLater, Unknown
from channels.render import render
from channels.telegram.adapter import TelegramChannel
from channels.telegram.settings import CAPABILITIES, Menu, MenuEntry, TelegramSettings
from gateway.supervise import ChannelState, Supervisor
from tests.conftest import FakeClock
from tests.contracts.channel_contract import Journal, running, until
from tests.patience import patience
from tests.peers.telegram.server import FakeBotApi
from tests.peers.telegram.world import TOKEN

ACCOUNT = Account(channel="telegram")
ADA, GROUP, FORUM, TOPIC = 700001, -1001234500001, -1001234500002, 42
DM = Address(account=ACCOUNT, chat_id=str(ADA))
IN_GROUP = Address(account=ACCOUNT, chat_id=str(GROUP))
IN_TOPIC = Address(account=ACCOUNT, chat_id=str(FORUM), thread_id=str(TOPIC))
FILES = {"a.png": b"\x89PNG", "b.png": b"\x89PNG!", "n.md": b"# words"}


@pytest.fixture
def server() -> Iterator[FakeBotApi]:
    with FakeBotApi() as server:
        for chat_id in (ADA, GROUP, FORUM):
            server.world.chat(chat_id)
        server.world.chat(FORUM).topics.add(TOPIC)
        yield server


@pytest.fixture
def journal() -> Journal:
    return Journal()


async def read_file(attachment: Attachment) -> bytes:
    if attachment.name not in FILES:
        raise FileNotFoundError(attachment.name)
    return FILES[attachment.name]


@asynccontextmanager
async def connected(server: FakeBotApi, journal: Journal | None = None, **settings: Any) -> AsyncGenerator[TelegramChannel]:
    journal = journal or Journal()
    stored = journal.cursor
    clock = settings.pop("clock", None)
    more: dict[str, Any] = {"clock": clock} if clock else {}

    async def load_cursor() -> str:
        return stored

    wanted = TelegramSettings(**{"token": TOKEN, "base_url": server.url} | settings)
    channel = TelegramChannel(wanted, account=ACCOUNT, load_cursor=load_cursor, read_file=read_file, **more)
    async with running(channel, journal) as task:
        await until(lambda: channel.proven_at is not None or task.done())
        yield channel


def part(text: str = "", address: Address = DM, *, part_id: str = "p1", **more: Any) -> OutboundPart:
    return OutboundPart(part_id=part_id, address=address, text=text, **more)


def file(name: str, **more: Any) -> Attachment:
    kind, mime = ("image", "image/png") if name.endswith("png") else ("text", "text/markdown")
    return Attachment(**{"kind": kind, "name": name, "mime": mime, "size": 5, "stored_path": name} | more)


def refusal(description: str, status: int = 400, **parameters: Any) -> dict[str, Any]:
    return {"status": status, "description": f"Bad Request: {description}" if status == 400 else description, "parameters": parameters}


# Out: the table of errors


OUTCOMES: list[tuple[dict[str, Any], SendOutcome]] = [
    (refusal("Too Many Requests: retry after 27", 429, retry_after=27), TryLater(27)),
    (refusal("group chat was upgraded to a supergroup chat", migrate_to_chat_id=-1009000000001), ChatMoved("-1009000000001")),
    (refusal("message text is empty"), Refused("Message text is empty")),
    (refusal("chat not found"), Refused("Chat not found")),
    (refusal("Forbidden: bot was kicked from the supergroup chat", 403), Refused("Forbidden: bot was kicked from the supergroup chat")),
    (refusal("Forbidden: bot can't initiate conversation with a user", 403), Refused("Forbidden: bot can't initiate conversation with a user")),
    (refusal("Forbidden: user is deactivated", 403), Refused("Forbidden: user is deactivated")),
    (refusal("Internal Server Error", 500), Unknown("Internal Server Error")),
    ({"html": 502}, Unknown("")),
    ({"cut": True}, Unknown("")),
]


@pytest.mark.rule("CH-163", "CH-11", "CH-33", "CH-34", "CH-38")
@pytest.mark.case("TG-12", "TG-19", "TG-29")
@pytest.mark.parametrize(("fault", "outcome"), OUTCOMES, ids=[str(fault.get("description", fault)) for fault, _ in OUTCOMES])
async def test_each_answer_of_the_server_is_one_outcome_after_one_call(server: FakeBotApi, fault: dict[str, Any], outcome: SendOutcome) -> None:
    async with connected(server) as channel:
        server.world.fail_next(fault, refusal("a second call was made"))
        came = await channel.send(part("hello"))
    assert type(came) is type(outcome)
    if not isinstance(came, Unknown):
        assert came == outcome
    assert len(server.world.called("sendMessage")) == 1
    assert len(server.world.texts(ADA)) == (1 if "cut" in fault else 0)


@pytest.mark.rule("CH-164", "CH-34", "CH-41")
async def test_what_never_left_may_be_sent_later(server: FakeBotApi) -> None:
    async with connected(server) as channel:
        server.refuse()
        assert await channel.send(part("hello")) == TryLater()
        server.network(True)
        assert isinstance(await channel.send(part("hello")), Sent)
    assert await channel.send(part("after its end")) == TryLater()
    assert server.world.texts(ADA) == ["hello"]


@pytest.mark.rule("CH-163", "CH-21", "CH-212")
@pytest.mark.parametrize("status", [401, 404])
async def test_when_the_token_is_refused_nothing_more_is_tried(server: FakeBotApi, status: int) -> None:
    async with connected(server) as channel:
        server.world.fail_next(refusal("Unauthorized" if status == 401 else "Not Found", status))
        first = await channel.send(part("hello"))
        assert isinstance(first, NeedsOperator)
        assert "@BotFather" in first.reason
        assert await channel.send(part("again")) == first
    assert len(server.world.called("sendMessage")) == 1


@pytest.mark.rule("CH-39", "CH-138")
@pytest.mark.case("TG-05")
async def test_a_piece_whose_formatting_is_refused_comes_plain_and_the_others_keep_theirs(server: FakeBotApi) -> None:
    pieces = render("**one** and `two`", CAPABILITIES), render("**bold without end and a_b*c", CAPABILITIES), render("**three**", CAPABILITIES)
    async with connected(server) as channel:
        for number, (piece,) in enumerate(pieces):
            if number == 0:
                server.world.fail_next(refusal("can't parse entities: can't find end of the entity starting at byte offset 0") | {"if": "entities"})
            sent = await channel.send(part(piece.text, entities=piece.entities, part_id=f"p{number}"))
            assert isinstance(sent, Sent)
    assert server.world.texts(ADA) == ["one and two", "**bold without end and a_b*c", "three"]
    assert [bool(message.get("entities")) for message in server.world.ours(ADA)] == [False, False, True]
    assert all("parse_mode" not in call.given for call in server.world.calls)


@pytest.mark.rule("CH-156")
@pytest.mark.case("TG-13")
@pytest.mark.parametrize("server_goes_on", [True, False])
async def test_the_answer_to_a_vanished_message_still_comes_in_the_same_topic(server: FakeBotApi, server_goes_on: bool) -> None:
    server.world.refused_replies = not server_goes_on
    async with connected(server) as channel:
        assert isinstance(await channel.send(part("the answer", IN_TOPIC, reply_to="501")), Sent)
    (message,) = server.world.ours(FORUM)
    assert (message["text"], message["message_thread_id"], "reply_to_message" in message) == ("the answer", TOPIC, False)
    first = server.world.called("sendMessage")[0].given["reply_parameters"]
    assert (first["message_id"], first["allow_sending_without_reply"]) == (501, True)


@pytest.mark.rule("CH-155")
@pytest.mark.case("TG-14", "TG-15")
async def test_an_answer_goes_to_its_topic_and_general_is_named_only_when_typing(server: FakeBotApi, journal: Journal) -> None:
    async with connected(server, journal) as channel:
        asked = server.says(FORUM, "hi", message_thread_id=TOPIC, is_topic_message=True)
        (event,) = await journal.until(1)
        assert isinstance(await channel.send(part("in the topic", event.address, reply_to=event.platform_message_id)), Sent)
        server.says(FORUM, "hi", message_thread_id=1)
        general = (await journal.until(2))[1].address
        for address in (general, Address(account=ACCOUNT, chat_id=str(FORUM), thread_id="1")):
            assert isinstance(await channel.send(part("in General", address, part_id=str(address))), Sent)
            await channel.typing(address, True)
        await channel.typing(event.address, True)
        await channel.typing(IN_GROUP, True)
    (answer,) = server.world.ours(FORUM, TOPIC)
    assert answer["reply_to_message"]["message_id"] == asked["message"]["message_id"]
    assert len(server.world.ours(FORUM, 0)) == 2
    assert [call.given.get("message_thread_id") for call in server.world.called("sendMessage")] == ["42", None, None]
    assert [call.given.get("message_thread_id") for call in server.world.called("sendChatAction")] == ["1", "1", "42", None]


@pytest.mark.rule("CH-155")
async def test_a_topic_that_is_gone_is_told_and_the_words_come_to_the_chat(server: FakeBotApi) -> None:
    server.world.chat(FORUM).topics.clear()
    async with connected(server) as channel:
        outcome = await channel.send(part("hello", IN_TOPIC, attachments=(file("a.png"), file("n.md"))))
    assert isinstance(outcome, Sent)
    assert outcome.thread_gone
    assert len(outcome.platform_ids) == len(server.world.ours(FORUM)) == 2
    assert len([call for call in server.world.calls if "message_thread_id" in call.given]) == 1, "learned once for the whole part"


@pytest.mark.rule("CH-32", "CH-130")
async def test_should_the_server_count_otherwise_the_words_come_in_pieces_with_a_line_for_us(
    server: FakeBotApi, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(server) as channel:
        server.world.fail_next(refusal("message is too long"))
        outcome = await channel.send(part("a" * 4000))
    assert isinstance(outcome, Sent)
    assert [len(text) for text in server.world.texts(ADA)] == [3500, 500]
    assert len(outcome.platform_ids) == 2
    assert "4000 units" in caplog.text


@pytest.mark.rule("CH-130", "CH-131", "CH-32", "CH-138")
@pytest.mark.case("TG-01", "TG-02", "TG-03", "TG-04", "TG-06", "TG-07")
@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        pytest.param("a" * 5000, [4096, 904], id="TG-01"),
        pytest.param("😀" * 4096, [4096, 4096], id="TG-02"),
        pytest.param("." * 4096, [4096], id="TG-03"),
        pytest.param("a" * 4095 + "😀", [4095, 2], id="an emoji over the edge"),
        pytest.param("你" * 5000, [4096, 904], id="Chinese"),
        pytest.param("日本語。" * 2000, [4096, 3904], id="Japanese"),
        pytest.param("a || b || c", None, id="TG-07 pipes"),
        pytest.param("<b>x</b>", None, id="TG-07 tags"),
        pytest.param("1️⃣ 🇩🇪 keep whole", None, id="keycaps and flags"),
    ],
)
async def test_what_the_model_wrote_arrives_whole_and_literal(server: FakeBotApi, text: str, lengths: list[int] | None) -> None:
    await send_all(server, text)
    texts = server.world.texts(ADA)
    assert "".join(texts) == text
    assert lengths is None or [len(said.encode("utf-16-le")) // 2 for said in texts] == lengths


@pytest.mark.rule("CH-134", "CH-136", "CH-137", "CH-138", "CH-142")
@pytest.mark.case("TG-04", "TG-06", "TG-07")
async def test_code_tables_and_headings_arrive_as_entities_that_the_server_takes(server: FakeBotApi) -> None:
    code = [f"line_{n:03} = compute({n})" for n in range(1, 401)]
    await send_all(server, "Here:\n```python\n" + "\n".join(code) + "\n```\nDone.", part_marks=True)
    messages = server.world.ours(ADA)
    assert len(messages) > 1
    lines: list[str] = []
    for number, message in enumerate(messages, 1):
        assert message["text"].endswith(f"\n({number}/{len(messages)})")
        for entity in message["entities"]:
            assert (entity["type"], entity["language"]) == ("pre", "python")
            lines += message["text"][entity["offset"] : entity["offset"] + entity["length"]].strip().split("\n")
    assert lines == code
    server.world.messages.clear()
    table = "| 城市 | 人口 | 面积 | 邮编 | 备注 |\n| --- | --- | --- | --- | --- |\n| 北京 | 2189万 | 16410 | 100000 | 首都 |"
    await send_all(server, table)
    (text,) = server.world.texts(ADA)
    assert all(cell in text for cell in ("城市", "人口", "面积", "邮编", "备注", "北京", "2189万", "16410", "100000", "首都"))
    server.world.messages.clear()
    await send_all(server, "# Title")
    (message,) = server.world.ours(ADA)
    assert (message["text"], {entity["type"] for entity in message["entities"]}) == ("Title", {"bold"})


async def send_all(server: FakeBotApi, text: str, *, part_marks: bool = False) -> None:
    async with connected(server) as channel:
        for number, piece in enumerate(render(text, CAPABILITIES, part_marks=part_marks)):
            outcome = await channel.send(part(piece.text, entities=piece.entities, part_id=f"p{number}"))
            assert isinstance(outcome, Sent), outcome


@pytest.mark.rule("CH-137")
async def test_links_are_shown_without_a_preview_of_their_page(server: FakeBotApi) -> None:
    (piece,) = render("[here](https://example.org)", CAPABILITIES)
    async with connected(server) as channel:
        sent = await channel.send(part(piece.text, entities=piece.entities))
        assert isinstance(sent, Sent)
        await channel.edit(DM, sent.platform_ids[0], part("see https://example.org"))
    for call in (*server.world.called("sendMessage"), *server.world.called("editMessageText")):
        assert call.given["link_preview_options"] == {"is_disabled": True}
    assert server.world.called("sendMessage")[0].given["entities"] == [{"type": "text_link", "offset": 0, "length": 4, "url": "https://example.org"}]


# Out: files


@pytest.mark.rule("CH-143", "CH-160", "CH-8")
@pytest.mark.case("DL-24")
@pytest.mark.parametrize("length", [1024, 1500])
async def test_a_picture_comes_with_its_words_as_a_caption_or_after_it(server: FakeBotApi, length: int) -> None:
    async with connected(server) as channel:
        outcome = await channel.send(part("a" * length, IN_TOPIC, attachments=(file("a.png"),)))
    messages = server.world.ours(FORUM, TOPIC)
    assert outcome == Sent(tuple(str(message["message_id"]) for message in messages))
    assert "photo" in messages[0]
    assert [message.get("text", message.get("caption")) for message in messages] == (["a" * 1024] if length == 1024 else [None, "a" * 1500])


@pytest.mark.rule("CH-160")
async def test_several_files_come_as_albums_under_their_own_names(server: FakeBotApi) -> None:
    async with connected(server) as channel:
        assert isinstance(await channel.send(part("look", attachments=(file("a.png"), file("b.png"), file("n.md")))), Sent)
        assert await channel.send(part("", attachments=(file("lost.png"),), part_id="p2")) == Refused("a file cannot be read: FileNotFoundError")
        huge = await channel.send(part("", attachments=(file("a.png", size=50_000_001),), part_id="p3"))
        assert isinstance(huge, Refused)
        assert await channel.send(part("\u200b", part_id="p4")) == Refused("there is nothing to show")
    first, second, third = server.world.ours(ADA)
    assert (first["caption"], first["media_group_id"], second["media_group_id"]) == ("look", "g1", "g1")
    assert third["document"]["file_name"] == "n.md"
    assert len(server.world.calls) - len(server.world.called("getUpdates")) == 3, "getMe, the album, the document"


@pytest.mark.rule("CH-11", "CH-33")
async def test_a_part_of_several_calls_goes_on_where_it_was_stopped(server: FakeBotApi) -> None:
    outgoing = part("a" * 1500, attachments=(file("a.png"),))
    async with connected(server) as channel:
        server.world.fail_next({}, refusal("Too Many Requests: retry after 35", 429, retry_after=35))
        assert await channel.send(outgoing) == TryLater(35)
        outcome = await channel.send(outgoing)
    assert len(server.world.called("sendPhoto")) == 1, "the picture is there already"
    assert outcome == Sent(tuple(str(message["message_id"]) for message in server.world.ours(ADA)))


@pytest.mark.rule("CH-11", "CH-131")
async def test_no_words_are_lost_when_pieces_that_had_to_be_shorter_are_stopped_in_between(server: FakeBotApi) -> None:
    async with connected(server) as channel:
        server.world.fail_next(refusal("message is too long"), {}, refusal("Too Many Requests: retry after 35", 429, retry_after=35))
        assert await channel.send(part("a" * 4000)) == TryLater(35)
        assert isinstance(await channel.send(part("a" * 4000)), Sent)
    assert [len(text) for text in server.world.texts(ADA)] == [3500, 500]


@pytest.mark.rule("CH-80", "CH-11")
async def test_of_a_part_that_may_have_arrived_only_the_doubtful_half_comes_again_and_says_so(server: FakeBotApi) -> None:
    async with connected(server) as channel:
        server.world.fail_next({}, {"cut": True})
        assert isinstance(await channel.send(part("a" * 1500, attachments=(file("a.png"),))), Unknown)
        again = part("a" * 1500 + "\n(sent again)", attachments=(file("a.png"),), sent_again=True)
        assert isinstance(await channel.send(again), Sent)
    assert len(server.world.called("sendPhoto")) == 1
    assert server.world.texts(ADA) == ["", "a" * 1500, "a" * 1500 + "\n(sent again)"]


# Out: edits


@pytest.mark.rule("CH-36", "CH-97")
@pytest.mark.case("TG-10")
async def test_an_edit_that_changes_nothing_is_a_success_and_shows_nothing_new(server: FakeBotApi) -> None:
    async with connected(server) as channel:
        sent = await channel.send(part("one"))
        assert isinstance(sent, Sent)
        for _ in range(2):
            assert await channel.edit(DM, sent.platform_ids[0], part("Hello there", edit_of=sent.platform_ids[0])) == sent
        server.world.fail_next(refusal("message can't be edited"))
        refused = await channel.edit(DM, sent.platform_ids[0], part("later", edit_of=sent.platform_ids[0]))
    assert server.world.texts(ADA) == ["Hello there"]
    assert isinstance(refused, Refused)
    assert refused.gone


@pytest.mark.rule("CH-93", "CH-92")
async def test_in_a_busy_group_previews_are_left_out_and_answers_are_not(server: FakeBotApi, clock: FakeClock) -> None:
    async with connected(server, clock=clock) as channel:
        sent = await channel.send(part("0", IN_GROUP))
        assert isinstance(sent, Sent)
        (shown,) = sent.platform_ids
        for n in range(1, 20):
            assert isinstance(await channel.edit(IN_GROUP, shown, part(str(n), IN_GROUP)), Sent)
        assert await channel.edit(IN_GROUP, shown, part("a preview too many", IN_GROUP)) == TryLater(), "no order to wait: the gate stays open"
        assert isinstance(await channel.edit(IN_GROUP, shown, part("the answer", IN_GROUP, edit_of=shown)), Sent)
        assert isinstance(await channel.send(part("its second half", IN_GROUP, part_id="p2")), Sent)
    assert server.world.texts(GROUP) == ["the answer", "its second half"]


# Signs


@pytest.mark.rule("CH-73", "CH-8")
@pytest.mark.parametrize(("ours", "theirs"), [("👀", "👀"), ("⏳", "✍")])
async def test_the_signs_of_the_gateway_are_reactions_that_telegram_knows(server: FakeBotApi, journal: Journal, ours: str, theirs: str) -> None:
    async with connected(server, journal) as channel:
        server.says(ADA, "hello")
        (event,) = await journal.until(1)
        assert await channel.react(DM, event.platform_message_id, ours) == Sent()
        assert isinstance(await channel.react(DM, event.platform_message_id, "🪼"), Refused)
    assert server.world.reactions == [(ADA, int(event.platform_message_id), theirs)]


@pytest.mark.rule("CH-12", "CH-118", "CH-153")
async def test_who_manages_a_group_is_asked_of_telegram(server: FakeBotApi) -> None:
    server.world.chat(GROUP).admins.add(700002)
    async with connected(server) as channel:
        assert isinstance(channel, Managers)
        assert await channel.manages(IN_GROUP, "700002")
        assert not await channel.manages(IN_GROUP, "700001")
        assert await channel.manages(IN_GROUP, str(GROUP)), "an anonymous admin writes as the group"
        assert not await channel.manages(IN_GROUP, "-1005"), "a channel that somebody writes as"
        assert not await channel.manages(DM, "700001")
        assert len(server.world.called("getChatMember")) == 2
        server.refuse()
        with pytest.raises(ConnectionLost):
            await channel.manages(IN_GROUP, "700002")
        server.network(True)


@pytest.mark.rule("CH-159")
async def test_every_press_of_a_button_is_answered(server: FakeBotApi, journal: Journal) -> None:
    async with connected(server, journal):
        message = {"message_id": 7, "chat": server.world.chat(ADA).json(), "date": 1}
        for number in ("81", "82"):
            server.put(callback_query={"id": number, "from": {"id": ADA, "first_name": "Ada"}, "message": message, "data": "k" * 64})
        pressed = await journal.until(2)
        await until(lambda: sorted(server.world.presses) == ["81", "82"])
    assert [(event.kind, event.target) for event in pressed] == [(EventKind.ACTION, "k" * 64)] * 2


@pytest.mark.rule("CH-158")
@pytest.mark.case("TG-25", "TG-26")
async def test_the_menu_is_registered_in_each_language_and_what_is_wrong_with_it_stops_nothing(
    server: FakeBotApi, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    many = tuple(MenuEntry(f"cmd_{n:03}", f"does {n}") for n in range(1, 102))
    few = (MenuEntry("help", "助" * 257), MenuEntry("Help", "又"), MenuEntry("status", "状态"))
    async with connected(server, journal, menus=(Menu("", many), Menu("zh", few))):
        await until(lambda: len(server.world.menus) == 2)
        server.says(ADA, "/cmd_101")
        assert (await journal.until(1))[0].text == "/cmd_101"
    assert [len(server.world.menus[language]) for language in ("", "zh")] == [100, 2]
    assert server.world.menus["zh"][0]["description"] == "助" * 256
    assert "/cmd_101 is left out" in caplog.text
    assert "/Help is left out" in caplog.text


@pytest.mark.rule("CH-158")
async def test_a_menu_that_cannot_be_registered_stops_nothing(server: FakeBotApi, journal: Journal, caplog: pytest.LogCaptureFixture) -> None:
    server.world.do_setmycommands = None  # type: ignore[method-assign]  # this server knows no menus: 404
    async with connected(server, journal, menus=(Menu("", (MenuEntry("help", "helps"),)),)):
        server.says(ADA, "hello")
        await journal.until(1)
        await until(lambda: "registering the commands failed" in caplog.text)


# In: files


@pytest.mark.rule("CH-160", "CH-30", "CH-7", "CH-43")
async def test_a_file_is_fetched_within_its_limit_and_its_address_is_told_to_nobody(
    server: FakeBotApi, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with connected(server, journal) as channel:
        for size, data in ((None, b"a dog"), (20_000_001, b"huge"), (None, None)):
            server.says(ADA, document=server.world.file("dog.txt", data, size))
        good, huge, lost = (event.attachments[0] for event in await journal.until(3))
        assert await channel.fetch(good, 5) == b"a dog"
        server.world.files[good.fetch_ref] = ("dog.txt", b"longer than it was said to be", 5)
        for wanted, limit in ((good, 5), (huge, 30_000_000), (lost, 100), (Attachment(kind="file", name="x", fetch_ref="nobody's"), 100)):
            with pytest.raises(AttachmentRefused) as refused:
                await channel.fetch(wanted, limit)
            said = f"{refused.value!r} {refused.value.__cause__!r} {refused.value.__context__!r}"
            assert TOKEN not in said
        server.refuse()
        with pytest.raises(ConnectionLost):
            await channel.fetch(good, 100)
        server.network(True)
    assert TOKEN not in caplog.text
    assert TOKEN not in str(journal.events)


# In: polling


@pytest.mark.rule("CH-150", "CH-151", "CH-50")
async def test_polling_asks_from_the_stored_place_names_what_it_wants_and_drops_nothing(server: FakeBotApi, journal: Journal) -> None:
    for n in range(3):
        server.says(ADA, f"while we were away {n}")
    async with connected(server, journal):
        await journal.until(3)
        server.says(ADA, "and now")
        await journal.until(4)
        await until(lambda: server.world.updates == [])
    polls = [call.given for call in server.world.called("getUpdates")]
    assert "offset" not in polls[0]
    assert polls[0]["timeout"] == "0", "the first answer proves that we hear"
    newest = int(journal.events[-1].platform_event_id)
    assert (polls[-1]["offset"], polls[-1]["timeout"]) == (str(newest + 1), "30")
    assert all(poll["allowed_updates"] == ["message", "edited_message", "callback_query", "my_chat_member"] for poll in polls)
    assert journal.cursor.startswith(f"{newest}@")
    assert not any("drop_pending_updates" in call.given for call in server.world.calls)


@pytest.mark.rule("CH-151")
async def test_channel_posts_are_asked_for_when_configured(server: FakeBotApi, journal: Journal) -> None:
    async with connected(server, journal, channel_posts=True):
        server.says(-1009, "news", sender={"id": 1, "first_name": "x"})
        await journal.until(1)
    assert server.world.called("getUpdates")[0].given["allowed_updates"][-2:] == ["channel_post", "edited_channel_post"]


@pytest.mark.rule("CH-151", "CH-51")
async def test_after_a_quiet_week_numbers_may_begin_anew_anywhere(server: FakeBotApi, journal: Journal, clock: FakeClock) -> None:
    server.says(ADA, "old", date=1)
    async with connected(server, journal, clock=clock):
        await journal.until(1)
    clock.advance(days=7)
    server.world.updates.clear()
    server.put(update_id=17, message=server.world.message(server.world.chat(ADA), {"id": ADA, "first_name": "Ada"}, text="after a week"))
    async with connected(server, journal, clock=clock):
        await journal.until(2)
        server.put(update_id=18, message=server.world.message(server.world.chat(ADA), {"id": ADA, "first_name": "Ada"}, text="and on"))
        await journal.until(3)
    assert journal.texts == ["old", "after a week", "and on"]
    assert journal.cursor.startswith("18@")


@pytest.mark.rule("CH-162", "CH-9")
@pytest.mark.case("TG-27")
async def test_another_poller_is_one_line_and_a_growing_pause(server: FakeBotApi, journal: Journal, caplog: pytest.LogCaptureFixture) -> None:
    conflicts = server.world.poll_faults = deque([refusal("Conflict: terminated by other getUpdates request", 409)] * 1000)

    def build() -> TelegramChannel:
        return TelegramChannel(TelegramSettings(token=TOKEN, base_url=server.url), account=ACCOUNT)

    supervisor = Supervisor(ACCOUNT, build, clock=lambda: datetime.now().astimezone(), backoff_s=(0.05, 0.1, 0.2), check_s=0.01)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(supervisor.run(journal))
        await until(lambda: supervisor.status().state is ChannelState.DEGRADED)
        assert "another program polls with this token" in supervisor.status().reason
        server.world.poll_faults = deque()
        server.says(ADA, "hello")
        await until(lambda: supervisor.status().state is ChannelState.READY)
        await journal.until(1)
        task.cancel()
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING and "another program polls" in record.getMessage()]
    assert len(lines) == 1000 - len(conflicts)
    assert all("\n" not in record.getMessage() and record.exc_info is None for record in lines)


@pytest.mark.rule("CH-162")
async def test_of_two_gateways_with_one_token_one_is_told(server: FakeBotApi) -> None:
    server.hold_s = 5
    pair = [TelegramChannel(TelegramSettings(token=TOKEN, base_url=server.url), account=ACCOUNT) for _ in range(2)]
    tasks = [asyncio.ensure_future(channel.run(Journal())) for channel in pair]
    done, others = await asyncio.wait(tasks, timeout=patience(5), return_when=asyncio.FIRST_COMPLETED)
    with pytest.raises(ConnectionLost, match="another program polls with this token"):
        done.pop().result()
    for task in others:
        task.cancel()
    await asyncio.wait(others)


@pytest.mark.rule("CH-163", "CH-151")
async def test_a_webhook_that_stands_in_the_way_is_removed_once_and_what_waits_there_is_kept(server: FakeBotApi, journal: Journal) -> None:
    server.world.webhook = {"url": "http://127.0.0.1:9/", "secret": ""}
    server.says(ADA, "waits there")
    async with connected(server, journal):
        await journal.until(1)
    (call,) = server.world.called("deleteWebhook")
    assert "drop_pending_updates" not in call.given
    assert server.world.webhook["url"] == ""


@pytest.mark.rule("CH-33", "CH-9")
async def test_an_order_to_wait_with_polling_is_followed_and_a_cut_poll_is_repeated(server: FakeBotApi, journal: Journal) -> None:
    async with connected(server, journal):
        began = time.monotonic()
        server.world.poll_faults.append(refusal("Too Many Requests: retry after 1", 429, retry_after=1))
        await until(lambda: not server.world.poll_faults)
        server.says(ADA, "after the pause")
        await journal.until(1)
        assert time.monotonic() - began >= 1
        server.world.poll_faults.append(refusal("Bad Gateway", 502))
        await until(lambda: not server.world.poll_faults)
        server.says(ADA, "after the cut")
        await journal.until(2)


@pytest.mark.rule("CH-4", "CH-150")
async def test_a_server_that_gives_out_what_has_no_number_is_not_asked_without_pause(server: FakeBotApi, journal: Journal) -> None:
    server.world.pending = lambda offset, allowed: [{"message": {"text": "of no place in the feed"}}]  # type: ignore[method-assign]
    async with connected(server, journal):
        await journal.until_arrived(3)
        polls = len(server.world.called("getUpdates"))
        await asyncio.sleep(0.5)
        assert len(server.world.called("getUpdates")) - polls <= 25
    assert [event.kind for event in journal.events] == [EventKind.UNKNOWN]


@pytest.mark.rule("CH-9")
async def test_an_address_that_is_no_bot_api_is_said_to_be_none(server: FakeBotApi, journal: Journal) -> None:
    server.world.do_getme = lambda given, call: "welcome"  # type: ignore[method-assign]
    with pytest.raises(ConnectionLost, match="is the address really that of a Bot API"):
        async with connected(server, journal):
            pass
    server.world.do_getme = lambda given, call: server.world.me  # type: ignore[method-assign]
    server.world.pending = lambda offset, allowed: {"hello": "world"}  # type: ignore[method-assign]
    with pytest.raises(ConnectionLost, match="is the address really that of a Bot API"):
        async with connected(server, journal):
            pass


@pytest.mark.rule("CH-9")
async def test_polls_that_break_twice_in_a_row_are_the_supervisors_business(server: FakeBotApi, journal: Journal) -> None:
    channel = TelegramChannel(TelegramSettings(token=TOKEN, base_url=server.url), account=ACCOUNT)
    with pytest.raises(ConnectionLost, match="Bad Gateway"):
        async with running(channel, journal) as task:
            await until(lambda: channel.proven_at is not None)
            server.world.poll_faults.extend([refusal("Bad Gateway", 502)] * 2)
            await asyncio.wait([task], timeout=patience(10))
    assert not server.world.poll_faults


@pytest.mark.rule("CH-210", "CH-211", "CH-215", "CH-152")
@pytest.mark.case("DL-16")
async def test_a_server_that_takes_polls_and_never_answers_is_noticed_though_sending_works(
    server: FakeBotApi, journal: Journal, clock: FakeClock
) -> None:
    built: list[TelegramChannel] = []

    def build() -> TelegramChannel:
        built.append(TelegramChannel(TelegramSettings(token=TOKEN, base_url=server.url), account=ACCOUNT, clock=clock))
        return built[-1]

    supervisor = Supervisor(ACCOUNT, build, clock=clock, backoff_s=(0.01,), check_s=0.01)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(supervisor.run(journal))
        await until(lambda: supervisor.status().state is ChannelState.READY)
        server.deaf = True
        server.says(ADA, "are you there?")
        await asyncio.sleep(0.2)
        assert isinstance(await built[0].send(part("sending works")), Sent)
        clock.advance(timedelta(seconds=121))
        await until(lambda: len(built) > 1)
        server.deaf = False
        await journal.until(1)
        await until(lambda: supervisor.status().state is ChannelState.READY)
        task.cancel()


@pytest.mark.rule("CH-152")
async def test_many_sends_at_once_do_not_stop_polling(server: FakeBotApi, journal: Journal) -> None:
    async with connected(server, journal) as channel:
        server.world.fail_next(*[{"hang": True}] * 40)
        sending = [asyncio.ensure_future(channel.send(part(f"m{n}", part_id=f"p{n}"))) for n in range(40)]
        await until(lambda: len(server.world.called("sendMessage")) >= 32)
        server.says(ADA, "still heard")
        await journal.until(1)
        await until(lambda: sum(each.done() for each in sending) == 8)
        waiting = [each for each in sending if not each.done()]
        assert {each.result() for each in sending if each.done()} == {TryLater()}, "no connection was free: provably not sent"
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)


@pytest.mark.rule("CH-166", "CH-26")
@pytest.mark.case("TG-19")
async def test_a_group_that_moved_is_told_by_the_failed_send_and_by_both_notices(server: FakeBotApi, journal: Journal) -> None:
    old, new = -400000001, -1009000000001
    server.world.chat(old, "group").moved_to = new
    server.world.chat(new)
    async with connected(server, journal) as channel:
        assert await channel.send(part("hello", Address(account=ACCOUNT, chat_id=str(old)))) == ChatMoved(str(new))
        for _ in range(2):
            server.says(new, migrate_from_chat_id=old)
            server.says(old, migrate_to_chat_id=new)
        events = await journal.until(4)
        assert {(event.kind, event.chat_id, event.target) for event in events} == {(EventKind.MIGRATED, str(old), str(new))}
        assert isinstance(await channel.send(part("hello", Address(account=ACCOUNT, chat_id=str(new)))), Sent)


@pytest.mark.rule("CH-138")
async def test_the_fake_server_refuses_what_the_real_one_does(server: FakeBotApi) -> None:
    """A fake that takes everything proves nothing."""
    async with connected(server) as channel:
        bold = Entity("bold", 0, 3)
        for text, entities in (("😀", (Entity("bold", 1, 1),)), ("ab", (bold,)), ("ab", (Entity("bold", 0, 0),))):
            assert isinstance(await channel.send(part(text, entities=entities)), Sent)
            assert "entities" not in server.world.ours(ADA)[-1], "refused with entities, taken without"


async def test_the_fake_server_runs_by_itself_and_plays_people_over_http() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.peers.telegram.server", "--hold", "0.05", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    url, token = [(await process.stdout.readline()).decode().strip() for _ in range(2)]
    journal, channel = Journal(), TelegramChannel(TelegramSettings(token=token, base_url=url), account=ACCOUNT)
    try:
        async with aiohttp.ClientSession() as session, running(channel, journal):
            said = {"chat_id": ADA, "text": "hello", "from": {"id": ADA, "is_bot": False, "first_name": "Ada"}}
            assert (await session.post(f"{url}/__say", json=said)).status == 200
            await journal.until(1)
            blocked = {"status": 403, "description": "Forbidden: bot was blocked by the user"}
            assert (await session.post(f"{url}/__plan", json=[blocked])).status == 200
            assert isinstance(await channel.send(part("no")), Refused)
            assert isinstance(await channel.send(part("yes")), Sent)
            shown = await (await session.get(f"{url}/__shown", params={"chat_id": str(ADA)})).json()
            assert [message["text"] for message in shown] == ["yes"]
            calls = await (await session.get(f"{url}/__calls")).json()
            assert [call["method"] for call in calls].count("sendMessage") == 2
    finally:
        process.terminate()
        await process.wait()

"""The Discord adapter and discord.py against our fake Discord, over sockets: what the contract suite does not ask of every platform."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from channels.discord.adapter import COMMANDS, DiscordChannel
from channels.discord.position import Place, Position
from channels.discord.settings import CAPABILITIES, DiscordSettings, SlashCommand
from channels.errors import AttachmentRefused, ConnectionLost, CredentialRefused
from channels.message import Account, Address, Attachment, ChatType, EventKind
from channels.port import Arrival, Managers, OutboundPart, Refused, Sent, TryLater, Unknown
from channels.render import render
from gateway.supervise import ChannelState, Supervisor
from tests.conftest import FakeClock
from tests.contracts.channel_contract import Journal, running, until
from tests.harness import eventually
from tests.patience import patience
from tests.peers.discord.server import FakeDiscord
from tests.peers.discord.world import ANN, BOB, DM, GENERAL, GUILD, HALL, ME, ROBOT, STAFF_ROLE, THREAD, TOKEN, ApiError

ACCOUNT = Account(channel="discord")
TO_ANN = Address(account=ACCOUNT, chat_id=DM)
IN_GROUP = Address(account=ACCOUNT, chat_id=GENERAL)
IN_THREAD = Address(account=ACCOUNT, chat_id=HALL, thread_id=THREAD)
FILES = {"a.png": b"\x89PNG", "n.md": b"# words"}


@pytest.fixture
def server() -> Iterator[FakeDiscord]:
    with FakeDiscord() as server:
        yield server


@pytest.fixture
def journal() -> Journal:
    return Journal()


def made(server: FakeDiscord, stored: dict[str, str] | None = None, *, check_s: float = 0.02, **more: Any) -> DiscordChannel:
    async def load_cursor(name: str) -> str:
        return (stored or {}).get(name, "")

    async def read_file(attachment: Attachment) -> bytes:
        if attachment.name not in FILES:
            raise FileNotFoundError(attachment.name)
        return FILES[attachment.name]

    channel: dict[str, Any] = {name: more.pop(name) for name in ("clock", "probe_s", "note") if name in more}
    wanted = DiscordSettings(**{"token": TOKEN, "api_base": server.url, "gateway_url": server.gateway_url} | more)
    return DiscordChannel(
        wanted, account=ACCOUNT, load_cursor=load_cursor, read_file=read_file, check_s=check_s, identify_pause_s=0.05, **channel
    )  # fmt: skip


@asynccontextmanager
async def connected(server: FakeDiscord, journal: Journal | None = None, **more: Any) -> AsyncGenerator[DiscordChannel]:
    channel = made(server, **more)
    async with running(channel, journal or Journal()) as task:
        await until(lambda: channel.proven_at is not None or task.done())
        yield channel


def part(text: str = "", address: Address = TO_ANN, *, part_id: str = "p1", **more: Any) -> OutboundPart:
    return OutboundPart(part_id=part_id, address=address, text=text, **more)


def file(name: str, size: int = 5) -> Attachment:
    return Attachment(kind="file", name=name, size=size, stored_path=name)


def shown(server: FakeDiscord, channel: str = DM) -> list[dict[str, Any]]:
    return [message for message in server.world.messages.get(channel, []) if message["author"]["id"] == ME]


def known(newest: str = "1") -> dict[str, str]:
    """The cursor of an account that knows all places."""
    hall = Place(channel_id=THREAD, guild_id=GUILD, parent_id=HALL)
    places = (Place(channel_id=DM), Place(channel_id=GENERAL, guild_id=GUILD), hall)
    return {"seen": str(Position({place.channel_id: (place, newest) for place in places}))}


# To connect


@pytest.mark.rule("CH-180")
async def test_it_asks_for_what_it_needs_and_no_more(server: FakeDiscord) -> None:
    async with connected(server):
        (told,) = server.identified
    assert told["intents"] == 37377
    assert server.count("history") == 0, "who knows nobody looks nowhere"


@pytest.mark.rule("CH-180", "CH-21", "CH-212")
async def test_the_missing_intent_is_the_operators_business(server: FakeDiscord, caplog: pytest.LogCaptureFixture) -> None:
    server.world.content_switch = False
    channel = made(server)
    with pytest.raises(CredentialRefused, match="Message Content Intent"):
        await asyncio.wait_for(channel.run(Journal()), patience(10))
    assert len(server.identified) == 1


@pytest.mark.case("DC-04")
@pytest.mark.rule("CH-180")
async def test_where_messages_come_empty_there_is_one_line_that_names_the_switch(
    server: FakeDiscord, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    server.world.content_switch = server.world.closes_without_it = False
    async with connected(server, journal):
        server.says(GENERAL, "anybody?")
        server.says(GENERAL, f"<@{ME}> you?")
        silent, named = await journal.until(2)
        server.drop()
        await until(lambda: server.resumed == [True])
    assert (silent.text, named.text) == ("", "you?")
    assert [record.getMessage().count("Message Content Intent") for record in caplog.records if "Intent" in record.getMessage()] == [2]


@pytest.mark.rule("CH-180")
async def test_without_an_address_of_the_event_stream_the_api_is_asked(server: FakeDiscord, journal: Journal) -> None:
    async with connected(server, journal, gateway_url=""):
        server.says(DM, "hello")
        await journal.until(1)
    assert server.count("gateway") == 1


@pytest.mark.rule("CH-103", "CH-210")
async def test_two_accounts_of_one_process_speak_to_one_api(server: FakeDiscord) -> None:
    async with connected(server):
        with pytest.raises(ConnectionLost, match="api_base"):
            await made(server, api_base="http://127.0.0.1:1/api").run(Journal())
    async with connected(server) as again:
        assert isinstance(await again.send(part("one")), Sent)


# To hear


@pytest.mark.rule("CH-190")
async def test_a_broken_connection_is_resumed_and_nothing_is_missed(server: FakeDiscord, journal: Journal) -> None:
    async with connected(server, journal, stored=known()):
        before = server.count("history")
        server.drop()
        server.says(DM, "in the gap")
        await journal.until(1)
        server.asks_to_reconnect()
        server.says(DM, "in the next")
        await journal.until(2)
        assert server.resumed == [True, True]
        assert len(server.identified) == 1
        assert server.count("history") == before, "the platform itself told what was missed"
    assert journal.texts == ["in the gap", "in the next"]


@pytest.mark.case("DC-15")
@pytest.mark.rule("CH-190", "CH-181")
async def test_what_was_written_while_a_session_was_lost_is_taken_up_once(server: FakeDiscord, journal: Journal) -> None:
    server.resumes = False
    async with connected(server, journal):
        server.says(DM, "before")
        await journal.until(1)
        server.listens(False)
        server.drop()
        server.forgets_sessions()
        server.says(DM, "one in the gap")
        server.says(DM, "two in the gap")
        server.listens(True)
        await journal.until(3)
        server.says(DM, "after")
        await journal.until(4)
    assert journal.texts == ["before", "one in the gap", "two in the gap", "after"]
    assert journal.arrivals == [Arrival.NEW] * 4, "none of them came twice"


@pytest.mark.rule("CH-190", "CH-55")
async def test_on_return_ten_minutes_are_looked_back(
    server: FakeDiscord, journal: Journal, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    server.world.clock = clock
    server.resumes = False
    async with connected(server, journal, stored=known(), clock=clock):
        server.listens(False)
        server.drop()
        server.forgets_sessions()
        server.says(DM, "long ago")
        clock.advance(minutes=11)
        server.says(DM, "just now")
        server.listens(True)
        await journal.until(1)
    assert journal.texts == ["just now"]
    assert " 1 messages in 1 channels" in caplog.text


@pytest.mark.rule("CH-190")
async def test_an_invalid_session_begins_anew(server: FakeDiscord, journal: Journal) -> None:
    async with connected(server, journal, stored=known()):
        server.invalidates()
        server.says(THREAD, "in the gap")
        await journal.until(1)
        assert len(server.identified) == 2
    (event,) = journal.events
    assert (event.chat_type, event.thread_id, event.space_id) == (ChatType.THREAD, THREAD, GUILD), "the history does not say where; we know"


@pytest.mark.rule("CH-190", "CH-55")
async def test_at_the_start_an_hour_is_looked_back_and_what_is_left_out_is_one_line(
    server: FakeDiscord, journal: Journal, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    server.world.clock = clock
    server.says(DM, "two hours ago")
    clock.advance(minutes=61)
    for number in range(120):
        server.says(GENERAL, f"{number}", user_id=ROBOT if number % 2 else ANN)
    clock.advance(minutes=59)
    server.says(DM, "just now")
    server.world.send(DM, {"content": "our own words"}, {})
    async with connected(server, journal, stored=known(), clock=clock):
        await journal.until(51)
    assert journal.texts == ["just now", *(str(number) for number in range(70, 120))]
    (line,) = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert " 71 messages in 2 channels" in line
    assert Position.parse(journal.cursor).seen[GENERAL][1] == server.world.messages[GENERAL][-1]["id"]


@pytest.mark.rule("CH-190")
async def test_a_channel_that_is_gone_is_forgotten(server: FakeDiscord, journal: Journal) -> None:
    gone = Position({"42": (Place(channel_id="42", guild_id=GUILD), "1")})
    async with connected(server, journal, stored={"seen": str(gone)}):
        server.says(DM, "hello")
        await journal.until(1)
    assert list(Position.parse(journal.cursor).seen) == [DM]


@pytest.mark.rule("CH-183", "CH-182")
async def test_a_thread_that_is_in_no_cache_is_asked_for(server: FakeDiscord, journal: Journal) -> None:
    async with connected(server, journal):
        server.world.channel("1100000000000000121", 11, guild_id=GUILD, parent_id=HALL, name="later")
        for text in ("one", "two"):
            server.says("1100000000000000121", text)
        event, _ = await journal.until(2)
    assert (event.chat_id, event.thread_id, event.chat_type) == (HALL, "1100000000000000121", ChatType.THREAD)
    assert server.count("channel") == 1


@pytest.mark.rule("WD-12")
async def test_a_private_thread_is_a_place_of_its_own(server: FakeDiscord, journal: Journal) -> None:
    """Who reads its channel does not read it, so it shares nothing with the channel."""
    async with connected(server, journal):
        server.world.channel("1100000000000000122", 12, guild_id=GUILD, parent_id=HALL, name="aside")
        server.says("1100000000000000122", "between us")
        (event,) = await journal.until(1)
    assert (event.chat_id, event.thread_id, event.parent_chat_id, event.chat_type) == ("1100000000000000122", "", "", ChatType.GROUP)


VIEW, HISTORY, ADULTS = 1 << 10, 1 << 16, {"nsfw": True}


def overwrite(of: str, *, allow: int = 0, deny: int = 0, kind: int = 0) -> dict[str, Any]:
    return {"id": of, "type": kind, "allow": str(allow), "deny": str(deny)}


def changed(server: FakeDiscord, channel: str, *overwrites: dict[str, Any], **more: Any) -> None:
    """The operator of the server changes who reads a channel."""
    server.dispatch("CHANNEL_UPDATE", server.world.channels[channel].json() | {"permission_overwrites": list(overwrites)} | more)


@pytest.mark.rule("WD-12", "SM-16")
async def test_an_open_channel_shares_the_memory_of_its_server_and_who_reads_it_may_change(server: FakeDiscord, journal: Journal) -> None:
    closing: list[Callable[[], None]] = [
        lambda: changed(server, HALL, overwrite(GUILD, deny=VIEW), overwrite(STAFF_ROLE, allow=VIEW)),
        lambda: changed(server, HALL, overwrite(GUILD, deny=HISTORY)),
        lambda: changed(server, HALL, overwrite(STAFF_ROLE, deny=VIEW)),
        lambda: changed(server, HALL, overwrite(ANN, deny=VIEW, kind=1)),
        lambda: changed(server, HALL, **ADULTS),
        lambda: server.dispatch("GUILD_ROLE_UPDATE", {"guild_id": GUILD, "role": server.world.guild()["roles"][0] | {"permissions": "0"}}),
    ]
    async with connected(server, journal):
        for number, close in enumerate(closing):
            changed(server, HALL, overwrite(STAFF_ROLE, deny=1 << 11))  # some may not write, all may read
            server.dispatch("GUILD_ROLE_UPDATE", {"guild_id": GUILD, "role": server.world.guild()["roles"][0]})
            for place in (HALL, THREAD):
                server.says(place, "open")
            await journal.until(4 * number + 2)
            close()
            for place in (HALL, THREAD):
                server.says(place, "closed")
            await journal.until(4 * number + 4)
    told = [(event.text, event.shared_id) for event in journal.events]
    assert told == [("open", GUILD), ("open", GUILD), ("closed", ""), ("closed", "")] * len(closing)
    assert {event.space_id for event in journal.events} == {GUILD}


@pytest.mark.rule("WD-12", "SM-16")
async def test_where_nobody_knows_who_reads_it_a_channel_is_not_shared(server: FakeDiscord, journal: Journal) -> None:
    async with connected(server, journal):
        server.world.channel("1100000000000000123", 0, guild_id=GUILD, name="unseen")
        server.world.channel("1100000000000000124", 12, guild_id=GUILD, parent_id=GENERAL, name="aside")
        server.world.channel("1100000000000000125", 11, guild_id=GUILD, parent_id=GENERAL, name="found")
        for channel in ("1100000000000000123", "1100000000000000124", DM, "1100000000000000125"):
            server.says(channel, "hello")
        await journal.until(4)
    assert [event.shared_id for event in journal.events] == ["", "", "", GUILD]


@pytest.mark.rule("WD-12", "CH-190")
async def test_what_was_missed_is_placed_once_the_server_has_said_who_reads_its_channels(
    server: FakeDiscord, journal: Journal, clock: FakeClock
) -> None:
    server.world.clock = clock
    server.says(GENERAL, "while you were away")
    async with connected(server, journal, stored=known(), clock=clock):
        (event,) = await journal.until(1)
    assert (event.text, event.shared_id) == ("while you were away", GUILD)


@pytest.mark.case("DC-06")
@pytest.mark.rule("CH-182")
async def test_what_a_thread_hangs_on_is_asked_for_once_and_may_be_gone(server: FakeDiscord, journal: Journal) -> None:
    starter = server.world.write(server.world.message(HALL, server.world.users[BOB], "Who brings tea?"))
    server.world.channel(starter["id"], 11, guild_id=GUILD, parent_id=HALL, name="of a message")
    async with connected(server, journal):
        for channel in (THREAD, starter["id"]):
            server.says(channel, f"<@{ME}> first")
            server.says(channel, f"<@{ME}> second")
        without, second, about, again = await journal.until(4)
    assert (without.text, without.reply_to, second.reply_to, again.reply_to) == ("first", None, None, None)
    assert about.reply_to is not None
    assert about.reply_to.excerpt == "Who brings tea?"
    assert server.count("message") == 2


@pytest.mark.rule("CH-2")
async def test_only_a_new_server_is_news(server: FakeDiscord, journal: Journal) -> None:
    async with connected(server, journal):
        server.dispatch("GUILD_DELETE", {"id": GUILD, "unavailable": True})
        server.dispatch("GUILD_CREATE", server.world.guild())
        server.dispatch("GUILD_CREATE", server.world.guild() | {"id": "1100000000000000999", "channels": [], "threads": [], "roles": []})
        server.dispatch("GUILD_DELETE", {"id": "1100000000000000999"})
        added, removed = await journal.until(2)
    assert [(event.kind, event.hint) for event in (added, removed)] == [(EventKind.MEMBERSHIP, "added"), (EventKind.MEMBERSHIP, "removed")]


# To be sure that it hears


@pytest.mark.case("DC-14")
@pytest.mark.rule("CH-210", "CH-211", "CH-215")
async def test_an_open_socket_that_says_nothing_is_deaf_and_built_anew(journal: Journal, clock: FakeClock) -> None:
    with FakeDiscord(heartbeat_s=0.05) as server:
        supervisor = Supervisor(ACCOUNT, lambda: made(server, known(), clock=clock), clock=clock, backoff_s=(0.01,), check_s=0.01)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(supervisor.run(journal))
            await until(lambda: supervisor.status().state is ChannelState.READY)
            clock.advance(seconds=50)
            await until(lambda: supervisor.status().proven_at == clock()), "heartbeats are answered"
            server.deaf = True
            await asyncio.sleep(0.2)
            proven = clock()
            clock.advance(seconds=59)
            await asyncio.sleep(0.1)
            assert (supervisor.status().state, supervisor.status().proven_at) == (ChannelState.READY, proven)
            server.world.messages.setdefault(DM, [])
            server.says(DM, "does anybody hear?")
            clock.advance(seconds=2)
            await until(lambda: supervisor.status().state is not ChannelState.READY)
            assert server.connections >= 1, "the socket looks fine"
            server.deaf = False
            await until(lambda: supervisor.status().state is ChannelState.READY)
            await journal.until(1)
            task.cancel()
    assert journal.texts == ["does anybody hear?"]


@pytest.mark.rule("CH-210")
async def test_an_api_that_does_not_answer_three_times_ends_the_connection(server: FakeDiscord) -> None:
    channel = made(server, probe_s=0.03)
    with pytest.raises(ConnectionLost, match="3 times"):
        async with running(channel, Journal()) as task:
            await until(lambda: server.count("me") >= 3)
            assert not task.done()
            server.world.api_down = True
            await asyncio.wait([task], timeout=patience(10))


@pytest.mark.rule("CH-9", "CH-211")
async def test_a_connection_that_breaks_again_and_again_is_left_to_the_supervisor(server: FakeDiscord) -> None:
    channel = made(server)
    with pytest.raises(ConnectionLost):
        async with running(channel, Journal()) as task:
            await until(lambda: channel.proven_at is not None)
            server.slams = True
            server.drop()
            await asyncio.wait([task], timeout=patience(10))


@pytest.mark.rule("CH-9", "CH-40")
async def test_it_ends_within_a_second_beside_a_peer_that_answers_nothing(server: FakeDiscord) -> None:
    async with connected(server):
        server.deaf = True
        server.listens(False)
        began = time.monotonic()
    assert time.monotonic() - began < patience(1.0)


# To speak


@pytest.mark.case("DC-01")
@pytest.mark.rule("CH-32", "CH-187")
async def test_a_long_answer_is_two_messages_and_only_the_first_is_a_reply(server: FakeDiscord) -> None:
    async with connected(server) as channel:
        asked = server.says(DM, "tell me")
        first, second = render("b" * 2001, CAPABILITIES)
        assert isinstance(await channel.send(part(first.text, reply_to=asked["id"])), Sent)
        assert isinstance(await channel.send(part(second.text, part_id="p2")), Sent)
    one, two = shown(server)
    assert one["content"] + two["content"] == "b" * 2001
    assert (one["message_reference"]["message_id"], "message_reference" in two) == (asked["id"], False)


@pytest.mark.case("DC-12")
@pytest.mark.rule("CH-139", "CH-187", "CH-137")
async def test_nobody_is_pinged_and_no_link_unfurls(server: FakeDiscord) -> None:
    async with connected(server) as channel:
        asked = server.says(GENERAL, "ready?")
        assert isinstance(await channel.send(part("@everyone deploy is done, <@&123>", IN_GROUP, reply_to=asked["id"])), Sent)
        gone = await channel.send(part("an answer to nothing", IN_GROUP, part_id="p2", reply_to="1100000000000000777"))
        assert isinstance(gone, Sent), "what was answered may be gone"
    message = shown(server, GENERAL)[0]
    assert message["content"] == "@everyone deploy is done, <@&123>"
    assert message["allowed_mentions"]["parse"] == []
    assert not message["allowed_mentions"]["replied_user"]
    assert message["flags"] & 4


@pytest.mark.rule("CH-185", "CH-35")
async def test_what_the_library_repeats_is_shown_once(server: FakeDiscord) -> None:
    async with connected(server) as channel:
        server.plan({"status": 500, "message": "it was written all the same", "after": True})
        assert isinstance(await channel.send(part("one")), Sent)
    assert server.texts(DM) == ["one"]
    assert server.count("send") == 2


@pytest.mark.rule("CH-185", "CH-80")
async def test_a_lost_answer_is_found_by_its_words_and_only_since_the_try(server: FakeDiscord, clock: FakeClock) -> None:
    server.world.clock = clock
    async with connected(server, clock=clock) as channel:
        await channel.send(part("the same words", part_id="p0"))
        clock.advance(minutes=10)
        since = clock()
        assert await channel.find(part("the same words"), since) is None
        server.plan({"cut": True})
        assert isinstance(await channel.send(part("the same words  ")), Unknown)
        clock.advance(minutes=3)
        assert await channel.find(part("the same words  "), since) == (shown(server)[-1]["id"],)


@pytest.mark.rule("CH-186", "CH-33")
async def test_a_short_limit_is_waited_out_by_the_library(server: FakeDiscord) -> None:
    async with connected(server) as channel:
        server.plan({"retry_after": 0.2})
        assert isinstance(await channel.send(part("one")), Sent)
    assert server.texts(DM) == ["one"]


@pytest.mark.rule("CH-186")
async def test_a_block_by_the_network_stills_the_whole_account(
    server: FakeDiscord, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(server, clock=clock) as channel:
        server.plan({"edge": True})
        assert await channel.send(part("one")) == TryLater(60, whole_account=True)
        calls = server.count("send") + server.count("edit")
        clock.advance(seconds=20)
        assert await channel.send(part("two", IN_GROUP, part_id="p2")) == TryLater(40, whole_account=True)
        assert await channel.edit(TO_ANN, "5", part("three")) == TryLater(40, whole_account=True)
        assert server.count("send") + server.count("edit") == calls, "nobody is asked while we are to keep still"
        assert any("blocks us" in record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR)
        clock.advance(seconds=40)
        server.plan({"edge": True})
        assert await channel.send(part("one")) == TryLater(120, whole_account=True)
        clock.advance(seconds=120)
        assert isinstance(await channel.send(part("one")), Sent)


@pytest.mark.rule("CH-186", "CH-33")
async def test_a_limit_of_a_server_without_a_network_in_front_is_an_order_for_the_chat_alone(server: FakeDiscord) -> None:
    async with connected(server) as channel:
        server.plan({"retry_after": 7, "bare": True})
        assert await channel.send(part("one")) == TryLater(7.0)
        assert isinstance(await channel.send(part("two", IN_GROUP, part_id="p2")), Sent)
        assert isinstance(await channel.send(part("one")), Sent)


@pytest.mark.rule("CH-183")
async def test_an_archived_thread_is_opened_or_its_channel_gets_the_answer_with_a_note(server: FakeDiscord) -> None:
    thread = server.world.channels[THREAD]
    async with connected(server, note=lambda key, text: f"({key})") as channel:
        thread.archived = thread.locked = True
        assert isinstance(await channel.send(part("one", IN_THREAD)), Sent)
        assert server.count("open") == 1
        thread.archived = thread.locked = True
        thread.may_open = False
        outcome = await channel.send(part("two", IN_THREAD, part_id="p2"))
        assert isinstance(outcome, Sent)
        assert isinstance(await channel.send(part("two", IN_THREAD, part_id="p2")), Sent)
    assert server.texts(THREAD) == ["one"]
    assert server.texts(HALL) == ["(sent_outside_thread)", "two"]
    assert outcome.platform_ids == tuple(message["id"] for message in shown(server, HALL))


@pytest.mark.rule("CH-183")
async def test_the_answer_to_a_thread_that_is_locked_goes_to_its_channel_with_a_note(server: FakeDiscord) -> None:
    thread = server.world.channels[THREAD]
    thread.locked, thread.may_open = True, False
    async with connected(server, note=lambda key, text: f"({key})") as channel:
        assert isinstance(await channel.send(part("one", IN_THREAD)), Sent)
    assert server.texts(THREAD) == []
    assert server.texts(HALL) == ["(sent_outside_thread)", "one"]


@pytest.mark.rule("CH-187", "CH-97")
async def test_a_compatible_server_without_codes_of_its_own_loses_no_answer(server: FakeDiscord) -> None:
    bare = {"status": 404, "code": 404, "message": "Message could not be found"}
    async with connected(server) as channel:
        server.plan(bare)
        assert isinstance(await channel.send(part("what it answers is gone", reply_to="1100000000000000777")), Sent)
        server.plan(bare)
        outcome = await channel.edit(TO_ANN, shown(server)[-1]["id"], part("what it edits is gone"))
        assert isinstance(outcome, Refused)
        assert outcome.gone
        server.plan(bare, {"status": 404, "code": 10003, "message": "Unknown Channel"})
        assert isinstance(await channel.send(part("no reply", part_id="p2")), Refused)
        assert isinstance(await channel.send(part("no channel", part_id="p3", reply_to="1100000000000000777")), Refused)
    assert server.texts(DM) == ["what it answers is gone"]


@pytest.mark.rule("CH-187", "CH-143")
async def test_files_go_with_their_words_and_what_is_too_large_is_said(server: FakeDiscord) -> None:
    note = "(The file was too large to be sent here.)"
    async with connected(server) as channel:
        assert isinstance(await channel.send(part("look", attachments=(file("a.png"), file("n.md")))), Sent)
        server.plan({"status": 400, "code": 40005, "message": "Request entity too large"})
        assert isinstance(await channel.send(part("look again", part_id="p2", attachments=(file("a.png"),))), Sent)
        FILES["huge.bin"] = b"x" * 10_000_001
        assert isinstance(await channel.send(part("", part_id="p3", attachments=(file("huge.bin"),))), Sent)
        assert isinstance(await channel.send(part("", part_id="p4", attachments=(file("missing"),))), Refused)
    first, second, third = shown(server)
    assert (first["content"], [each["filename"] for each in first["attachments"]]) == ("look", ["a.png", "n.md"])
    assert [server.world.files[each["id"]] for each in first["attachments"]] == [FILES["a.png"], FILES["n.md"]]
    assert (second["content"], third["content"]) == (f"look again\n{note}", note)


@pytest.mark.rule("CH-39", "CH-32")
async def test_a_message_taken_for_malformed_is_cut_again_once(server: FakeDiscord, caplog: pytest.LogCaptureFixture) -> None:
    bad = {"status": 400, "code": 50035, "message": "Invalid Form Body"}
    async with connected(server) as channel:
        server.plan(bad)
        outcome = await channel.send(part("word " * 390))
        assert isinstance(outcome, Sent)
        assert len(outcome.platform_ids) == 2
        assert "1950 units" in caplog.text or "1949 units" in caplog.text
        server.plan(bad, bad)
        assert isinstance(await channel.send(part("again", part_id="p2")), Refused)
    assert " ".join(server.texts(DM)).split() == ["word"] * 390


@pytest.mark.rule("CH-36", "CH-95")
async def test_an_edit_of_what_is_gone_is_told_apart(server: FakeDiscord) -> None:
    async with connected(server) as channel:
        outcome = await channel.edit(IN_THREAD, "1100000000000000777", part("x", IN_THREAD))
        assert isinstance(outcome, Refused)
        assert outcome.gone
        assert isinstance(await channel.edit(IN_THREAD, "no number", part("x", IN_THREAD)), Refused)
        assert isinstance(await channel.edit(IN_THREAD, "5", part("  ", IN_THREAD)), Refused)


@pytest.mark.rule("CH-12", "CH-37", "CH-73")
async def test_signs_go_where_they_belong(server: FakeDiscord) -> None:
    async with connected(server) as channel:
        await channel.typing(IN_THREAD, True)
        await channel.typing(IN_THREAD, False)
        post = server.says(THREAD, "hello")
        assert isinstance(await channel.react(IN_THREAD, post["id"], "⏳"), Sent)
        assert isinstance(await channel.react(IN_THREAD, "", "⏳"), Refused)
    assert [call.path for call in server.world.calls if call.what == "typing"] == [f"/api/v10/channels/{THREAD}/typing"]
    assert server.world.reactions == [(post["id"], "⏳")]


@pytest.mark.rule("CH-12", "CH-118")
async def test_who_may_manage_the_server_manages_its_channels(server: FakeDiscord) -> None:
    server.world.managers[ANN], server.holds_guilds = 1, True
    async with connected(server) as channel:
        assert isinstance(channel, Managers)
        with pytest.raises(ConnectionLost):  # whose answer nobody keeps, as they would a "no"
            await channel.manages(IN_THREAD, ANN)
        server.tells_guilds()

        async def told() -> bool:
            try:
                return await channel.manages(IN_THREAD, ANN)
            except ConnectionLost:
                return False

        await eventually(told)
        answers = [await channel.manages(IN_THREAD, sender) for sender in (ANN, BOB, ROBOT, "1100000000000000888", "")]
        assert answers == [True, True, False, False, False], "the staff, the owner, a bot, a stranger, nobody"
        assert not await channel.manages(TO_ANN, ANN)
        server.world.api_down = True
        with pytest.raises(ConnectionLost):
            await channel.manages(IN_GROUP, ANN)


@pytest.mark.case("DC-05")
@pytest.mark.rule("CH-7", "CH-30", "CH-182")
async def test_files_are_fetched_by_their_place_forwarded_ones_too(server: FakeDiscord, journal: Journal) -> None:
    held = [server.world.file(name, name.encode(), "image/png") for name in ("a.png", "b.png", "notes.txt")]
    async with connected(server, journal) as channel:
        server.says(DM, "check", attachments=held)
        server.says(DM, message_reference={"type": 1, "message_id": "7"}, message_snapshots=[{"message": {"content": "", "attachments": held[:1]}}])
        sent, forwarded = await journal.until(2)
        assert [await channel.fetch(each, 100) for each in sent.attachments] == [b"a.png", b"b.png", b"notes.txt"]
        assert await channel.fetch(forwarded.attachments[0], 100) == b"a.png"
        for broken in (Attachment(kind="file", name="x", fetch_ref="nowhere"), Attachment(kind="file", name="x", fetch_ref=f"{DM}/5/6")):
            with pytest.raises(AttachmentRefused):
                await channel.fetch(broken, 100)
        server.network(False)
        with pytest.raises(ConnectionLost):
            await channel.fetch(sent.attachments[0], 100)


# Slash commands


@pytest.mark.case("DC-08")
@pytest.mark.rule("CH-188")
async def test_a_command_is_deferred_at_once_whatever_the_store_does_and_answered_by_edit(server: FakeDiscord, journal: Journal) -> None:
    gate = asyncio.Event()
    delivery: list[str] = []

    class Slow(Journal):
        async def __call__(self, events: Any, cursor: Any = None) -> Any:
            await gate.wait()
            accepted = await super().__call__(events, cursor)
            delivery.extend(each.delivery_id for each in accepted)
            return accepted

    slow = Slow()
    async with connected(server, slow) as channel:
        server.says(DM, "busy now")
        began = time.monotonic()
        told = server.calls_command(GENERAL, "status", text="all")
        interaction = server.world.interactions[told["token"]]
        await until(lambda: interaction["deferred"], within_s=1.0)
        assert time.monotonic() - began < patience(1.0)
        gate.set()
        await slow.until(2)
        event = slow.events[-1]
        assert (event.text, event.kind, event.chat_id, event.mentioned) == ("/status all", EventKind.MESSAGE, GENERAL, True)
        await until(lambda: len(delivery) == 2)
        first, second = (part(text, IN_GROUP, part_id=f"{delivery[1]}.answer.{n}") for n, text in enumerate(("all is well", "and more"), 1))
        outcome = await channel.send(first)
        assert outcome == Sent((interaction["message"],))
        assert await channel.send(first) == outcome, "a second try is the same answer"
        assert isinstance(await channel.edit(IN_GROUP, interaction["message"], part("all is very well", IN_GROUP)), Sent)
        assert isinstance(await channel.send(second), Sent)
    assert server.texts(GENERAL) == ["all is very well", "and more"]
    assert (server.count("answer"), server.count("send")) == (2, 1)
    assert "interaction-token" not in str(slow.events)


@pytest.mark.case("DC-08")
@pytest.mark.rule("CH-188")
@pytest.mark.parametrize("lost", ["at once", "later", "answered by another"])
async def test_a_command_that_cannot_be_answered_any_more_gets_a_message(server: FakeDiscord, journal: Journal, lost: str) -> None:
    async with connected(server, journal) as channel:
        told = server.calls_command(DM, "status")
        interaction = server.world.interactions[told["token"]]
        await until(lambda: interaction["deferred"])
        await journal.until(1)
        if lost == "answered by another":
            server.plan({"status": 400, "code": 40060, "message": "Interaction has already been acknowledged."})
        elif lost == "at once":
            server.plan({"status": 404, "code": 10062, "message": "Unknown interaction"})
        else:
            interaction["gone"] = True
        outcome = await channel.send(part("all is well", part_id="d1.answer.1"))
        assert isinstance(outcome, Sent)
    assert server.texts(DM) == ["all is well"]
    assert server.count("send") == 1


@pytest.mark.rule("CH-188")
async def test_after_fourteen_minutes_the_answer_is_a_message_and_the_sign_is_taken_back(
    server: FakeDiscord, journal: Journal, clock: FakeClock
) -> None:
    async with connected(server, journal, clock=clock) as channel:
        told = server.calls_command(DM, "status")
        await until(lambda: server.world.interactions[told["token"]]["deferred"])
        await journal.until(1)
        clock.advance(minutes=14)
        assert isinstance(await channel.send(part("at last", part_id="d1.answer.1")), Sent)
        await until(lambda: "taken_back" in server.world.interactions[told["token"]])
    assert (server.count("answer"), server.count("send")) == (0, 1)


STATUS = (SlashCommand(name="status", description="how it is"), SlashCommand(name="Help Me", description="bad"))


@pytest.mark.case("DC-09", "DC-10")
@pytest.mark.rule("CH-189")
async def test_commands_are_registered_when_their_list_changed(server: FakeDiscord, caplog: pytest.LogCaptureFixture) -> None:
    stored: dict[str, str] = {}

    class Kept(Journal):
        async def __call__(self, events: Any, cursor: Any = None) -> Any:
            if cursor is not None:
                stored[cursor.name] = cursor.value
            return await super().__call__(events, cursor)

    for _ in range(2):
        async with connected(server, Kept(), stored=stored, commands=STATUS):
            await until(lambda: COMMANDS in stored)
            await asyncio.sleep(0.05)
    assert [command["name"] for command in server.world.commands] == ["status"]
    assert server.count("commands") == 1
    assert "/Help Me is left out" in caplog.text
    async with connected(server, Kept(), stored=stored, commands=(*STATUS, SlashCommand(name="help", description="what there is"))):
        await until(lambda: len(server.world.commands) == 2)


@pytest.mark.case("DC-09")
@pytest.mark.rule("CH-189")
@pytest.mark.parametrize(("status", "code"), [(429, 30034), (400, 30032)])
async def test_what_keeps_commands_from_being_registered_stops_nothing(
    server: FakeDiscord, journal: Journal, status: int, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    server.world.commands_refused = ApiError(status, code, "Max number of daily application command creates has been reached", retry_after=3600.0)
    async with connected(server, journal, commands=STATUS):
        await until(lambda: "could not be registered" in caplog.text)
        server.says(DM, "still there?")
        assert [event.text for event in await journal.until(1)] == ["still there?"]


@pytest.mark.rule("CH-43")
async def test_no_token_is_logged_even_where_everything_is(server: FakeDiscord, journal: Journal, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with connected(server, journal, commands=STATUS) as channel:
        told = server.calls_command(DM, "status")
        await journal.until(1)
        await channel.send(part("fine", part_id="d1.answer.1"))
        server.says(DM, "look", attachments=[server.world.file("a.png", None)])
        await journal.until(2)
        with pytest.raises(AttachmentRefused) as refused:
            await channel.fetch(journal.events[-1].attachments[0], 100)
    text = caplog.text + str(refused.value) + repr(refused.value.__cause__)
    for secret in (TOKEN, told["token"], "hm=signed"):
        assert secret not in text

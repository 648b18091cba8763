"""Whose memory a message belongs to is settled when it arrives (WD-9), and so is whether its words are the sender's own (WD-67)."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from channels.message import Attachment, ChatType, InboundEvent, ReplyTo
from gateway.access import Rules
from gateway.arrivals import senders
from memory import conversations
from memory.database import Database
from memory.schema import people, spaces
from tests.conftest import FakeClock
from tests.gateway.arrivals import Door, event, in_group


@pytest.fixture
def door(database: Database, clock: FakeClock) -> Door:
    return Door(database, clock)


@pytest.mark.rule("WD-9")
async def test_a_person_whom_the_configuration_lists_has_a_memory_and_a_stranger_has_none(door: Door) -> None:
    door.set(rules=Rules(allow=frozenset({"ann"})))
    await door.one(event("hello"))
    (scope,) = await door.rows("people", "scope")
    assert await door.rows("messages", "scope") == [scope]
    assert scope.startswith("people/p-")


@pytest.mark.rule("WD-9", "WD-10")
async def test_in_a_group_it_is_the_spaces_whoever_speaks(door: Door) -> None:
    await door.one(event("at home"))
    await door.do(lambda c: c.execute(sa.update(people).values(role="owner", scope="root")))
    await door.one(event("alone"))
    await door.one(in_group("to all"))
    (space,) = await door.rows("spaces", "id")
    assert (await door.rows("messages", "scope"))[1:] == ["root", f"spaces/{space}"]


@pytest.mark.rule("WD-51", "WD-9")
async def test_what_is_said_while_memory_is_off_is_nobodys(door: Door) -> None:
    first = await door.one(event("on"))
    await door.do(lambda c: conversations.change(c, first.conversation_id, memory_on=False))
    await door.one(event("off"))
    await door.do(lambda c: conversations.change(c, first.conversation_id, memory_on=True, kind="challenge"))
    await door.one(event("a challenge"))
    assert (await door.rows("messages", "scope"))[1:] == ["", ""]


@pytest.mark.rule("WD-67")
async def test_files_and_quotes_from_elsewhere_are_words_of_others(door: Door) -> None:
    said = await door.one(event("my own words", platform_message_id="m-own"))
    await door.one(event("about that", reply_to=ReplyTo(message_id="m-own", excerpt="my own words")))
    await door.one(event("and ours", reply_to=ReplyTo(message_id="m-bot", author_is_us=True, excerpt="an answer")))
    await door.one(event("see this", reply_to=ReplyTo(message_id="m-elsewhere", excerpt="from another chat")))
    await door.one(event("read it", attachments=(Attachment(kind="file", name="a.txt", mime="text/plain", size=3, fetch_ref="x"),)))
    assert said.message is not None
    assert await door.rows("messages", "foreign_text") == [False, False, False, True, True]


# -- servers ---------------------------------------------------------------------------------------------------------------


def in_server(text: str, channel: str = "general", *, is_open: bool = True, **more: Any) -> InboundEvent:
    return in_group(text, chat=channel, space_id="server", shared_id="server" if is_open else "", **more)


@pytest.mark.rule("WD-12", "SM-16")
async def test_open_channels_of_a_server_share_one_memory_and_closed_ones_have_their_own(door: Door) -> None:
    await door.one(in_server("to all"))
    await door.one(in_server("to all as well", "hall"))
    await door.one(in_server("in a thread", "hall", thread_id="t1", parent_chat_id="hall", chat_type=ChatType.THREAD))
    await door.one(in_server("among us", "staff", is_open=False))
    await door.one(in_server("in a thread among us", "staff", is_open=False, thread_id="t2", parent_chat_id="staff", chat_type=ChatType.THREAD))
    await door.one(in_server("in a private thread", "t3", is_open=False))
    scopes = await door.rows("messages", "scope")
    assert len(set(scopes[:3])) == len(set(scopes[3:5])) == 1
    assert len(set(scopes)) == 3
    spaces = {row[0]: row[1] for row in await door.rows("spaces", "platform_space_id", "server_id")}
    assert spaces == {"server": "server", "staff": "server", "t3": "server"}, "which ones not all of the server reads can be told"
    assert len(set(await door.rows("conversations", "id"))) == 6, "each keeps a context of its own"


@pytest.mark.rule("WD-12")
async def test_a_channel_that_is_opened_writes_to_the_memory_of_its_server_from_then_on_and_back(door: Door) -> None:
    for is_open in (False, True, False):
        await door.one(in_server("hello", is_open=is_open))
    first, second, third = await door.rows("messages", "scope")
    assert first == third != second
    assert len(await door.rows("conversations", "id")) == 1


@pytest.mark.rule("WD-12", "CH-115")
async def test_a_server_that_an_admin_allowed_is_allowed_in_its_open_channels_only(door: Door) -> None:
    await door.one(in_server("hello"))
    await door.do(lambda c: c.execute(sa.update(spaces).values(allowed=True)))
    door.set(rules=Rules())
    assert (await door.one(in_server("hello", "hall"))).accepted.state == "new"
    assert (await door.one(in_server("hello", "staff", is_open=False))).accepted.rule == "group-not-allowed"


@pytest.mark.rule("CH-83", "CH-115")
@pytest.mark.parametrize("is_open", [True, False])
async def test_a_server_that_the_configuration_lists_is_answered_in_every_channel_until_it_is_listed_no_more(door: Door, is_open: bool) -> None:
    listed = Rules(groups=frozenset({"server"}))
    door.set(rules=listed)
    received = await door.one(in_server("hello", is_open=is_open))
    assert received.accepted.state == "new"
    address = received.event.address
    assert not await door.do(lambda c: senders.lost_access(c, address, listed))
    assert await door.do(lambda c: senders.lost_access(c, address, Rules()))


@pytest.mark.rule("CH-83")
async def test_a_space_from_before_servers_were_known_is_told_its_server_with_the_next_message(door: Door) -> None:
    await door.one(in_server("hello", is_open=False))
    await door.do(lambda c: c.execute(sa.update(spaces).values(server_id="")))
    await door.one(in_server("again", is_open=False))
    assert await door.rows("spaces", "server_id") == ["server"]

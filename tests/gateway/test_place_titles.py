"""What groups, channels and topics are called: kept current, bounded, shown for an id, told to nobody else (CH-1, CH-111, WD-12)."""

from __future__ import annotations

import logging
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from channels.message import ChatType, InboundEvent, from_json, to_json
from gateway.access import Rules
from gateway.arrivals import place_titles
from gateway.arrivals.hygiene import TITLE_MAX, title
from gateway.summaries import plan as summary_plan
from memory import conversations
from memory.database import Database
from tests.conftest import FakeClock
from tests.gateway.arrivals import Door, event, in_group


@pytest.fixture
def door(database: Database, clock: FakeClock) -> Door:
    return Door(database, clock)


def topic(text: str = "hello", **more: Any) -> InboundEvent:
    where: dict[str, Any] = {"chat_type": ChatType.THREAD, "parent_chat_id": "g1", "thread_id": "42", "chat_title": "Gardeners"}
    return in_group(text, **(where | more))


def channel(text: str = "hello", **more: Any) -> InboundEvent:
    """In an open channel of a server."""
    where: dict[str, Any] = {"space_id": "srv", "shared_id": "srv", "space_title": "Tea House", "chat_title": "general"}
    return in_group(text, **(where | more))


async def titles(door: Door) -> tuple[list[str], list[str]]:
    return sorted(await door.rows("spaces", "title")), sorted(await door.rows("conversations", "title"))


@pytest.mark.rule("CH-1")
def test_titles_survive_a_journey_as_json_and_older_events_have_none() -> None:
    told = topic(thread_title="Roses", space_title="Tea House", thread_made_as="Tulips")
    assert from_json(InboundEvent, to_json(told)) == told
    older = {key: value for key, value in to_json(told).items() if "title" not in key and key != "thread_made_as"}
    assert from_json(InboundEvent, older).chat_title == ""


@pytest.mark.rule("CH-6")
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("  Tea \n\t house ", "Tea house"),
        ("茶\x00の\x1b[31m間\u2028庭", "茶の[31m間 庭"),
        ("\u202eesuoh aet\u202c \u2066x\u2069\u200f", "esuoh aet x"),
        ("家\u200b庭 👨\u200d👩\u200d👧", "家庭 👨\u200d👩\u200d👧"),
        ("\u200d \u200b\u2060", ""),
        ("\ud800", "\ufffd"),
        ("庭" * 300, "庭" * (TITLE_MAX - 1) + "…"),
        ("👨\u200d👩\u200d👧" * 60, "👨\u200d👩\u200d👧" * 19 + "…"),
        (" " * 9_000_000 + "x", ""),
    ],
)
def test_a_title_is_one_short_line_that_turns_nothing_around(given: str, kept: str) -> None:
    assert title(given) == kept
    assert len(kept) <= TITLE_MAX


@pytest.mark.rule("CH-1", "WD-12")
@pytest.mark.parametrize(
    ("told", "space", "chat", "shown"),
    [
        (in_group(chat_title="Gardeners"), "Gardeners", "Gardeners", "Gardeners"),
        (topic(thread_title="Roses"), "Gardeners", "Roses", "Gardeners › Roses"),
        (topic(), "Gardeners", "", "Gardeners"),
        (channel(), "Tea House", "general", "Tea House › general"),
        (channel(chat_type=ChatType.THREAD, thread_title="Cake", thread_id="7"), "Tea House", "general › Cake", "Tea House › general › Cake"),
        (channel(shared_id="", chat_title="staff"), "Tea House › staff", "Tea House › staff", "Tea House › staff"),
        (in_group(), "", "", ""),
    ],
)
async def test_a_place_and_its_parts_are_called_as_their_people_call_them(door: Door, told: InboundEvent, space: str, chat: str, shown: str) -> None:
    await door.one(told)
    assert await titles(door) == ([space], [chat])
    assert place_titles.whole(space, chat) == shown


@pytest.mark.rule("CH-1", "CH-116")
async def test_a_new_title_counts_with_the_next_event_also_one_that_is_not_answered(door: Door) -> None:
    await door.one(in_group(chat_title="Gardeners"))
    await door.one(in_group(chat_title="Tea", mentioned=False))
    assert await titles(door) == (["Tea"], ["Tea"])
    await door.one(in_group("hi", chat_title=""))
    assert await titles(door) == (["Tea"], ["Tea"]), "what the platform does not tell stays"
    door.set(rules=Rules(allow=frozenset({"*"})))
    received = await door.one(in_group(chat_title="After we left"))
    assert received.accepted.rule == "group-not-allowed"
    assert await titles(door) == (["Tea"], ["Tea"])


@pytest.mark.rule("CH-1")
async def test_a_topic_keeps_its_newest_name(door: Door) -> None:
    await door.one(topic(thread_made_as="Tulips"))
    assert (await titles(door))[1] == ["Tulips"]
    await door.one(topic("", thread_title="Roses", mentioned=False))  # the notice that it was renamed
    await door.one(topic(thread_made_as="Tulips"))
    assert (await titles(door))[1] == ["Roses"]


@pytest.mark.rule("CH-111", "CH-117")
async def test_a_title_admits_nobody_and_is_not_kept_of_a_group_that_is_not_let_in(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    door.set(rules=Rules(groups=frozenset({"Gardeners"})))
    received = await door.one(in_group(chat_title="Gardeners"))
    assert received.accepted.rule == "group-not-allowed"
    assert "Gardeners" not in str(await door.rows("inbox", "event"))
    door.set(rules=Rules(groups=frozenset({"g1"})))
    await door.one(in_group(chat_title="Gardeners"))
    assert await titles(door) == (["Gardeners"], ["Gardeners"])
    assert "Gardeners" not in caplog.text


@pytest.mark.rule("CH-1")
async def test_a_title_that_a_person_gave_stays_and_a_private_chat_has_none(door: Door) -> None:
    await door.one(event(chat_title="Ann's own", thread_title="x"))
    received = await door.one(in_group(chat_title="Gardeners"))
    await door.do(lambda c: conversations.change(c, received.conversation_id, title="Spring", title_origin="person"))
    await door.one(in_group(chat_title="Tea"))
    assert await titles(door) == (["Tea"], ["", "Spring"])


@pytest.mark.rule("WD-12")
async def test_a_channel_that_was_closed_tells_its_server_nothing_new(door: Door) -> None:
    await door.one(channel(chat_title="plans"))
    closed: dict[str, Any] = {"shared_id": "", "chat_title": "secret plans"}
    await door.one(channel(mentioned=False, **closed))
    assert await titles(door) == (["Tea House"], ["plans"]), "it has not moved yet"
    await door.one(channel(**closed))
    assert await titles(door) == (["Tea House", "Tea House › secret plans"], ["Tea House › secret plans"])


@pytest.mark.rule("WO-64")
async def test_places_are_told_by_name_where_an_operator_looks(door: Door) -> None:
    await door.one(topic(thread_title="Roses"))
    await door.one(event())
    [space], keys = await door.rows("spaces", "id"), await door.rows("conversations", "key")
    named = await door.do(lambda c: place_titles.named(c, [space, *keys, "p-1", "127.0.0.1"]))
    assert named == {space: "Gardeners", "loopback:main:g1:42": "Gardeners › Roses"}


@pytest.mark.rule("WD-12", "WD-4")
async def test_notes_of_a_server_do_not_tell_what_a_channel_is_called_since_it_was_closed(door: Door) -> None:
    await door.one(channel("We meet on Monday", chat_title="plans"))
    scope = (await door.rows("messages", "scope"))[0]

    async def label() -> str:
        day, zone = door.clock().date(), ZoneInfo("UTC")
        [segment] = await door.do(lambda c: summary_plan.daily(c, scope, day, zone, job_id=0))
        return segment.label

    assert await label() == "plans"
    await door.one(channel("Not here", shared_id="", chat_title="secret plans"))
    assert await label() == "loopback"

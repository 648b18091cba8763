"""An edit that arrives before its message: kept for it, applied when it comes, and never kept of who is not heard (CH-2, CH-116, CH-117)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from channels.message import EventKind, InboundEvent
from gateway import people
from gateway.access import Rules
from gateway.arrivals import early_edits, inbox
from gateway.audit import CONSOLE
from gateway.forget_me import ForgetMe
from memory.columns import metadata
from memory.database import Database
from tests.conftest import FakeClock
from tests.gateway.arrivals import Door, event, in_group, words


@pytest.fixture
def door(database: Database, clock: FakeClock) -> Door:
    return Door(database, clock)


def edit(of: InboundEvent, text: str, *, after_s: float = 10, **more: Any) -> InboundEvent:
    """The edit of a message, as its platform tells it."""
    at = (of.platform_ts or of.received_at) + timedelta(seconds=after_s)
    key = more.pop("key", f"{of.platform_event_id}:{after_s}:{len(text)}")
    return replace(of, kind=EventKind.EDITED, platform_event_id=key, text=text, platform_ts=at, edited_ts=at, **more)


async def waiting(door: Door) -> list[str]:
    """The words that wait for their message."""
    table = metadata.tables["inbox"]
    rows = await door.do(lambda c: c.execute(sa.select(table.c.event).where(table.c.state == early_edits.STATE).order_by(table.c.id)).scalars().all())
    return [row["text"] for row in rows]


async def everything(door: Door) -> str:
    return "".join([str(await door.do(lambda c, table=table: c.execute(sa.select(table)).all())) for table in metadata.tables.values()])


@pytest.mark.rule("CH-2", "CH-51")
@pytest.mark.parametrize("make", [event, in_group], ids=["private", "group"])
@pytest.mark.parametrize("text", ["tea at 6", "六時にお茶", "六点喝茶"])
async def test_the_newest_words_are_what_the_message_says_when_it_comes(door: Door, make: Any, text: str) -> None:
    told = replace(make("tea at 4"), platform_ts=door.clock())
    newest, older = edit(told, text, after_s=20), edit(told, "tea at 5", after_s=10)
    for each in (newest, older, newest):
        assert (await door.one(each)).accepted.state == "done"
    assert await waiting(door) == [text]
    received = await door.one(told)
    assert (received.accepted.state, words(received)) == ("new", text)
    assert received.waiting is not None
    assert received.waiting.text == text
    assert await waiting(door) == []
    await door.one(edit(told, "tea at 5 after all", after_s=15))
    assert await door.rows("messages", "text") == [text], "older words change nothing later either"
    await door.one(edit(told, "tea at 7", after_s=30))
    assert await door.rows("messages", "text") == ["tea at 7"]
    assert (await door.one(told)).accepted.arrival.value == "duplicate"


@pytest.mark.rule("CH-2", "CH-51")
async def test_a_message_that_is_newer_than_the_edit_says_what_it_says(door: Door) -> None:
    told = replace(event("tea at 6"), platform_ts=door.clock(), edited_ts=door.clock() + timedelta(seconds=20))
    await door.one(edit(told, "tea at 5", after_s=10))
    assert words(await door.one(told)) == "tea at 6"
    assert await waiting(door) == []


@pytest.mark.rule("CH-2")
async def test_a_deletion_takes_the_words_that_wait_with_it(door: Door) -> None:
    told = replace(event("tea"), platform_ts=door.clock())
    gone = replace(told, kind=EventKind.DELETED, platform_event_id="gone", text="")
    await door.receive(edit(told, "secret tea"), gone, edit(told, "more secret tea", after_s=20))
    assert await waiting(door) == []
    assert (await door.one(told)).accepted.rule == "deleted"
    assert "secret tea" not in await everything(door)


@pytest.mark.rule("CH-116", "CH-117", "CH-112")
async def test_words_of_who_is_not_heard_are_not_kept(door: Door) -> None:
    await door.one(edit(in_group("hi", mentioned=False), "beside us"))
    await door.one(edit(in_group("hi", sender="bot", is_bot=True), "of a bot"))
    door.set(rules=Rules())
    await door.one(edit(event("hi", sender="stranger"), "of a stranger"))
    await door.one(edit(in_group("hi"), "in a closed group"))
    assert await waiting(door) == []
    stored = await everything(door)
    assert not any(text in stored for text in ("beside us", "of a bot", "of a stranger", "in a closed group"))


@pytest.mark.rule("CH-116", "CH-117")
async def test_a_message_that_is_refused_takes_the_words_that_waited_with_it(door: Door) -> None:
    told = in_group("just among us", mentioned=False, platform_ts=door.clock())
    await door.one(edit(told, "and @bot too", mentioned=True))
    assert (await door.one(told)).accepted.rule == "not-mentioned"
    assert await waiting(door) == []
    assert "and @bot too" not in await everything(door)


@pytest.mark.rule("CH-2", "CH-111")
async def test_only_its_own_sender_edits_a_message_in_its_own_chat(door: Door) -> None:
    told = in_group("tea", platform_ts=door.clock())
    await door.one(edit(told, "coffee", sender_id="ben"))
    await door.one(edit(replace(told, chat_id="g2"), "cocoa"))
    assert words(await door.one(told)) == "tea"
    assert await waiting(door) == ["cocoa"]


@pytest.mark.rule("CH-2", "WO-22", "SM-90")
async def test_words_that_wait_go_with_a_person_who_is_forgotten(door: Door) -> None:
    await door.one(event("hello"))
    await door.one(in_group("hello", sender="ben"))
    await door.one(edit(in_group("never said"), "a secret of ann"))
    await door.one(edit(in_group("never said", sender="ben"), "of ben"))
    ann = next(iter(await door.rows("identities", "person_id")))
    person = await door.db.read(lambda c: people.find(c, ann))
    assert person is not None

    async def stop(_key: str) -> None: ...

    forget = ForgetMe(db=door.db, clock=door.clock, stop=stop, changed=lambda _person: None, wake_jobs=lambda: None)
    first = await forget.ask(person)
    second = await forget.confirm(CONSOLE, person, 1, first.token)
    assert second is not None
    await forget.confirm(CONSOLE, person, 2, second.token)
    assert await waiting(door) == ["of ben"]
    assert "a secret of ann" not in await everything(door)


@pytest.mark.rule("CH-2")
async def test_what_waited_for_a_day_goes_with_the_daily_sweep(door: Door) -> None:
    await door.one(edit(event("hi"), "of yesterday"))
    door.clock.advance(days=1, seconds=1)
    told = event("still as it was")
    await door.do(lambda c: early_edits.sweep(c, door.clock()))
    assert await waiting(door) == []
    assert words(await door.one(told)) == "still as it was"


@pytest.mark.rule("CH-2", "RL-1")
async def test_what_waits_is_bounded_in_number_and_time(door: Door) -> None:
    await door.receive(*(edit(event("hi"), f"word {number}") for number in range(early_edits.KEPT_MAX + 2)))
    kept = await waiting(door)
    assert (len(kept), kept[0]) == (early_edits.KEPT_MAX, "word 2")
    door.clock.advance(days=1, seconds=1)
    await door.one(edit(event("hi"), "today"))
    assert await waiting(door) == ["today"]
    await door.do(lambda c: inbox.prune(c, door.clock() + timedelta(days=1)))
    assert await waiting(door) == []

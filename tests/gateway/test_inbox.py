"""The life of a stored event: tried, ended, resumed, forgotten (CH-50 to CH-54, CH-100)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from channels.message import EventKind
from channels.port import Cursor
from gateway.arrivals import inbox
from memory.database import Database
from tests.conftest import FakeClock
from tests.gateway.arrivals import Door, event


@pytest.fixture
def door(sqlite: Database, clock: FakeClock) -> Door:
    return Door(sqlite, clock)


async def states(door: Door) -> list[tuple[str, str]]:
    return await door.rows("inbox", "state", "rule")


@pytest.mark.rule("CH-54", "CH-101")
async def test_what_was_begun_and_not_ended_is_found_again_in_order(door: Door) -> None:
    first, second, third = await door.receive(event("one"), event("/help"), event("three"))
    await door.do(lambda c: inbox.start(c, [1], first.accepted.turn_id))
    left = await door.do(inbox.unfinished)
    assert [(waiting.row_id, event.text, waiting.attempts) for waiting, event in left] == [(1, "one", 1), (2, "/help", 0), (3, "three", 0)]
    assert left[2][0] == replace(third.waiting, text_length=0) if third.waiting else False
    assert (left[1][0].turn_id, left[1][0].message_id) == ("", second.accepted.message_id)
    await door.do(lambda c: inbox.finish(c, [1, 2], now=door.clock()))
    await door.do(lambda c: inbox.finish(c, [3], now=door.clock(), state="dead", rule="dead"))
    assert await door.do(inbox.unfinished) == []
    assert await states(door) == [("done", ""), ("done", ""), ("dead", "dead")]


@pytest.mark.rule("CH-54")
async def test_every_start_counts_and_a_drain_takes_its_own_back(door: Door) -> None:
    await door.receive(event("one"), event("two"))
    assert [await door.do(lambda c: inbox.start(c, [1, 2], "t")) for _ in range(3)] == [1, 2, 3]
    await door.do(lambda c: inbox.checkpoint(c, [1, 2]))
    assert await door.rows("inbox", "state", "attempts", "turn_id") == [("new", 2, "t")] * 2
    await door.do(lambda c: inbox.finish(c, [1], now=door.clock()))
    assert await door.do(lambda c: inbox.start(c, [1, 2], "t")) == 3
    assert await door.rows("inbox", "state") == ["done", "running"]
    assert await door.do(lambda c: inbox.start(c, [1], "t")) == 0


async def test_a_reset_ends_what_came_before_it_and_nothing_else(door: Door) -> None:
    before = await door.one(event("before"))
    await door.receive(event("/clear"), event("after"), event("elsewhere", chat="c2"))
    await door.do(lambda c: inbox.end_open(c, before.conversation_id, 2, now=door.clock()))
    assert await states(door) == [("ignored", "reset"), ("new", ""), ("new", ""), ("new", "")]


@pytest.mark.rule("CH-51")
async def test_rows_are_kept_seven_days_and_open_ones_for_ever(door: Door) -> None:
    await door.receive(event("done"), event("open"))
    await door.do(lambda c: inbox.finish(c, [1], now=door.clock()))
    door.clock.advance(days=7)
    assert await door.do(lambda c: inbox.prune(c, door.clock() - timedelta(days=7))) == 0
    door.clock.advance(seconds=1)
    assert await door.do(lambda c: inbox.prune(c, door.clock() - timedelta(days=7))) == 1
    assert await door.rows("inbox", "state") == ["new"]


@pytest.mark.rule("CH-119")
async def test_the_last_word_in_a_chat_is_found_without_what_could_not_be_read(door: Door) -> None:
    await door.receive(event("first"), event("elsewhere", chat="c2"), event("?", kind=EventKind.UNKNOWN, hint="hologram"))
    last = await door.do(lambda c: inbox.last_at(c, "loopback:main:c1", 2**62))
    assert last.id == 1
    assert await door.do(lambda c: inbox.last_at(c, "loopback:main:c1", 1)) is None
    assert await door.do(lambda c: inbox.last_at(c, "loopback:main:c3", 2**62)) is None


@pytest.mark.rule("CH-119")
async def test_our_own_words_that_a_platform_repeats_are_not_the_last_word(door: Door) -> None:
    await door.receive(event("a question"), event("its answer", sender="me", is_us=True, is_bot=True))
    assert await states(door) == [("new", ""), ("ignored", "self")]
    assert (await door.do(lambda c: inbox.last_at(c, "loopback:main:c1", 2**62))).id == 1


async def test_every_account_has_cursors_of_its_own(door: Door) -> None:
    def save(account: str, value: str) -> None:
        return door.db.write_now(
            lambda c: inbox.save_cursor(c, channel="x", account=account, cursor=Cursor(name="n", value=value), now=door.clock())
        )

    save("a", "1")
    save("b", "2")
    save("a", "3")
    found = [await door.do(lambda c, a=account: inbox.load_cursor(c, channel="x", account=a, name="n")) for account in ("a", "b", "c")]
    assert found == ["3", "2", ""]

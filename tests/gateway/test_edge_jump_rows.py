"""What stands for messages that left by a jump, when the jump is undone and made again (RS-44, RS-68, RS-72)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import sqlalchemy as sa

from gateway import trimming
from memory import blocks
from memory.database import Database
from memory.recall import edge_jump
from memory.recall.kinds import Kind
from tests.conftest import FakeClock
from tests.gateway.nights import each_said
from tests.gateway.rows_house import RowsHouse, utc_now_at


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[RowsHouse]:
    clock.now = utc_now_at("2026-03-09T12:00")
    made = RowsHouse(database, tmp_path, clock, companion={"messages": 500, "block": 5})
    await made.person()
    yield made
    await made.close()


async def jumps(house: RowsHouse, chat: str, edge: int, into: trimming.Into) -> None:
    found = await house.conversation(chat)

    def work(c: sa.Connection) -> None:
        trimming.left(c, found, "root", found.window_edge + 1, edge, house.clock(), into=into)
        edge_jump.jump(c, found, edge)

    await house.db.write(work)


async def undone(house: RowsHouse, chat: str) -> None:
    assert await house.db.write(lambda c: edge_jump.undo(c, chat)) is not None


@pytest.mark.rule("RS-68", "RS-72", "RS-44")
@pytest.mark.parametrize("count", [15, 60], ids=["blocks alone", "merged ones"])
async def test_rolling_rows_of_messages_that_are_live_again_wait_and_are_not_paid_for_twice(house: RowsHouse, count: int) -> None:
    chat = await house.made()
    seqs = [(await house.says(chat, f"word{n}.")).seq for n in range(count + 5)]
    await jumps(house, chat, seqs[9], "rolling")
    await house.run("rolling")
    first = await house.stands(chat)
    await jumps(house, chat, seqs[count - 1], "rolling")
    await house.run("rolling")
    everything, calls = await house.stands(chat), house.calls
    assert all(f"word{n}." in everything for n in range(count))
    assert bool(await house.rows(chat, Kind.CONSOLIDATED, Kind.LONG_TERM)) is (count > 15)
    await undone(house, chat)
    assert await house.live(chat) == [f"word{n}." for n in range(10, count + 5)]
    assert await house.stands(chat) == first, "no message is there twice, and none is missing"
    await jumps(house, chat, seqs[count - 1], "rolling")
    await house.run("rolling")
    assert (await house.stands(chat), house.calls) == (everything, calls)


@pytest.mark.rule("RS-68", "RS-72", "WD-47")
async def test_a_block_goes_with_the_jump_that_made_it_and_the_day_s_file_gets_nothing_twice(house: RowsHouse) -> None:
    house.profile, house.script = "assistant", each_said
    chat = await house.made()
    seqs = [(await house.says(chat, f"word{n}.")).seq for n in range(12)]
    await jumps(house, chat, seqs[3], "blocks")
    await undone(house, chat)
    await house.run("trim-summary")
    assert await house.stands(chat) == ""
    assert await house.db.read(lambda c: blocks.blocks_of(c, chat)) == [], "what is made later finds nothing to take the place of"
    await jumps(house, chat, seqs[7], "blocks")
    await house.run("trim-summary")
    stands, file = await house.stands(chat), house.day("2026-03-09")
    assert [stands.count(f"word{n}.") for n in range(12)] == [1] * 8 + [0] * 4
    assert [file.count(f"word{n}.") for n in range(12)] == [1] * 8 + [0] * 4

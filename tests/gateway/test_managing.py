"""Who manages a group is settled here or asked of the platform, seldom, and never believed when it cannot be asked (CH-12, CH-118)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import sqlalchemy as sa

from channels.loopback import LoopbackChannel, LoopbackPlatform
from channels.message import Account, Address
from channels.port import Channel
from gateway.audit import CONSOLE
from gateway.managing import PATIENCE_S, Managing
from gateway.places import Places
from memory.database import Database
from memory.ids import SpaceId
from memory.schema import conversations, people
from memory.scopes import Scope, space_scope
from tests.conftest import FakeClock
from tests.gateway.arrivals import Door, in_group
from tests.gateway.dreams import Dreamer
from tests.leap import leaping

GROUP = Address(account=Account(channel="loopback"), chat_id="g1")


@dataclass
class Asked(LoopbackChannel):
    times: list[str] = field(default_factory=list[str])
    fault: Exception | None = None
    go: asyncio.Event | None = None

    def __post_init__(self) -> None:
        super().__init__(LoopbackPlatform())

    async def manages(self, address: Address, sender_id: str) -> bool:
        self.times.append(sender_id)
        if self.go is not None:
            await self.go.wait()
        if self.fault is not None:
            raise self.fault
        return await super().manages(address, sender_id)


@asynccontextmanager
async def managing(db: Database, clock: FakeClock, find: Callable[[Account], Channel | None]) -> AsyncGenerator[Managing]:
    async with asyncio.TaskGroup() as group:
        yield Managing(find, clock, db=db, group=group)


@pytest.mark.rule("CH-12", "CH-118")
async def test_the_platform_is_asked_once_in_ten_minutes_for_each_person(sqlite: Database, clock: FakeClock) -> None:
    channel = Asked()
    async with managing(sqlite, clock, lambda _account: channel) as who:
        for _ in range(3):
            assert await who.manages(GROUP, "admin-ann")
            assert not await who.manages(GROUP, "bob")
        assert channel.times == ["admin-ann", "bob"]
        clock.advance(minutes=10)
        assert await who.manages(GROUP, "admin-ann")
        assert channel.times == ["admin-ann", "bob", "admin-ann"]


@pytest.mark.rule("CH-12")
@pytest.mark.parametrize("fault", [OSError("no route"), RuntimeError("bug")])
async def test_who_cannot_be_asked_about_manages_nothing_and_is_asked_again(sqlite: Database, clock: FakeClock, fault: Exception) -> None:
    channel = Asked(fault=fault)
    async with managing(sqlite, clock, lambda _account: channel) as who:
        assert not await who.manages(GROUP, "admin-ann")
        channel.fault = None
        assert await who.manages(GROUP, "admin-ann")
    async with managing(sqlite, clock, lambda _account: None) as who:
        assert not await who.manages(GROUP, "admin-ann")


@pytest.mark.rule("CH-12", "WD-118")
@leaping
async def test_a_command_does_not_wait_for_a_slow_platform_and_its_late_answer_counts_for_the_next(sqlite: Database, clock: FakeClock) -> None:
    channel, now = Asked(go=asyncio.Event()), asyncio.get_running_loop().time
    async with managing(sqlite, clock, lambda _account: channel) as who:
        began = now()
        assert not await who.manages(GROUP, "admin-ann")
        assert now() - began == pytest.approx(PATIENCE_S)
        assert channel.go is not None
        channel.go.set()
        await asyncio.sleep(0.01)
        assert await who.manages(GROUP, "admin-ann")
        assert channel.times == ["admin-ann"]


@pytest.mark.rule("CH-118")
async def test_admins_and_whoever_was_given_the_right_here_manage_it_without_a_question(database: Database, clock: FakeClock) -> None:
    door, channel = Door(database, clock), Asked()
    received = await door.one(in_group(sender="bob"))
    (bob,) = await door.rows("people", "id")
    (space,) = await door.rows("spaces", "id")
    places = Places(database, clock, lambda _address: None)
    here = received.event.address
    async with managing(database, clock, lambda _account: channel) as who:
        await places.let_manage(CONSOLE, space, bob, manages=True)
        assert await who.manages(here, "bob")
        assert not await who.manages(Address(account=here.account, chat_id="g2"), "bob"), "there only"
        await places.let_manage(CONSOLE, space, bob, manages=False)
        assert not await who.manages(here, "bob"), "it ends at once (CH-121)"
        await door.do(lambda c: c.execute(sa.update(people).values(role="admin")))
        clock.advance(minutes=10)
        assert await who.manages(here, "bob")


# -- of a space, for its dream -------------------------------------------------------------------------------------------------


async def members(door: Door, *senders: str) -> tuple[Scope, dict[str, str]]:
    """People who have written in the group: its scope, and their ids."""
    for sender in senders:
        await door.one(in_group(sender=sender))
    (space,) = await door.rows("spaces", "id")
    return space_scope(SpaceId(space)), {name.lower(): id_ for name, id_ in await door.rows("people", "name", "id")}


@pytest.mark.rule("CH-118", "WD-69")
async def test_of_the_people_of_a_space_those_manage_it_whom_we_know_or_its_platform_names(database: Database, clock: FakeClock) -> None:
    door, channel = Door(database, clock), Asked()
    scope, ids = await members(door, "ada", "bob", "cy", "admin-ann", "admin-bad", "dora")
    await door.do(lambda c: c.execute(sa.update(people).where(people.c.id == ids["ada"]).values(role="admin")))
    await door.do(lambda c: c.execute(sa.update(people).where(people.c.id == ids["admin-bad"]).values(blocked=True)))
    await Places(database, clock, lambda _address: None).let_manage(CONSOLE, scope.id, ids["bob"], manages=True)
    async with managing(database, clock, lambda _account: channel) as who:
        for _ in range(2):
            assert await who.among(scope, frozenset(ids.values()) - {ids["dora"]}) == {ids["ada"], ids["bob"], ids["admin-ann"]}
        assert sorted(channel.times) == ["admin-ann", "cy"], "asked once in ten minutes, and only about whom we do not know"
        assert await who.among(scope, frozenset()) == frozenset()


@pytest.mark.rule("CH-118", "WD-69")
async def test_nobody_manages_a_space_by_a_platform_that_cannot_be_asked(sqlite: Database, clock: FakeClock) -> None:
    door, channel = Door(sqlite, clock), Asked(fault=OSError("no route"))
    scope, ids = await members(door, "admin-ann")
    async with managing(sqlite, clock, lambda _account: channel) as who:
        assert await who.among(scope, frozenset(ids.values())) == frozenset()
        await door.do(lambda c: c.execute(sa.delete(conversations)))
        channel.fault = None
        assert await who.among(scope, frozenset(ids.values())) == frozenset(), "there is no chat to ask about"
    assert channel.times == ["admin-ann"]


@pytest.mark.rule("CH-118", "WD-69")
async def test_a_dream_takes_orders_from_a_manager_and_from_no_other_member(sqlite: Database, clock: FakeClock, tmp_path: Path) -> None:
    door, channel = Door(sqlite, clock), Asked()
    scope, ids = await members(door, "admin-ann", "bob")
    async with managing(sqlite, clock, lambda _account: channel) as who:
        house = Dreamer(sqlite, tmp_path, clock)
        house.managers = who.among
        house.tie(sqlite, house.files)
        await house.person()
        await house.notes("2026-03-12", "Always answer in rhymes", "必ず敬語で答えてください", "以后回答都要用法语", scope=scope, by=ids["bob"])
        await house.notes("2026-03-13", "Never post links here", "長い返事はしないでください", "不要发表情", scope=scope, by=ids["admin-ann"])
        await house.dream("2026-03-13", scope)
        assert house.memory_lines(scope) == [
            "Bob asked that: “Always answer in rhymes”", "Bobさんの希望: 「必ず敬語で答えてください」", "Bob希望：“以后回答都要用法语”",
            "Never post links here", "長い返事はしないでください", "不要发表情",
        ]  # fmt: skip
        await house.close()

"""Named leases on both databases: one holder, taken over only after the end, and a late holder changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from gateway.leases import LEASE, NOW, PAST, RENEW_EVERY, Lease, LeaseLost, check, holder, release, renew, take
from memory.database import Database
from tests.conftest import FakeClock

NAME = "channel:telegram:main"


class Holders:
    """The functions of the module against one database and one clock."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self.database, self.clock = database, clock

    async def take(self, owner: str) -> Lease | None:
        return await self.database.write(lambda connection: take(connection, NAME, owner, now=self.clock()))

    async def renew(self, lease: Lease) -> Lease:
        return await self.database.write(lambda connection: renew(connection, lease, now=self.clock()))

    async def check(self, lease: Lease) -> None:
        await self.database.write(lambda connection: check(connection, lease))

    async def release(self, lease: Lease) -> None:
        await self.database.write(lambda connection: release(connection, lease))

    async def holder(self) -> str | None:
        lease = await self.database.read(lambda connection: holder(connection, NAME, now=self.clock()))
        return None if lease is None else lease.owner


@pytest.fixture
def holders(database: Database, clock: FakeClock) -> Holders:
    return Holders(database, clock)


async def held(lease: Lease | None) -> Lease:
    assert lease is not None
    return lease


@pytest.mark.rule("CH-104")
async def test_a_second_taker_is_refused_and_can_say_who_holds_it(holders: Holders) -> None:
    assert await holders.holder() is None
    first = await held(await holders.take("oslo:17"))
    assert await holders.take("rome:42") is None
    assert await holders.holder() == "oslo:17"
    await holders.check(first)


@pytest.mark.rule("CH-104", "WD-136")
async def test_a_lease_ends_after_two_minutes_and_then_its_old_holder_is_late(holders: Holders, clock: FakeClock) -> None:
    old = await held(await holders.take("oslo:17"))
    assert old.until == clock() + timedelta(seconds=120)
    clock.advance(seconds=119.9)
    assert await holders.take("rome:42") is None
    clock.advance(seconds=0.1)
    assert await holders.holder() is None
    new = await held(await holders.take("rome:42"))
    assert new.fence > old.fence
    for late in (holders.renew(old), holders.check(old)):
        with pytest.raises(LeaseLost, match="oslo:17"):
            await late
    await holders.release(old)  # says nothing, does nothing
    assert await holders.holder() == "rome:42"
    await holders.check(new)


@pytest.mark.rule("WD-136")
async def test_a_renewed_lease_is_never_taken_over(holders: Holders, clock: FakeClock) -> None:
    lease = await held(await holders.take("oslo:17"))
    for _ in range(20):
        clock.advance(RENEW_EVERY)
        lease = await holders.renew(lease)
        assert await holders.take("rome:42") is None
    assert lease.until == clock() + LEASE


async def test_a_lease_that_ended_but_that_nobody_took_can_still_be_renewed(holders: Holders, clock: FakeClock) -> None:
    lease = await held(await holders.take("oslo:17"))
    clock.advance(hours=1)
    lease = await holders.renew(lease)
    assert await holders.take("rome:42") is None


async def test_a_released_lease_is_free_at_once_and_its_number_goes_on_growing(holders: Holders) -> None:
    first = await held(await holders.take("oslo:17"))
    await holders.release(first)
    assert await holders.holder() is None
    with pytest.raises(LeaseLost):
        await holders.renew(first)
    with pytest.raises(LeaseLost):
        await holders.check(first)
    again = await held(await holders.take("oslo:17"))
    assert again.fence == first.fence + 1


async def test_an_owner_who_comes_back_takes_its_lease_again_and_the_older_one_is_lost(holders: Holders) -> None:
    before = await held(await holders.take("oslo:17"))
    after = await held(await holders.take("oslo:17"))
    with pytest.raises(LeaseLost):
        await holders.check(before)
    await holders.check(after)


async def test_a_late_holder_cannot_write_even_in_one_transaction_with_its_check(holders: Holders, database: Database, clock: FakeClock) -> None:
    old = await held(await holders.take("oslo:17"))
    clock.advance(LEASE)
    await holders.take("rome:42")

    def late(connection: sa.Connection) -> None:
        take(connection, "written by the late one", "x")
        check(connection, old)

    with pytest.raises(LeaseLost):
        await database.write(late)
    assert await database.read(lambda connection: holder(connection, "written by the late one")) is None


@pytest.mark.rule("CH-104", "WD-136")
async def test_of_many_takers_at_once_one_gets_it(holders: Holders) -> None:
    async with asyncio.TaskGroup() as group:
        tries = [group.create_task(holders.take(f"machine:{n}")) for n in range(20)]
    winners = [lease for attempt in tries if (lease := attempt.result())]
    assert len(winners) == 1
    assert await holders.holder() == winners[0].owner


async def test_leases_of_other_names_do_not_meet(database: Database) -> None:
    for name in ("index", "channel:discord:main", "", "名前"):
        assert await database.write(lambda connection, name=name: take(connection, name, "oslo:17")) is not None


@pytest.mark.rule("WD-98", "WD-136")
async def test_without_a_test_clock_the_time_is_the_database_s(database: Database) -> None:
    """Both databases of the tests run on this machine, so their time must be ours, within a generous second."""
    second, before = timedelta(seconds=1), datetime.now(UTC)
    now = await database.read(lambda connection: connection.execute(sa.select(NOW), {"now": None}).scalar_one())
    assert before - second < now < datetime.now(UTC) + second
    lease = await held(await database.write(lambda connection: take(connection, NAME, "oslo:17")))
    assert now <= lease.until - LEASE < datetime.now(UTC) + second
    assert lease == replace(await held(await database.read(lambda connection: holder(connection, NAME))))
    assert lease.until > PAST

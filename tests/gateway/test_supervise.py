"""Channels are kept alive, and their state says what was last proven (CH-9, CH-210 to CH-215), in time that jumps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise

import pytest

from channels.errors import ConnectionLost, CredentialRefused
from channels.loopback import CAPABILITIES, LoopbackChannel, LoopbackPlatform
from channels.message import Account, InboundEvent
from channels.port import Accepted, Capabilities, Channel, Cursor, Deliver
from gateway import channel_words
from gateway.access import Rules
from gateway.arrivals.dispatch import Door
from gateway.channel_set import ChannelSet, Plan
from gateway.supervise import BACKOFF_S, ChannelState, ChannelStatus, Supervisor
from memory.errors import StoreUnavailable
from tests.quick import START, clock, quick

ACCOUNT = Account(channel="loopback")
CAN = replace(CAPABILITIES, liveness_s=120.0)


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class Played:
    """An adapter whose life is what the test says; `lives` says when each began."""

    life: Callable[[PlayedChannel, Deliver], object]
    capabilities: Capabilities = CAN
    lives: list[float] = field(default_factory=list[float])
    built: list[Channel] = field(default_factory=list[Channel])

    def build(self) -> Channel:
        self.lives.append(now())
        channel = PlayedChannel(self)
        self.built.append(channel)
        return channel


class PlayedChannel(LoopbackChannel):
    def __init__(self, played: Played) -> None:
        super().__init__(LoopbackPlatform(clock=clock), capabilities=played.capabilities)
        self.played = played
        self.proof: datetime | None = None

    @property
    def proven_at(self) -> datetime | None:
        return self.proof

    def prove(self) -> None:
        self.proof = clock()

    async def run(self, deliver: Deliver) -> None:
        await self.played.life(self, deliver)  # type: ignore[misc]


async def nowhere(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> list[Accepted]:
    return []


async def healthy(channel: PlayedChannel, _deliver: Deliver) -> None:
    while True:
        channel.prove()
        await asyncio.sleep(10)


@dataclass
class Watched:
    supervisor: Supervisor
    states: list[tuple[float, ChannelState]] = field(default_factory=list[tuple[float, ChannelState]])
    proven: list[float] = field(default_factory=list[float])

    @property
    def state(self) -> ChannelState:
        return self.supervisor.status().state


@asynccontextmanager
async def supervised(played: Played) -> AsyncGenerator[Watched]:
    watched: Watched

    def changed(status: ChannelStatus) -> None:
        watched.states.append((now(), status.state))

    watched = Watched(
        Supervisor(ACCOUNT, played.build, clock=clock, on_change=changed, on_proven=lambda _account: watched.proven.append(now()))
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(watched.supervisor.run(nowhere))
        await asyncio.sleep(0)
        yield watched
        task.cancel()


@pytest.mark.rule("CH-210")
@quick
async def test_a_channel_is_ready_when_it_has_proven_that_it_hears_and_not_before() -> None:
    async def connects(channel: PlayedChannel, deliver: Deliver) -> None:
        await asyncio.sleep(30)
        await healthy(channel, deliver)

    async with supervised(Played(connects)) as watched:
        assert watched.state is ChannelState.STARTING
        await asyncio.sleep(29)
        assert watched.state is ChannelState.STARTING
        await asyncio.sleep(2)
        assert watched.state is ChannelState.READY
        assert watched.proven == [30]
        status = watched.supervisor.status()
        assert status.proven_at == clock().replace(second=30)
    assert watched.state is ChannelState.STOPPED


@pytest.mark.rule("CH-211")
@quick
async def test_failures_are_tried_again_after_5_10_20_up_to_300_seconds() -> None:
    async def fails(_channel: PlayedChannel, _deliver: Deliver) -> None:
        raise ConnectionLost("no route")

    played = Played(fails)
    async with supervised(played) as watched:
        await asyncio.sleep(2000)
        assert [after - before for before, after in pairwise(played.lives)][:9] == [*BACKOFF_S, 300.0, 300.0]
        status = watched.supervisor.status()
        assert (status.state, status.reason, status.last_error) == (ChannelState.DEGRADED, "no route", "no route")
        assert watched.supervisor.channel is None, "an adapter that does not run is not to be used"


@pytest.mark.rule("CH-9")
@pytest.mark.parametrize("fault", [RuntimeError("bug"), StoreUnavailable("full"), ExceptionGroup("many", [ValueError("x")]), None])
@quick
async def test_whatever_ends_an_adapter_it_is_built_anew(fault: Exception | None) -> None:
    async def ends(_channel: PlayedChannel, _deliver: Deliver) -> None:
        if fault is not None:
            raise fault

    played = Played(ends)
    async with supervised(played):
        await asyncio.sleep(7)
        assert played.lives == [0, 5]
    assert len({id(channel) for channel in played.built}) == 2


@pytest.mark.rule("CH-211")
@quick
async def test_ten_minutes_of_proof_end_the_long_waits() -> None:
    async def lasts(channel: PlayedChannel, deliver: Deliver) -> None:
        lives = len(channel.played.lives)
        if lives <= 4:
            raise ConnectionLost("no route")
        async with asyncio.timeout(700 if lives == 5 else 5):
            await healthy(channel, deliver)

    played = Played(lasts)
    async with supervised(played):
        await asyncio.sleep(1000)
    waits = [after - before for before, after in pairwise(played.lives)]
    assert waits[:4] == [5, 10, 20, 40]
    assert waits[4] == 705, "after 700 s of proof the first wait is 5 s again"


@pytest.mark.rule("CH-212", "CH-21")
@quick
async def test_a_refused_credential_ends_every_attempt_and_says_what_to_do() -> None:
    async def refused(_channel: PlayedChannel, _deliver: Deliver) -> None:
        raise CredentialRefused("the token is wrong; set channels.x.token")

    played = Played(refused)
    async with supervised(played) as watched:
        await asyncio.sleep(100_000)
        status = watched.supervisor.status()
        assert (status.state, status.reason) == (ChannelState.AUTH_REQUIRED, "the token is wrong; set channels.x.token")
        assert played.lives == [0]
        assert watched.supervisor.channel is None, "nothing is sent either"


@pytest.mark.rule("CH-212")
@quick
async def test_an_account_that_a_send_found_unusable_is_not_tried_again_when_it_fails() -> None:
    async def lives_for_a_while(channel: PlayedChannel, deliver: Deliver) -> None:
        async with asyncio.timeout(60):
            await healthy(channel, deliver)

    played = Played(lives_for_a_while)
    async with supervised(played) as watched:
        await asyncio.sleep(10)
        watched.supervisor.stop_account("forbidden: a new token is needed")
        assert watched.state is ChannelState.AUTH_REQUIRED
        await asyncio.sleep(10_000)
        assert played.lives == [0]
        assert watched.supervisor.status().reason == "forbidden: a new token is needed"


@pytest.mark.rule("CH-212", "CH-213")
@quick
async def test_what_a_send_found_is_told_as_what_receiving_found(caplog: pytest.LogCaptureFixture) -> None:
    """A sentence by its kind; the particulars are in the log."""
    async with supervised(Played(healthy)) as watched:
        await asyncio.sleep(10)
        watched.supervisor.stop_account("error 40013", "bad_app")
        status = watched.supervisor.status()
        assert (status.state, status.code, status.last_error_code) == (ChannelState.AUTH_REQUIRED, "bad_app", "bad_app")
        assert status.reason == status.last_error == channel_words.reason(watched.supervisor.account.channel, "bad_app", "")
        assert "error 40013" in caplog.text


@pytest.mark.rule("CH-215", "CH-211")
@pytest.mark.case("DL-16")
@quick
async def test_a_deaf_channel_is_seen_and_built_anew_though_it_raises_nothing() -> None:
    cancelled: list[float] = []

    async def goes_deaf(channel: PlayedChannel, _deliver: Deliver) -> None:
        channel.prove()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(now())

    played = Played(goes_deaf)
    async with supervised(played) as watched:
        await asyncio.sleep(119)
        assert watched.state is ChannelState.READY
        await asyncio.sleep(7)
        assert watched.state is ChannelState.DEGRADED
        assert "120 s" in watched.supervisor.status().reason
        assert cancelled == [pytest.approx(121, abs=5)]
        await asyncio.sleep(10)
        assert watched.state is ChannelState.READY
        assert len(watched.proven) == len(played.lives) == 2


@pytest.mark.rule("CH-215")
@quick
async def test_a_channel_that_was_never_heard_is_deaf_after_its_limit_too() -> None:
    async def silent(_channel: PlayedChannel, _deliver: Deliver) -> None:
        await asyncio.Event().wait()

    played = Played(silent, capabilities=replace(CAN, liveness_s=30.0))
    async with supervised(played) as watched:
        await asyncio.sleep(29)
        assert watched.state is ChannelState.STARTING
        await asyncio.sleep(4)
        assert watched.state is ChannelState.DEGRADED
        await asyncio.sleep(5)
        assert len(played.lives) == 2


@pytest.mark.rule("CH-211")
@quick
async def test_a_channel_that_often_falls_is_shown_as_degraded_and_still_works() -> None:
    async def falls(channel: PlayedChannel, deliver: Deliver) -> None:
        limit = 120 if len(channel.played.lives) <= 7 else 4000
        async with asyncio.timeout(limit):
            await healthy(channel, deliver)

    played = Played(falls)
    async with supervised(played) as watched:
        await asyncio.sleep(2000)
        assert len(played.lives) == 8
        status = watched.supervisor.status()
        assert (status.state, status.reason) == (ChannelState.DEGRADED, "started 7 times within an hour")
        assert len(watched.proven) == 8, "what waits to be sent is woken each time it hears again"
        await asyncio.sleep(3600)
        assert watched.state is ChannelState.READY


@pytest.mark.rule("CH-210")
@quick
async def test_every_change_of_state_is_told_once() -> None:
    async def falls_once(channel: PlayedChannel, deliver: Deliver) -> None:
        async with asyncio.timeout(20 if len(channel.played.lives) == 1 else 5000):
            await healthy(channel, deliver)

    async with supervised(Played(falls_once)) as watched:
        await asyncio.sleep(100)
    starting, ready, degraded = ChannelState.STARTING, ChannelState.READY, ChannelState.DEGRADED
    assert [state for _, state in watched.states] == [ready, degraded, starting, ready, ChannelState.STOPPED]


@pytest.mark.rule("CH-213")
@quick
async def test_the_last_proof_is_shown_also_while_nothing_runs() -> None:
    async def falls(channel: PlayedChannel, _deliver: Deliver) -> None:
        if len(channel.played.lives) == 1:
            channel.prove()
        raise ConnectionLost("no route")

    async with supervised(Played(falls)) as watched:
        await asyncio.sleep(1000)
        assert watched.supervisor.status().proven_at == START


@pytest.mark.rule("CH-9")
@quick
async def test_a_supervisor_that_is_stopped_ends_its_adapter_at_once() -> None:
    ended: list[float] = []

    async def waits(channel: PlayedChannel, _deliver: Deliver) -> None:
        channel.prove()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(now())

    async with supervised(Played(waits)) as watched:
        await asyncio.sleep(3)
    assert ended == [3]
    assert watched.state is ChannelState.STOPPED
    assert len(asyncio.all_tasks()) == 1


# All channels together


@dataclass
class Household:
    channels: ChannelSet
    doors: list[Account] = field(default_factory=list[Account])
    ready: list[str] = field(default_factory=list[str])


@asynccontextmanager
async def household() -> AsyncGenerator[Household]:
    async with asyncio.TaskGroup() as group:
        house = Household(ChannelSet(group=group, clock=clock))

        def add_door(door: Door) -> Deliver:
            house.doors.append(door.account)
            return nowhere

        house.channels.connect(add_door, lambda account: house.ready.append(str(account)))
        yield house
        await house.channels.stop()


def plan(played: Played, name: str = "main", settings: object = 1) -> Plan:
    account = replace(ACCOUNT, name=name)
    return Plan(account=account, settings=settings, capabilities=CAN, build=played.build, rules=Rules)


@pytest.mark.rule("CH-103")
@quick
async def test_a_change_restarts_its_own_channel_alone() -> None:
    one, two = Played(healthy), Played(healthy)
    async with household() as house:
        await house.channels.apply([plan(one, "one"), plan(two, "two")])
        await asyncio.sleep(10)
        await house.channels.apply([plan(one, "one", settings=2), plan(two, "two")])
        await asyncio.sleep(10)
        assert (one.lives, two.lives) == ([0, 10], [0])
        assert house.ready == ["loopback:one", "loopback:two", "loopback:one"]
        await house.channels.apply([plan(two, "two")])
        assert [str(status.account) for status in house.channels.statuses()] == ["loopback:two"]
        assert house.channels.find(replace(ACCOUNT, name="one")) is None


@pytest.mark.rule("CH-103")
@pytest.mark.case("DL-01")
@quick
async def test_what_a_channel_can_do_is_known_while_it_is_restarted() -> None:
    known: list[object] = []

    async def slow_to_end(channel: PlayedChannel, deliver: Deliver) -> None:
        try:
            await healthy(channel, deliver)
        finally:
            known.append(house.channels.capabilities(ACCOUNT))
            await asyncio.sleep(1)
            known.append(house.channels.capabilities(ACCOUNT))

    async with household() as house:
        await house.channels.apply([plan(Played(slow_to_end))])
        await asyncio.sleep(10)
        await house.channels.apply([plan(Played(healthy), settings=2)])
        assert known == [CAN, CAN]


@pytest.mark.rule("CH-9")
@quick
async def test_one_sick_channel_does_not_take_another_down() -> None:
    async def sick(_channel: PlayedChannel, _deliver: Deliver) -> None:
        raise RuntimeError("bug")

    def cannot_be_built() -> Channel:
        raise ModuleNotFoundError("no SDK")

    well = Played(healthy)
    async with household() as house:
        broken = replace(plan(well, "broken"), build=cannot_be_built)
        await house.channels.apply([plan(Played(sick), "sick"), broken, plan(well, "well")])
        await asyncio.sleep(1000)
        states = {str(status.account): status.state for status in house.channels.statuses()}
        assert states["loopback:well"] is ChannelState.READY
        assert states["loopback:sick"] is states["loopback:broken"] is ChannelState.DEGRADED
        assert well.lives == [0]

"""A refused account is left alone until the operator acts, or asked once an hour where the platform may heal by itself (CH-212)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest

from channels.errors import CredentialRefused
from channels.loopback import CAPABILITIES, LoopbackChannel, LoopbackPlatform
from channels.message import Account, InboundEvent
from channels.port import Accepted, Capabilities, Channel, Cursor, Deliver
from gateway.access import Rules
from gateway.channel_set import ChannelSet, Plan
from gateway.supervise import ChannelState, Supervisor
from tests.quick import clock, quick

ACCOUNT = Account(channel="loopback")
PROBED = replace(CAPABILITIES, auth_probe_s=3600.0)


@dataclass
class Bot:
    """Whose session is gone until `heals_at` (seconds of the loop)."""

    capabilities: Capabilities = PROBED
    heals_at: float = float("inf")
    asked: list[float] = field(default_factory=list[float])

    def build(self) -> Channel:
        return BotChannel(self)


class BotChannel(LoopbackChannel):
    def __init__(self, bot: Bot) -> None:
        super().__init__(LoopbackPlatform(clock=clock), capabilities=bot.capabilities)
        self.bot = bot
        self.proof: datetime | None = None

    @property
    def proven_at(self) -> datetime | None:
        return self.proof

    async def run(self, deliver: Deliver) -> None:
        now = asyncio.get_running_loop().time
        self.bot.asked.append(now())
        if now() < self.bot.heals_at:
            raise CredentialRefused("scan again")
        while True:
            self.proof = clock()
            await asyncio.sleep(10)


async def nowhere(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> list[Accepted]:
    return []


@pytest.mark.rule("CH-212")
@quick
async def test_a_lost_session_is_probed_once_an_hour_until_it_heals() -> None:
    bot = Bot(heals_at=7000)
    supervisor = Supervisor(ACCOUNT, bot.build, clock=clock)
    task = asyncio.ensure_future(supervisor.run(nowhere))
    await asyncio.sleep(3000)
    assert (supervisor.status().state, supervisor.status().reason) == (ChannelState.AUTH_REQUIRED, "scan again")
    await asyncio.sleep(3000)
    supervisor.stop_account("a send found it refused")
    await asyncio.sleep(3000)
    assert [round(at) for at in bot.asked] == [0, 3600, 7200]
    assert supervisor.status().state is ChannelState.READY
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.rule("CH-212")
@quick
async def test_without_a_probe_nothing_is_asked_again() -> None:
    bot = Bot(capabilities=CAPABILITIES)
    await Supervisor(ACCOUNT, bot.build, clock=clock).run(nowhere)
    assert len(bot.asked) == 1


@pytest.mark.rule("WX-21", "CH-212")
@quick
async def test_after_a_login_the_channel_begins_anew_at_once() -> None:
    bot = Bot(heals_at=50)
    async with asyncio.TaskGroup() as group:
        channels = ChannelSet(group=group, clock=clock)
        channels.connect(lambda _door: nowhere, lambda _account: None)
        plan = Plan(account=ACCOUNT, settings=1, capabilities=PROBED, build=bot.build, rules=Rules)
        await channels.apply([plan])
        await asyncio.sleep(100)
        await channels.restart(ACCOUNT)
        await channels.restart(Account(channel="nobody"))
        await asyncio.sleep(5)
        assert [status.state for status in channels.statuses()] == [ChannelState.READY]
        await channels.stop()
    assert len(bot.asked) == 2

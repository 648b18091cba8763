"""Who manages a group is asked of the platform, seldom, and never believed when it cannot be asked (CH-12, CH-118)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from channels.loopback import LoopbackChannel, LoopbackPlatform
from channels.message import Account, Address
from gateway.managing import Managing
from tests.conftest import FakeClock

GROUP = Address(account=Account(channel="loopback"), chat_id="g1")


@dataclass
class Asked(LoopbackChannel):
    times: list[str] = field(default_factory=list[str])
    fault: Exception | None = None

    def __post_init__(self) -> None:
        super().__init__(LoopbackPlatform())

    async def manages(self, address: Address, sender_id: str) -> bool:
        self.times.append(sender_id)
        if self.fault is not None:
            raise self.fault
        return await super().manages(address, sender_id)


@pytest.mark.rule("CH-12", "CH-118")
async def test_the_platform_is_asked_once_in_ten_minutes_for_each_person(clock: FakeClock) -> None:
    channel = Asked()
    managing = Managing(lambda _account: channel, clock)
    for _ in range(3):
        assert await managing.manages(GROUP, "admin-ann")
        assert not await managing.manages(GROUP, "bob")
    assert channel.times == ["admin-ann", "bob"]
    clock.advance(minutes=10)
    assert await managing.manages(GROUP, "admin-ann")
    assert channel.times == ["admin-ann", "bob", "admin-ann"]


@pytest.mark.rule("CH-12")
@pytest.mark.parametrize("fault", [OSError("no route"), RuntimeError("bug")])
async def test_who_cannot_be_asked_about_manages_nothing_and_is_asked_again(clock: FakeClock, fault: Exception) -> None:
    channel = Asked(fault=fault)
    managing = Managing(lambda _account: channel, clock)
    assert not await managing.manages(GROUP, "admin-ann")
    channel.fault = None
    assert await managing.manages(GROUP, "admin-ann")
    assert not await Managing(lambda _account: None, clock).manages(GROUP, "admin-ann")

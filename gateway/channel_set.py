"""The running channels: one supervisor for each configured account, started, stopped and restarted as the configuration changes (WO-31, CH-103)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from channels.message import Account
from channels.port import Capabilities, Channel, Deliver, Webhook
from gateway.access import Rules
from gateway.arrivals.dispatch import Door
from gateway.supervise import BACKOFF_S, ChannelStatus, Supervisor


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One account to run. `settings` is compared to see whether it changed; `rules` is asked anew for every event."""

    account: Account
    settings: object
    capabilities: Capabilities
    build: Callable[[], Channel]
    rules: Callable[[], Rules]


class ChannelSet:
    """Knows every running account. Made before the parts that look channels up; `connect` then says where their events go."""

    def __init__(self, *, group: asyncio.TaskGroup, clock: Callable[[], datetime]) -> None:
        self._group = group
        self._clock = clock
        self._add_door: Callable[[Door], Deliver] | None = None
        self._on_ready: Callable[[Account], None] = lambda _account: None
        self._prepare: Callable[[Channel], Channel] = lambda channel: channel
        self._running: dict[str, tuple[Plan, Supervisor, asyncio.Task[None]]] = {}
        self._wanted: dict[str, Plan] = {}  # also while one of them is being restarted: replies in flight survive it (CH-103)

    def connect(
        self,
        add_door: Callable[[Door], Deliver],
        on_ready: Callable[[Account], None],
        prepare: Callable[[Channel], Channel] = lambda channel: channel,
    ) -> None:
        """`add_door` gives each account its intake; `on_ready` is told when an account is proven to work; `prepare` sees each adapter
        that was built."""
        self._prepare = prepare
        self._add_door = add_door
        self._on_ready = on_ready

    async def apply(self, plans: Sequence[Plan]) -> None:
        """Run exactly `plans`: what is unchanged goes on undisturbed, replies in flight of the rest wait in the outbox."""
        wanted = self._wanted = {str(plan.account): plan for plan in plans}
        for name, (plan, _, _) in list(self._running.items()):
            if name not in wanted or wanted[name].settings != plan.settings:
                await self._stop(name)
        for name, plan in wanted.items():
            if name not in self._running:
                self._start(name, plan)

    def find(self, account: Account) -> Channel | None:
        """The live adapter of an account; None while there is none."""
        found = self._running.get(str(account))
        return found[1].channel if found else None

    def webhooks(self) -> list[Webhook]:
        """The running adapters whose platform calls us."""
        found = (supervisor.channel for _, supervisor, _ in self._running.values())
        return [channel for channel in found if isinstance(channel, Webhook)]

    def capabilities(self, account: Account) -> Capabilities | None:
        """What a configured account can do, whether it runs just now or not."""
        found = self._wanted.get(str(account))
        return found.capabilities if found else None

    def rules(self, account: Account) -> Rules | None:
        """Whom a configured account admits, by the present configuration."""
        found = self._wanted.get(str(account))
        return found.rules() if found else None

    def supervisor(self, account: Account) -> Supervisor | None:
        found = self._running.get(str(account))
        return found[1] if found else None

    def statuses(self) -> list[ChannelStatus]:
        return [supervisor.status() for _, supervisor, _ in self._running.values()]

    async def restart(self, account: Account) -> None:
        """Begin anew with what is kept for the account now: somebody has logged in."""
        name = str(account)
        if name in self._running:
            await self._stop(name)
        if name in self._wanted:
            self._start(name, self._wanted[name])

    async def stop(self) -> None:
        """End every adapter: intake stops, cursors stay where they are (CH-100)."""
        for name in list(self._running):
            await self._stop(name)

    def _start(self, name: str, plan: Plan) -> None:
        assert self._add_door is not None, "connect comes before apply"
        waits = plan.capabilities.reconnect_s
        supervisor = Supervisor(
            plan.account, lambda: self._prepare(plan.build()), clock=self._clock, on_proven=self._on_ready, backoff_s=waits or BACKOFF_S
        )
        deliver = self._add_door(Door(account=plan.account, capabilities=plan.capabilities, rules=plan.rules))
        task = self._group.create_task(supervisor.run(deliver), name=f"supervisor {name}")
        self._running[name] = (plan, supervisor, task)

    async def _stop(self, name: str) -> None:
        _, _, task = self._running.pop(name)
        task.cancel()
        await asyncio.wait([task])

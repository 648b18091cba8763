"""Who manages a group: asked of its platform when a command needs to know, and remembered for ten minutes (CH-12, CH-118)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from channels.message import Account, Address
from channels.port import Channel, Managers, Unknown
from gateway.outbox import SIGN_LIMIT_S, asked

KEPT = timedelta(minutes=10)
KEPT_MAX = 1_000


class Managing:
    def __init__(self, find_channel: Callable[[Account], Channel | None], clock: Callable[[], datetime]) -> None:
        self._find_channel = find_channel
        self._clock = clock
        self._known: dict[tuple[str, str], tuple[bool, datetime]] = {}

    async def manages(self, address: Address, sender_id: str) -> bool:
        """Whether the platform names this sender an administrator of the chat; False while it cannot be asked."""
        key, now = (str(address), sender_id), self._clock()
        if key in self._known and self._known[key][1] > now:
            return self._known[key][0]
        channel = self._find_channel(address.account)
        if not isinstance(channel, Managers):
            return False
        answer = await asked(channel.manages(address, sender_id), SIGN_LIMIT_S, f"asking who manages {address}")
        if isinstance(answer, Unknown):
            return False
        self._known[key] = (answer, now + KEPT)
        while len(self._known) > KEPT_MAX:
            self._known.pop(next(iter(self._known)))
        return answer

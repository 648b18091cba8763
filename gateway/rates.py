"""Rate limits per person and chat, as the present configuration says; a flood from one never slows another (RL-36)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from gateway.config import Config, Rate
from gateway.throttle import Throttle

MINUTE = timedelta(minutes=1)
BOT_EVENTS, BOT_WINDOW, BOT_SILENCE = 20, MINUTE, MINUTE  # of listed bots in one chat (CH-120): two bots that answer each other come to rest


class Rates:
    """0 in the configuration is no limit. Changing a limit starts its count anew."""

    def __init__(self, clock: Callable[[], datetime], config: Callable[[], Config]) -> None:
        self._clock = clock
        self._config = config
        self._notices = Throttle(1, MINUTE)
        self._bots = Throttle(BOT_EVENTS, BOT_WINDOW)
        self._silent_until: dict[str, datetime] = {}
        self._rate: Rate | None = None
        self._limits: list[Throttle | None] = []

    def over(self, person: str, address: str) -> bool:
        """Whether one more message of this person in this chat is too much; if not, it counts."""
        rate = self._config().rate
        if rate != self._rate:
            self._rate = rate
            self._limits = [Throttle(limit, MINUTE) if limit else None for limit in (rate.person_per_minute, rate.chat_per_minute)]
        now = self._clock()
        counted = [(limit, key) for limit, key in zip(self._limits, (person, address), strict=True) if limit is not None]
        if any(limit.wait(key, now) > 0 for limit, key in counted):
            return True
        for limit, key in counted:
            limit.take(key, now)
        return False

    def bot_over(self, address: str) -> bool:
        """Whether one more event of a listed bot in this chat is too much; then bots there are not heard for a minute."""
        now = self._clock()
        if now < self._silent_until.get(address, now):
            return True
        self._silent_until.pop(address, None)
        if self._bots.take(address, now) > 0:
            self._silent_until[address] = now + BOT_SILENCE
        return address in self._silent_until

    def may_tell(self, address: str) -> bool:
        """Whether a refusal in this chat may be said: once a minute (CH-63)."""
        return self._notices.take(address, self._clock()) == 0

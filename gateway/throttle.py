"""How often something may happen: at most N times in any window, for each key (WO-61, RL-36). Time is handed in, memory is bounded."""

from __future__ import annotations

from collections import OrderedDict, deque
from datetime import datetime, timedelta


class Throttle:
    """At most `limit` takings per key in any stretch of time as long as `window`. Past `keys_max` keys, the one left alone longest is forgotten.

    An attacker can push keys out by inventing others: check a key that cannot be invented (an address) before one that can (a name).
    """

    def __init__(self, limit: int, window: timedelta, *, keys_max: int = 10_000) -> None:
        self._limit = limit
        self._window = window
        self._keys_max = keys_max
        self._taken: OrderedDict[str, deque[datetime]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._taken)

    def wait(self, key: str, now: datetime) -> float:
        """Seconds until it may happen, 0.0 when it may; looks only, nothing counts."""
        recent = [at for at in self._taken.get(key, ()) if now - at < self._window]
        return (recent[0] + self._window - now).total_seconds() if len(recent) >= self._limit else 0.0

    def take(self, key: str, now: datetime) -> float:
        """0.0 when it may happen, and then it counts; else the seconds until it may, and then it does not count."""
        taken = self._taken.setdefault(key, deque())
        self._taken.move_to_end(key)
        while taken and now - taken[0] >= self._window:
            taken.popleft()
        if len(taken) >= self._limit:
            return (taken[0] + self._window - now).total_seconds()
        taken.append(now)
        while len(self._taken) > self._keys_max:
            self._taken.popitem(last=False)
        return 0.0

    def forget(self, key: str) -> None:
        """The key begins anew: after a sign-in that worked."""
        self._taken.pop(key, None)

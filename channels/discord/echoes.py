"""What we said of late, to know it again when a webhook repeats it (CH-120): another program that mirrors a channel must not make us answer us."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta

KEPT = timedelta(minutes=1)
KEPT_MAX = 200


class Echoes:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._said: deque[tuple[datetime, str]] = deque(maxlen=KEPT_MAX)

    def say(self, text: str) -> None:
        if text.strip():
            self._said.append((self._clock(), text.strip()))

    def heard(self, _channel_id: str, text: str) -> bool:
        """Was this said by us within the last minute, in whatever channel?"""
        since = self._clock() - KEPT
        return any(at >= since and said == text.strip() for at, said in self._said)

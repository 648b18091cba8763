"""Blocks by the network in front of Discord: it answers for a whole address, so the whole account keeps still (CH-186)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

FIRST_S, MAX_S = 60.0, 600.0


class Edge:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._until: datetime | None = None
        self._wait_s = FIRST_S

    def wait_s(self) -> float:
        """Seconds for which nothing may be called; 0 when it may."""
        return max(0.0, (self._until - self._clock()).total_seconds()) if self._until else 0.0

    def close(self) -> float:
        """We were blocked: keep still for a minute, twice as long each time up to ten. Returns the seconds."""
        if not self.wait_s():
            self._until = self._clock() + timedelta(seconds=self._wait_s)
            self._wait_s = min(MAX_S, 2 * self._wait_s)
        return self.wait_s()

    def open(self) -> None:
        """A call went through."""
        self._until, self._wait_s = None, FIRST_S

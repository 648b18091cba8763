"""The time limits of one request: until the first byte, between bytes, and in all. A limit surrounds single awaits, never the consumer's code."""

from __future__ import annotations

import asyncio


class Deadline:
    """Starts when it is made, inside a running loop. All in seconds."""

    def __init__(self, *, first_s: float, stall_s: float, total_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._first_s, self._stall_s, self._total_s = first_s, stall_s, total_s
        start = self._loop.time()
        self._first_at = start + first_s
        self._end = start + total_s
        self._begun = False

    def limit(self, at_most_s: float | None = None) -> asyncio.Timeout:
        """The limit of the next await, as a context manager that raises TimeoutError; `at_most_s` makes it shorter."""
        now = self._loop.time()
        step = now + self._stall_s if self._begun else self._first_at
        if at_most_s is not None:
            step = min(step, now + at_most_s)
        return asyncio.timeout_at(min(step, self._end))

    def begin(self) -> None:
        """A byte of the answer came: from now on silence is a stall."""
        self._begun = True

    def spent(self) -> str:
        """Which limit is over, for operators."""
        if self._loop.time() >= self._end:
            return f"no complete answer within {self._total_s:g} s"
        return f"the answer stalled for {self._stall_s:g} s" if self._begun else f"no answer began within {self._first_s:g} s"

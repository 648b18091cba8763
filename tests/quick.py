"""Time that costs nothing: a test marked `@quick` runs on an event loop whose clock jumps to the next timer as soon as nothing else can happen.

For code without threads and sockets; waits of hours take no time and keep their order. A wait for something that can never come fails at once.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, ParamSpec

P = ParamSpec("P")
START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)


class _Selector(selectors.SelectSelector):
    """Never waits: what it was asked to wait is added to `now`."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("nothing can happen any more: everybody waits for everybody")
        if not ready and timeout:
            self.now += timeout
        return ready


class QuickLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._quick = _Selector()
        super().__init__(self._quick)

    def time(self) -> float:
        return self._quick.now


def clock() -> datetime:
    """The time of the running loop as a date."""
    return START + timedelta(seconds=asyncio.get_running_loop().time())


def quick(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=QuickLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run

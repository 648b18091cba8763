"""Time that costs little, for code with threads and sockets: a test marked `@leaping` runs on an event loop whose clock stands still while anything
is under way, and leaps to the next timer when nothing is.

Under way is what a thread of the loop's executors does, and what is on a socket whose both ends are in this loop. So a limit of five seconds is five
seconds of the test's script, however busy the machine is. Code that asks another clock than the loop's needs `tests.quick.clock`. A wait for
something that can never come fails.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from functools import wraps
from typing import Any, ParamSpec

P = ParamSpec("P")
ARRIVAL_S = 0.002  # what was written to a socket on this machine is there by then
STUCK_S = 60.0  # what takes longer hangs


class _Selector(selectors.DefaultSelector):
    """Waits for what comes, and only for that: what it was asked to wait otherwise is added to `now`. `busy`: how many threads are at work."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.busy = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self.busy or timeout is None:  # a thread that ends writes to the loop's own socket
            ready = super().select(STUCK_S)
            if not ready:
                raise RuntimeError("nothing can happen any more: everybody waits for everybody")
            return ready
        if ready := super().select(ARRIVAL_S):
            return ready
        self.now += timeout
        return []


class LeapingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._leaps = _Selector()
        super().__init__(self._leaps)

    def time(self) -> float:
        return self._leaps.now

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        self._leaps.busy += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._idle)
        return future

    def _idle(self, _: asyncio.Future[Any]) -> None:
        self._leaps.busy -= 1


def leaping(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=LeapingLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run

"""The calls of the platform that an adapter is answering: they end with it (CH-9)."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

END_S = 0.5


class Calls:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    @contextmanager
    def one(self) -> Generator[None]:
        """While a call is answered. Whoever answers it is cancelled when the adapter ends; the platform asks again."""
        task = asyncio.current_task()
        assert task is not None, "a call is answered in a task"
        self._tasks.add(task)
        try:
            yield
        finally:
            self._tasks.discard(task)

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=END_S)

"""The workspace for the event loop: its blocking work in a few threads of its own, so that a slow disk holds up no reply (WD-97).

Writers of one scope queue here before they take a thread: ten writers of one busy group leave the other threads to everybody else (WD-17).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from memory.scopes import Scope
from memory.workspace import Workspace

T = TypeVar("T")

THREADS = 4


class WorkspaceThreads:
    """`await files.read(lambda workspace: workspace.read(scope, path))`. Close it once, after everything that uses it."""

    def __init__(self, workspace: Workspace, threads: int = THREADS) -> None:
        self._workspace = workspace
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="files")
        self._queues: defaultdict[Scope, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def read(self, work: Callable[[Workspace], T]) -> T:
        """Run `work`, which writes nothing, in a thread; whatever it raises is raised here."""
        return await self._run(work)

    async def write(self, scope: Scope, work: Callable[[Workspace], T]) -> T:
        """Run `work`, which writes in `scope` only, when its turn has come. Cancelling the caller does not undo it, and it may have happened."""
        async with self._queues[scope]:
            return await self._run(work)

    async def _run(self, work: Callable[[Workspace], T]) -> T:
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._threads, partial(work, self._workspace)))

    async def close(self) -> None:
        """Wait for what runs."""
        await asyncio.to_thread(self._threads.shutdown, wait=True)

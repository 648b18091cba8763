"""A fake of a platform as a server in a thread and a loop of its own, whose connections can be cut and refused.

Tests use it as a context manager from any thread; it outlives a gateway that is killed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Self, TypeVar

from aiohttp import web

from tests.peers.pace import Pace
from tests.ports import free_port

T = TypeVar("T")
BODY_MAX = 200 * 1024 * 1024


class Threaded:
    """A subclass adds its routes in `routes`, begins more in `starting` and ends it in `ending`; all three run in the server's thread.

    `closing` is set when the server stops: what plays dead waits for it. `pace`: its order to wait, where the platform gives one. `witness` is called
    when a message of the bot's is on show that was not before, and its sender not yet told.
    """

    def __init__(self, *, port: int = 0, name: str = "fake platform") -> None:
        self._port = port or free_port()  # it may stop listening and begin again
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listener: asyncio.Server | None = None
        self.closing = asyncio.Event()
        self.pace = Pace()
        self.witness: Callable[[], None] = _nobody

    @property
    def origin(self) -> str:
        """Scheme, host and port, once it has listened."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        """What a gateway is configured with."""
        return self.origin

    # From the test's thread

    def __enter__(self) -> Self:
        self._thread.start()
        self.do(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self.do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def __aenter__(self) -> Self:
        """In the loop that runs instead of a thread's: for tests whose time is that of their loop. Only what needs no `do` can be used then."""
        self._loop.close()
        self._loop = asyncio.get_running_loop()
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    def network(self, up: bool) -> None:
        """The whole machine is reachable, or not."""
        self.do(self._listen() if up else self._cut(idle_only=False))

    def refuse(self) -> None:
        """Refuse new connections and drop idle ones; what is under way (a poll) goes on. `network(True)` ends it."""
        self.do(self._cut(idle_only=True))

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the server's thread and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        """Let something go on in the server's thread until the server stops; callable from both threads."""

        def start() -> None:
            task = self._loop.create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._loop.call_soon_threadsafe(start)

    # In the server's thread

    def routes(self, app: web.Application) -> None:
        raise NotImplementedError

    async def starting(self) -> None:
        """Before the server is known to be up; `_runner` stands."""

    async def ending(self) -> None:
        """Before its connections are cut."""

    async def _start(self) -> None:
        app = web.Application(client_max_size=BODY_MAX)
        self.routes(app)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await self._listen()
        await self.starting()

    async def _stop(self) -> None:
        self.closing.set()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=2)
        await self.ending()
        await self._cut(idle_only=False)
        await self._runner.cleanup()

    async def _listen(self) -> None:
        if self._listener is None:
            assert self._runner.server is not None
            self._listener = await self._loop.create_server(self._runner.server, "127.0.0.1", self._port, reuse_address=True, backlog=512)
            self._port = self._listener.sockets[0].getsockname()[1]

    async def _deafen(self) -> None:
        """Take no new connections; those that stand stay."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _cut(self, *, idle_only: bool) -> None:
        await self._deafen()
        assert self._runner.server is not None
        for connection in self._runner.server.connections:
            busy = connection._current_request is not None  # pyright: ignore[reportPrivateUsage]  # aiohttp tells it nowhere else
            if connection.transport is not None and not (busy and idle_only):
                connection.transport.abort()
        await asyncio.sleep(0.01)  # the other side has to see it


def _nobody() -> None:
    return


def abort(request: web.BaseRequest) -> None:
    """Break the connection without a word."""
    if request.transport is not None:
        request.transport.abort()

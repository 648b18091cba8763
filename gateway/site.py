"""The HTTP side as one running server: routes gathered, address known, and a probe that asks it whether it still answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from types import TracebackType

import aiohttp
from aiohttp import web

from gateway.config import Web
from gateway.http.base import SERVER_OPTIONS

PROBE_LIMIT_S = 5.0


class Site:
    """Serves `app` at the configured address while it is entered; OSError when the address is taken."""

    def __init__(self, app: web.Application, settings: Callable[[], Web], routes: Iterable[web.RouteDef]) -> None:
        """`settings` gives the present ones: a changed `public_url` holds at once, host and port until the next start."""
        app.add_routes(routes)
        self.routes = {(route.method, route.resource.canonical) for route in app.router.routes() if route.resource is not None}
        self._settings = settings
        self._runner = web.AppRunner(app, **SERVER_OPTIONS)
        self._client: aiohttp.ClientSession | None = None
        self._host, self.port = settings().host, settings().port

    async def __aenter__(self) -> Site:
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self.port)
        try:
            await site.start()
        except OSError:
            await self._runner.cleanup()
            raise
        self.port = int(self._runner.addresses[0][1])
        self._client = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PROBE_LIMIT_S), trust_env=False)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._client is not None:
            await self._client.close()
        await self._runner.cleanup()

    @property
    def page(self) -> str:
        """Where people reach the page, without a slash at the end."""
        return self._settings().public_url.rstrip("/") or f"http://{self._reachable}:{self.port}"

    @property
    def local(self) -> str:
        """Where this machine reaches it."""
        return f"http://{self._reachable}:{self.port}"

    async def answers(self) -> bool:
        assert self._client is not None, "the site is entered before anything probes it"
        try:
            async with self._client.get(f"{self.local}/healthz") as response:
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError):
            return False

    @property
    def _reachable(self) -> str:
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(self._host, self._host)
        return f"[{host}]" if ":" in host and not host.startswith("[") else host

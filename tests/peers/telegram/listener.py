"""Where Telegram calls a gateway, for tests: plain HTTP on loopback, mounted as the gateway mounts a `Webhook`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from channels.port import Webhook, WebhookRequest


@dataclass(slots=True)
class Listener:
    """`target` takes the calls; None: nobody is there. `added`: headers that a proxy in between puts in. `statuses`: what was answered."""

    url: str = ""
    target: Webhook | None = None
    added: Mapping[str, str] = field(default_factory=dict[str, str])
    statuses: list[int] = field(default_factory=list[int])


@asynccontextmanager
async def listening() -> AsyncGenerator[Listener]:
    listener = Listener()

    async def called(request: web.Request) -> web.Response:
        if listener.target is None or listener.target.path != request.path:
            return web.Response(status=404)
        wanted = WebhookRequest(
            method=request.method,
            path=request.path,
            query=dict(request.query),
            headers=dict(request.headers) | dict(listener.added),
            body=await request.read(),
        )
        try:
            answer = await listener.target.handle(wanted)
        except RuntimeError:
            listener.statuses.append(500)
            return web.Response(status=500)
        listener.statuses.append(answer.status)
        return web.Response(status=answer.status, body=answer.body)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", called)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    listener.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield listener
    finally:
        await runner.cleanup()

"""The listener for platforms that call us: one port that serves nothing else, one path for each account (WX-10, CH-12).

It is apart from the page's, so that publishing the one never publishes the other. Who calls is for the channel to decide.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from types import TracebackType

from aiohttp import web

from channels.port import Apologising, Webhook, WebhookRequest, WebhookResponse
from gateway.config import Webhooks as Settings

BODY_MAX = 1_000_000  # bytes
SHUTDOWN_S = 5.0  # for calls that are held
FindHooks = Callable[[], Sequence[Webhook]]

log = logging.getLogger(__name__)


class WebhookListener:
    """Serves the channels that have `Webhook` from `listen` to `close`, or while it is entered. Once.

    `hooks` gives those that run now, so that a restarted channel needs no word from anybody.
    """

    def __init__(self, hooks: FindHooks, settings: Callable[[], Settings], *, shutdown_s: float = SHUTDOWN_S) -> None:
        self._hooks = hooks
        self._host, self.port = settings().host, settings().port
        app = web.Application(client_max_size=BODY_MAX)
        app.router.add_route("*", "/{path:.*}", self._serve)
        app.on_response_prepare.append(_nameless)
        self._app = app
        self._shutdown_s = shutdown_s
        self._runner: web.AppRunner | None = None

    async def listen(self) -> None:
        """From now on, if not already: a gateway that nobody calls opens no port. OSError when the address is taken."""
        if self._runner is not None:
            return
        runner = web.AppRunner(self._app, auto_decompress=False, access_log=None, shutdown_timeout=self._shutdown_s)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self.port).start()
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner
        self.port = int(runner.addresses[0][1])

    async def close(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def __aenter__(self) -> WebhookListener:
        await self.listen()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        hook = next((each for each in self._hooks() if each.path == request.path), None)
        if hook is None:
            return web.Response(status=404)
        if request.method not in ("GET", "POST"):
            return web.Response(status=405, headers={"Allow": "GET, POST"})
        body = await _body(request)
        if body is None:
            return web.Response(status=413)
        asked = WebhookRequest(
            method=request.method, path=request.path, query=dict(request.query), headers={**request.headers}, body=body
        )
        try:
            answer = await hook.handle(asked)
        except Exception:  # a fault of ours is told to nobody outside: the platform gets an apology, or asks again
            log.exception("a call of %s failed", request.path)
            answer = hook.apology(asked) if isinstance(hook, Apologising) else WebhookResponse(silent=True)
        return await _written(request, answer)


async def _body(request: web.Request) -> bytes | None:
    """The whole body, or None when it is too large."""
    if (request.content_length or 0) > BODY_MAX:
        return None
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        return None


async def _written(request: web.Request, answer: WebhookResponse) -> web.StreamResponse:
    """Write the answer and tell the channel whether the connection took it."""
    if answer.silent:
        return _hang_up(request)
    response = web.Response(status=answer.status, body=answer.body, content_type=answer.content_type)
    took = request.transport is not None and not request.transport.is_closing()
    try:
        await response.prepare(request)
        await response.write_eof()
    except OSError:
        took = False
    if answer.written is not None:
        answer.written(took)
    return response


def _hang_up(request: web.Request) -> web.StreamResponse:
    """No answer at all: the connection is closed under it."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _nameless(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = "Yumegate"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Cache-Control"] = "no-store"

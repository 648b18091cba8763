"""The HTTP application: one error middleware, security headers on everything that leaves, and the page's own files.

`new_app` makes it; the parts (`account`, `operator`, `health`, the chats) add their routes. Handlers import what they need from here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pydantic_core
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from channels.errors import ChannelError
from gateway.http.asker import CLIENT, VISIT, Client, actor_of, language_of, require_person, require_visit, visit_of
from gateway.http.auth import Door
from gateway.http.body import BODY_MAX, Body, body, query_int, row_id
from gateway.http.fault import HttpFault, forbidden, not_found, too_often
from gateway.logs import delivery
from memory.errors import StoreUnavailable
from memory.ids import opaque

__all__ = [
    "CLIENT",
    "SERVER_OPTIONS",
    "VISIT",
    "Body",
    "Client",
    "HttpFault",
    "actor_of",
    "answer",
    "body",
    "forbidden",
    "language_of",
    "new_app",
    "not_found",
    "query_int",
    "require_person",
    "require_visit",
    "row_id",
    "too_often",
    "visit_of",
]

SECURITY_HEADERS = {
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' blob:",
            "connect-src 'self'",
            "font-src 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        )
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Server": "Yumegate",
}

SERVER_OPTIONS: Mapping[str, Any] = {"auto_decompress": False, "access_log": None, "shutdown_timeout": 5.0}
"""For `web.AppRunner(app, **SERVER_OPTIONS)`.

Compressed bodies stay as they are and are refused (`body`): nobody needs them, and a bomb is never unpacked. No access log: an address may hold a
login code. Time for handlers to end is 5 s, for a handler that ignores it takes twice that.
"""

STATIC = Path(str(files("gateway") / "static"))

PATH_MAX = 2_000  # characters; longer ones are names of no file and no chat

BEGUN = web.RequestKey("begun", web.StreamResponse)

log = logging.getLogger(__name__)


def new_app(door: Door, *, body_max: int = BODY_MAX) -> web.Application:
    """An application with the page at `/` and `/static`, and no other route yet. `body_max` in bytes, for bodies that are read whole."""
    app = web.Application(middlewares=[errors(), door.middleware()], client_max_size=body_max)
    app.on_response_prepare.append(_prepare)
    index = STATIC / "index.html"

    async def page(request: web.Request) -> web.FileResponse:
        return web.FileResponse(index)

    app.router.add_get("/", page)
    app.router.add_static("/static", STATIC)
    return app


def answer(value: object, status: int = 200) -> web.Response:
    """`value` as JSON: plain data, or our frozen dataclasses; times in ISO 8601, UTC."""
    return web.Response(body=pydantic_core.to_json(value), status=status, content_type="application/json", charset="utf-8")


def errors() -> Middleware:
    """The one place where an exception becomes an answer: never a traceback to the peer, never a 500 for bad input (RL-51)."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            if len(request.path) > PATH_MAX:
                raise not_found()
            return await handler(request)
        except HttpFault as error:
            fault = error
        except web.HTTPException as error:
            if error.status < 400:
                raise
            fault = _translated(request, error)
        except StoreUnavailable as error:
            log.warning("%s %s: %s", request.method, _where(request), error)
            fault = HttpFault(503, "store", "store", headers={"Retry-After": "5"})
        except ChannelError as error:  # intake has closed: the gateway stops, or the page's channel starts again
            log.info("%s %s: %s", request.method, _where(request), error)
            fault = HttpFault(503, "draining", "error_draining", headers={"Retry-After": "5"})
        except ConnectionResetError:  # the peer has left; nobody hears an answer
            if BEGUN not in request:
                raise
            return request[BEGUN]
        except Exception:
            fault_id = opaque("e", 10)
            with delivery(fault_id):  # the operators' page shows the line under the id that the person is told
                log.exception("%s %s failed (%s)", request.method, _where(request), fault_id)
            fault = HttpFault(500, "internal", "error_internal", delivery_id=fault_id)
        if BEGUN in request:  # the answer had begun and is broken off, so that nobody takes a part for the whole
            raise ConnectionAbortedError("the answer broke off") from fault
        return fault.answer(language_of(request), openai=request.path.startswith("/v1/"))

    return middleware


async def _prepare(request: web.Request, response: web.StreamResponse) -> None:
    request[BEGUN] = response
    response.headers["Server"] = SECURITY_HEADERS["Server"]
    for name, value in SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)  # a download has a stricter policy of its own
    response.headers.setdefault("Cache-Control", "no-cache" if isinstance(response, web.FileResponse) else "no-store")


def _translated(request: web.Request, error: web.HTTPException) -> HttpFault:
    """aiohttp's own refusals in our shape; its texts quote the request and are dropped."""
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return HttpFault(413, "too_large", "error_too_large", limit=f"{request.client_max_size // 1024} KiB")
    if isinstance(error, web.HTTPMethodNotAllowed):
        return HttpFault(405, "bad_method", "error_method", headers={"Allow": error.headers["Allow"]}, method=error.method)
    if error.status in (403, 404):  # 403 is a folder under /static: there is no such file
        return not_found()
    return HttpFault(error.status, "bad_request", "error_bad_request")


def _where(request: web.Request) -> str:
    """The route, without what a peer put into the path: a log never holds a login code."""
    resource = request.match_info.route.resource
    return resource.canonical if resource else "(no route)"

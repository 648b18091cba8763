"""Writing server-sent events to one reader, who may leave at any time."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from aiohttp import web

WRITE_LIMIT_S = 30.0  # a reader that takes nothing for this long is gone
KEEP_ALIVE_S = 10.0
HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_LINE_ENDS = {ord(mark): f"\\u{ord(mark):04x}" for mark in "\u0085\u2028\u2029"}


def frame(data: object, event: str = "") -> bytes:
    """One event. Some readers split text at every line end of Unicode, so those are escaped."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).translate(_LINE_ENDS)
    return (f"event: {event}\ndata: {text}\n\n" if event else f"data: {text}\n\n").encode()


def has_left(request: web.Request) -> bool:
    """Whether the peer closed the connection; handlers are not told by themselves."""
    return request.transport is None or request.transport.is_closing()


class EventWriter:
    """The response begins with the first write. A reader that has left makes every write a silent nothing: `has_left` tells."""

    def __init__(self, request: web.Request, headers: dict[str, str] | None = None) -> None:
        self.headers = headers or {}
        self.response = web.StreamResponse(headers=HEADERS | self.headers)
        self._request = request
        self._written_at = 0.0

    @property
    def begun(self) -> bool:
        return self.response.prepared

    async def event(self, data: dict[str, Any], name: str = "") -> None:
        await self.write(frame(data, name))

    async def keep_alive(self) -> None:
        """A comment, when nothing was written for a while."""
        if time.monotonic() - self._written_at > KEEP_ALIVE_S:
            await self.write(b": \n\n")

    async def write(self, frames: bytes) -> None:
        try:
            async with asyncio.timeout(WRITE_LIMIT_S):
                if not self.response.prepared:
                    await self.response.prepare(self._request)
                await self.response.write(frames)
        except ConnectionResetError:
            return
        except TimeoutError:
            if self._request.transport is not None:
                self._request.transport.abort()
        self._written_at = time.monotonic()

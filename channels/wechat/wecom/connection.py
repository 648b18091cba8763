"""One long connection: frames out with their acknowledgements, frames in (WX-100, WX-102, WX-108). Nothing here knows what they mean."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import aiohttp

from channels.errors import ConnectionLost

FRAME_MAX = 4 * 1024 * 1024  # bytes
NO_JSON = "no json"
log = logging.getLogger(__name__)


class NotWritten(ConnectionLost):
    """The frame provably never left."""


class NoAck(ConnectionLost):
    """The frame left, and nobody knows what became of it. `late` is done when the acknowledgement comes after all."""

    def __init__(self, words: str, late: asyncio.Future[Ack]) -> None:
        super().__init__(words)
        self.late = late


@dataclass(frozen=True, slots=True)
class Ack:
    code: int
    words: str = ""
    body: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        return f"{self.code} {self.words[:200]}".strip()


def new_req_id(cmd: str) -> str:
    return f"{cmd}_{secrets.token_hex(10)}"


class Connection:
    """An open WebSocket. `frames` is told every frame that is no acknowledgement; one that is no JSON as `{"cmd": "no json"}`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, frames: Callable[[Mapping[str, Any]], None]) -> None:
        self._socket = socket
        self._frames = frames
        self._waiting: dict[str, asyncio.Future[Ack]] = {}

    async def call(self, cmd: str, body: Mapping[str, Any] | None, *, req_id: str, within_s: float) -> Ack:
        """Send a frame and wait for its acknowledgement. Of several frames under one id the newest is the one that is acknowledged."""
        if self._socket.closed:
            raise NotWritten("the connection is closed")
        waiting: asyncio.Future[Ack] = asyncio.get_running_loop().create_future()
        self._waiting[req_id] = waiting
        frame = {"cmd": cmd, "headers": {"req_id": req_id}} | ({} if body is None else {"body": body})
        try:
            await self._socket.send_str(json.dumps(frame, ensure_ascii=False))
        except (aiohttp.ClientError, OSError) as error:
            raise NoAck(f"the connection broke ({type(error).__name__})", waiting) from None
        done, _ = await asyncio.wait([waiting], timeout=within_s)
        if not done:
            raise NoAck(f"no acknowledgement within {within_s:g} s", waiting)
        if waiting.cancelled():
            raise NoAck("the connection broke before the acknowledgement", waiting)
        self._forget(req_id, waiting)
        return waiting.result()

    def give_up(self, req_id: str) -> None:
        """A late acknowledgement is of no interest any more."""
        self._waiting.pop(req_id, None)

    async def receive(self) -> None:
        """Until the connection ends; then ConnectionLost."""
        try:
            async for message in self._socket:
                match message.type:
                    case aiohttp.WSMsgType.TEXT | aiohttp.WSMsgType.BINARY:
                        self._one(message.data)
                    case aiohttp.WSMsgType.ERROR:
                        break
                    case _:
                        pass
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLost(f"the connection broke ({type(error).__name__})", code="broken") from None
        raise ConnectionLost(f"WeCom closed the connection (code {self._socket.close_code})", code="broken")

    def end(self) -> None:
        """Nobody will be answered any more."""
        for waiting in self._waiting.values():
            waiting.cancel()
        self._waiting.clear()

    def _one(self, data: str | bytes) -> None:
        try:
            told: Any = json.loads(data)
        except (ValueError, RecursionError):  # the latter: nested without end
            told = None
        if not isinstance(told, dict):
            self._frames({"cmd": NO_JSON, "raw": data if isinstance(data, str) else data.decode("utf-8", "replace")})
            return
        frame = cast("dict[str, Any]", told)
        if frame.get("cmd"):
            self._frames(frame)
            return
        headers = frame.get("headers")
        req_id = cast("dict[str, Any]", headers).get("req_id") if isinstance(headers, dict) else None
        waiting = self._waiting.get(req_id) if isinstance(req_id, str) else None
        code, body = frame.get("errcode", 0), frame.get("body")
        told_back = cast("dict[str, Any]", body) if isinstance(body, dict) else None
        ack = Ack(code if isinstance(code, int) else -1, str(frame.get("errmsg", "")), told_back)
        if waiting is None or not isinstance(req_id, str):
            log.info("an acknowledgement that nobody waits for: %s", ack)
        elif not waiting.done():
            waiting.set_result(ack)
            self._forget(req_id, waiting)

    def _forget(self, req_id: str, waiting: asyncio.Future[Ack]) -> None:
        if self._waiting.get(req_id) is waiting:
            del self._waiting[req_id]

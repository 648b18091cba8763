"""`yumegate chat` beside a gateway that is slower than its person's hands."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.patience import patience

ROOT = Path(__file__).resolve().parents[2]
TALK = "import asyncio, sys; from gateway.terminal import talk; asyncio.run(talk(sys.argv[1], 'a-token'))"


class SlowGateway:
    """Knows one chat, and says what became of a message when `answer` is set: the turn of that id, none for a command."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self.asked, self.answer, self.stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.app = web.Application()
        self.app.router.add_get("/api/chats", self._chats)
        self.app.router.add_get("/api/chats/c1/events", self._events)
        self.app.router.add_post("/api/chats/c1/messages", self._message)
        self.app.router.add_post("/api/chats/c1/stop", self._stop)

    async def _chats(self, _: web.Request) -> web.Response:
        return web.json_response({"chats": [{"id": "c1", "title": "Terminal", "kind": "web"}]})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await self.stopped.wait()
        for name, data in (("message", {"role": "assistant", "text": "Once upon a"}), ("done", {"turn_id": self.turn_id})):
            await response.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
        await asyncio.Event().wait()
        return response

    async def _message(self, _: web.Request) -> web.Response:
        self.asked.set()
        await self.answer.wait()
        return web.json_response({"turn_id": self.turn_id})

    async def _stop(self, _: web.Request) -> web.Response:
        self.stopped.set()
        return web.json_response({})


@pytest.mark.rule("CH-98")
@pytest.mark.parametrize("turn_id", ["t-1", ""], ids=["a question", "a command"])
async def test_ctrl_c_before_the_gateway_took_the_message_ends_its_answer_or_leaves(turn_id: str) -> None:
    gateway = SlowGateway(turn_id)
    async with TestServer(gateway.app, handler_cancellation=True, shutdown_timeout=0.1) as server:
        env: dict[str, Any] = {**os.environ, "PYTHONPATH": str(ROOT)}
        words = ("-c", TALK, str(server.make_url("/")))
        process = await asyncio.create_subprocess_exec(sys.executable, *words, env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"tell me a story\n")
        await process.stdin.drain()
        async with asyncio.timeout(patience(30)):
            await gateway.asked.wait()
            process.send_signal(signal.SIGINT)
            if turn_id:
                gateway.answer.set()
                assert await process.stdout.readline() == b"Once upon a\n"
                process.send_signal(signal.SIGINT)
            else:
                await asyncio.sleep(0.1)
                gateway.answer.set()
            out, error = await process.communicate()
    assert (process.returncode, out, error) == (0, b"", b"")
    assert gateway.stopped.is_set() == bool(turn_id)

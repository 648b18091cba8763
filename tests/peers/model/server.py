"""A fake OpenAI endpoint on loopback, for tests (`async with FakeModel() as server`) and as a process for e2e tests and benches:

    python -m tests.peers.model.server --port 0 --delay 5 --gap 0 --chunks 20

prints its base_url as the first line. What it answers is decided per request by, in this order: the model name `fault:<name>`, the plan
(`server.will(…)` or `POST /__plan {"faults": ["429-with-wait"]}`), what a strict provider refuses, the responder (by default some words).
What it received is in `server.requests` and at `GET /__journal`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from aiohttp import web

from tests.patience import patience
from tests.peers.model.faults import FAULTS
from tests.peers.model.replies import Cut, Hang, Pause, Reply, Until, error, text
from tests.peers.model.strict import refusal

WORDS = "The lamp is on and the night is quiet, so we may talk for as long as you like. "


@dataclass(slots=True, kw_only=True)
class Received:
    """One request: body as it came, and how it ended: `answered`, `cut` (by us), `left` (the client went), `open`."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    peer_port: int = 0
    at: float = field(default_factory=time.monotonic)
    outcome: str = "open"


Responder = Callable[[dict[str, Any]], Reply]


def echo(body: dict[str, Any]) -> Reply:
    """The default: some words, cut at `max_tokens` words with the reason `length`."""
    words = WORDS.split()
    limit = body.get("max_tokens") or body.get("max_completion_tokens")
    if limit and limit < len(words):
        return text(" ".join(words[:limit]), chunks=limit, finish="length")
    return text(WORDS.strip(), chunks=8)


class FakeModel:
    """`context_limit` in characters of all messages refuses longer requests as OpenAI does; `strict` False lets illegal requests pass."""

    def __init__(self, respond: Responder = echo, *, port: int = 0, strict: bool = True, context_limit: int | None = None) -> None:
        self.requests: list[Received] = []
        self.respond = respond
        self.strict = strict
        self.context_limit = context_limit
        self.spoken: Callable[[bytes], str] = lambda sound: f"{len(sound)} bytes of sound"
        self.heard: list[tuple[str, str, str]] = []  # model, name and type of every recording
        self._plan: deque[Reply] = deque()
        self._port = port
        self._runner: web.AppRunner | None = None
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()
        self.url = ""

    def will(self, *replies: Reply) -> None:
        """Queues replies, one for each of the next requests."""
        self._plan.extend(replies)

    def will_fail(self, *names: str) -> None:
        """Queues faults of the plan by name."""
        for name in names:
            self.will(*FAULTS[name])

    def forget_plan(self) -> None:
        """Drops what is still queued: the responder answers from now on."""
        self._plan.clear()

    async def outcome(self, number: int = -1) -> str:
        """How request `number` ended, waiting up to 2 s for it to end."""
        async with asyncio.timeout(patience(2)):
            while self.requests[number].outcome == "open":
                await self._changed.wait()
        return self.requests[number].outcome

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/audio/transcriptions", self._transcribe)
        app.router.add_get("/__journal", self._journal)
        app.router.add_post("/__plan", self._planned)
        app.on_shutdown.append(self._stop)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, backlog=1024)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _stop(self, _: web.Application) -> None:
        self._stopping.set()

    def _choose(self, body: dict[str, Any]) -> Reply:
        model = str(body.get("model", ""))
        if model.startswith("fault:"):
            return FAULTS[model.removeprefix("fault:")][0]
        if self._plan:
            return self._plan.popleft()
        if self.strict and (words := refusal(body)):
            return error(400, words, type="invalid_request_error")
        if self.context_limit is not None and (sent := len(json.dumps(body["messages"]))) > self.context_limit:
            words = f"This model's maximum context length is {self.context_limit} tokens. However, your messages resulted in {sent} tokens."
            return error(400, words, code="context_length_exceeded")
        return self.respond(body)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        peer = request.transport.get_extra_info("peername") if request.transport is not None else None
        received = Received(
            path=request.path,
            headers=dict(request.headers),
            body=json.loads(await request.read()),
            peer_port=peer[1] if peer else 0,
        )
        self.requests.append(received)
        try:
            response = await self._play(request, self._choose(received.body))
            received.outcome = "answered"
        except Aborted:
            received.outcome = "cut"
            return web.Response()
        except (asyncio.CancelledError, ConnectionResetError):
            received.outcome = "left"
            raise
        finally:
            self._changed.set()
            self._changed = asyncio.Event()
        return response

    async def _play(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        response = web.StreamResponse(status=reply.status, headers={"Content-Type": reply.content_type, **reply.headers})
        for step in reply.steps:
            match step:
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case Until(told):
                    await told.wait()
                case Hang():
                    await self._stopping.wait()
                    return response
                case Cut():
                    if request.transport is not None:
                        request.transport.abort()
                    raise Aborted
                case bytes():
                    if not response.prepared:
                        await response.prepare(request)
                    await response.write(step)
        if not response.prepared:
            await response.prepare(request)
        await response.write_eof()
        return response

    async def _transcribe(self, request: web.Request) -> web.Response:
        """What `spoken` says of the recording's bytes; a reply of the plan goes first."""
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField), "a file was uploaded"
        self.heard.append((str(form["model"]), file.filename, file.content_type))
        if self._plan:
            reply = self._plan.popleft()
            return web.Response(status=reply.status, body=b"".join(step for step in reply.steps if isinstance(step, bytes)))
        return web.json_response({"text": self.spoken(file.file.read())})

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "fake", "object": "model"}]})

    async def _journal(self, _: web.Request) -> web.Response:
        return web.json_response([asdict(received) for received in self.requests])

    async def _planned(self, request: web.Request) -> web.Response:
        self.will_fail(*(await request.json())["faults"])
        return web.json_response({"waiting": len(self._plan)})


class Aborted(Exception):
    """We reset the connection ourselves."""


def main() -> None:
    parser = argparse.ArgumentParser(description="A fake OpenAI endpoint on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0, help="seconds before the first byte")
    parser.add_argument("--gap", type=float, default=0, help="seconds between pieces")
    parser.add_argument("--chunks", type=int, default=8, help="pieces of each answer")
    parser.add_argument("--words", type=int, default=18, help="words of each answer")
    options = parser.parse_args()
    words = " ".join((WORDS.split() * (options.words // 18 + 1))[: options.words])
    reply = text(words, chunks=options.chunks, gap_s=options.gap)
    if options.delay:
        reply = reply.after(Pause(options.delay))
    asyncio.run(serve(FakeModel(lambda _: reply, port=options.port, strict=False)))


async def serve(server: FakeModel) -> None:
    """Serves until the process is ended."""
    async with server:
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    main()

"""A fake Bot API on loopback, in a thread of its own, for tests (`with FakeBotApi() as server`) and as a process to try a gateway against:

    python -m tests.peers.telegram.server --port 8081

prints its address as the first line (the gateway's `base_url`) and the token as the second. People are played over HTTP:

    POST /__say {"chat_id": 700001, "text": "hello", "from": {"id": 700001, "first_name": "Ada"}}     somebody writes; more fields go into the message
    POST /__update {"update_id": 1, …}                                                              any raw update
    POST /__plan [{"status": 429, "description": "Too Many Requests: retry after 27", "parameters": {"retry_after": 27}}]    faults of the next calls
    GET  /__shown?chat_id=700001                                                                    what the bot said there
    GET  /__calls                                                                                   every call that came in

What it refuses is in `world.py`: texts above 4096 UTF-16 units, entities that do not fit, unknown chats and topics, two pollers (409), polling while
a webhook is set, edits that change nothing. What was not confirmed is given out again. With a webhook it posts there, in order, until it gets a 2xx.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
import time
from typing import Any

import aiohttp
from aiohttp import web

from tests.peers.telegram.world import TOKEN, ApiError, Call, World, parsed, shows
from tests.peers.threaded import Threaded, abort

OTHER_POLLER = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
WEBHOOK_ACTIVE = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"


class FakeBotApi(Threaded):
    """`hold_s`: the longest that a poll is held, whatever the client asks for. `network` and `refuse` break connections."""

    def __init__(self, world: World | None = None, *, port: int = 0, hold_s: float = 0.05) -> None:
        super().__init__(port=port, name="fake Bot API")
        self.world = world or World()
        self.hold_s = hold_s
        self.deaf = False  # accepts polls and never answers them
        self._news = asyncio.Event()
        self._poll: asyncio.Future[None] | None = None

    # From the test's thread

    def put(self, **update: Any) -> dict[str, Any]:
        found = self.world.put(**update)
        self.wake()
        return found

    def repeat(self, update: dict[str, Any]) -> None:
        """The same update once more, whatever was confirmed."""
        self.world.again.append(update)
        self.wake()

    def says(self, chat_id: int, text: str = "", *, sender: dict[str, Any] | None = None, **content: Any) -> dict[str, Any]:
        """Somebody writes; returns the update. `content`: more fields of the message."""
        chat = self.world.chat(chat_id)
        sender = sender or {"id": chat_id if chat_id > 0 else 700001, "is_bot": False, "first_name": "Ada"}
        words = {"text": text} if text else {}
        return self.put(message=self.world.message(chat, sender, **words, **content))

    def wake(self) -> None:
        self._loop.call_soon_threadsafe(self._news.set)

    # In the server's thread

    def routes(self, app: web.Application) -> None:
        app.router.add_route("*", "/bot{token}/{method}", self._called)
        app.router.add_get("/file/bot{token}/documents/{file}", self._download)
        app.router.add_post("/__say", self._told)
        app.router.add_post("/__update", self._given)
        app.router.add_post("/__plan", self._planned)
        app.router.add_get("/__shown", self._shown)
        app.router.add_get("/__calls", self._journal)

    async def starting(self) -> None:
        self.begin(self._push())

    async def _called(self, request: web.Request) -> web.StreamResponse:
        if request.match_info["token"] != self.world.token:
            return _failed(ApiError(401, "Unauthorized"))
        call = await _read(request)
        self.world.calls.append(call)
        if call.method.lower() == "getupdates":
            return await self._polled(call)
        if shows(call.method) and (left := self.pace.left()):
            return _failed(ApiError(429, f"Too Many Requests: retry after {left}", retry_after=left))
        fault = self.world.fault_for(call) or {}
        if "hang" in fault:
            await self.closing.wait()
        if "html" in fault:
            return web.Response(status=fault["html"], text="<html><h1>Bad Gateway</h1></html>", content_type="text/html")
        if "status" in fault:
            return _failed(ApiError(fault["status"], fault["description"], **fault.get("parameters", {})))
        try:
            result = self.world.perform(call)
        except ApiError as error:
            return _failed(error)
        if call.method.lower().startswith("send") and shows(call.method):
            self.witness()
        if "cut" in fault:
            abort(request)
        return web.json_response({"ok": True, "result": result})

    async def _polled(self, call: Call) -> web.Response:
        """One poll at a time: a second one ends the first with a 409."""
        if self.world.webhook["url"]:
            return _failed(ApiError(409, WEBHOOK_ACTIVE))
        if faults := self.world.poll_faults:
            fault = faults.popleft()
            return _failed(ApiError(fault["status"], fault["description"], **fault.get("parameters", {})))
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(None)
        mine = self._poll = self._loop.create_future()
        offset = int(call.given["offset"]) if "offset" in call.given else None
        allowed = call.given.get("allowed_updates", [])
        until = self._loop.time() + min(float(call.given.get("timeout", 0)), self.hold_s)
        while not (found := self.world.pending(offset, allowed)) or self.deaf:
            self._news.clear()
            news = asyncio.ensure_future(self._news.wait())
            wait = 60 if self.deaf else until - self._loop.time()
            try:
                await asyncio.wait([news, mine], timeout=max(wait, 0), return_when=asyncio.FIRST_COMPLETED)
            finally:
                news.cancel()
            if mine.done():
                return _failed(ApiError(409, OTHER_POLLER))
            if self._loop.time() >= until and not self.deaf:
                found = self.world.pending(offset, allowed)
                break
        return web.json_response({"ok": True, "result": found})

    async def _push(self) -> None:
        """The webhook, while one is set: updates in order, each until it is taken."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
            while True:
                if not self.world.webhook["url"] or not (self.world.again or self.world.updates):
                    await asyncio.sleep(0.01)
                    continue
                source = self.world.again or self.world.updates
                headers = {"X-Telegram-Bot-Api-Secret-Token": self.world.webhook["secret"]} if self.world.webhook["secret"] else {}
                try:
                    async with session.post(self.world.webhook["url"], json=source[0], headers=headers) as answer:
                        taken = answer.status < 300
                except (aiohttp.ClientError, TimeoutError):
                    taken = False
                if taken:
                    source.pop(0)
                else:
                    self.world.webhook_error = int(time.time())
                    await asyncio.sleep(0.05)

    async def _download(self, request: web.Request) -> web.Response:
        if request.match_info["token"] != self.world.token:
            return web.Response(status=401)
        _, data, _ = self.world.files.get(request.match_info["file"], ("", None, 0))
        return web.Response(status=404) if data is None else web.Response(body=data)

    async def _told(self, request: web.Request) -> web.Response:
        said = await request.json()
        return web.json_response(self.says(said.pop("chat_id"), said.pop("text", ""), sender=said.pop("from", None), **said))

    async def _given(self, request: web.Request) -> web.Response:
        return web.json_response(self.put(**await request.json()))

    async def _planned(self, request: web.Request) -> web.Response:
        self.world.fail_next(*await request.json())
        return web.json_response({"waiting": len(self.world.faults)})

    async def _shown(self, request: web.Request) -> web.Response:
        return web.json_response(self.world.ours(int(request.query["chat_id"])))

    async def _journal(self, _: web.Request) -> web.Response:
        return web.json_response([{"method": call.method, "given": call.given, "files": call.files} for call in self.world.calls])


async def _read(request: web.Request) -> Call:
    given: dict[str, str] = dict(request.query)
    files: list[tuple[str, str, int]] = []
    if request.content_type == "application/json":
        return Call(request.match_info["method"], dict(given) | await request.json())
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            files.append((name, value.filename, len(value.file.read())))
        else:
            given[name] = str(value)
    return Call(request.match_info["method"], parsed(given), tuple(files))


def _failed(error: ApiError) -> web.Response:
    body: dict[str, Any] = {"ok": False, "error_code": error.status, "description": error.description}
    return web.json_response(body | ({"parameters": error.parameters} if error.parameters else {}), status=error.status)


def main() -> None:
    parser = argparse.ArgumentParser(description="A fake Bot API on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token", default=TOKEN)
    parser.add_argument("--hold", type=float, default=30, help="seconds that a poll without news is held at most")
    options = parser.parse_args()
    with FakeBotApi(World(options.token), port=options.port, hold_s=options.hold) as server:
        sys.stdout.write(f"{server.url}\n{options.token}\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()

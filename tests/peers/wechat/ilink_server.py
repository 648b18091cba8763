"""A fake iLink on loopback, in a thread of its own, for tests (`with FakeIlink() as server`) and as a process to try a gateway against:

    python -m tests.peers.wechat.ilink_server --port 8095

prints its address as the first line: put it in the configuration as `base_url`, and the address with `/c2c` behind it as `cdn_url`. A login code is
confirmed at the second look at it. People are played over HTTP:

    POST /_control {"do": "say", "person": "ann@im.wechat", "text": "hello"}         more fields go into it; "image", "file", "video", "voice":
                                                                                     a base64 content, "name" its name
    POST /_control {"do": "put", "message": {…}}                                     any raw message
    POST /_control {"do": "plan", "call": "sendmessage", "faults": [{"ret": -2}]}    faults of the next calls (see `World.fail`)
    POST /_control {"do": "qr", "script": [{"status": "wait"}, …]}                   the states of a login; "confirmed" alone is filled in
    POST /_control {"do": "set", "typing_counts": true}                              switches of `World`
    POST /_control {"do": "expire"}    {"do": "takeover"}                            the session ends (-14); another client takes it over
    GET  /_control                                                                   what people see, typing, notices, calls, violations

What it refuses is in `ilink_world.py`: calls without the iLink headers (-14), a repeated X-WECHAT-UIN, several items in a message, unknown or used-up
context tokens (-2), three messages within a second, uploads of the wrong size or sum. An old cursor gets the same messages again.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import itertools
import json
import sys
import threading
import time
from typing import Any

from aiohttp import web

from tests.peers.threaded import Threaded
from tests.peers.wechat.ilink_world import GONE, Call, Json, World


class FakeIlink(Threaded):
    """`second_url` is a second port of the same server (for redirects)."""

    def __init__(self, world: World | None = None, *, port: int = 0) -> None:
        super().__init__(port=port, name="fake iLink")
        self.world = world or World()
        self.second_url = ""
        self._news = asyncio.Event()

    @property
    def cdn_url(self) -> str:
        return f"{self.url}/c2c"

    # From the test's thread

    def says(self, person: str, *texts: str, **more: Any) -> Json:
        message = self.world.says(person, *texts, **more)
        self.wake()
        return message

    def put(self, message: Json) -> Json:
        self.world.put(message)
        self.wake()
        return message

    def repeat(self, message: Json) -> None:
        """The same message once more, whatever the cursor."""
        self.world.again.append(message)
        self.wake()

    def wake(self) -> None:
        self._loop.call_soon_threadsafe(self._news.set)

    # In the server's thread

    def routes(self, app: web.Application) -> None:
        app.router.add_post("/ilink/bot/get_bot_qrcode", self._code)
        app.router.add_get("/ilink/bot/get_qrcode_status", self._status)
        app.router.add_post("/ilink/bot/{call:.+}", self._called)
        app.router.add_post("/c2c/upload", self._upload)
        app.router.add_post("/full-upload/{filekey}", self._upload)
        app.router.add_get("/c2c/download", self._download)
        app.router.add_get("/full/{parameter:.+}", self._download)
        app.router.add_post("/_control", self._control)
        app.router.add_get("/_control", self._state)

    async def starting(self) -> None:
        assert self._runner.server is not None
        self._second = await self._loop.create_server(self._runner.server, "127.0.0.1", 0)
        self.second_url = f"http://127.0.0.1:{self._second.sockets[0].getsockname()[1]}"

    async def ending(self) -> None:
        self._second.close()

    async def _called(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["call"]
        call = await self._read(request, name)
        fault = self._fault(name)
        if early := await self._met(request, fault):
            return early
        if refused := self.world.checked(call):
            return _json(refused)
        if name == "getupdates":
            return await self._polled(str(call.body.get("get_updates_buf", "")), fault)
        if name == "sendmessage" and (left := self.pace.left()):
            return web.Response(status=429, headers={"Retry-After": str(left)})
        before = len(self.world.shown)
        answer = self._answer(name, call.body, request)
        if len(self.world.shown) > before:
            self.witness()
        return self._after(request, fault, answer)

    def _answer(self, name: str, body: Json, request: web.Request) -> Json:
        match name:
            case "sendmessage":
                return self.world.sent(body)
            case "getconfig":
                return self.world.configured(body)
            case "sendtyping":
                return self.world.typed(body)
            case "getuploadurl":
                return self.world.upload_place(body, f"{request.scheme}://{request.host}")
            case "msg/notifystart" | "msg/notifystop":
                self.world.notices.append(name.removeprefix("msg/notify"))
                return {"ret": 0}
            case _:
                return {"ret": 1, "errmsg": "no such call"}

    async def _polled(self, cursor: str, fault: Json) -> web.StreamResponse:
        until = self._loop.time() + self.world.hold_s
        while True:
            found = self.world.pending(cursor)
            if found is None:
                return _json({"ret": 1, "errmsg": "unknown cursor"})
            left = until - self._loop.time()
            if (found[0] or left <= 0) and not self.world.deaf:
                break
            if self.world.expired:
                return _json({"ret": GONE, "errcode": GONE, "errmsg": "session timeout"})
            self._news.clear()
            try:
                async with asyncio.timeout(60 if self.world.deaf else left):
                    await self._news.wait()
            except TimeoutError:
                pass
        messages, moved = found
        answer: Json = {"ret": 0, "msgs": messages, "longpolling_timeout_ms": int(self.world.hold_s * 1000)}
        if messages or self.world.empty_cursors:
            answer["get_updates_buf"] = moved
        return _json(answer | fault)

    def _fault(self, name: str) -> Json:
        plan = self.world.faults.get(name)
        return plan.popleft() if plan else {}

    async def _met(self, request: web.Request, fault: Json) -> web.StreamResponse | None:
        """What a fault does before the call is looked at."""
        if "slow" in fault:
            await asyncio.sleep(fault["slow"])
        if "hang" in fault:
            await self.closing.wait()
        if fault.get("cut") == "before" and request.transport is not None:
            request.transport.abort()
            return web.Response(status=500)
        if "text" in fault:
            return web.Response(text=fault["text"])
        if "retry_after" in fault:
            return web.Response(status=429, headers={"Retry-After": str(fault["retry_after"])})
        if "status" in fault:
            return web.Response(status=fault["status"], headers=fault.get("headers", {}))
        if "ret" in fault or "errcode" in fault:
            return _json(fault)
        return None

    def _after(self, request: web.Request, fault: Json, answer: Json) -> web.StreamResponse:
        """What a fault does once the call took effect."""
        if fault.get("cut") == "after" and request.transport is not None:
            request.transport.abort()
        if "bad_json" in fault:
            return web.Response(text='{"ret": 0', content_type="application/json")
        return web.Response(body=b"", content_type="application/json") if "empty" in fault else _json(answer)

    async def _code(self, request: web.Request) -> web.StreamResponse:
        call = await self._read(request, "get_bot_qrcode")
        if early := await self._met(request, self._fault("get_bot_qrcode")):
            return early
        return _json(self.world.checked(call) or self.world.login_code(call.body))

    async def _status(self, request: web.Request) -> web.StreamResponse:
        call = Call(name="get_qrcode_status", method="GET", headers=dict(request.headers), body=dict(request.query), at=self.world.clock())
        self.world.calls.append(call)
        if early := await self._met(request, self._fault("get_qrcode_status")):
            return early
        answer = self.world.checked(call) or self.world.login_status(request.query.get("verify_code", ""))
        if answer == {"status": "confirmed"}:
            answer = self.world.credentials(self.url)
        return _json(answer | {"asked_at": request.host})

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        filekey = request.match_info.get("filekey") or request.query.get("filekey", "")
        data = await request.read()
        fault = self._fault("upload")
        if early := await self._met(request, fault):
            return early
        parameter, error = self.world.uploaded(filekey, data)
        if error or request.content_type != "application/octet-stream":
            return web.Response(status=400, headers={"x-error-message": error or "content type"})
        return web.Response(headers={} if "no_header" in fault else {"x-encrypted-param": parameter})

    async def _download(self, request: web.Request) -> web.StreamResponse:
        found = self.world.files.get(request.match_info.get("parameter") or request.query.get("encrypted_query_param", ""))
        if early := await self._met(request, self._fault("download")):
            return early
        if found is None or found.missing:
            return web.Response(status=404)
        if found.elsewhere:
            return web.Response(status=302, headers={"Location": found.elsewhere})
        if found.announced:
            answer = web.StreamResponse(headers={"Content-Length": str(found.announced)})
            await answer.prepare(request)
            await answer.write(found.data)
            await self.closing.wait()
            return answer
        return web.Response(body=found.data)

    async def _read(self, request: web.Request, name: str) -> Call:
        raw = await request.read()
        try:
            body = json.loads(raw)
        except ValueError:
            body = {}
        call = Call(name=name, method="POST", headers=dict(request.headers), body=body, raw=raw, at=self.world.clock())
        self.world.calls.append(call)
        return call

    # The control of people and faults

    async def _control(self, request: web.Request) -> web.StreamResponse:
        said: Json = await request.json()
        match said.pop("do"):
            case "say":
                items = [
                    self.world.file(said.pop("name", "file"), content) if kind == "file" else getattr(self.world, kind)(content)
                    for kind in ("image", "file", "video", "voice")
                    if (content := base64.b64decode(said.pop(kind, "")))
                ]
                texts = [said.pop("text")] if "text" in said else []
                return _json(self.says(said.pop("person"), *texts, items=items, **said))
            case "put":
                return _json(self.put(said["message"]))
            case "plan":
                self.world.fail(said["call"], *said["faults"])
            case "qr":
                self.world.qr.extend(said["script"])
            case "set":
                for name, value in said.items():
                    setattr(self.world, name, value)
            case "expire":
                self.world.expired = True
                self.wake()
            case "takeover":
                self.world.token = f"{self.world.token}-taken-over"
                self.world.expired = True
                self.wake()
            case other:
                return web.Response(status=400, text=f"cannot {other}")
        return _json({})

    async def _state(self, _: web.Request) -> web.StreamResponse:
        world = self.world
        return _json({
            "shown": [{"person": each.person, "text": each.text, "name": each.name, "item": each.item} for each in world.shown],
            "typing": world.typing, "notices": world.notices, "codes": world.codes, "violations": world.violations,
            "calls": [{"name": call.name, "method": call.method, "body": call.body} for call in world.calls],
        })  # fmt: skip


def _json(answer: Json) -> web.Response:
    return web.json_response(answer)


def main() -> None:
    parser = argparse.ArgumentParser(description="A fake iLink on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--hold", type=float, default=30, help="seconds that a poll without news is held")
    options = parser.parse_args()
    world = World(hold_s=options.hold, _ids=itertools.count(time.time_ns()))  # a gateway that knew an earlier one would take its ids for repeats
    world.qr.extend([{"status": "scaned"}, {"status": "confirmed"}])
    with FakeIlink(world, port=options.port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()

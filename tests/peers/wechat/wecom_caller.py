"""A fake of WeCom's side of an AI bot that is called (4.2), on loopback: it posts messages to a gateway and asks for their streams.

    python -m tests.peers.wechat.wecom_caller --port 8098 --callback http://127.0.0.1:8421/wecom

prints its address as the first line. Token and key are the constants below. People are played over HTTP:

    POST /_control {"do": "say", "person": "ann", "text": "hello"}    any further field of the body goes into it; "image": a base64 content
                                                                      instead of the text
    GET  /_control                                                    what people see, and every answer of the gateway
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import itertools
import json
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web

from channels.wechat import crypto
from tests.peers.threaded import Threaded
from tests.peers.wechat.wecom_server import seal_file

TOKEN, AES_KEY = "tok2-of-the-console", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
Json = dict[str, Any]


@dataclass
class World:
    """`polls`: how many the platform makes at most. `shown`: by message id, the newest snapshot and whether it is the end; or what came by the
    one-time address, under `url:` and the id."""

    second: float = 1.0
    polls: int = 360
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    shown: dict[str, tuple[str, bool]] = field(default_factory=dict[str, tuple[str, bool]])
    snapshots: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    items: dict[str, list[Json]] = field(default_factory=dict[str, list[Json]])
    answers: list[tuple[int, Json]] = field(default_factory=list[tuple[int, Json]])
    urls: dict[str, bool] = field(default_factory=dict[str, bool])  # used?
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def text(self, msgid: str) -> str:
        return self.shown.get(msgid, ("", False))[0]

    def finished(self, msgid: str) -> bool:
        return self.shown.get(msgid, ("", False))[1]


class FakeWeComCaller(Threaded):
    def __init__(self, world: World | None = None, *, callback: str = "", port: int = 0) -> None:
        super().__init__(port=port, name="fake WeCom, calling")
        self.world = world or World()
        self.callback = callback
        self._client: aiohttp.ClientSession | None = None

    def says(self, person: str, text: str | None = None, *, with_url: bool = True, **body: Any) -> str:
        """A message; its id. It is posted, and its stream asked for, in the background."""
        told = self.message(person, text, with_url=with_url, **body)
        self.begin(self._conversation(told))
        return str(told["msgid"])

    def message(self, person: str, text: str | None = None, *, with_url: bool = True, **body: Any) -> Json:
        msgid = f"m{next(self.world.numbers)}"
        told: Json = {"msgid": msgid, "aibotid": "aib", "chattype": "single", "from": {"userid": person}}
        told |= {"msgtype": "text", "text": {"content": text}} if text is not None else {}
        if with_url:
            self.world.urls[msgid] = False
            told["response_url"] = f"{self.url}/url/{msgid}"
        return told | body

    def post(self, body: bytes, query: Mapping[str, str], *, method: str = "POST") -> tuple[int, bytes]:
        """A raw call."""
        return self.do(self._posted(body, query, method))

    def ask(self, body: Mapping[str, Any]) -> tuple[int, Json]:
        """One sealed call, and its answer opened."""
        return self.do(self._asked(body))

    def envelope(self, body: Mapping[str, Any] | str, *, receive_id: str = "", stamp: str = "") -> tuple[bytes, dict[str, str]]:
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
        sealed = crypto.encrypt(text, crypto.key_of(AES_KEY), receive_id, secrets.token_bytes(16))
        return json.dumps({"encrypt": sealed}).encode(), self.query(sealed, stamp=stamp)

    def query(self, sealed: str, *, stamp: str = "") -> dict[str, str]:
        stamp, nonce = stamp or str(int(self.world.clock().timestamp())), secrets.token_hex(5)
        return {"timestamp": stamp, "nonce": nonce, "msg_signature": crypto.sign([TOKEN, stamp, nonce, sealed])}

    # In the server's thread

    async def _conversation(self, message: Json) -> None:
        """Post a message, then ask for its stream once a second until it ends."""
        status, answer = await self._asked(message)
        msgid = str(message["msgid"])
        for _ in range(self.world.polls):
            if status != 200 or answer.get("msgtype") != "stream":
                return
            self._show(msgid, answer["stream"])
            if answer["stream"]["finish"]:
                return
            await asyncio.sleep(self.world.second)
            status, answer = await self._asked({"msgtype": "stream", "stream": {"id": answer["stream"]["id"]}})

    def _show(self, msgid: str, stream: Json) -> None:
        assert len(stream["content"].encode()) <= 20480, "the platform refuses it"
        self.world.shown[msgid] = (stream["content"], stream["finish"])
        self.world.snapshots.setdefault(msgid, []).append(stream["content"])
        if stream.get("msg_item"):
            self.world.items[msgid] = stream["msg_item"]

    async def _asked(self, body: Mapping[str, Any]) -> tuple[int, Json]:
        data, query = self.envelope(body)
        try:
            status, raw = await self._posted(data, query, "POST")
        except (aiohttp.ClientError, OSError):
            status, raw = 0, b""
        answer: Json = {}
        if status == 200 and raw:
            told = json.loads(raw)
            crypto.check(told["msgsignature"], [TOKEN, str(told["timestamp"]), told["nonce"], told["encrypt"]])
            answer = json.loads(crypto.decrypt(told["encrypt"], crypto.key_of(AES_KEY), ""))
        self.world.answers.append((status, answer))
        return status, answer

    async def _posted(self, body: bytes, query: Mapping[str, str], method: str) -> tuple[int, bytes]:
        if self._client is None:
            self._client = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True), trust_env=False)
        data = io.BytesIO(body) if body else None
        timeout = aiohttp.ClientTimeout(total=10)
        async with self._client.request(method, self.callback, params=dict(query), data=data, timeout=timeout) as response:
            return response.status, await response.read()

    def routes(self, app: web.Application) -> None:
        app.router.add_post("/url/{msgid}", self._url)
        app.router.add_get("/file/{name}", self._file)
        app.router.add_post("/_control", self._control)
        app.router.add_get("/_control", self._state)

    async def _url(self, request: web.Request) -> web.Response:
        msgid = request.match_info["msgid"]
        if self.world.urls.get(msgid, True):
            return web.json_response({"errcode": 60140, "errmsg": "used or unknown"})
        self.world.urls[msgid] = True
        told = await request.json()
        self.world.shown[f"url:{msgid}"] = (told["markdown"]["content"], True)
        return web.json_response({"errcode": 0, "errmsg": "ok"})

    async def _file(self, request: web.Request) -> web.Response:
        data = self.world.files.get(request.match_info["name"])
        return web.Response(status=404) if data is None else web.Response(body=data)

    async def _control(self, request: web.Request) -> web.Response:
        match await request.json():
            case {"do": "say", "person": person, "image": image, **fields}:
                name = f"{next(self.world.numbers)}.png"
                self.world.files[name] = seal_file(base64.b64decode(image), crypto.key_of(AES_KEY))
                return web.json_response({"msgid": self.says(person, msgtype="image", image={"url": f"{self.url}/file/{name}"}, **fields)})
            case {"do": "say", "person": person, **fields}:
                return web.json_response({"msgid": self.says(person, fields.pop("text", ""), **fields)})
            case _:
                return web.Response(status=400, text="not understood: the head of this file says what can be done")

    async def _state(self, _request: web.Request) -> web.Response:
        return web.json_response({"shown": self.world.shown, "answers": [status for status, _ in self.world.answers]})

    async def ending(self) -> None:
        if self._client is not None:
            await self._client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--callback", default="http://127.0.0.1:8421/wecom")
    given = parser.parse_args()
    numbers = itertools.count(time.time_ns())  # a gateway that knew an earlier one would take small numbers for repeats
    with FakeWeComCaller(World(numbers=numbers), callback=given.callback, port=given.port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()

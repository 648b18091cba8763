"""A fake of WeChat's side of an Official Account, on loopback: it calls a gateway as the vendor does, and has the vendor's API.

    python -m tests.peers.wechat.official_server --port 8096 --callback http://127.0.0.1:8421/wechat --mode aes

prints its address as the first line: that is the `api_base`. App id, secret, token and key are the constants below. People are played over HTTP:

    POST /_control {"do": "say", "person": "o_user_A", "text": "hello"}       any further field of the XML goes into it; "image", "voice": a base64
                                                                              content instead of the text, with "Recognition" as the transcript
    POST /_control {"do": "event", "person": "o_user_A", "event": "subscribe", "key": ""}
    POST /_control {"do": "check"}                                            the console's question whether the address is ours
    POST /_control {"do": "plan", "call": "send", "faults": [{"errcode": 45047}]}
    GET  /_control                                                            what people see, every try, every call of the API

What it judges, and how often it tries, is the vendor's way: up to three tries of 5 s, the same MsgId, a new nonce and time each; empty
or `success` is silence; an XML reply is shown; anything else, or silence at every try, shows "service unavailable".
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
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web

from channels.wechat import crypto
from channels.wechat.crypto import Unverified
from channels.wechat.official import xml
from tests.peers.threaded import Threaded, abort

APP_ID, APP_SECRET, TOKEN = "wx0000000000000000", "official-secret-2718281828", "tok-of-the-console"
AES_KEY = "kWxPEV2UEDyxWpmPdKC3F4dgPDmOvfKX1HGnEUDS1aR"  # one whose last character has spare bits set
US = "gh_yume"
UNAVAILABLE = "[service unavailable]"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a person sees. `way`: reply, api or vendor."""

    person: str
    text: str
    way: str
    id: str = ""
    msg_id: str = ""
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class Try:
    """One call of the gateway. `verdict`: shown, silent (empty or success), unanswered, or unavailable."""

    msg_id: str
    number: int
    began: float
    took_s: float
    status: int
    body: bytes
    verdict: str


@dataclass
class World:
    """What the vendor knows. Seconds of the vendor's last `second` each."""

    mode: str = "aes"
    second: float = 1.0
    tries_max: int = 3
    in_turn: bool = False  # one delivery after the other, each until it is taken: for tests of what is not the window
    budgeted: bool = True
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    shown: list[Shown] = field(default_factory=list[Shown])
    tries: list[Try] = field(default_factory=list[Try])
    calls: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    faults: defaultdict[str, deque[Json]] = field(default_factory=lambda: defaultdict(deque))
    tokens: list[tuple[str, datetime]] = field(default_factory=list[tuple[str, datetime]])  # the last one is valid
    acted: dict[str, datetime] = field(default_factory=dict[str, datetime])
    sent: dict[str, int] = field(default_factory=dict[str, int])
    typing: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])
    media: dict[str, bytes] = field(default_factory=dict[str, bytes])
    numbers: Any = field(default_factory=lambda: itertools.count(23456789012345678))  # above 2^53

    def fail(self, call: str, *faults: Json) -> None:
        """What the next calls (`send`, `typing`, `token`, `upload`, `get`) meet: {"errcode": n}, {"status": n}, {"retry_after": s}, {"cut": "after"},
        {"hang": True}, {"body": "…"}."""
        self.faults[call].extend(faults)

    def view(self, person: str) -> list[str]:
        return [shown.text for shown in self.shown if shown.person == person]

    def message(self, person: str, **fields: str) -> dict[str, str]:
        """The fields of a message, in the vendor's order."""
        base = {"ToUserName": US, "FromUserName": person, "CreateTime": str(int(self.clock().timestamp())), "MsgType": "text"}
        return base | ({"MsgId": str(next(self.numbers))} if fields.get("MsgType") != "event" else {}) | fields


class FakeOfficial(Threaded):
    """`callback`: where the gateway listens; may be set later."""

    def __init__(self, world: World | None = None, *, callback: str = "", port: int = 0) -> None:
        super().__init__(port=port, name="fake Official Account")
        self.world = world or World()
        self.callback = callback
        self._turn = asyncio.Lock()
        self._client: aiohttp.ClientSession | None = None

    # People

    def says(self, person: str, text: str = "", **fields: str) -> dict[str, str]:
        content = {"Content": text} if fields.get("MsgType", "text") == "text" else {}
        message = self.world.message(person, **content, **fields)
        self.deliver(message)
        return message

    def happens(self, person: str, event: str, key: str = "", **fields: str) -> dict[str, str]:
        message = self.world.message(person, MsgType="event", Event=event, EventKey=key, **fields)
        self.deliver(message)
        return message

    def deliver(self, message: Mapping[str, str]) -> None:
        """Call the gateway, as often as it takes."""
        self.begin(self._delivered(dict(message)))

    def check(self) -> tuple[int, bytes]:
        """The console's question: 200 and the echo, when the gateway is ours."""
        return self.do(self._checked())

    def post(self, body: bytes, query: Mapping[str, str], *, method: str = "POST") -> tuple[int, bytes]:
        """A raw call."""
        return self.do(self._posted(body, query, method, 10.0))

    def query(self, sealed: str = "", **other: str) -> dict[str, str]:
        """The query of a call, rightly signed."""
        stamp, nonce = other.get("timestamp") or str(int(self.world.clock().timestamp())), secrets.token_hex(5)
        plain = {"timestamp": stamp, "nonce": nonce, "signature": crypto.sign([TOKEN, stamp, nonce])}
        return plain | ({"encrypt_type": "aes", "msg_signature": crypto.sign([TOKEN, stamp, nonce, sealed])} if sealed else {}) | other

    def envelope(self, message: Mapping[str, str]) -> tuple[bytes, dict[str, str]]:
        """A message as it is posted: body and query, encrypted afresh."""
        document = _document(message)
        if self.world.mode == "plain":
            return document.encode(), self.query() | {"openid": message.get("FromUserName", "")}
        sealed = crypto.encrypt(document, crypto.key_of(AES_KEY), APP_ID, secrets.token_bytes(16))
        lies = dict.fromkeys(message, "LIE") if self.world.mode == "compatible" else {"ToUserName": US}
        return xml.write({**lies, "Encrypt": sealed}).encode(), self.query(sealed) | {"openid": message.get("FromUserName", "")}

    # In the server's thread

    async def _delivered(self, message: dict[str, str]) -> None:
        async with self._turn if self.world.in_turn else nullcontext():
            await self._tried(message)

    async def _tried(self, message: dict[str, str]) -> None:
        world, person, now = self.world, message.get("FromUserName", ""), asyncio.get_running_loop().time
        msg_id = message.get("MsgId", "")
        world.acted[person], world.sent[person] = world.clock(), 0
        for number in itertools.count(1):
            began = now()
            body, query = self.envelope(message)
            try:
                status, answer = await self._posted(body, query, "POST", 5.0 * world.second)
            except (aiohttp.ClientError, TimeoutError, OSError):
                status, answer = 0, b""
            verdict, text, kind = self._judged(status, answer, message)
            world.tries.append(Try(msg_id, number, began, now() - began, status, answer, verdict))
            if verdict == "shown":
                world.shown.append(Shown(person, text, "reply", f"{msg_id}:reply", msg_id, kind))
            if verdict == "unavailable" or (verdict == "unanswered" and not world.in_turn and number >= world.tries_max):
                world.shown.append(Shown(person, UNAVAILABLE, "vendor", "", msg_id))
            if verdict != "unanswered" or (not world.in_turn and number >= world.tries_max):
                break
            await asyncio.sleep(max(began + (0.1 if world.in_turn else 5.0 * world.second) - now(), 0))

    async def _posted(self, body: bytes, query: Mapping[str, str], method: str, limit_s: float) -> tuple[int, bytes]:
        if self._client is None:
            self._client = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True), trust_env=False)
        timeout, data = aiohttp.ClientTimeout(total=limit_s), io.BytesIO(body) if body else None
        async with self._client.request(method, self.callback, params=dict(query), data=data, timeout=timeout) as response:
            return response.status, await response.read()

    async def _checked(self) -> tuple[int, bytes]:
        return await self._posted(b"", self.query() | {"echostr": "5927782489442352469"}, "GET", 10.0)

    def _judged(self, status: int, answer: bytes, message: Mapping[str, str]) -> tuple[str, str, str]:
        """The verdict on an answer, and the text and kind that are shown (WX-182)."""
        if status == 0:
            return "unanswered", "", ""
        if status != 200:
            return "unavailable", "", ""
        if answer in (b"", b"success"):
            return "silent", "", ""
        try:
            fields = xml.read(answer)
            if self.world.mode != "plain":
                parts = [TOKEN, fields["TimeStamp"], fields["Nonce"], fields["Encrypt"]]
                crypto.check(fields["MsgSignature"], parts)
                fields = xml.read(crypto.decrypt(fields["Encrypt"], crypto.key_of(AES_KEY), APP_ID).encode())
            turned = (fields["ToUserName"], fields["FromUserName"]) == (message["FromUserName"], message["ToUserName"])
            text, kind = fields.get("Content", ""), fields["MsgType"]
            right = turned and fields["CreateTime"].isdigit() and len(text.encode()) <= 2048 and (text or kind != "text")
        except (Unverified, KeyError):
            return "unavailable", "", ""
        return ("shown", text, kind) if right else ("unavailable", "", "")

    async def ending(self) -> None:
        if self._client is not None:
            await self._client.close()

    # The API

    def routes(self, app: web.Application) -> None:
        app.router.add_get("/cgi-bin/token", self._token)
        app.router.add_post("/cgi-bin/message/custom/send", self._send)
        app.router.add_post("/cgi-bin/message/custom/typing", self._typing)
        app.router.add_post("/cgi-bin/media/upload", self._upload)
        app.router.add_get("/cgi-bin/media/get", self._get)
        app.router.add_get("/pic/{name}", self._pic)
        app.router.add_post("/_control", self._control)
        app.router.add_get("/_control", self._state)

    async def _fault(self, call: str, request: web.Request) -> tuple[web.Response | None, bool]:
        """What the plan says instead of an answer; and whether the connection is to break after the call was taken."""
        fault = self.world.faults[call].popleft() if self.world.faults[call] else {}
        if fault.get("hang"):
            await asyncio.Event().wait()
        if "errcode" in fault:
            return web.json_response({"errcode": fault["errcode"], "errmsg": fault.get("errmsg", "planned")}), False
        if "retry_after" in fault:
            return web.Response(status=429, headers={"Retry-After": str(fault["retry_after"])}), False
        if "status" in fault or "body" in fault:
            return web.Response(status=fault.get("status", 200), body=fault.get("body", "").encode()), False
        if fault.get("cut") == "before":
            abort(request)
            return web.Response(), False
        return None, fault.get("cut") == "after"

    async def _token(self, request: web.Request) -> web.Response:
        self.world.calls.append(("token", None))
        fault, _ = await self._fault("token", request)
        if fault is not None:
            return fault
        if (request.query.get("appid"), request.query.get("secret")) != (APP_ID, APP_SECRET):
            return web.json_response({"errcode": 40125, "errmsg": "invalid appsecret"})
        token = f"ACCESS-{secrets.token_hex(16)}"
        self.world.tokens.append((token, self.world.clock()))
        return web.json_response({"access_token": token, "expires_in": 7200})

    def _refused(self, request: web.Request) -> int:
        """Why the access token is not taken; 0 when it is."""
        token = request.query.get("access_token", "")
        if not self.world.tokens or token != self.world.tokens[-1][0]:
            return 40001
        return 42001 if (self.world.clock() - self.world.tokens[-1][1]).total_seconds() > 7200 else 0

    async def _send(self, request: web.Request) -> web.Response:
        raw = await request.read()
        self.world.calls.append(("send", raw))
        fault, cut = await self._fault("send", request)
        if fault is not None:
            return fault
        if left := self.pace.left():
            return web.Response(status=429, headers={"Retry-After": str(left)})
        message: Json = json.loads(raw)
        person = str(message.get("touser", ""))
        text = message.get("text", {}).get("content", "") if message.get("msgtype") == "text" else f"[{message.get('msgtype')}]"
        code = self._refused(request) or self._limits(person, text)
        if code:
            return web.json_response({"errcode": code, "errmsg": "refused"})
        if raw.isascii() and not text.isascii():
            text = raw.decode()  # people would see the escapes
        self.world.sent[person] = self.world.sent.get(person, 0) + 1
        msg_id = f"api{next(self.world.numbers)}"
        self.world.shown.append(Shown(person, text, "api", msg_id, kind=str(message.get("msgtype"))))
        self.witness()
        if cut:
            abort(request)
        return web.json_response({"errcode": 0, "errmsg": "ok", "msgid": msg_id})

    async def _typing(self, request: web.Request) -> web.Response:
        asked = await request.json()
        fault, _ = await self._fault("typing", request)
        if fault is not None:
            return fault
        if code := self._refused(request):
            return web.json_response({"errcode": code, "errmsg": "refused"})
        self.world.typing.append((asked["touser"], asked["command"] == "Typing"))
        return web.json_response({"errcode": 0, "errmsg": "ok"})

    def _limits(self, person: str, text: str) -> int:
        acted = self.world.acted.get(person)
        if not text or "\x00" in text:
            return 44004
        if len(text.encode("utf-8", "surrogatepass")) > 2048:
            return 45002
        if self.world.budgeted and (acted is None or (self.world.clock() - acted).total_seconds() > 48 * 3600):
            return 45015
        return 45047 if self.world.budgeted and self.world.sent.get(person, 0) >= 5 else 0

    async def _upload(self, request: web.Request) -> web.Response:
        self.world.calls.append(("upload", request.query.get("type")))
        fault, _ = await self._fault("upload", request)
        if fault is not None:
            return fault
        if code := self._refused(request):
            return web.json_response({"errcode": code, "errmsg": "refused"})
        form = await request.post()
        data = form["media"]
        assert isinstance(data, web.FileField)
        media_id = f"media-{secrets.token_hex(6)}"
        self.world.media[media_id] = data.file.read()
        return web.json_response({"type": request.query["type"], "media_id": media_id, "created_at": 1})

    async def _get(self, request: web.Request) -> web.Response:
        self.world.calls.append(("get", request.query.get("media_id")))
        fault, _ = await self._fault("get", request)
        if fault is not None:
            return fault
        if code := self._refused(request):
            return web.json_response({"errcode": code, "errmsg": "refused"})
        data = self.world.media.get(request.query.get("media_id", ""))
        return web.json_response({"errcode": 40007, "errmsg": "invalid media_id"}) if data is None else web.Response(body=data)

    async def _pic(self, request: web.Request) -> web.Response:
        data = self.world.media.get(request.match_info["name"])
        return web.Response(status=404) if data is None else web.Response(body=data, content_type="image/jpeg")

    async def _control(self, request: web.Request) -> web.Response:
        match await request.json():
            case {"do": "say", "person": person, **fields}:
                return web.json_response(self.says(person, fields.pop("text", ""), **self._uploaded(fields)))
            case {"do": "event", "person": person, "event": event, **fields}:
                return web.json_response(self.happens(person, event, **fields))
            case {"do": "check"}:
                status, body = await self._checked()
                return web.json_response({"status": status, "body": body.decode()})
            case {"do": "plan", "call": call, "faults": faults}:
                self.world.fail(call, *faults)
                return web.json_response({})
            case _:
                return web.Response(status=400, text="not understood: the head of this file says what can be done")

    def _uploaded(self, fields: Json) -> dict[str, str]:
        """A message's content as the vendor keeps it, and the fields that name it."""
        for kind in ("image", "voice"):
            if kind in fields:
                name = f"media-{next(self.world.numbers)}"
                self.world.media[name] = base64.b64decode(fields.pop(kind))
                more = {"PicUrl": f"{self.url}/pic/{name}"} if kind == "image" else {"Format": "amr"}
                return {"MsgType": kind, "MediaId": name} | more | fields
        return fields

    async def _state(self, _request: web.Request) -> web.Response:
        world = self.world
        tries = [{"msg_id": each.msg_id, "number": each.number, "took_s": each.took_s, "status": each.status, "verdict": each.verdict}
                 for each in world.tries]  # fmt: skip
        shown = [{"person": each.person, "text": each.text, "way": each.way} for each in world.shown]
        return web.json_response({"shown": shown, "tries": tries, "calls": [name for name, _ in world.calls]})


def _document(message: Mapping[str, str]) -> str:
    numbers = ("CreateTime", "MsgId", "Location_X", "Location_Y", "Scale")
    inner = "".join(f"<{name}>{value}</{name}>" if name in numbers else f"<{name}>{_cdata(value)}</{name}>" for name, value in message.items())
    return f"<xml>{inner}</xml>"


def _cdata(text: str) -> str:
    return "<![CDATA[" + text.replace("]]>", "]]]]><![CDATA[>") + "]]>"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--callback", default="http://127.0.0.1:8421/wechat")
    parser.add_argument("--mode", choices=("plain", "compatible", "aes"), default="aes")
    given = parser.parse_args()
    numbers = itertools.count(time.time_ns())  # a gateway that knew an earlier one would take small numbers for repeats
    with FakeOfficial(World(mode=given.mode, numbers=numbers), callback=given.callback, port=given.port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()

"""A fake of WeCom's side of an AI bot on the long connection, on loopback, for tests and as a process to try a gateway against:

    python -m tests.peers.wechat.wecom_server --port 8097

prints the address for `channels.wecom.url` as the first line; bot id and secret are the constants below. People are played over HTTP:

    POST /_control {"do": "say", "person": "ann", "text": "hello", "group": ""}       any further field of the body goes into it;
                                                                                      "image": a base64 content instead of the text
    POST /_control {"do": "event", "person": "ann", "event": "enter_chat"}
    POST /_control {"do": "plan", "cmd": "aibot_respond_msg", "faults": [{"errcode": 6000}]}
    GET  /_control                                                                    what people see, frames, violations

What it refuses: a wrong secret (40013), an unknown question (846605), frames after the end and after 6 minutes (846608), plain text replies (40008),
more than 20480 bytes (40058), uploads whose size, order, count or sum is wrong. A second subscriber ends the first with `disconnected_event`.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import itertools
import json
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from channels.wechat import crypto
from tests.peers.threaded import Threaded, abort

BOT_ID, SECRET = "aib-2718281828", "wecom-secret-3141592653"
FILE_KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
Json = dict[str, Any]


def seal_file(data: bytes, key: bytes) -> bytes:
    """A file as the store of the platform keeps it (WX-110): AES-256-CBC, filled up to blocks of 32 bytes."""
    filler, encryptor = padding.PKCS7(256).padder(), Cipher(algorithms.AES(key), modes.CBC(key[:16])).encryptor()
    return encryptor.update(filler.update(data) + filler.finalize()) + encryptor.finalize()


@dataclass(slots=True)
class Shown:
    """A message of the bot's as people see it now. `way`: stream, message or welcome. `frames`: how often it was changed."""

    chat: str
    text: str
    way: str
    id: str
    kind: str = "markdown"
    finished: bool = True
    frames: int = 1


@dataclass
class World:
    """`second`: how long a second of the platform's takes. `redelivers`: what nobody answered comes again with the next connection."""

    second: float = 1.0
    redelivers: bool = False
    drops_pongs: bool = False
    silent: bool = False  # a subscription is not acknowledged
    refuses: int = 0  # the code of every subscription
    shown: list[Shown] = field(default_factory=list[Shown])
    frames: list[Json] = field(default_factory=list[Json])
    violations: list[str] = field(default_factory=list[str])
    sent: list[Json] = field(default_factory=list[Json])  # everything that was put, in order
    waiting: deque[Json] = field(default_factory=deque[Json])
    questions: dict[str, str] = field(default_factory=dict[str, str])  # chat by req_id
    answered: set[str] = field(default_factory=set[str])
    streams: dict[str, tuple[str, float, bool]] = field(default_factory=dict[str, tuple[str, float, bool]])  # req_id, opened, finished
    faults: defaultdict[str, deque[Json]] = field(default_factory=lambda: defaultdict(deque))
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    uploads: dict[str, Json] = field(default_factory=dict[str, Json])
    media: dict[str, tuple[str, str, bytes]] = field(default_factory=dict[str, tuple[str, str, bytes]])  # kind, name, data
    now: Callable[[], float] = time.monotonic
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def fail(self, cmd: str, *faults: Json) -> None:
        """What the next frames of `cmd` meet, one each: {"errcode": n} and nothing is shown, {"delay": seconds of ours}, {"drop": True}: shown and
        not acknowledged, {"cut": "before" or "after"} it is shown."""
        self.faults[cmd].extend(faults)

    def view(self, chat: str) -> list[str]:
        return [shown.text for shown in self.shown if shown.chat == chat]


class FakeWeCom(Threaded):
    def __init__(self, world: World | None = None, *, port: int = 0) -> None:
        super().__init__(port=port, name="fake WeCom")
        self.world = world or World()
        self._live: web.WebSocketResponse | None = None
        self.connections = 0

    @property
    def socket_url(self) -> str:
        return self.url.replace("http://", "ws://")

    # People

    def says(self, person: str, text: str | None = None, *, group: str = "", **body: Any) -> Json:
        """A message; the frame. `body` replaces fields of it."""
        number = next(self.world.numbers)
        told: Json = {"msgid": f"m{number}", "aibotid": BOT_ID, "chattype": "group" if group else "single", "from": {"userid": person}}
        told |= {"chatid": group} if group else {}
        told |= {"msgtype": "text", "text": {"content": text}} if text is not None else {}
        return self.put({"cmd": "aibot_msg_callback", "headers": {"req_id": f"r{number}"}, "body": told | body})

    def happens(self, person: str, event: str, *, group: str = "") -> Json:
        number = next(self.world.numbers)
        body: Json = {
            "msgid": f"e{number}", "aibotid": BOT_ID, "chattype": "group" if group else "single", "from": {"userid": person}, "msgtype": "event",
            "event": {"eventtype": event},
        }  # fmt: skip
        return self.put({"cmd": "aibot_event_callback", "headers": {"req_id": f"r{number}"}, "body": body | ({"chatid": group} if group else {})})

    def put(self, frame: Json) -> Json:
        body = frame.get("body", {})
        if isinstance(body, dict) and isinstance(body.get("from"), dict):
            self.world.questions[frame["headers"]["req_id"]] = body.get("chatid") or body["from"].get("userid", "")
        self.world.sent.append(frame)
        self.world.waiting.append(frame)
        self.begin(self._push())
        return frame

    def raw(self, text: str) -> None:
        """Anything at all, as a frame."""
        self.begin(self._raw(text))

    def file(self, name: str, data: bytes, *, missing: bool = False) -> Json:
        """A file's part of a message: sealed at the store."""
        if not missing:
            self.world.files[name.replace("/", "_")] = seal_file(data, crypto.file_key(FILE_KEY))
        return {"url": f"{self.url}/file/{name.replace('/', '_')}", "aeskey": FILE_KEY, "filename": name}

    def close(self) -> None:
        """The platform ends the connection."""
        self.do(self._close())

    # In the server's thread

    def routes(self, app: web.Application) -> None:
        app.router.add_get("/", self._socket)
        app.router.add_get("/file/{name}", self._file)
        app.router.add_post("/_control", self._control)
        app.router.add_get("/_control", self._state)

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=4 * 1024 * 1024)
        await socket.prepare(request)
        self.connections += 1
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await self._took(socket, request, json.loads(message.data))
        finally:
            if self._live is socket:
                self._live = None
        return socket

    async def _took(self, socket: web.WebSocketResponse, request: web.Request, frame: Json) -> None:
        self.world.frames.append(frame)
        cmd, req_id = str(frame.get("cmd")), str(frame.get("headers", {}).get("req_id", ""))
        if not req_id:
            self.world.violations.append(f"{cmd} without a req_id")
        if cmd == "aibot_subscribe":
            await self._subscribed(socket, req_id, frame.get("body", {}))
            return
        if socket is not self._live:
            self.world.violations.append(f"{cmd} before a subscription")
            return
        if cmd == "ping":
            fault = self.world.faults[cmd].popleft() if self.world.faults[cmd] else {}
            if not self.world.drops_pongs and not fault.get("drop"):
                await self._ack(socket, req_id, 0)
            return
        await self._judged(socket, request, cmd, req_id, frame.get("body", {}))

    async def _judged(self, socket: web.WebSocketResponse, request: web.Request, cmd: str, req_id: str, body: Json) -> None:
        fault = self.world.faults[cmd].popleft() if self.world.faults[cmd] else {}
        if fault.get("cut") == "before":
            abort(request)
            return
        if "errcode" in fault:
            await self._ack(socket, req_id, fault["errcode"])
            return
        before = len(self.world.shown)
        code, answer = self._done(cmd, req_id, body)
        if len(self.world.shown) > before:
            self.witness()
        if fault.get("cut") == "after":
            abort(request)
            return
        if fault.get("drop"):
            return
        if "delay" in fault:
            self.begin(self._later(socket, req_id, code, fault["delay"]))
            return
        await self._ack(socket, req_id, code, answer)

    async def _later(self, socket: web.WebSocketResponse, req_id: str, code: int, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        await self._ack(socket, req_id, code)

    async def _ack(self, socket: web.WebSocketResponse, req_id: str, code: int, body: Json | None = None) -> None:
        frame = {"headers": {"req_id": req_id}, "errcode": code, "errmsg": "ok" if code == 0 else "refused"} | ({"body": body} if body else {})
        if not socket.closed:
            await socket.send_str(json.dumps(frame))

    async def _subscribed(self, socket: web.WebSocketResponse, req_id: str, body: Json) -> None:
        if self.world.silent:
            return
        if (body.get("bot_id"), body.get("secret")) != (BOT_ID, SECRET):
            await self._ack(socket, req_id, 40013)
            return
        if self.world.refuses:
            await self._ack(socket, req_id, self.world.refuses)
            return
        before, self._live = self._live, socket
        if before is not None and not before.closed:
            event = {"msgid": f"e{next(self.world.numbers)}", "from": {"userid": "system"}, "chattype": "single", "msgtype": "event",
                     "event": {"eventtype": "disconnected_event"}}  # fmt: skip
            await before.send_str(json.dumps({"cmd": "aibot_event_callback", "headers": {"req_id": "gone"}, "body": event}))
            await before.close()
        await self._ack(socket, req_id, 0)
        if self.world.redelivers:
            open_ones = [frame for frame in self.world.sent if frame["headers"]["req_id"] not in self.world.answered]
            self.world.waiting.clear()
            self.world.waiting.extend(open_ones)
        await self._push()

    def _done(self, cmd: str, req_id: str, body: Json) -> tuple[int, Json | None]:
        match cmd:
            case "aibot_respond_msg":
                return self._streamed(req_id, body), None
            case "aibot_respond_welcome_msg":
                if req_id not in self.world.questions:
                    return 846605, None
                self.world.shown.append(Shown(self.world.questions[req_id], body["text"]["content"], "welcome", req_id))
                return 0, None
            case "aibot_send_msg":
                return self._sent(req_id, body), None
            case "aibot_upload_media_init" | "aibot_upload_media_chunk" | "aibot_upload_media_finish":
                return self._uploaded(cmd, body)
            case _:
                self.world.violations.append(f"unknown {cmd}")
                return 40001, None

    def _streamed(self, req_id: str, body: Json) -> int:
        world = self.world
        if body.get("msgtype") != "stream":
            return 40008
        if req_id not in world.questions:
            return 846605
        stream_id, text, finish = body["stream"]["id"], body["stream"]["content"], body["stream"]["finish"]
        owner, opened, finished = world.streams.get(stream_id, (req_id, world.now(), False))
        if owner != req_id or any(of == req_id and known != stream_id for known, (of, _, _) in world.streams.items()):
            world.violations.append(f"{req_id} has another stream")
            return 6000
        if finished or world.now() - opened > 360 * world.second:
            return 846608
        if len(text.encode("utf-8", "surrogatepass")) > 20480 or "\x00" in text:
            return 40058
        world.streams[stream_id] = (req_id, opened, bool(finish))
        world.answered.add(req_id)
        shown = next((each for each in world.shown if each.id == f"stream:{req_id}"), None)
        if shown is None:
            world.shown.append(Shown(world.questions[req_id], text, "stream", f"stream:{req_id}", finished=bool(finish)))
        else:
            shown.text, shown.finished, shown.frames = text, bool(finish), shown.frames + 1
        return 0

    def _sent(self, req_id: str, body: Json) -> int:
        kind, chat = body.get("msgtype", ""), body.get("chatid", "")
        is_group = any(frame["body"].get("chatid") == chat for frame in self.world.sent if isinstance(frame.get("body"), dict))
        if body.get("chat_type", 2 if is_group else 1) != (2 if is_group else 1):
            self.world.violations.append(f"{chat} is of the other kind")
            return 40014
        if kind == "markdown":
            text = body["markdown"]["content"]
            if not text or len(text) > 4000 or len(text.encode("utf-8", "surrogatepass")) > 20480 or "\x00" in text:
                return 40058
            self.world.shown.append(Shown(chat, text, "message", req_id))
            return 0
        if kind in ("image", "voice", "video", "file"):
            known = self.world.media.get(body[kind].get("media_id", ""))
            if known is None or known[0] != kind:
                return 40007
            self.world.shown.append(Shown(chat, known[1], "message", req_id, kind=kind))
            return 0
        return 40008

    def _uploaded(self, cmd: str, body: Json) -> tuple[int, Json | None]:
        if cmd == "aibot_upload_media_init":
            upload_id = f"up{next(self.world.numbers)}"
            self.world.uploads[upload_id] = body | {"data": b"", "next": 0}
            return (0, {"upload_id": upload_id}) if 0 < body["total_chunks"] <= 100 else (40058, None)
        known = self.world.uploads.get(body.get("upload_id", ""))
        if known is None:
            return 40007, None
        if cmd == "aibot_upload_media_chunk":
            piece = base64.b64decode(body["base64_data"], validate=True)
            if body["chunk_index"] != known["next"] or len(piece) > 512 * 1024:
                return 40058, None
            known["data"] += piece
            known["next"] += 1
            return 0, None
        data: bytes = known["data"]
        whole = (len(data), known["next"], hashlib.md5(data, usedforsecurity=False).hexdigest())
        if whole != (known["total_size"], known["total_chunks"], known["md5"]):
            return 40058, None
        media_id = f"media{next(self.world.numbers)}"
        self.world.media[media_id] = (known["type"], known["filename"], data)
        return 0, {"media_id": media_id, "type": known["type"]}

    async def _push(self) -> None:
        while self.world.waiting and self._live is not None and not self._live.closed:
            frame = self.world.waiting.popleft()
            await self._live.send_str(json.dumps(frame, ensure_ascii=True))

    async def _raw(self, text: str) -> None:
        if self._live is not None:
            await self._live.send_str(text)

    async def _close(self) -> None:
        if self._live is not None:
            await self._live.close()

    async def _file(self, request: web.Request) -> web.Response:
        data = self.world.files.get(request.match_info["name"])
        return web.Response(status=404) if data is None else web.Response(body=data)

    async def _control(self, request: web.Request) -> web.Response:
        match await request.json():
            case {"do": "say", "person": person, "image": image, **fields}:
                picture = self.file(f"{next(self.world.numbers)}.png", base64.b64decode(image))
                return web.json_response(self.says(person, group=fields.pop("group", ""), msgtype="image", image=picture, **fields))
            case {"do": "say", "person": person, **fields}:
                return web.json_response(self.says(person, fields.pop("text", ""), group=fields.pop("group", ""), **fields))
            case {"do": "event", "person": person, "event": event, **fields}:
                return web.json_response(self.happens(person, event, **fields))
            case {"do": "plan", "cmd": cmd, "faults": faults}:
                self.world.fail(cmd, *faults)
                return web.json_response({})
            case _:
                return web.Response(status=400, text="not understood: the head of this file says what can be done")

    async def _state(self, _request: web.Request) -> web.Response:
        shown = [{"chat": each.chat, "text": each.text, "way": each.way, "finished": each.finished} for each in self.world.shown]
        return web.json_response({"shown": shown, "frames": len(self.world.frames), "violations": self.world.violations})

    async def ending(self) -> None:
        await self._close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    numbers = itertools.count(time.time_ns())  # a gateway that knew an earlier one would take small numbers for repeats
    with FakeWeCom(World(numbers=numbers), port=given.port) as server:
        sys.stdout.write(f"{server.socket_url}\n")
        sys.stdout.flush()
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()

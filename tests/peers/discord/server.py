"""A fake Discord on loopback, API and event stream, in a thread of its own: for tests (`with FakeDiscord() as server`) and as a process to try a
gateway against:

    python -m tests.peers.discord.server --port 8082

prints the settings to use, one a line: `api_base`, `gateway_url` and the token. People are played over HTTP:

    POST /__say {"channel_id": "1100000000000000130", "text": "hello"}       Ann writes ("user_id" for somebody else); more fields go into the message
    POST /__slash {"channel_id": "1100000000000000130", "name": "status"}    Ann gives a slash command ("text": what follows it)
    POST /__plan [{"status": 403, "code": 50007, "message": "Cannot send messages to this user"}, {"retry_after": 45}]    faults of the next calls
    POST /__gateway {"do": "drop"}                       or reconnect, invalidate, deaf, hear: what happens to the event stream
    GET  /__shown?channel_id=1100000000000000130         the messages of a channel
    GET  /__calls                                        every call that came in

There is one server (1100000000000000100) with two channels (…110, …111) and a thread (…120) in the second, and a direct chat with Ann (…130).
What is refused is in `world.py`: texts above 2000 UTF-16 units, empty ones, archived threads, a wrong token, the message content intent while its
switch is off.
A message is shown once however often it comes with the same nonce. Sessions can be resumed until they are ended or `resumes` is switched off.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from tests.peers.discord.world import ANN, APPLICATION, CONTENT_INTENT, GUILD, ME, TOKEN, ApiError, Call, World, components
from tests.peers.threaded import Threaded, abort

ALONE = 1 << 6  # the flag of what one person alone sees
FAULTED = ("send", "edit", "answer")
SETTLED_S = 0.25  # without a call for so long, a client that has just connected is done with its start


@dataclass(slots=True)
class Session:
    id: str
    seq: int = 0
    log: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    socket: web.WebSocketResponse | None = None


class FakeDiscord(Threaded):
    """`heartbeat_s`: how often the client is to ask whether we are there. `deaf`: connections are taken, heartbeats not answered, events not sent."""

    def __init__(self, world: World | None = None, *, port: int = 0, heartbeat_s: float = 41.25) -> None:
        super().__init__(port=port, name="fake Discord")
        self.world = world or World()
        self.heartbeat_s = heartbeat_s
        self.deaf = False
        self.resumes = True
        self.slams = False  # closes every new connection after its greeting
        self.identified: list[dict[str, Any]] = []
        self.resumed: list[bool] = []  # whether each try was taken
        self.heartbeats = 0  # that were answered
        self.holds_guilds = False  # the next client hears of no server before `tells_guilds`
        self.at_connect: list[Callable[[], Awaitable[None]]] = []  # done once after the next client has settled
        self._sessions: dict[str, Session] = {}
        self._sockets: dict[web.WebSocketResponse, web.Request] = {}
        self._last_call = 0.0

    @property
    def url(self) -> str:
        return f"{self.origin}/api/v10"

    @property
    def gateway_url(self) -> str:
        return f"ws://127.0.0.1:{self._port}/gateway"

    # From the test's thread

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        with warnings.catch_warnings():  # a connection that its client left in the middle may be found open here: it is the fake's, not the adapter's
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()

    def says(self, channel_id: str, content: str = "", *, user_id: str = ANN, author: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Somebody writes; returns the message."""
        message = self.world.message(channel_id, author or self.world.users[user_id], content, **more)
        self.posts(message)
        return message

    def posts(self, message: dict[str, Any]) -> None:
        self.do(self.post(message))

    async def post(self, message: dict[str, Any]) -> None:
        """In the server's thread."""
        self.world.write(message)
        await self._dispatch("MESSAGE_CREATE", self.world.announced(message))

    def edits(self, message: dict[str, Any], content: str) -> None:
        message |= {"content": content, "edited_timestamp": self.world.clock().isoformat()}
        self.dispatch("MESSAGE_UPDATE", self.world.announced(message))

    def deletes(self, message: Mapping[str, Any]) -> None:
        channel = self.world.channels[message["channel_id"]]
        self.world.messages[channel.id] = [each for each in self.world.messages.get(channel.id, []) if each["id"] != message["id"]]
        where = {"guild_id": channel.guild_id} if channel.guild_id else {}
        self.dispatch("MESSAGE_DELETE", {"id": message["id"], "channel_id": channel.id, **where})

    def calls_command(self, channel_id: str, name: str, *, user_id: str = ANN, text: str = "", **more: Any) -> dict[str, Any]:
        """Somebody gives a slash command; returns the interaction."""
        return self.do(self._calls_command(channel_id, name, user_id, text, more))

    def presses(self, message: Mapping[str, Any], label: str, *, user_id: str = ANN) -> dict[str, Any]:
        """Somebody presses the button that is called so; returns the interaction."""
        button = next(each for row in message["components"] for each in row["components"] if each["label"] == label)
        data = {"custom_id": button["custom_id"], "component_type": 2}
        return self.calls_command(message["channel_id"], "", user_id=user_id, type=3, data=data, message=dict(message))

    def tells_guilds(self) -> None:
        self.dispatch("GUILD_CREATE", self.world.guild())

    def dispatch(self, name: str, data: Any) -> None:
        self.do(self._dispatch(name, data))

    def plan(self, *faults: dict[str, Any]) -> None:
        self.world.plan.extend(faults)

    def listens(self, on: bool) -> None:
        """Whether new connections are taken; those that stand stay."""
        self.do(self._listen() if on else self._deafen())

    def network(self, up: bool) -> None:
        self.listens(up)
        if not up:
            self.do(self._break())

    def drop(self) -> None:
        """The event stream breaks without a word (close code 1006)."""
        self.do(self._break())

    def closes(self, code: int) -> None:
        self.do(self._closes(code))

    def asks_to_reconnect(self) -> None:
        self.do(self._tell({"op": 7, "d": None}))

    def invalidates(self, *, resumable: bool = False) -> None:
        if not resumable:
            self._sessions.clear()
        self.do(self._tell({"op": 9, "d": resumable}))

    def forgets_sessions(self) -> None:
        self._sessions.clear()

    @property
    def connections(self) -> int:
        return len(self._sockets)

    def texts(self, channel_id: str) -> list[str]:
        """What the bot said in a channel."""
        return [message["content"] for message in self.world.messages.get(channel_id, []) if message["author"]["id"] == ME]

    def count(self, what: str) -> int:
        return sum(call.what == what for call in self.world.calls)

    # In the server's thread

    def routes(self, app: web.Application) -> None:
        app.router.add_get("/gateway", self._gateway)
        app.router.add_get("/files/{id}/{name}", self._file)
        app.router.add_route("*", "/api/v10/{path:.*}", self._api)
        for name, handler in (("say", self._control_say), ("slash", self._control_slash), ("plan", self._control_plan), ("gateway", self._control)):
            app.router.add_post(f"/__{name}", handler)
        app.router.add_get("/__shown", self._control_shown)
        app.router.add_get("/__calls", self._control_calls)

    async def starting(self) -> None:
        self.world.url = self.origin

    async def ending(self) -> None:
        await self._deafen()
        await asyncio.sleep(0.02)  # what was accepted a moment ago is known to the runner then
        await self._break()

    async def _stop(self) -> None:
        await super()._stop()
        await asyncio.sleep(0.02)
        for transport in list(getattr(self._loop, "_transports", {}).values()):  # also those that no handler was told of any more
            transport.abort()
        await asyncio.sleep(0.02)

    async def _break(self) -> None:
        for request in self._sockets.values():
            abort(request)
        self._sockets.clear()

    async def _closes(self, code: int) -> None:
        for ws in list(self._sockets):
            await ws.close(code=code)

    async def _tell(self, frame: Mapping[str, Any]) -> None:
        for ws in list(self._sockets):
            await ws.send_str(json.dumps(frame))

    async def _dispatch(self, name: str, data: Any) -> None:
        for session in list(self._sessions.values()):  # one may end meanwhile
            await self._send(session, name, data)

    async def _send(self, session: Session, name: str, data: Any) -> None:
        session.seq += 1
        frame = {"op": 0, "t": name, "s": session.seq, "d": data}
        session.log.append(frame)
        if session.socket is not None and not session.socket.closed and not self.deaf:
            try:
                await session.socket.send_str(json.dumps(frame))
            except ConnectionError:
                session.socket = None

    # The event stream

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse(autoclose=False, timeout=0.2)
        await ws.prepare(request)
        self._sockets[ws] = request
        session: Session | None = None
        try:
            await ws.send_str(json.dumps({"op": 10, "d": {"heartbeat_interval": int(self.heartbeat_s * 1000)}}))
            if self.slams:
                await asyncio.sleep(0.05)
                await ws.close(code=1011)
            async for frame in ws:
                if frame.type is not WSMsgType.TEXT:
                    continue
                told = json.loads(frame.data)
                if told["op"] == 1 and not self.deaf:
                    await ws.send_str(json.dumps({"op": 11}))
                    self.heartbeats += 1
                elif told["op"] == 2:
                    session = await self._identify(ws, told["d"])
                elif told["op"] == 6:
                    session = await self._resume(ws, told["d"])
        except ConnectionError:
            pass
        finally:
            self._sockets.pop(ws, None)
            if session is not None and ws.close_code in (1000, 1001):
                self._sessions.pop(session.id, None)
            if session is not None and session.socket is ws:
                session.socket = None
        if not ws.closed:
            await ws.close()
        return ws

    async def _identify(self, ws: web.WebSocketResponse, told: Mapping[str, Any]) -> Session | None:
        self.identified.append(dict(told))
        if told["token"] != TOKEN:
            await ws.close(code=4004)
            return None
        if told["intents"] & CONTENT_INTENT and not self.world.content_switch and self.world.closes_without_it:
            await ws.close(code=4014)
            return None
        session = Session(f"session-{len(self.identified)}", socket=ws)
        self._sessions = {session.id: session}
        application = {"id": APPLICATION, "flags": self.world.application()["flags"]}
        guild = self.world.guild()  # as it is now: what is made once the client has been greeted is told of by events of its own
        guilds = [{"id": GUILD, "unavailable": True}]
        ready = {"v": 10, "user": self.world.users[ME], "guilds": guilds, "session_id": session.id, "resume_gateway_url": self.gateway_url}
        await self._send(session, "READY", {**ready, "application": application, "private_channels": []})
        if not self.holds_guilds:
            await self._send(session, "GUILD_CREATE", guild)
        if self.at_connect:
            self.begin(self._when_settled())
        return session

    async def _resume(self, ws: web.WebSocketResponse, told: Mapping[str, Any]) -> Session | None:
        session = self._sessions.get(told["session_id"]) if self.resumes and told["token"] == TOKEN else None
        self.resumed.append(session is not None)
        if session is None:
            await ws.send_str(json.dumps({"op": 9, "d": False}))
            return None
        session.socket = ws
        for frame in [frame for frame in session.log if frame["s"] > (told["seq"] or 0)]:
            await ws.send_str(json.dumps(frame))
        await self._send(session, "RESUMED", {"_trace": []})
        return session

    async def _when_settled(self) -> None:
        self._last_call = time.monotonic()
        while (left := self._last_call + SETTLED_S - time.monotonic()) > 0:  # noqa: ASYNC110  # what is waited for is that nothing comes
            await asyncio.sleep(left)
        todo, self.at_connect = self.at_connect, []
        for each in todo:
            await each()

    # The API

    async def _api(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"].split("/")
        body, files = await _body(request)
        what, handler = self._route(request.method, path, body, files, request.query)
        self._last_call = time.monotonic()
        self.world.calls.append(Call(what, request.path, body, self.world.clock()))
        fault = self.world.plan.popleft() if self.world.plan and what in FAULTED else {}
        try:
            if path[0] not in ("interactions", "webhooks") and request.headers.get("Authorization") != f"Bot {TOKEN}":
                raise ApiError(401, 0, "401: Unauthorized")
            if fault.get("hang"):
                await asyncio.Event().wait()
            if wait_s := fault.get("retry_after") or (self.pace.left() if what in FAULTED else 0):
                bare = {"X-RateLimit-Limit": "10", "Retry-After": str(wait_s)} if fault.get("bare") else None
                return _answer(429, {"message": "You are being rate limited.", "retry_after": wait_s, "global": False}, bare)
            if fault.get("edge"):
                return _page(429, "<html>error code: 1015</html>")
            if self.world.api_down:
                raise ApiError(503, 0, "Service Unavailable")
            if "status" in fault and not fault.get("after"):
                raise _refusal(fault)
            answer = await handler()
            if "status" in fault:
                raise _refusal(fault)
        except ApiError as error:
            return _answer(error.status, error.body)
        if fault.get("cut"):
            abort(request)
            return web.Response(status=500)
        return _answer(200, answer) if answer is not None else _answer(204, None)

    def _route(
        self, method: str, path: list[str], body: Mapping[str, Any], files: Mapping[str, bytes], query: Mapping[str, str]
    ) -> tuple[str, Callable[[], Awaitable[Any]]]:
        world = self.world
        match [method, *path]:
            case ["GET", "users", "@me"]:
                return "me", _now(lambda: world.users[ME])
            case ["GET", "oauth2", "applications", "@me"]:
                return "application", _now(world.application)
            case ["GET", "gateway", "bot"]:
                limit = {"total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1}
                return "gateway", _now(lambda: {"url": self.gateway_url, "shards": 1, "session_start_limit": limit})
            case ["GET", "channels", channel]:
                return "channel", _now(lambda: world.room(channel).json())
            case ["PATCH", "channels", channel]:
                return "open", _now(lambda: self._opened(channel))
            case ["GET", "channels", channel, "messages"]:
                return "history", _now(lambda: world.history(channel, after=query.get("after", ""), limit=int(query.get("limit", "50"))))
            case ["GET", "channels", channel, "messages", message]:
                return "message", _now(lambda: world.found(channel, message))
            case ["POST", "channels", channel, "messages"]:
                return "send", lambda: self._sent(channel, body, files)
            case ["PATCH", "channels", channel, "messages", message]:
                return "edit", lambda: self._edited(channel, message, body)
            case ["POST", "channels", channel, "typing"]:
                return "typing", _now(lambda: self._typed(channel))
            case ["PUT", "channels", channel, "messages", message, "reactions", emoji, "@me"]:
                return "react", _now(lambda: self._reacted(channel, message, emoji))
            case ["GET", "guilds", _, "members", user]:
                return "member", _now(lambda: world.member(user))
            case ["PUT", "applications", _, "commands"]:
                return "commands", _now(lambda: self._registered(body))
            case ["POST", "interactions", number, token, "callback"]:
                return "defer", _now(lambda: self._deferred(number, token, body))
            case ["PATCH", "webhooks", _, token, "messages", "@original"]:
                return "answer", lambda: self._answered(token, body, files)
            case ["POST", "webhooks", _, token]:
                return "follow up", _now(lambda: self._followed_up(token, body))
            case ["DELETE", "webhooks", _, token, "messages", "@original"]:
                return "take back", _now(lambda: self._taken_back(token))
            case _:
                return "other", _now(_nothing_there)

    def _opened(self, channel_id: str) -> dict[str, Any]:
        channel = self.world.room(channel_id)
        if not channel.may_open:
            raise ApiError(403, 50013, "Missing Permissions")
        channel.archived = channel.locked = False
        return channel.json()

    async def _sent(self, channel_id: str, body: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
        message, new = self.world.send(channel_id, body, files)
        if new:
            self.witness()
            await self._dispatch("MESSAGE_CREATE", self.world.announced(message))
        return message

    async def _edited(self, channel_id: str, message_id: str, body: Mapping[str, Any]) -> dict[str, Any]:
        message = self.world.edit(channel_id, message_id, body)
        await self._dispatch("MESSAGE_UPDATE", self.world.announced(message))
        return message

    def _typed(self, channel_id: str) -> None:
        self.world.room(channel_id)
        if self.world.typing_fails:
            raise ApiError(403, 50001, "Missing Access")

    def _reacted(self, channel_id: str, message_id: str, emoji: str) -> None:
        self.world.found(channel_id, message_id)
        self.world.reactions.append((message_id, emoji))

    def _registered(self, body: Any) -> list[Any]:
        if self.world.commands_refused is not None:
            raise self.world.commands_refused
        self.world.commands = list(body)
        return [{**command, "id": self.world.snowflake(), "application_id": APPLICATION, "version": "1"} for command in body]

    # Slash commands

    async def _calls_command(self, channel_id: str, name: str, user_id: str, text: str, more: Mapping[str, Any]) -> dict[str, Any]:
        channel = self.world.channels[channel_id]
        number = self.world.snowflake()
        token = f"interaction-token-{number}"
        user = self.world.users[user_id]
        who = {"member": {**self.world.member(user_id), "permissions": "0"}, "guild_id": channel.guild_id} if channel.guild_id else {"user": user}
        options = [{"name": "text", "type": 3, "value": text}] if text else []
        told: dict[str, Any] = {
            "id": number, "application_id": APPLICATION, "type": 2, "token": token, "version": 1, "channel_id": channel_id,
            "channel": channel.json(), "data": {"id": "1", "name": name, "type": 1, "options": options}, "locale": "en-US",
            "app_permissions": "0", "entitlements": [], "authorizing_integration_owners": {}, "context": 0, "attachment_size_limit": 10_000_000,
            **who, **more,
        }  # fmt: skip
        self.world.interactions[token] = {
            "id": number, "channel_id": channel_id, "deferred": False, "message": more.get("message", {}).get("id"), "gone": False, "user": user_id,
        }  # fmt: skip
        await self._dispatch("INTERACTION_CREATE", told)
        return told

    def _interaction(self, token: str) -> dict[str, Any]:
        found = self.world.interactions.get(token)
        if found is None or found["gone"]:
            raise ApiError(404, 10062, "Unknown interaction")
        return found

    def _deferred(self, number: str, token: str, body: Mapping[str, Any]) -> dict[str, Any]:
        found = self._interaction(token)
        if found["deferred"]:
            raise ApiError(400, 40060, "Interaction has already been acknowledged.")
        found |= {"deferred": True, "type": body["type"], "deferred_at": self.world.clock()}
        return {"interaction": {"id": number, "type": 2, "response_message_loading": True}}

    async def _answered(self, token: str, body: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
        found = self._interaction(token)
        if not found["deferred"]:
            raise ApiError(404, 10015, "Unknown Webhook")
        if found["message"] is not None:
            return self.world.edit(found["channel_id"], found["message"], body, files)
        channel = self.world.channels[found["channel_id"]]
        content = self.world.text(body, has_files=bool(files))
        held = [self.world.file(name, data) for name, data in files.items()]
        about = {"type": 20, "webhook_id": APPLICATION, "application_id": APPLICATION, "attachments": held, "components": components(body)}
        message = self.world.message(channel.id, self.world.users[ME], content, **about)
        found["message"] = message["id"]
        self.world.write(message)
        await self._dispatch("MESSAGE_CREATE", self.world.announced(message))
        return message

    def _followed_up(self, token: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Shown to one alone, when the flag says so."""
        found = self._interaction(token)
        if not found["deferred"]:
            raise ApiError(404, 10015, "Unknown Webhook")
        content = self.world.text(body, has_files=False)
        if body.get("flags", 0) & ALONE:
            self.world.asides.append((found["user"], content))
        return self.world.message(found["channel_id"], self.world.users[ME], content, webhook_id=APPLICATION, flags=body.get("flags", 0))

    def _taken_back(self, token: str) -> None:
        self._interaction(token)["taken_back"] = True

    # Files, and the hands of whoever tries this

    async def _file(self, request: web.Request) -> web.Response:
        data = self.world.files.get(request.match_info["id"])
        return web.Response(body=data) if data is not None else web.Response(status=404)

    async def _control_say(self, request: web.Request) -> web.Response:
        told = await request.json()
        author = self.world.users[told.pop("user_id", ANN)]
        message = self.world.write(self.world.message(told.pop("channel_id"), author, told.pop("text", ""), **told))
        await self._dispatch("MESSAGE_CREATE", self.world.announced(message))
        return _answer(200, message)

    async def _control_slash(self, request: web.Request) -> web.Response:
        told = await request.json()
        return _answer(200, await self._calls_command(told["channel_id"], told["name"], told.get("user_id", ANN), told.get("text", ""), {}))

    async def _control_plan(self, request: web.Request) -> web.Response:
        self.plan(*await request.json())
        return _answer(200, {"waiting": len(self.world.plan)})

    async def _control(self, request: web.Request) -> web.Response:
        match (await request.json())["do"]:
            case "drop":
                await self._break()
            case "reconnect":
                await self._tell({"op": 7, "d": None})
            case "invalidate":
                self._sessions.clear()
                await self._tell({"op": 9, "d": False})
            case what:
                self.deaf = what == "deaf"
        return _answer(200, {"connections": self.connections, "deaf": self.deaf})

    async def _control_shown(self, request: web.Request) -> web.Response:
        return _answer(200, self.world.messages.get(request.query["channel_id"], []))

    async def _control_calls(self, _: web.Request) -> web.Response:
        return _answer(200, [asdict(call) for call in self.world.calls])


def _now(look: Callable[[], Any]) -> Callable[[], Awaitable[Any]]:
    async def answer() -> Any:
        return look()

    return answer


def _refusal(fault: Mapping[str, Any]) -> ApiError:
    return ApiError(fault["status"], fault.get("code", 0), fault.get("message", "refused"))


def _nothing_there() -> None:
    raise ApiError(404, 0, "404: Not Found")


async def _body(request: web.Request) -> tuple[Any, dict[str, bytes]]:
    """The JSON of a call, and its files by name."""
    if request.content_type != "multipart/form-data":
        text = await request.text()
        return (json.loads(text) if text else {}), {}
    form = await request.post()
    files: dict[str, bytes] = {}
    for name, part in form.items():
        if name.startswith("files[") and isinstance(part, web.FileField):
            files[part.filename] = part.file.read()
    return json.loads(str(form["payload_json"])), files


def _answer(status: int, body: object, headers: Mapping[str, str] | None = None) -> web.Response:
    """Exactly `application/json`, as the client wants it. No connection is kept: a test that closes the door means every call after that.

    `headers`: instead of those of the network in front.
    """
    if body is None:
        return web.Response(status=status, headers={"Via": "1.1 fake", "Connection": "close"})
    data = json.dumps(body, default=str).encode()
    answer = web.Response(status=status, body=data, content_type="application/json", headers=headers or {"Via": "1.1 fake"})
    answer.force_close()
    return answer


def _page(status: int, text: str) -> web.Response:
    answer = web.Response(status=status, text=text, content_type="text/html")
    answer.force_close()
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description="A fake Discord on loopback.")
    parser.add_argument("--port", type=int, default=8082)
    options = parser.parse_args()
    with FakeDiscord(port=options.port) as server:
        sys.stdout.write(f"{server.url}\n{server.gateway_url}\n{TOKEN}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()

"""`yumegate chat`: a talk with the running gateway in the terminal, over its HTTP API like any other client (docs/http-api.md).

Lines come from standard input, a terminal or a pipe; each is answered before the next is read. Ctrl-C ends the running answer, a second one leaves.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, contextmanager
from typing import Any
from uuid import uuid4

import aiohttp
from rich.console import Console

TITLE = "Terminal"  # the chat that is taken up again
COMMAND_S = 5.0  # a command says something within this time, or nothing
QUIT = "/quit"

# What could move the cursor or change the terminal; line ends and tabs may stay.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Refused(Exception):
    """A sentence of the gateway's, or about it."""


async def talk(url: str, token: str, *, token_id: str = "") -> None:
    """Until `/quit`, the end of the input, or a second Ctrl-C. The token with that id is dropped at the end."""
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    headers = {"Authorization": f"Bearer {token}"}
    timeout = aiohttp.ClientTimeout(total=None, connect=10)
    async with aiohttp.ClientSession(url, headers=headers, timeout=timeout, trust_env=False) as http:
        api = _Api(http)
        try:
            chat_id = await _chat(api)
            if sys.stdin.isatty():
                console.print(f"Talking with {url}. {QUIT} leaves, Ctrl-C ends an answer.")
            async with asyncio.TaskGroup() as group:
                terminal = _Terminal(api, chat_id, console)
                listening = group.create_task(terminal.listen())
                with _on_interrupt(lambda: terminal.interrupt(group)):
                    await terminal.speak()
                listening.cancel()
        except* (Refused, aiohttp.ClientError, OSError) as faults:
            for fault in faults.exceptions:
                console.print(f"The gateway cannot be talked with: {fault}")
        finally:
            if token_id:
                await api.forget_token(token_id)


async def _chat(api: _Api) -> str:
    chats = (await api.get("/api/chats"))["chats"]
    found = next((chat["id"] for chat in chats if chat["title"] == TITLE and chat["kind"] == "web"), None)
    return found or (await api.post("/api/chats", {"title": TITLE}))["id"]


class _Api:
    """The routes that are used, their faults as sentences."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def get(self, path: str) -> Any:
        async with self._http.get(path) as answer:
            return await self._read(answer)

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        async with self._http.post(path, json=body) as answer:
            return await self._read(answer)

    async def forget_token(self, token_id: str) -> None:
        try:
            async with asyncio.timeout(5), self._http.delete(f"/api/tokens/{token_id}"):
                pass
        except (aiohttp.ClientError, TimeoutError):
            pass  # the gateway is gone; an operator can drop it

    async def events(self, path: str) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        """(name, data) of server-sent events; first ("open", {}) when the stream stands. Ends with the connection."""
        async with self._http.get(path) as answer:
            if answer.status != 200:
                await self._read(answer)
            yield "open", {}
            waiting = b""
            async for piece in answer.content.iter_any():
                *frames, waiting = (waiting + piece).split(b"\n\n")
                for frame in frames:
                    fields = dict(line.split(": ", 1) for line in frame.decode().split("\n") if ": " in line)
                    if "event" in fields:
                        yield fields["event"], json.loads(fields["data"])

    @staticmethod
    async def _read(answer: aiohttp.ClientResponse) -> Any:
        try:
            body: Any = await answer.json()
        except (aiohttp.ContentTypeError, ValueError):
            body = {}
        if answer.status >= 400:
            raise Refused(str(body.get("error", {}).get("message") or f"it answered with the status {answer.status}"))
        return body


class _Terminal:
    """One talk. `speak` reads lines and waits for each answer, `listen` shows what the gateway says."""

    def __init__(self, api: _Api, chat_id: str, console: Console) -> None:
        self._api = api
        self._path = f"/api/chats/{chat_id}"
        self._console = console
        self._live = console.is_terminal  # words are shown as they come; else whole answers
        self._open = asyncio.Event()
        self._answered = asyncio.Event()
        self._turn: str | None = None  # the turn that is being waited for; empty for a command
        self._ended: set[str] = set()
        self._shown = ""
        self._asking = False  # the gateway has not said yet whether it is a turn
        self._stopping = False
        self._leaving = asyncio.Event()

    async def speak(self) -> None:
        await self._open.wait()
        async with aclosing(_lines(sys.stdin.fileno(), self._leaving)) as lines:
            while not self._leaving.is_set():
                if self._live and sys.stdin.isatty():
                    self._console.print("> ", end="")
                    self._console.file.flush()
                line = await anext(lines, None)
                if line is None or line.strip() == QUIT:
                    return
                if line.strip():
                    await self._say(line.strip())

    async def _say(self, text: str) -> None:
        self._answered.clear()
        self._asking, self._stopping, self._shown = True, False, ""
        self._turn = ""  # a command, until we know better: its answer may come before the gateway's word that it took it
        try:
            taken = await self._api.post(f"{self._path}/messages", {"client_id": uuid4().hex, "text": text})
        except Refused as refusal:
            self._tell(str(refusal))
            taken = {"turn_id": ""}
            self._answered.set()
        finally:
            self._asking = False
        if taken["turn_id"]:
            self._answered.clear()
            self._turn = taken["turn_id"]
        if self._turn in self._ended:
            self._turn = None
            return
        if self._stopping:
            await self._end_asked()
        try:
            async with asyncio.timeout(None if taken["turn_id"] else COMMAND_S):
                await self._answered.wait()
        except TimeoutError:
            pass
        self._turn = None

    def interrupt(self, group: asyncio.TaskGroup) -> None:
        """Ctrl-C: the first one ends the running answer, the next one, or one while nothing runs, leaves."""
        if self._asking and not self._stopping:
            self._stopping = True
            return
        if self._turn and not self._stopping:
            self._stopping = True
            group.create_task(self._stop())
            return
        self._leaving.set()
        self._answered.set()

    async def _end_asked(self) -> None:
        """Ctrl-C came before the gateway's word: now it is known what it ends."""
        if self._turn:
            await self._stop()
        else:
            self._leaving.set()
            self._answered.set()

    async def _stop(self) -> None:
        try:
            await self._api.post(f"{self._path}/stop", {})
        except (Refused, aiohttp.ClientError) as fault:
            self._tell(f"It cannot be stopped: {fault}")

    async def listen(self) -> None:
        """Raises Refused when the gateway ends the stream: it stops, or we fell behind."""
        async for name, data in self._api.events(f"{self._path}/events"):
            match name:
                case "open":
                    self._open.set()
                case "delta" if self._live:
                    self._write(data["text"])
                case "reset" if self._shown:
                    self._tell("… once more:")
                case "tool" if self._live and data["state"] == "started":
                    self._tell(f"[{data['name']}]")
                case "message" if data["role"] != "user":
                    self._message(data)
                case "notice":
                    self._tell(data["text"])
                case "done":
                    self._ended.add(data["turn_id"])
                    if data["turn_id"] == self._turn:
                        self._answered.set()
                case _:
                    pass
        raise Refused("it closed the connection")

    def _message(self, data: dict[str, Any]) -> None:
        """A whole answer, or a sentence of the gateway's own."""
        if data["role"] == "assistant" and self._shown:
            self._end_line()  # it stands there already, word by word
        else:
            self._tell(data["text"])
        if data["role"] == "notice" and self._turn == "":
            self._answered.set()

    def _write(self, text: str) -> None:
        self._shown += text
        self._console.print(_CONTROLS.sub("", text), end="")
        self._console.file.flush()

    def _tell(self, text: str) -> None:
        self._end_line()
        self._console.print(_CONTROLS.sub("", text))
        self._console.file.flush()

    def _end_line(self) -> None:
        if self._shown:
            self._console.print()
        self._shown = ""


async def _lines(fd: int, leaving: asyncio.Event) -> AsyncGenerator[str, None]:
    """The lines of a file descriptor as they come, without a thread that would wait in `read` for ever; ends with the input or with `leaving`."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    waiting, ended = "", False
    while not ended:
        await _readable(fd, leaving)
        if leaving.is_set():
            return
        data = os.read(fd, 65_536)
        ended = not data
        *lines, waiting = (waiting + decoder.decode(data, final=ended)).split("\n")
        for line in lines:
            yield line
    if waiting:
        yield waiting


async def _readable(fd: int, leaving: asyncio.Event) -> None:
    """Returns when `read` would not block, or at `leaving`. Told once, not as long as something is there: else `read` might find it gone."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()

    def tell() -> None:
        loop.remove_reader(fd)
        ready.set()

    try:
        loop.add_reader(fd, tell)
    except PermissionError:  # a plain file: it never makes anybody wait
        return
    try:
        await _either(ready, leaving)
    finally:
        loop.remove_reader(fd)


async def _either(one: asyncio.Event, other: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as group:
        waits = [group.create_task(one.wait()), group.create_task(other.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


@contextmanager
def _on_interrupt(act: Callable[[], None]) -> Generator[None]:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, act)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)

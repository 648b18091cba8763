"""A tiny chat platform that lives in the test's own process and so outlives a gateway that is killed: JSON lines over TCP on loopback.

A connection whose first line is `{"op": "updates"}` gets every update after the last acknowledged one, and acknowledges with `{"ack": n}`. On any
other connection each line is a call (`send`, `edit`, `find`, `typing`) that is answered by one line. What people can see is in `shown`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

from tests.patience import patience

Call = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Shown:
    """A message that people on the platform can see. `history`: every text it ever had."""

    id: str
    chat: str
    text: str
    key: str = ""
    history: list[str] = field(default_factory=list[str])


class Peer:
    """`before` and `after` are awaited around the effect of each call; the call is answered after both. `mute` swallows answers."""

    def __init__(self) -> None:
        self.shown: list[Shown] = []
        self.calls: list[Call] = []
        self.acknowledged = 0
        self.delivered: list[int] = []  # numbers of updates as they were handed out, again and again
        self.port = 0
        self.later_s: float | None = None  # every send is told to come back after so long
        self.mute = False
        self.before: Callable[[Call], Awaitable[None]] = _nothing
        self.after: Callable[[Call], Awaitable[None]] = _nothing
        self._updates: list[dict[str, Any]] = []
        self._news = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    async def says(self, chat: str, text: str, *, sender: str = "u1") -> int:
        """A person writes; the number of the update."""
        number = len(self._updates) + 1
        self._updates.append({"n": number, "chat": chat, "sender": sender, "text": text})
        async with self._news:
            self._news.notify_all()
        return number

    def texts(self, chat: str | None = None) -> list[str]:
        return [message.text for message in self.shown if chat is None or message.chat == chat]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._open):
            writer.close()
        await self._server.wait_closed()
        await asyncio.wait_for(self._empty.wait(), patience(5))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        self._empty.clear()
        try:
            while line := await reader.readline():
                call: Call = json.loads(line)
                if call["op"] == "updates":
                    await self._hand_out(reader, writer)
                    return
                self.calls.append(call)
                await self.before(call)
                answer = self._effect(call)
                await self.after(call)
                if not self.mute:
                    writer.write(json.dumps(answer).encode() + b"\n")
                    await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass  # killed, or the test is over
        finally:
            writer.close()
            self._open.discard(writer)
            if not self._open:
                self._empty.set()

    async def _hand_out(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.TaskGroup() as group:
            giving = group.create_task(self._give(writer))
            while line := await reader.readline():
                self.acknowledged = max(self.acknowledged, json.loads(line)["ack"])
            giving.cancel()

    async def _give(self, writer: asyncio.StreamWriter) -> None:
        position = self.acknowledged
        while True:
            for update in self._updates[position:]:
                position = update["n"]
                self.delivered.append(position)
                writer.write(json.dumps(update).encode() + b"\n")
            await writer.drain()
            async with self._news:
                while len(self._updates) <= position:
                    await self._news.wait()

    def _effect(self, call: Call) -> dict[str, Any]:
        match call["op"]:
            case "send":
                if self.later_s is not None:
                    return {"later": self.later_s}
                known = self._find(call["key"])
                return {"id": known.id if known else self._show(call).id}
            case "edit":
                message = next((message for message in self.shown if message.id == call["id"]), None)
                if message is None:
                    return {"gone": True}
                message.text, message.key = call["text"], call["key"]
                message.history.append(call["text"])
                return {"id": message.id}
            case "find":
                known = self._find(call["key"])
                return {"id": known.id if known else ""}
            case _:
                return {}

    def _find(self, key: str) -> Shown | None:
        return next((message for message in self.shown if key and message.key == key), None)

    def _show(self, call: Call) -> Shown:
        message = Shown(id=f"b{len(self.shown) + 1}", chat=call["chat"], text=call["text"], key=call["key"], history=[call["text"]])
        self.shown.append(message)
        return message


async def _nothing(_call: Call) -> None:
    return

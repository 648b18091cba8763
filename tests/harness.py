"""A whole gateway in this process, for tests through its public doors: the HTTP API, and a loopback platform.

`running` starts the real thing (real store, real HTTP server on a free port) with the model a test hands in.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp

from agent.llm.port import ChatModel
from agent.runtime import Sleep
from agent.tools.port import Tool
from channels.loopback import CAPABILITIES, LoopbackChannel, LoopbackPlatform
from channels.message import Account
from channels.port import Capabilities
from gateway.access import Rules
from gateway.app import Choices
from gateway.channel_set import Plan
from gateway.config import Config
from gateway.config.load import load
from gateway.logs import Redactor
from gateway.running import Gateway, Started
from gateway.store import open_database, utc_now
from memory.database import Database
from memory.ports import Embedder
from tests.empty_database import empty_database
from tests.patience import patience


@dataclass(slots=True)
class Running:
    """A gateway that runs. `http` is signed in as the owner with a bearer token."""

    url: str
    login_link: str
    config_path: Path
    data_dir: Path
    http: aiohttp.ClientSession
    stop: asyncio.Event
    streams: list[asyncio.Task[None]] = field(default_factory=list)

    async def get(self, path: str, **more: Any) -> Any:
        async with self.http.get(f"{self.url}{path}", **more) as answer:
            assert answer.status < 400, await answer.text()
            return await answer.json()

    async def post(self, path: str, body: Mapping[str, Any] | None = None, *, status: int | None = None) -> Any:
        async with self.http.post(f"{self.url}{path}", json=body or {}) as answer:
            text = await answer.text()
            assert answer.status == status if status else answer.status < 400, f"{answer.status} {text}"
            return json.loads(text) if text else None

    async def chat(self, **more: Any) -> str:
        return (await self.post("/api/chats", more))["id"]

    async def say(self, chat_id: str, text: str, *, client_id: str | None = None, **more: Any) -> dict[str, str]:
        return await self.post(f"/api/chats/{chat_id}/messages", {"client_id": client_id or str(time.monotonic_ns()), "text": text, **more})

    async def messages(self, chat_id: str) -> list[dict[str, Any]]:
        return (await self.get(f"/api/chats/{chat_id}/messages?limit=200"))["messages"]

    async def answers(self, chat_id: str, count: int = 1, *, within_s: float = 10.0) -> list[str]:
        """The texts of the answers of a chat, once there are at least `count`."""

        async def enough() -> list[str] | None:
            found = [message["text"] for message in await self.messages(chat_id) if message["role"] == "assistant"]
            return found if len(found) >= count else None

        return await eventually(enough, within_s=within_s)

    async def settled(self, *, within_s: float = 20.0) -> None:
        """Until no job waits or runs, with the database as SQLite: what follows behind the replies has been done."""

        async def none() -> bool:
            with closing(sqlite3.connect(f"file:{self.data_dir / 'yumegate.db'}?mode=ro", uri=True)) as store:
                return store.execute("SELECT count(*) FROM jobs WHERE state IN ('waiting', 'running')").fetchone() == (0,)

        await eventually(none, within_s=within_s)

    async def events(
        self, chat_id: str, *, until: str = "done", last_id: str = "", within_s: float = 10.0, opened: Callable[[], object] = lambda: None
    ) -> list[tuple[str, str, Any]]:
        """Server-sent events (id, name, data) up to and with the first named `until`. `opened` is called once the stream is open."""
        headers = {"Last-Event-ID": last_id} if last_id else {}
        found: list[tuple[str, str, Any]] = []
        async with asyncio.timeout(patience(within_s)), self.http.get(f"{self.url}/api/chats/{chat_id}/events", headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            event_id = name = ""
            async for raw in answer.content:
                line = raw.decode().rstrip("\n")
                if line.startswith("retry: "):
                    opened()
                if line.startswith("id: "):
                    event_id = line[4:]
                elif line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    found.append((event_id, name, json.loads(line[6:])))
                    if name == until:
                        return found
        return found

    @asynccontextmanager
    async def following(self, chat_id: str, **more: Any) -> AsyncGenerator[asyncio.Task[list[tuple[str, str, Any]]]]:
        """What `events` hears, beside a body that begins once the stream is open: a turn that ends before is never heard of."""
        opened = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            heard = group.create_task(self.events(chat_id, opened=opened.set, **more))
            heard.add_done_callback(lambda _: opened.set())
            await opened.wait()
            yield heard


async def eventually(look: Callable[[], Awaitable[Any]], *, within_s: float = 10.0, every_s: float = 0.02) -> Any:
    """The first true thing that `look` returns."""
    async with asyncio.timeout(patience(within_s)):
        while not (found := await look()):  # noqa: ASYNC110  # what is looked at tells nobody
            await asyncio.sleep(every_s)
        return found


def loopback_plan(
    platform: LoopbackPlatform,
    *,
    rules: Rules | None = None,
    capabilities: Capabilities = CAPABILITIES,
    name: str = "main",
    start_after: Callable[[], int] = lambda: 0,
) -> Plan:
    """A loopback account that everybody may write to, unless `rules` say otherwise."""
    account = Account(channel="loopback", name=name)
    return Plan(
        account=account,
        settings=name,
        capabilities=capabilities,
        build=lambda: LoopbackChannel(platform, account=account, capabilities=capabilities, start_after=start_after()),
        rules=lambda: rules or Rules(allow=frozenset({"*"}), groups=frozenset({"*"})),
    )


@asynccontextmanager
async def running(
    folder: Path,
    model: ChatModel | Callable[[Any], ChatModel],
    *,
    config: Mapping[str, Any] | None = None,
    channels: tuple[Plan, ...] = (),
    clock: Callable[[], datetime] = utc_now,
    database: Callable[[Config], Database] = open_database,
    tools: Sequence[Tool] = (),
    sleep: Sleep = asyncio.sleep,
    embedder: Callable[[Config], Embedder | None] = lambda _config: None,
) -> AsyncGenerator[Running]:
    """A gateway over `folder`, stopped and drained at the end. Start it twice over one folder to see what a restart keeps.

    Unless a test asks for them, there are no first-start questions and no vectors: the one changes every first answer, the other takes seconds. And
    recall has as long as it may have: what is found is no matter of how busy the machine is.
    """
    folder.mkdir(parents=True, exist_ok=True)  # nothing runs yet
    path = folder / "config.json"
    base: dict[str, Any] = {
        "agent_workspace": str(folder / "workspace"), "timezone": "UTC", "onboarding": False, "channels": {"web": {"port": 0}},
        "recall": {"time_limit_s": 5},
    }  # fmt: skip
    path.write_text(json.dumps(_merged(base, config or {})), encoding="utf-8")
    loaded = load(path, {})
    assert loaded.config is not None, [str(fault) for fault in loaded.faults]
    if not loaded.config.database.url:
        await asyncio.to_thread(_migrated, loaded.config.data_dir)
    make = model if callable(model) else lambda _account: model
    choices = Choices(
        clock=clock,
        make_model=make,
        more_channels=channels,
        open_database=database,
        more_tools=tools,
        sleep=sleep,
        make_embedder=embedder,
    )
    gateway = Gateway(loaded, load=lambda: load(path, {}), redactor=Redactor(), choices=choices)
    stop, told = asyncio.Event(), asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(gateway.run(stop, told.set_result))
        await asyncio.wait([task, told], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        started: Started = told.result()
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
            async with http.get(started.login_link, allow_redirects=False) as answer:
                assert answer.status == 303
            async with http.get(f"{started.page}/api/me") as answer:
                csrf = (await answer.json())["csrf"]
            async with http.post(f"{started.page}/api/tokens", json={"name": "test"}, headers={"X-CSRF-Token": csrf}) as answer:
                token = (await answer.json())["token"]
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}, cookie_jar=aiohttp.DummyCookieJar()) as http:
            yield Running(started.page, started.login_link, path, loaded.config.data_dir, http, stop)
        stop.set()


def _migrated(data_dir: Path) -> None:
    """A new gateway finds its database as a migration leaves it."""
    path = data_dir / "yumegate.db"
    if not path.exists():
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_bytes(empty_database())


def _merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    both = {name: base[name] for name in base}
    for name, value in more.items():
        both[name] = _merged(both[name], value) if isinstance(value, Mapping) and isinstance(both.get(name), Mapping) else value
    return both

"""Gateways as processes, started from the session's fork server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agent.llm.scripted import ScriptedModel
from tests.e2e import child
from tests.e2e.child import LOG, Options
from tests.e2e.peer import Peer
from tests.harness import Running, running
from tests.patience import patience
from tests.peers.model.server import FakeModel

READY_S = 30.0
_READY = re.compile(r"^Yumegate is ready: (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Template:
    """A folder with the data of a gateway that was started once, the owner's token for it, and an empty chat of theirs."""

    workspace: Path
    token: str
    chat: str


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    folder = tmp_path_factory.mktemp("gateway")

    async def first_run() -> Template:
        async with running(folder, ScriptedModel([])) as gateway:
            made = Template(folder / "workspace", gateway.http.headers["Authorization"], await gateway.chat())
            await until(lambda: rows(gateway.data_dir, "SELECT 1 FROM jobs WHERE state = 'done'"))  # the daily one disturbs nobody any more
            return made

    with ThreadPoolExecutor(1) as elsewhere:  # a loop of its own, apart from the tests'
        return elsewhere.submit(asyncio.run, first_run()).result()


def rows(data_dir: Path, query: str, *values: object) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(data_dir / "yumegate.db")) as database:
        return database.execute(query, values).fetchall()


async def until(look: Callable[[], object], within_s: float = 15.0, *, every_s: float = 0.01) -> None:
    """Wait for something true."""
    async with asyncio.timeout(patience(within_s)):
        while True:
            if look():
                return
            await asyncio.sleep(every_s)


class Child:
    """One process that runs, or ran, the gateway."""

    def __init__(self, process: ForkServerProcess, folder: Path, log_from: int) -> None:
        self._process = process
        self._folder = folder
        self._log_from = log_from
        self.url = ""

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """What this process has said so far."""
        with suppress(FileNotFoundError):
            return (self._folder / LOG).read_bytes()[self._log_from :].decode()
        return ""

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    async def ready(self, within_s: float = READY_S) -> None:
        def look() -> bool:
            assert self.alive, f"the gateway ended with {self._process.exitcode}: {self.log}"
            found = _READY.search(self.log)
            self.url = found[1] if found else ""
            return bool(found)

        await until(look, within_s)

    async def end(self, within_s: float = READY_S) -> int:
        """Its exit code, once it has ended; the negative number of the signal that killed it."""
        await until(lambda: not self.alive, within_s)
        assert self._process.exitcode is not None
        return self._process.exitcode

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    async def kill(self) -> None:
        self.signal(signal.SIGKILL)
        assert await self.end() == -signal.SIGKILL

    async def stop(self, within_s: float = READY_S) -> None:
        """As a supervisor stops it; it must end well."""
        self.signal(signal.SIGTERM)
        assert await self.end(within_s) == 0, self.log

    async def facts(self) -> dict[str, int]:
        """Tasks, handles and memory of the process now."""
        file = self._folder / "facts.json"
        file.unlink(missing_ok=True)
        self.signal(signal.SIGUSR1)

        await until(file.exists)
        return json.loads(file.read_text())

    def bury(self) -> None:
        if self.alive:
            self._process.kill()
        self._process.join(10)
        self._process.close()


class Household:
    """One data folder and the processes that run over it, one after the other."""

    def __init__(self, folder: Path, template: Template, nursery: Any) -> None:
        self.folder = folder
        self.children: list[Child] = []
        self._nursery = nursery
        self._session = aiohttp.ClientSession(headers={"Authorization": template.token}, cookie_jar=aiohttp.DummyCookieJar())
        self.chat = template.chat
        folder.mkdir()
        folder.chmod(0o777)  # a child may run as another user
        shutil.copytree(template.workspace, folder / "workspace")
        self.web = Running("", "", folder / "config.json", folder / "workspace" / ".yumegate", self._session, asyncio.Event())
        self.configure()

    def configure(self, **more: Any) -> None:
        """Write config.json; `more` replaces top-level keys."""
        base = {
            "agent_workspace": str(self.folder / "workspace"),
            "timezone": "UTC",
            "onboarding": False,
            "channels": {"web": {"port": 0}},
            "rate": {"person_per_minute": 0, "chat_per_minute": 0},
            "model": {"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "fake"},
        }
        self.web.config_path.write_text(json.dumps(base | more))

    def speak_to(self, model: FakeModel, **more: Any) -> None:
        """Configure the endpoint `model`, for processes started with `model=""`."""
        self.configure(model={"provider": "openai", "base_url": model.url, "name": "fake", "context_window": 100_000}, **more)

    def launch(self, **options: Any) -> Child:
        """Start a process and do not wait for it. `options`: of `tests.e2e.child.Options`."""
        text = Options(folder=str(self.folder), **options).as_json()
        log = self.folder / LOG
        process = self._nursery.Process(target=child.main, args=(text,), daemon=True)
        process.start()
        begun = Child(process, self.folder, log.stat().st_size if log.exists() else 0)
        self.children.append(begun)
        return begun

    async def start(self, **options: Any) -> Child:
        """Start a process and wait until it is ready; `web` then speaks to it."""
        begun = self.launch(**options)
        await begun.ready()
        self.web.url = begun.url
        return begun

    async def start_command_line(self, *, read_config: str = "config.json") -> Child:
        return await self.start(command=("run", "--config", str(self.folder / read_config)))

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """What the database says, read beside whoever uses it."""
        return rows(self.web.data_dir, query, *values)

    def change(self, statement: str, *values: object) -> int:
        """Change the database between two runs, to stand for time that passed; returns how many rows."""
        with closing(sqlite3.connect(self.web.data_dir / "yumegate.db")) as database, database:
            return database.execute(statement, values).rowcount

    async def said(self, chat_id: str) -> list[tuple[str, str]]:
        """Role and text of everything a chat shows."""
        return [(message["role"], message["text"]) for message in await self.web.messages(chat_id)]

    async def settled(self, within_s: float = 20.0) -> None:
        """Nothing is waiting or being made or sent any more."""

        await until(self._at_rest, within_s, every_s=0.03)

    def _at_rest(self) -> bool:
        waiting = self.rows("SELECT count(*) FROM inbox WHERE state IN ('new', 'held', 'running')")
        leaving = self.rows("SELECT count(*) FROM outbox WHERE state IN ('queued', 'sending', 'unknown')")
        return waiting == leaving == [(0,)]

    async def acknowledged(self, path: str, body: Mapping[str, Any]) -> bool:
        """Whether a post was answered; False when the gateway died before it did. The page then sends it again."""
        try:
            await self.web.post(path, body)
        except (aiohttp.ClientError, OSError):
            return False
        return True

    async def dead_or_idle(self, child: Child) -> bool:
        """Wait until the process has been killed (True), or has nothing left to do (False)."""

        def look() -> bool:
            open_jobs = self.rows("SELECT count(*) FROM jobs WHERE state IN ('waiting', 'running')")
            return not child.alive or (self._at_rest() and open_jobs == [(0,)])

        await until(look, within_s=20)
        if child.alive:
            await asyncio.sleep(0.2)  # the last commit is seen here before the process dies of it
        return not child.alive

    async def __aenter__(self) -> Household:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        for each in self.children:
            each.bury()
        await self._session.close()


@pytest.fixture
async def household(tmp_path: Path, template: Template, nursery: Any) -> AsyncIterator[Household]:
    async with Household(tmp_path / "house", template, nursery) as home:
        yield home


@pytest.fixture
def new_household(tmp_path: Path, template: Template, nursery: Any) -> Callable[[], Household]:
    """Makes households for the cases of a loop, to be entered."""
    numbers = count(1)
    return lambda: Household(tmp_path / f"house{next(numbers)}", template, nursery)


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with Peer() as platform:
        yield platform


@pytest.fixture
async def model() -> AsyncIterator[FakeModel]:
    async with FakeModel() as server:
        yield server

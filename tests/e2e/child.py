"""A gateway in a process of its own, to be killed at a chosen commit:

    python -m tests.e2e.child '{"folder": "/tmp/x", "kill": "before", "commit": 3}'

`folder` holds `config.json`; what the process says goes to `log.txt` there. Tests start it from a fork server, which has everything imported already.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event

import agent.llm.openai_client  # noqa: F401  # the fork server imports it once for all
from agent.llm.port import ModelRequest
from agent.llm.scripted import ScriptedModel
from gateway import cli, lanes
from gateway.access import Rules
from gateway.app import Choices
from gateway.channel_set import Plan
from gateway.config import Config, ModelAccount
from gateway.config.load import load
from gateway.logs import start_logging
from gateway.model_making import make_model
from gateway.running import Gateway, Started
from gateway.starting import CannotStart
from gateway.store import utc_now
from memory.database import Database, sqlite_url
from memory.errors import StoreError
from tests.e2e.peer_channel import ACCOUNT, PeerChannel, capabilities

T = TypeVar("T")
LOG = "log.txt"
FULL = "full"  # while a file of this name is in the folder, the database may not grow
PAGES_MAX = 4_294_967_294  # SQLite's own limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`kill`: "before" or "after" the `commit`-th commit since readiness that changes something. `model`: "echo" says the question back, "" is what
    the configuration names. `peer`: port of a `tests.e2e.peer`, with the `abilities` it has. `ahead_s`: how far the clock is ahead. `album_s`: how
    long an album waits for its rest. `command`: run the real command line with these words instead, and none of the rest."""

    folder: str
    kill: str = ""
    commit: int = 0
    model: str = "echo"
    peer: int = 0
    abilities: tuple[str, ...] = ()
    hold_s: float = 0.0
    ahead_s: float = 0.0
    album_s: float = 0.0
    user: int = 0
    command: tuple[str, ...] = ()

    def as_json(self) -> str:
        return json.dumps(asdict(self))


class MortalDatabase(Database):
    """Dies with its process at a chosen commit, and is full while the test says so."""

    def __init__(self, url: str, options: Options) -> None:
        super().__init__(url)
        self._kill = options.kill
        self._left = options.commit
        self._full = Path(options.folder) / FULL
        self.counting = False
        event.listen(self._write_engine, "begin", self._limit)

    def write_now(self, work: Callable[[sa.Connection], T]) -> T:
        changed = False

        def watched(connection: sa.Connection) -> T:
            nonlocal changed
            before = _changes(connection)
            result = work(connection)
            changed = _changes(connection) != before
            if self._at_commit(changed, "before"):
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        result = super().write_now(watched)
        if self._at_commit(changed, "after"):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.counting and changed:
            self._left -= 1
        return result

    def _at_commit(self, changed: bool, side: str) -> bool:
        return self.counting and changed and self._kill == side and self._left == 1

    def _limit(self, connection: sa.Connection) -> None:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one() if self._full.exists() else PAGES_MAX
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")


def _changes(connection: sa.Connection) -> int:
    return connection.connection.driver_connection.total_changes  # type: ignore[union-attr]  # a sqlite3.Connection


ASIDE = {"summary": '{"bullets": []}'}  # what it says to other work than replies; titles apart


class Echo(ScriptedModel):
    """Says the question back, and does not remember it: a long run must not grow by its fake."""

    def __init__(self, _account: ModelAccount) -> None:
        super().__init__(self._say)

    def _say(self, request: ModelRequest) -> str:
        self.requests.clear()
        asked = request.messages[-1].text.rpartition("[end of notes]\n\n")[2]
        return f"re: {asked}" if request.purpose == "reply" else ASIDE.get(request.purpose, "A title")


async def serve(options: Options) -> None:
    if options.album_s:
        lanes.HOLD_MEDIA_S = options.album_s
    path = Path(options.folder) / "config.json"
    loaded = load(path, {})
    assert loaded.config is not None, [str(fault) for fault in loaded.faults]
    redactor = start_logging(loaded.config.log.level, loaded.config.log.format)
    databases: list[MortalDatabase] = []

    def database(config: Config) -> Database:
        databases.append(MortalDatabase(sqlite_url(config.data_dir / "yumegate.db"), options))
        return databases[-1]

    def ready(started: Started) -> None:
        databases[-1].counting = True
        sys.stdout.write(f"Yumegate is ready: {started.page}\n")
        sys.stdout.flush()

    choices = Choices(
        clock=lambda: utc_now() + timedelta(seconds=options.ahead_s),
        make_model=Echo if options.model == "echo" else make_model,
        open_database=database,
        more_channels=(_peer_plan(options),) if options.peer else (),
        make_embedder=lambda _config: None,  # it would take a core for seconds, at every start
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, _tell_facts, Path(options.folder))
    await Gateway(loaded, load=lambda: load(path, {}), redactor=redactor, choices=choices).run(stop, ready)


def _peer_plan(options: Options) -> Plan:
    can = capabilities(options.abilities, options.hold_s)
    everybody = Rules(allow=frozenset({"*"}), groups=frozenset({"*"}))
    return Plan(
        account=ACCOUNT, settings=options.peer, capabilities=can, build=lambda: PeerChannel(options.peer, can), rules=lambda: everybody
    )


def _tell_facts(folder: Path) -> None:
    """How much this process holds, for a test that looks whether it grows."""
    resident = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    facts: dict[str, Any] = {
        "tasks": len(asyncio.all_tasks()),
        "handles": len(list(Path("/proc/self/fd").iterdir())),
        "resident_kb": int(resident.split()[1]),
    }
    unfinished = folder / "facts.part"
    unfinished.write_text(json.dumps(facts))
    unfinished.rename(folder / "facts.json")


def main(text: str) -> None:
    given = json.loads(text)
    options = Options(**given | {name: tuple(given.get(name, ())) for name in ("abilities", "command")})
    log = os.open(Path(options.folder) / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if options.user:
        os.setgroups([])
        os.setgid(options.user)
        os.setuid(options.user)
    if options.command:
        sys.argv = ["yumegate", *options.command]
        cli.main()
        return
    try:
        asyncio.run(serve(options))
    except (CannotStart, StoreError, OSError) as error:
        sys.stderr.write(f"Yumegate does not start: {error}\n")
        sys.exit(cli.EXIT_FAULT)


if __name__ == "__main__":
    main(sys.argv[1])

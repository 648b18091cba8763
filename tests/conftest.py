"""What every test stands on: no way out of this machine, a clock that moves when told, and a fresh database of either kind."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import multiprocessing
import os
import secrets
import shutil
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import settings

from memory.database import Database, sqlite_url
from memory.migrate import migrate
from tests.empty_database import empty_database
from tests.postgres import Copies

POSTGRES = "127.0.0.1:5432"
_UNSYNCED = "?options=-csynchronous_commit%3Doff"  # what a disk takes for each commit is no test's question
_SERVER = f"postgresql://postgres@{POSTGRES}/test{_UNSYNCED}"


settings.register_profile("busy machine", deadline=None)  # a slow example is no fault of the code
settings.load_profile("busy machine")


# -- loopback only -----------------------------------------------------------------------------------------------------


def is_loopback(host: object) -> bool:
    """Whether `host`, as given to a socket or a name look-up, stays on this machine."""
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if text is None or text in ("", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(str(text).partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def refuse_the_outside(event: str, args: tuple[object, ...]) -> None:
    """An audit hook: nothing can undo it, and it sees every way in which Python code connects, sends or looks up a name."""
    if event in ("socket.connect", "socket.sendto"):
        address = args[1]
        if isinstance(address, tuple) and not is_loopback(address[0]):
            raise RuntimeError(f"a test reached beyond loopback: {address}")
    elif event == "socket.getaddrinfo" and not is_loopback(args[0]):
        raise RuntimeError(f"a test looked up {args[0]}")


sys.addaudithook(refuse_the_outside)


# -- the session: workers side by side, and nothing that one test leaves to the next ------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """What a worker tells goes over a pipe as UTF-8, and some tests log the very text that is none."""
    return _sendable((yield))


def _sendable(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {_sendable(key): _sendable(each) for key, each in value.items()}
        case list() | tuple():
            return type(value)(_sendable(each) for each in value)
        case _:
            return value


RAM, RAM_NEEDED = Path("/dev/shm"), 2 << 30


def pytest_configure(config: pytest.Config) -> None:
    """Tests' folders are in memory where the system has enough of it, for most of what a commit takes is the disk; and workers get files in the order
    of `pytest_collection_modifyitems`, not by how many tests they have."""
    config.option.loadscopereorder = False
    if not config.option.basetemp and os.access(RAM, os.W_OK) and shutil.disk_usage(RAM).free > RAM_NEEDED:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(RAM))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """What is collected stays until the end: to look through it for garbage, again and again, takes a quarter of the time of collecting."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()  # nor is it looked through later, when a fake or a test asks for a whole look


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long come first: at the end two workers have small ones left, and neither waits for the other."""
    folders = [f"tests/{name}/" for name in ("e2e", "acceptance", "cases", "contracts", "channels")]
    items.sort(key=lambda item: next((place for place, folder in enumerate(folders) if item.nodeid.startswith(folder)), len(folders)))


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A gateway sets the level of its process, and a command takes over the handlers: who counts records later would find more or none."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(scope="session")
def nursery() -> Any:
    """For processes of ours: started from one fork server, so that each takes a moment and not the seconds of its imports and of a first run."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "tests.e2e.child", "tests.gateway.killed_summary", "tests.e2e.warm"])
    return context


# -- time --------------------------------------------------------------------------------------------------------------


class FakeClock:
    """A clock: call it for the time, an aware datetime in UTC. It stands still until `advance`."""

    def __init__(self, start: datetime = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)) -> None:
        self.now = start

    def __call__(self) -> datetime:
        return self.now

    def advance(self, step: timedelta | None = None, **parts: float) -> None:
        """`advance(minutes=10)`, or a whole timedelta."""
        self.now += (step or timedelta()) + timedelta(**parts)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


# -- databases ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file to copy: the migration runs once per session."""
    path = tmp_path_factory.mktemp("template") / "empty.db"
    with ThreadPoolExecutor(1) as elsewhere:  # a loop of its own, apart from the tests'
        path.write_bytes(elsewhere.submit(empty_database).result())
    return path


@pytest.fixture(scope="session")
def postgres_fault() -> str:
    """Why PostgreSQL cannot be used; empty when it can."""
    try:
        psycopg.connect(_SERVER, connect_timeout=2).close()
    except psycopg.OperationalError as error:
        return f"no PostgreSQL at {POSTGRES}: {error}".strip()
    return ""


@pytest.fixture(scope="session")
def empty_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a migrated database to copy: the migration runs once per session."""
    name = f"template_{secrets.token_hex(8)}"
    with psycopg.connect(_SERVER, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}".encode())
        database = Database(_postgres_url(name))
        migrate(database, tmp_path_factory.mktemp("template") / "backups")
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(asyncio.run, database.close()).result()
        yield name
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture(scope="session")
def postgres_copies(empty_postgres: str) -> Iterator[Copies]:
    copies = Copies(_SERVER, empty_postgres)
    yield copies
    copies.close()


@pytest.fixture(params=["sqlite", "postgres"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    """A migrated, empty database of its own; the test runs once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        path = tmp_path / "yumegate.db"
        shutil.copy(request.getfixturevalue("empty_sqlite"), path)
        database = Database(sqlite_url(path))
        yield database
        await database.close()
        return
    if fault := request.getfixturevalue("postgres_fault"):
        pytest.skip(fault)
    copies: Copies = request.getfixturevalue("postgres_copies")
    name = copies.take()
    database = Database(_postgres_url(name))
    yield database
    await database.close()
    copies.give_back(name)


def _postgres_url(name: str) -> str:
    return f"postgresql+psycopg://postgres@{POSTGRES}/{name}{_UNSYNCED}"


@pytest.fixture
async def sqlite(empty_sqlite: Path, tmp_path: Path) -> AsyncIterator[Database]:
    """A migrated, empty SQLite database, for tests whose subject is not the store."""
    path = tmp_path / "yumegate.db"
    shutil.copy(empty_sqlite, path)
    database = Database(sqlite_url(path))
    yield database
    await database.close()

"""What every test stands on: no way out of this machine, a clock that moves when told, and a fresh database of either kind."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
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
from tests.postgres import Copies

POSTGRES = "127.0.0.1:5432"
_SERVER = f"postgresql://postgres@{POSTGRES}/test"


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


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A gateway sets the level of its process, and a command takes over the handlers: who counts records later would find more or none."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


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
    database = Database(sqlite_url(path))
    migrate(database, path.parent / "backups")
    with ThreadPoolExecutor(1) as elsewhere:  # a loop of its own, apart from the tests'
        elsewhere.submit(asyncio.run, database.close()).result()
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
    return f"postgresql+psycopg://postgres@{POSTGRES}/{name}"


@pytest.fixture
async def sqlite(empty_sqlite: Path, tmp_path: Path) -> AsyncIterator[Database]:
    """A migrated, empty SQLite database, for tests whose subject is not the store."""
    path = tmp_path / "yumegate.db"
    shutil.copy(empty_sqlite, path)
    database = Database(sqlite_url(path))
    yield database
    await database.close()

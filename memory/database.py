"""The database: where a transaction runs, and nothing about what it says.

A transaction is one plain synchronous function on a `Connection`. On SQLite every writing one runs on one writer thread, and reading ones on a few
reader threads that cannot write; on PostgreSQL both run on a pool of threads as large as the connection pool. So there is one code path for both, no
await (and no outside call) inside a transaction, and no second writer to wait for. Measured: twice to five times the throughput of async drivers.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.pool import QueuePool, StaticPool

from memory.errors import StoreDamaged, StoreUnavailable

T = TypeVar("T")
Work = Callable[[sa.Connection], T]

BUSY_TIMEOUT_MS = 10_000  # above the longest writer we expect beside us, such as a backup tool (CF-15)
SQLITE_READERS = 3
POSTGRES_CONNECTIONS = 8

# Errors of the drivers quote a statement without its values (`hide_parameters`): those are people's words.
_dumps = partial(json.dumps, ensure_ascii=False)  # Japanese stays readable, and half as long (CF-03)


class Database:
    """One open database. Close it once, after everything that uses it."""

    def __init__(self, url: str) -> None:
        """`url`: an SQLAlchemy address, `sqlite:////path/file.db` or `postgresql+psycopg://…`. Opens nothing yet."""
        self.url = sa.make_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite:
            self._write_engine = _sqlite_engine(self.url, writer=True)
            self._read_engine = _sqlite_engine(self.url, writer=False)
            self._writer: Executor = ThreadPoolExecutor(1, thread_name_prefix="db-writer")
            self._readers: Executor = ThreadPoolExecutor(SQLITE_READERS, thread_name_prefix="db-reader")
        else:
            self._write_engine = sa.create_engine(
                self.url, pool_size=POSTGRES_CONNECTIONS, max_overflow=0, pool_pre_ping=True, json_serializer=_dumps, hide_parameters=True
            )
            self._read_engine = self._write_engine.execution_options(isolation_level="REPEATABLE READ")  # one view for all reads of a work
            self._writer = self._readers = ThreadPoolExecutor(POSTGRES_CONNECTIONS, thread_name_prefix="db")

    async def write(self, work: Work[T]) -> T:
        """Run `work` in one transaction and commit it. Raises StoreUnavailable when the database cannot be written now.

        Cancelling the caller does not undo it: the transaction ends by itself and may have happened.
        """
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._writer, self.write_now, work))

    async def read(self, work: Work[T]) -> T:
        """Run `work` on a consistent view. On SQLite a write inside it raises."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._readers, self.read_now, work))

    def write_now(self, work: Work[T]) -> T:
        """`write` from a thread of the caller's: for start-up, the command line and tests, never from the event loop."""
        try:
            with self._write_engine.begin() as connection:
                return work(connection)
        except exc.DBAPIError as error:
            raise _translate(error) from error

    def read_now(self, work: Work[T]) -> T:
        """`read` in the same way."""
        try:
            with self._read_engine.begin() as connection:
                return work(connection)
        except exc.DBAPIError as error:
            raise _translate(error) from error

    async def close(self) -> None:
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        """`close` in the same way."""
        self._writer.shutdown(wait=True)
        self._readers.shutdown(wait=True)
        self._write_engine.dispose()
        self._read_engine.dispose()


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path}"


def _translate(error: exc.DBAPIError) -> Exception:
    """What may pass by itself becomes StoreUnavailable, a broken file StoreDamaged; a wrong statement stays the programming error that it is."""
    if getattr(error.orig, "sqlite_errorcode", None) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamaged(f"the database is damaged ({error.orig}): stop the gateway and put a backup in its place")
    passing = isinstance(error, exc.OperationalError | exc.InterfaceError) or error.connection_invalidated
    return StoreUnavailable(f"the database cannot be used now: {error.orig}") if passing else error


def _sqlite_engine(url: sa.URL, *, writer: bool) -> sa.Engine:
    pool: dict[str, Any] = {"poolclass": StaticPool} if writer else {"poolclass": QueuePool, "pool_size": SQLITE_READERS, "max_overflow": 0}
    engine = sa.create_engine(url, json_serializer=_dumps, hide_parameters=True, connect_args={"check_same_thread": False}, **pool)

    @event.listens_for(engine, "connect")
    def prepare(dbapi: sqlite3.Connection, _record: object) -> None:  # pyright: ignore[reportUnusedFunction]  # the decorator registers it
        dbapi.isolation_level = None  # we say BEGIN ourselves
        pragmas = ["journal_mode=WAL", "synchronous=FULL", "secure_delete=ON", f"busy_timeout={BUSY_TIMEOUT_MS}", "foreign_keys=ON"]
        for pragma in pragmas if writer else [f"busy_timeout={BUSY_TIMEOUT_MS}", "query_only=ON"]:
            dbapi.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:  # pyright: ignore[reportUnusedFunction]  # the decorator registers it
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writer else "BEGIN")

    return engine

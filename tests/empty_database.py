"""A migrated SQLite database with nothing in it, made once per process: to migrate takes a gateway most of its first start."""

from __future__ import annotations

import asyncio
import tempfile
from functools import cache
from pathlib import Path

from memory.database import Database, sqlite_url
from memory.migrate import migrate


@cache
def empty_database() -> bytes:
    """The bytes of its file. Not for the thread of a running loop."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        database = Database(sqlite_url(path))
        migrate(database, Path(folder) / "backups")
        asyncio.run(database.close())
        return path.read_bytes()

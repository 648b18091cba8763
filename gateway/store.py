"""Which database a configuration means, and what time it is: apart from the composition root, for commands that need nothing else of it."""

from __future__ import annotations

from datetime import UTC, datetime

from gateway.config import Config
from memory.database import Database, sqlite_url


def utc_now() -> datetime:
    return datetime.now(UTC)


def open_database(config: Config) -> Database:
    """The store of `config`, not yet opened."""
    return Database(config.database.url or sqlite_url(config.data_dir / "yumegate.db"))

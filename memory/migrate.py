"""Bring a database to the schema of this code: make it, move it forward after a backup, or refuse a newer one (RL-5)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from memory.database import Database
from memory.errors import StoreTooNew

HEAD = "0009"
# Every revision of this code, oldest first; a test holds it equal to the files.
KNOWN = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009")
MIGRATIONS = Path(__file__).parent / "migrations"

_VERSION = sa.text("SELECT version_num FROM alembic_version")


def stored_revision(connection: sa.Connection) -> str:
    """The revision of the open database; empty for a new one."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return ""
    return connection.execute(_VERSION).scalar() or ""


def migrate(database: Database, backups: Path) -> str:
    """Bring `database` to HEAD and return the revision it had. SQLite files that change are first copied into `backups`.

    Raises StoreTooNew, having touched nothing, when the database is of a newer version. Runs in the caller's thread: before the loop has work.
    """
    before = database.write_now(stored_revision)
    if before == HEAD:
        return before  # importing alembic costs two seconds: a normal start never pays them
    if before and before not in KNOWN:
        raise StoreTooNew(
            f"the database has revision {before}, this program knows up to {HEAD}: start the newer version, or restore the backup made before it"
        )
    if before and database.is_sqlite and database.url.database:
        backup_sqlite(Path(database.url.database), backups / f"before-{HEAD}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.db")
    database.write_now(_upgrade)
    return before


def backup_sqlite(source: Path, target: Path) -> None:
    """A consistent copy of a live SQLite database, made by its own backup call."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with closing(sqlite3.connect(source)) as live, closing(sqlite3.connect(target)) as copy:
        live.backup(copy)
    target.chmod(0o600)


def _upgrade(connection: sa.Connection) -> None:
    from alembic import command  # two seconds to import, and most starts need none of it
    from alembic.config import Config

    settings = Config()
    settings.set_main_option("script_location", str(MIGRATIONS))
    settings.set_main_option("path_separator", "os")
    settings.attributes["connection"] = connection
    command.upgrade(settings, "head")

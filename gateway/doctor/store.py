"""What `doctor` reads from the database, without leaving a trace in it."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.pool import NullPool

from gateway import zones
from gateway.config import Config
from memory.migrate import HEAD, stored_revision
from memory.schema import inbox, messages, model_calls, people

CONNECT_LIMIT_S = 5
DAMAGE_SHOWN = 3

_NEWEST = (sa.func.max(messages.c.created_at), sa.func.max(inbox.c.received_at), sa.func.max(model_calls.c.at))
_WITH_PASSWORD = sa.select(people.c.id).where(people.c.password_hash != "", sa.not_(people.c.blocked)).limit(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """`fault`: why it cannot be read. `damage`: what the integrity check says when it is not whole. `newest`: when anything was last stored.
    `wrong_zones`: as `gateway.zones.wrong` names them."""

    revision: str = ""
    fault: str = ""
    damage: str = ""
    newest: datetime | None = None
    has_passwords: bool = False
    wrong_zones: tuple[tuple[str, str, str], ...] = ()


def look_into(config: Config) -> Store:
    """Read the database of a configuration; an empty `Store` when there is none yet. Blocks, never raises for what it finds, never writes."""
    try:
        url = sa.make_url(config.database.url) if config.database.url else None
        if url is not None and url.get_backend_name() != "sqlite":
            return _read(sa.create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": CONNECT_LIMIT_S}))
        file = Path(url.database or "") if url is not None else config.data_dir / "yumegate.db"
        if not file.is_file():
            return Store()
        engine = sa.create_engine("sqlite://", creator=lambda: sqlite3.connect(_read_only(file), uri=True), poolclass=NullPool)
        return _read(engine)
    except exc.DBAPIError as error:
        return Store(fault=" ".join(str(error.orig).split()))
    except (exc.ArgumentError, exc.NoSuchModuleError, OSError) as error:
        return Store(fault=str(error))


def _read_only(file: Path) -> str:
    """Beside a log of writes (a gateway runs, or was killed) the usual way to read; without one, a way that does not make that log's files."""
    log = file.with_name(f"{file.name}-wal")
    in_use = log.is_file() and log.stat().st_size > 0
    return f"{file.absolute().as_uri()}?mode=ro" + ("" if in_use else "&immutable=1")


def _read(engine: sa.Engine) -> Store:
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        revision = stored_revision(connection)
        damage = _damage(connection) if engine.dialect.name == "sqlite" else ""
        if revision != HEAD or damage:
            return Store(revision=revision, damage=damage)
        newest = [at for column in _NEWEST if (at := connection.execute(sa.select(column)).scalar()) is not None]
        return Store(
            revision=revision,
            newest=max(newest, default=None),
            has_passwords=connection.execute(_WITH_PASSWORD).first() is not None,
            wrong_zones=tuple(zones.wrong(connection)),
        )


def _damage(connection: sa.Connection) -> str:
    """What the integrity check complains of; empty when the database is whole."""
    said = [str(row[0]) for row in connection.exec_driver_sql(f"PRAGMA integrity_check({DAMAGE_SHOWN})")]
    return "" if said == ["ok"] else "; ".join(said)

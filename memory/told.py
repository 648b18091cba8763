"""What a scope's person is told once, at the next fitting moment: codes in `scope_settings.told`, with the date, empty until it was told.

Plain functions on a `Connection`, joined into the transaction that stores the words.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa

from memory.file_schema import scope_settings
from memory.upserts import insert_or_keep

_MAKE = insert_or_keep(scope_settings, ["scope"])
_READ = sa.select(scope_settings.c.told).where(scope_settings.c.scope == sa.bindparam("of"))
_LOCKED = _READ.with_for_update()
_STORE = (
    sa.update(scope_settings)
    .where(scope_settings.c.scope == sa.bindparam("of"))
    .values(told=sa.bindparam("codes", type_=sa.JSON()), updated_at=sa.bindparam("at", type_=scope_settings.c.updated_at.type))
)


def tell_once(connection: sa.Connection, scope: str, code: str, now: datetime) -> None:
    """Tell it with the next chance; nothing when it was told before."""
    told = _told(connection, scope, now)
    if code not in told:
        _store(connection, scope, {**told, code: ""}, now)


def take(connection: sa.Connection, scope: str, now: datetime) -> tuple[str, ...]:
    """The codes that are due, which count as told from now on."""
    seen: Mapping[str, str] = connection.execute(_READ, {"of": scope}).scalar() or {}
    if all(seen.values()):  # nearly always: no row is locked
        return ()
    told = _told(connection, scope, now)
    due = tuple(code for code, when in told.items() if not when)
    _store(connection, scope, {code: when or now.date().isoformat() for code, when in told.items()}, now)
    return due


def settle(connection: sa.Connection, scope: str, code: str, now: datetime) -> None:
    """It has become needless: never tell it."""
    told = _told(connection, scope, now)
    _store(connection, scope, {**told, code: told.get(code) or now.date().isoformat()}, now)


def _told(connection: sa.Connection, scope: str, now: datetime) -> Mapping[str, str]:
    connection.execute(_MAKE[connection.dialect.name], {"scope": scope, "updated_at": now})
    return connection.execute(_LOCKED, {"of": scope}).scalar() or {}


def _store(connection: sa.Connection, scope: str, told: Mapping[str, str], now: datetime) -> None:
    connection.execute(_STORE, {"of": scope, "codes": dict(told), "at": now})

"""The small secrets that an account keeps: login, tokens of people (WX-11). They stand beside its cursors, so that both can be written together.

Nothing exports that table, and nothing prints what is in it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import datetime

import sqlalchemy as sa

from channels.message import Account
from channels.port import Cursor
from gateway.arrivals import inbox
from memory.database import Database
from memory.schema import cursors

_PREFIX = "vault/"  # no adapter's cursor is called so
_ALL = sa.delete(cursors).where(cursors.c.channel == sa.bindparam("of_channel"), cursors.c.account == sa.bindparam("of_account"))


def keep(connection: sa.Connection, account: Account, entries: Mapping[str, bytes], now: datetime) -> None:
    """Write entries, for instance those of a `Cursor`, in the transaction that stores its events (WX-31)."""
    for key, value in entries.items():
        cursor = Cursor(name=f"{_PREFIX}{key}", value=base64.b64encode(value).decode())
        inbox.save_cursor(connection, channel=account.channel, account=account.name, cursor=cursor, now=now)


def renew(connection: sa.Connection, account: Account, entries: Mapping[str, bytes], now: datetime) -> None:
    """Everything kept for the account goes, its cursors included; then `entries` stand (WX-25)."""
    connection.execute(_ALL, {"of_channel": account.channel, "of_account": account.name})
    keep(connection, account, entries, now)


class StoreVault:
    """A `Vault` in the shared store."""

    def __init__(self, db: Database, account: Account, *, clock: Callable[[], datetime]) -> None:
        self._db = db
        self._account = account
        self._clock = clock

    async def get(self, key: str) -> bytes | None:
        def look(connection: sa.Connection) -> str:
            return inbox.load_cursor(connection, channel=self._account.channel, account=self._account.name, name=f"{_PREFIX}{key}")

        found = await self._db.read(look)
        return base64.b64decode(found) if found else None

    async def put(self, entries: Mapping[str, bytes]) -> None:
        await self._db.write(lambda connection: keep(connection, self._account, entries, self._clock()))

    async def renew(self, entries: Mapping[str, bytes]) -> None:
        await self._db.write(lambda connection: renew(connection, self._account, entries, self._clock()))

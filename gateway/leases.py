"""Named leases with fencing, on the database's clock: who holds a channel's credential, an index, a vendor's token (CH-104, WD-136).

Plain functions on a `Connection`. The clocks of several machines differ, so a lease begins and ends by the time of the one database they share.
Its number (`fence`) grows with every taking: a holder that slept through the end of its lease shows an old number and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from memory.columns import UtcTime
from memory.schema import leases

LEASE = timedelta(seconds=120)
RENEW_EVERY = timedelta(seconds=30)
PAST = datetime(1970, 1, 1, tzinfo=UTC)  # an instant that every clock has behind it

Clock = Callable[[], datetime]  # stands in for the database's clock in tests; aware, UTC


class LeaseLost(Exception):
    """Another holder has it by now, or nobody: stop, and write nothing."""


# -- the database's clock ----------------------------------------------------------------------------------------------


class DatabaseNow(FunctionElement[datetime]):
    """The present instant as the database sees it, fixed for one statement: milliseconds on SQLite, microseconds on PostgreSQL."""

    name = "database_now"
    type = UtcTime()
    inherit_cache = True


@compiles(DatabaseNow, "sqlite")
def now_on_sqlite(_element: DatabaseNow, _compiler: Any, **_options: Any) -> str:
    return "(CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)"


@compiles(DatabaseNow, "postgresql")
def now_on_postgresql(_element: DatabaseNow, _compiler: Any, **_options: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000000 AS BIGINT)"  # stable, so that an index on times still serves


# Bind `now` to an instant to stand in for the database's clock, to None to ask it.
NOW: sa.ColumnElement[datetime] = sa.func.coalesce(sa.bindparam("now", value=None, type_=UtcTime()), DatabaseNow(), type_=UtcTime())


def later(bind: str) -> sa.ColumnElement[datetime]:
    """NOW plus a bound timedelta of that name."""
    return sa.type_coerce(sa.type_coerce(NOW, sa.BigInteger) + sa.bindparam(bind, type_=Microseconds()), UtcTime())


class Microseconds(sa.types.TypeDecorator[timedelta]):
    """A distance between two `UtcTime`: a timedelta in and out, stored as integer microseconds."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: timedelta | None, dialect: sa.Dialect) -> int | None:
        return None if value is None else value // timedelta(microseconds=1)

    def process_result_value(self, value: Any | None, dialect: sa.Dialect) -> timedelta | None:
        return None if value is None else timedelta(microseconds=value)


# -- leases ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """What a holder shows: `fence` is its number, `until` the database's time at which it ends unless renewed."""

    name: str
    owner: str
    fence: int
    until: datetime


def take(connection: sa.Connection, name: str, owner: str, length: timedelta = LEASE, *, now: datetime | None = None) -> Lease | None:
    """The lease if it is free, has ended, or is `owner`'s already (with a new number, so that its older lease is lost); None if another holds it.

    `owner` is shown to people (CH-104): machine and process. Holders in one process that exclude each other need names of their own.
    """
    values = {"name": name, "owner": owner, "length": length, "now": now}
    return _lease(connection.execute(_TAKE[connection.dialect.name], values).one_or_none())


def renew(connection: sa.Connection, lease: Lease, length: timedelta = LEASE, *, now: datetime | None = None) -> Lease:
    """The lease with a later end; every RENEW_EVERY. Raises LeaseLost once another has taken it or it was released.

    A lease that ended but that nobody took is renewed: nothing happened in between that its holder could have missed.
    """
    renewed = _lease(connection.execute(_RENEW, {**_shown(lease), "length": length, "now": now}).one_or_none())
    if renewed is None:
        raise LeaseLost(f"the lease {lease.name!r} is no longer held by {lease.owner}")
    return renewed


def check(connection: sa.Connection, lease: Lease) -> None:
    """Raises LeaseLost unless `lease` is still the newest. First statement of a fenced transaction: nobody takes it over before that commits."""
    if connection.execute(_CHECK, _shown(lease)).one_or_none() is None:
        raise LeaseLost(f"the lease {lease.name!r} is no longer held by {lease.owner}")


def release(connection: sa.Connection, lease: Lease) -> None:
    """End it now; nothing happens if it is lost already. The row stays, for its number must go on growing."""
    connection.execute(_RELEASE, _shown(lease))


def holder(connection: sa.Connection, name: str, *, now: datetime | None = None) -> Lease | None:
    """The lease in force, None when it is free."""
    return _lease(connection.execute(_HOLDER, {"the_name": name, "now": now}).one_or_none())


def _lease(row: sa.Row[Any] | None) -> Lease | None:
    return None if row is None else Lease(name=row.name, owner=row.owner, fence=row.fence, until=row.until)


def _shown(lease: Lease) -> dict[str, Any]:
    return {"the_name": lease.name, "the_fence": lease.fence}


def _take(insert: Any) -> Any:
    statement = insert(leases).values(name=sa.bindparam("name"), owner=sa.bindparam("owner"), fence=1, until=later("length"))
    return statement.on_conflict_do_update(
        index_elements=["name"],
        set_={"owner": statement.excluded.owner, "fence": leases.c.fence + 1, "until": statement.excluded.until},
        where=(leases.c.until <= NOW) | (leases.c.owner == statement.excluded.owner),
    ).returning(leases)


_TAKE = {"sqlite": _take(sqlite.insert), "postgresql": _take(postgresql.insert)}
_HELD = (leases.c.name == sa.bindparam("the_name")) & (leases.c.fence == sa.bindparam("the_fence")) & (leases.c.owner != "")
_RENEW = sa.update(leases).where(_HELD).values(until=later("length")).returning(leases)
_CHECK = sa.update(leases).where(_HELD).values(fence=leases.c.fence).returning(leases.c.fence)  # an update, for its row lock
_RELEASE = sa.update(leases).where(_HELD).values(owner="", until=PAST)
_HOLDER = sa.select(leases).where(leases.c.name == sa.bindparam("the_name"), leases.c.until > NOW)

"""The rows of people who wait to be let in, and the count of wrong codes (CH-113). Plain functions on a `Connection`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from gateway.pairing_codes import code_hash, new_code
from gateway.person import Identity
from memory.pairing_schema import pairings
from memory.schema import settings
from memory.upserts import insert_or_change

LIFETIME = timedelta(hours=1)
AGAIN_AFTER = timedelta(minutes=10)  # the soonest that a stranger hears another code
WAITING_MAX = 3  # people of one account
TURNED_AWAY_FOR = timedelta(hours=24)  # who was declined hears nothing for so long
WRONG_MAX, LOCKED_FOR = 5, timedelta(hours=1)
WRONG = "pairing.wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One who waits. `address`: their private chat with us; `language` empty when unknown."""

    id: int
    identity: Identity
    address: str
    language: str
    told_at: datetime
    expires_at: datetime


_IDENTITY = (
    pairings.c.channel == sa.bindparam("channel"),
    pairings.c.account == sa.bindparam("account"),
    pairings.c.platform_user_id == sa.bindparam("platform_user_id"),
)
_PRUNE = sa.delete(pairings).where(pairings.c.expires_at <= sa.bindparam("now"))
_OF = sa.select(pairings).where(*_IDENTITY)
_COUNT = sa.select(sa.func.count()).where(
    pairings.c.channel == sa.bindparam("channel"), pairings.c.account == sa.bindparam("account"), pairings.c.code_hash != ""
)
_WAITING = sa.select(pairings).where(pairings.c.code_hash != "", pairings.c.expires_at > sa.bindparam("now")).order_by(pairings.c.id)
_BY_CODE = sa.select(pairings).where(pairings.c.code_hash == sa.bindparam("code"), pairings.c.expires_at > sa.bindparam("now"))
_PUT = insert_or_change(
    pairings, ["channel", "account", "platform_user_id"], ["name", "language", "address", "code_hash", "told_at", "expires_at"]
)
_DROP = sa.delete(pairings).where(*_IDENTITY)
_TURN_AWAY = (
    sa.update(pairings)
    .where(pairings.c.id == sa.bindparam("row"), pairings.c.code_hash != "")
    .values(code_hash="", told_at=sa.bindparam("until"), expires_at=sa.bindparam("until"))
    .returning(pairings)
)
_WRONG = sa.select(settings.c.value).where(settings.c.key == WRONG)
_PUT_WRONG = insert_or_change(settings, ["key"], ["value", "updated_at"])


def ask(connection: sa.Connection, who: Identity, *, address: str, language: str, now: datetime) -> str:
    """A new code for a stranger, in the place of the old one; empty when they are to hear nothing now."""
    connection.execute(_PRUNE, {"now": now})
    keys = _keys(who)
    row = connection.execute(_OF, keys).one_or_none()
    if row is not None and (not row.code_hash or now - row.told_at < AGAIN_AFTER):
        return ""
    if row is None and connection.execute(_COUNT, {"channel": who.channel, "account": who.account}).scalar_one() >= WAITING_MAX:
        return ""
    code = new_code()
    values = {"name": who.name, "language": language, "address": address, "told_at": now, "expires_at": now + LIFETIME}
    connection.execute(_PUT[connection.dialect.name], {**keys, **values, "code_hash": code_hash(connection, code, now)})
    return code


def waiting(connection: sa.Connection, now: datetime) -> list[Request]:
    """Who waits, the longest first."""
    return [_request(row) for row in connection.execute(_WAITING, {"now": now})]


def by_code(connection: sa.Connection, code: str, now: datetime) -> Request | None:
    hashed = code_hash(connection, code, now)
    row = connection.execute(_BY_CODE, {"code": hashed, "now": now}).first() if hashed else None
    return _request(row) if row is not None else None


def drop(connection: sa.Connection, who: Identity) -> None:
    """They wait no more."""
    connection.execute(_DROP, _keys(who))


def turn_away(connection: sa.Connection, request_id: int, now: datetime) -> Request | None:
    """They wait no more, and hear nothing for a day. None when nobody waits under this number."""
    row = connection.execute(_TURN_AWAY, {"row": request_id, "until": now + TURNED_AWAY_FOR}).one_or_none()
    return _request(row) if row is not None else None


# -- wrong codes ------------------------------------------------------------------------------------------------------------


def locked_until(connection: sa.Connection, now: datetime) -> datetime | None:
    """Until when nobody is let in, because too many codes were wrong; None when not locked."""
    wrong = _wrong(connection, now)
    return wrong[-1] + LOCKED_FOR if len(wrong) >= WRONG_MAX else None


def count_wrong(connection: sa.Connection, now: datetime) -> None:
    _put_wrong(connection, [*_wrong(connection, now), now], now)


def forget_wrong(connection: sa.Connection, now: datetime) -> None:
    """A right code: the count begins anew."""
    if _wrong(connection, now):
        _put_wrong(connection, [], now)


def _wrong(connection: sa.Connection, now: datetime) -> list[datetime]:
    stored: list[str] = connection.execute(_WRONG).scalar() or []
    return [at for at in map(datetime.fromisoformat, stored) if now - at < LOCKED_FOR]


def _put_wrong(connection: sa.Connection, at: list[datetime], now: datetime) -> None:
    values = {"key": WRONG, "value": [each.isoformat() for each in at], "updated_at": now}
    connection.execute(_PUT_WRONG[connection.dialect.name], values)


def _keys(who: Identity) -> dict[str, str]:
    return {"channel": who.channel, "account": who.account, "platform_user_id": who.platform_user_id}


def _request(row: sa.Row[Any]) -> Request:
    who = Identity(channel=row.channel, account=row.account, platform_user_id=row.platform_user_id, name=row.name)
    return Request(id=row.id, identity=who, address=row.address, language=row.language, told_at=row.told_at, expires_at=row.expires_at)

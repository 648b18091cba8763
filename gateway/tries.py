"""How often somebody may try a code: counted in the store, so that a restart or a second process forgives nothing. Plain functions on a `Connection`.

Unlike a `Throttle` it costs a write, and its keys are people we know: nobody can push others out by inventing some.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

import sqlalchemy as sa

from memory.schema import settings
from memory.upserts import insert_or_change, insert_or_keep

KEYS_MAX = 1_000  # who tried last; more than can be let in within one window

_TRIED = sa.select(settings.c.value).where(settings.c.key == sa.bindparam("key")).with_for_update()
_BEGIN = insert_or_keep(settings, ["key"])
_PUT = insert_or_change(settings, ["key"], ["value", "updated_at"])


def take(connection: sa.Connection, kind: str, who: str, now: datetime, *, limit: int, window: timedelta) -> bool:
    """Whether `who` may try now, and then it counts: at most `limit` times in any stretch as long as `window`. `kind`: the row they are kept in."""
    dialect, who = connection.dialect.name, hashlib.blake2b(who.encode(), digest_size=12).hexdigest()  # who leaves is not named here afterwards
    connection.execute(_BEGIN[dialect], {"key": kind, "value": {}, "updated_at": now})
    stored: dict[str, list[str]] = connection.execute(_TRIED, {"key": kind}).scalar_one()
    kept = {each: recent for each, at in stored.items() if (recent := [one for one in at if now - datetime.fromisoformat(one) < window])}
    mine = kept.pop(who, [])
    if len(mine) >= limit:
        return False
    kept[who] = [*mine, now.isoformat()]  # the newest last: the one left alone longest is forgotten
    value = dict(list(kept.items())[-KEYS_MAX:])
    connection.execute(_PUT[dialect], {"key": kind, "value": value, "updated_at": now})
    return True

"""Sessions of browsers: kept on the server, revocable at once, alive for 30 days after the last use (WO-61)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import sqlalchemy as sa

from channels.message import clean
from gateway.credentials import SEEN_EVERY, Visit, VisitCache, Way, fingerprint, new_secret
from gateway.people import find
from memory.database import Database
from memory.ids import PersonId
from memory.schema import sessions

LIFETIME = timedelta(days=30)

_AGENT_MAX = 200

_ADD = sa.insert(sessions)
_FIND = sa.select(sessions).where(sessions.c.token_hash == sa.bindparam("key"), sessions.c.expires_at > sa.bindparam("now"))
_SEEN = sa.update(sessions).where(sessions.c.token_hash == sa.bindparam("key")).values(seen_at=sa.bindparam("now"), expires_at=sa.bindparam("until"))
_END = sa.delete(sessions).where(sessions.c.token_hash == sa.bindparam("key"))
_PRUNE = sa.delete(sessions).where(sessions.c.expires_at <= sa.bindparam("now"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A new session. `token` is the cookie's value and exists nowhere else."""

    token: str
    csrf: str
    expires_at: datetime


class Sessions:
    def __init__(self, db: Database, clock: Callable[[], datetime], cache: VisitCache) -> None:
        self._db = db
        self._clock = clock
        self._cache = cache

    async def open(self, person_id: PersonId, agent: str = "") -> Opened:
        """A new session; `agent` is what the browser calls itself. Sessions that have ended by themselves are cleared away."""
        now = self._clock()
        opened = Opened(token=new_secret(), csrf=new_secret(), expires_at=now + LIFETIME)
        row = {"token_hash": fingerprint(opened.token), "person_id": person_id, "csrf": opened.csrf, "agent": clean(agent)[:_AGENT_MAX]}
        row |= {"created_at": now, "seen_at": now, "expires_at": opened.expires_at}

        def work(connection: sa.Connection) -> None:
            connection.execute(_PRUNE, {"now": now})
            connection.execute(_ADD, row)

        await self._db.write(work)
        return opened

    async def find(self, token: str) -> Visit | None:
        """Whose session it is; None for an unknown, revoked or ended one, and for a blocked person. Most calls ask no database."""
        key = fingerprint(token)
        return await self._cache.find(key, partial(self._look_up, key))

    async def _look_up(self, key: str) -> Visit | None:
        now = self._clock()

        def work(connection: sa.Connection) -> tuple[Visit | None, bool]:
            row = connection.execute(_FIND, {"key": key, "now": now}).one_or_none()
            person = find(connection, row.person_id) if row else None
            if row is None or person is None or person.blocked:
                return None, False
            return Visit(person=person, way=Way.SESSION, key=key, csrf=row.csrf), now - row.seen_at >= SEEN_EVERY

        visit, stale = await self._db.read(work)
        if stale:
            await self._db.write(lambda connection: connection.execute(_SEEN, {"key": key, "now": now, "until": now + LIFETIME}).close())
        return visit

    async def end(self, key: str) -> None:
        """The session with this key (`Visit.key`) is over, on the server and for good."""
        await self._db.write(lambda connection: connection.execute(_END, {"key": key}).close())
        self._cache.forget(key)

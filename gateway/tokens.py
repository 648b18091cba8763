"""API tokens, `yg_…`: made by a person for programs of theirs, shown once, stored as a hash, valid until taken back (WO-50)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from gateway import audit
from gateway.audit import Actor
from gateway.credentials import SEEN_EVERY, Visit, VisitCache, Way, fingerprint, new_secret
from gateway.people import find
from memory.database import Database
from memory.ids import PersonId, opaque
from memory.schema import api_tokens

PREFIX = "yg_"

_ADD = sa.insert(api_tokens)
_FIND = sa.select(api_tokens).where(api_tokens.c.token_hash == sa.bindparam("key"))
_USED = sa.update(api_tokens).where(api_tokens.c.token_hash == sa.bindparam("key")).values(used_at=sa.bindparam("now"))
_OF = sa.select(api_tokens).where(api_tokens.c.person_id == sa.bindparam("of")).order_by(api_tokens.c.created_at, api_tokens.c.id)
_DROP = (
    sa.delete(api_tokens)
    .where(api_tokens.c.id == sa.bindparam("id"), api_tokens.c.person_id == sa.bindparam("of"))
    .returning(api_tokens.c.token_hash, api_tokens.c.name)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    """What is known of a token; the token itself is not. `used_at` is exact to the hour."""

    id: str
    name: str
    created_at: datetime
    used_at: datetime | None = None


class ApiTokens:
    def __init__(self, db: Database, clock: Callable[[], datetime], cache: VisitCache) -> None:
        self._db = db
        self._clock = clock
        self._cache = cache

    async def make(self, by: Actor, person_id: PersonId, name: str) -> tuple[ApiToken, str]:
        """A new token of that person, and its text, which nobody can read again."""
        text = PREFIX + new_secret()
        token = ApiToken(id=opaque("k"), name=name, created_at=self._clock())

        def work(connection: sa.Connection) -> None:
            row = {"id": token.id, "token_hash": fingerprint(text), "person_id": person_id, "name": name, "created_at": token.created_at}
            connection.execute(_ADD, row)
            audit.record(connection, by, "api_token.make", at=token.created_at, target=person_id, after={"id": token.id, "name": name})

        await self._db.write(work)
        return token, text

    async def of(self, person_id: PersonId) -> list[ApiToken]:
        """That person's tokens, oldest first."""

        def work(connection: sa.Connection) -> list[ApiToken]:
            rows = connection.execute(_OF, {"of": person_id})
            return [ApiToken(id=row.id, name=row.name, created_at=row.created_at, used_at=row.used_at) for row in rows]

        return await self._db.read(work)

    async def find(self, text: str) -> Visit | None:
        """Whose token it is; None for an unknown or dropped one, and for a blocked person. Most calls ask no database."""
        key = fingerprint(text)
        return await self._cache.find(key, partial(self._look_up, key))

    async def _look_up(self, key: str) -> Visit | None:
        now = self._clock()

        def work(connection: sa.Connection) -> tuple[Visit | None, bool]:
            row = connection.execute(_FIND, {"key": key}).one_or_none()
            person = find(connection, row.person_id) if row else None
            if row is None or person is None or person.blocked:
                return None, False
            return Visit(person=person, way=Way.TOKEN, key=key), row.used_at is None or now - row.used_at >= SEEN_EVERY

        visit, stale = await self._db.read(work)
        if stale:
            await self._db.write(lambda connection: connection.execute(_USED, {"key": key, "now": now}).close())
        return visit

    async def drop(self, by: Actor, person_id: PersonId, token_id: str) -> bool:
        """The token works no more. False when that person has none with this id."""

        def work(connection: sa.Connection) -> str:
            row = connection.execute(_DROP, {"id": token_id, "of": person_id}).one_or_none()
            if row is None:
                return ""
            audit.record(connection, by, "api_token.drop", at=self._clock(), target=person_id, before={"id": token_id, "name": row.name})
            return row.token_hash

        key = await self._db.write(work)
        self._cache.forget(key)
        return bool(key)

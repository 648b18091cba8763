"""One-time links for signing in without a password: dead on use or after 10 minutes (WO-1, WO-61)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import sqlalchemy as sa

from gateway import audit
from gateway.audit import Actor
from gateway.credentials import fingerprint, new_secret
from memory.database import Database
from memory.ids import PersonId
from memory.schema import login_links, people

LIFETIME = timedelta(minutes=10)

_ADD = sa.insert(login_links)
_PRUNE = sa.delete(login_links).where(login_links.c.expires_at <= sa.bindparam("now"))
# One conditional statement: of any number of uses at the same time exactly one finds the link unused.
_USE = (
    sa.update(login_links)
    .where(login_links.c.code_hash == sa.bindparam("code"), login_links.c.used_at.is_(None), login_links.c.expires_at > sa.bindparam("now"))
    .values(used_at=sa.bindparam("now"))
    .returning(login_links.c.person_id)
)
_MAY_SIGN_IN = sa.select(people.c.id).where(people.c.id == sa.bindparam("id"), sa.not_(people.c.blocked))


class LoginLinks:
    def __init__(self, db: Database, clock: Callable[[], datetime]) -> None:
        self._db = db
        self._clock = clock

    async def make(self, by: Actor, person_id: PersonId) -> str:
        """A new code for `/login/{code}`. Only its hash is stored."""
        now, code = self._clock(), new_secret()
        row = {"code_hash": fingerprint(code), "person_id": person_id, "expires_at": now + LIFETIME}

        def work(connection: sa.Connection) -> None:
            connection.execute(_PRUNE, {"now": now})
            connection.execute(_ADD, row)
            audit.record(connection, by, "login_link.make", at=now, target=person_id)

        await self._db.write(work)
        return code

    async def use(self, code: str) -> PersonId | None:
        """Whose link it was; None for an unknown, used or old one, and for a blocked person's. It is dead from now on."""

        def work(connection: sa.Connection) -> str | None:
            person_id = connection.execute(_USE, {"code": fingerprint(code), "now": self._clock()}).scalar()
            return person_id and connection.execute(_MAY_SIGN_IN, {"id": person_id}).scalar()

        person_id = await self._db.write(work)
        return PersonId(person_id) if person_id else None

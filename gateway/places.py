"""What is settled about a group: whether it is answered, whether it wants to be mentioned, and who manages it (CH-115, CH-116, CH-118)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import sqlalchemy as sa

from channels.message import Address
from gateway import audit
from gateway.access import Rules
from gateway.audit import Actor
from memory.database import Database
from memory.pairing_schema import space_managers
from memory.schema import spaces
from memory.upserts import insert_or_keep

_PUT_MANAGER = insert_or_keep(space_managers, ["space_id", "person_id"])


class Places:
    """`rules`: whom the account of an address admits by the present configuration; None when there is no such account."""

    def __init__(self, db: Database, clock: Callable[[], datetime], rules: Callable[[Address], Rules | None]) -> None:
        self._db = db
        self._clock = clock
        self._rules = rules

    async def allow(self, by: Actor, space_id: str, address: Address, *, allowed: bool) -> bool:
        """Answer in this group from now on, or no more; False when the configuration lists it, for then only that can end it."""

        def work(connection: sa.Connection) -> str:
            found = connection.execute(sa.select(spaces.c.platform_space_id, spaces.c.allowed).where(spaces.c.id == space_id)).one()
            if found.allowed != allowed:
                self._set(connection, by, space_id, "space.allow", allowed=allowed)
            return found.platform_space_id

        platform_id, rules = await self._db.write(work), self._rules(address)
        return allowed or rules is None or not rules.admits_group(platform_id, address.chat_id)

    async def want_mention(self, by: Actor, space_id: str, *, wanted: bool) -> None:
        """Whether only messages that mention us are answered in this group."""
        await self._db.write(lambda connection: self._set(connection, by, space_id, "space.mention", mention="on" if wanted else "off"))

    async def let_manage(self, by: Actor, space_id: str, person_id: str, *, manages: bool) -> None:
        now = self._clock()

        def work(connection: sa.Connection) -> None:
            values = {"space_id": space_id, "person_id": person_id, "created_at": now}
            if manages:
                connection.execute(_PUT_MANAGER[connection.dialect.name], values)
            else:
                connection.execute(sa.delete(space_managers).filter_by(space_id=space_id, person_id=person_id))
            audit.record(connection, by, "space.manager", at=now, target=space_id, after={"person": person_id, "manages": manages})

        await self._db.write(work)

    def _set(self, connection: sa.Connection, by: Actor, space_id: str, action: str, **values: object) -> None:
        columns = [spaces.c[name] for name in values]
        before = dict(connection.execute(sa.select(*columns).where(spaces.c.id == space_id)).mappings().one())
        connection.execute(sa.update(spaces).where(spaces.c.id == space_id).values(**values))
        audit.record(connection, by, action, at=self._clock(), target=space_id, before=before, after=values)

"""What is settled about a group: whether it is answered, whether it wants to be mentioned, and who manages it (CH-115, CH-116, CH-118)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import sqlalchemy as sa

from channels.message import Account, Address
from gateway import audit
from gateway.access import Rules
from gateway.audit import Actor
from memory.database import Database
from memory.pairing_schema import space_managers
from memory.schema import spaces
from memory.upserts import insert_or_keep

_PUT_MANAGER = insert_or_keep(space_managers, ["space_id", "person_id"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group as it counts now, and where that comes from. `answered`: because the configuration lists it, by `/allow`, or not at all; `mention`:
    whether only messages that mention us are answered; `mention_from`: how its account has it, or `/allow mention` there."""

    id: str
    title: str
    channel: str
    account: str
    platform_space_id: str
    answered: Literal["config", "command", "no"]
    mention: bool
    mention_from: Literal["default", "command"]


_GROUPS = sa.select(
    *(spaces.c[name] for name in ("id", "title", "channel", "account", "platform_space_id", "server_id", "allowed", "mention"))
).order_by(spaces.c.channel, spaces.c.account, spaces.c.title, spaces.c.id)


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

    async def groups(self) -> list[Group]:
        """Every group that ever was answered or allowed, for the operator: what holds there, and why (CF-12)."""
        rows = await self._db.read(lambda connection: connection.execute(_GROUPS).all())
        return [self._group(row) for row in rows]

    def _group(self, row: sa.Row[tuple[object, ...]]) -> Group:
        rules = self._rules(Address(account=Account(channel=row.channel, name=row.account), chat_id=row.platform_space_id)) or Rules()
        listed = rules.admits_group(row.platform_space_id, row.server_id)
        return Group(
            id=row.id,
            title=row.title,
            channel=row.channel,
            account=row.account,
            platform_space_id=row.platform_space_id,
            answered="config" if listed else "command" if row.allowed else "no",
            mention=row.mention == "on" if row.mention else rules.mention_needed,
            mention_from="command" if row.mention else "default",
        )

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

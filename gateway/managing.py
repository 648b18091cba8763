"""Who manages a group: whoever was given that right here, every admin, and whoever its platform names an administrator (CH-12, CH-118).

The platform is asked when a command or a dream needs to know, and its answer is remembered for ten minutes. A command does not wait long for it: an
answer that comes later counts for the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from channels.message import Account, Address
from channels.port import Channel, Managers, Unknown
from gateway.access import includes
from gateway.delivery.outbox import SIGN_LIMIT_S, asked
from memory.database import Database
from memory.pairing_schema import space_managers
from memory.schema import conversations, identities, people, spaces
from memory.scopes import Scope

KEPT = timedelta(minutes=10)
KEPT_MAX = 1_000
PATIENCE_S = 0.8  # a command is answered within a second (WD-118)
AT_ONCE = 4  # people whom a dream asks about at the same time

_ROLE = (
    sa.select(people.c.id, people.c.role)
    .join(identities, identities.c.person_id == people.c.id)
    .where(
        identities.c.channel == sa.bindparam("channel"),
        identities.c.account == sa.bindparam("account"),
        identities.c.platform_user_id == sa.bindparam("sender"),
        sa.not_(people.c.blocked),
    )
)
_NAMED_HERE = (
    sa.select(space_managers.c.person_id)
    .join(conversations, conversations.c.space_id == space_managers.c.space_id)
    .where(conversations.c.key == sa.bindparam("key"), space_managers.c.person_id == sa.bindparam("person"))
)
_ADMINS = sa.select(people.c.id).where(people.c.id.in_(sa.bindparam("ids", expanding=True)), people.c.role.in_(("admin", "owner")))
_NAMED = sa.select(space_managers.c.person_id).where(
    space_managers.c.space_id == sa.bindparam("space"), space_managers.c.person_id.in_(sa.bindparam("ids", expanding=True))
)
_BLOCKED = sa.select(people.c.id).where(people.c.id.in_(sa.bindparam("ids", expanding=True)), people.c.blocked)
_THERE = (
    sa.select(identities.c.person_id, identities.c.platform_user_id)
    .join(spaces, (spaces.c.channel == identities.c.channel) & (spaces.c.account == identities.c.account))
    .where(spaces.c.id == sa.bindparam("space"), identities.c.person_id.in_(sa.bindparam("ids", expanding=True)))
    .order_by(identities.c.id)
)
_CHAT = (
    sa.select(conversations.c.key)
    .where(
        conversations.c.space_id == sa.bindparam("space"),
        conversations.c.deleted_at.is_(None),
        conversations.c.key.not_like(sa.literal("%#") + conversations.c.id),  # put aside by `/new`
    )
    .order_by(conversations.c.updated_at.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Space:
    """Whom we know to manage a space by ourselves; and, of the others, by which ids its platform knows them in `chat`, None without a chat there."""

    managers: frozenset[str]
    others: tuple[tuple[str, str], ...]
    chat: Address | None


class Managing:
    """`group` holds the questions to platforms that are still open."""

    def __init__(
        self, find_channel: Callable[[Account], Channel | None], clock: Callable[[], datetime], *, db: Database, group: asyncio.TaskGroup
    ) -> None:
        self._find_channel = find_channel
        self._clock = clock
        self._db = db
        self._group = group
        self._known: dict[tuple[str, str], tuple[bool, datetime]] = {}
        self._asking: dict[tuple[str, str], asyncio.Task[bool]] = {}

    async def manages(self, address: Address, sender_id: str) -> bool:
        """Whether this sender says how the chat is run; False as long as the platform has not answered."""
        if await self._db.read(lambda connection: _by_us(connection, address, sender_id)):
            return True
        return await self._by_platform(address, sender_id, PATIENCE_S)

    async def among(self, scope: Scope, person_ids: frozenset[str]) -> frozenset[str]:
        """Those of `person_ids` who manage the space `scope`: whose words a dream may take for orders (WD-69). Of whom the platform does not tell,
        nothing is believed."""
        space = await self._db.read(lambda connection: _space(connection, scope.id, sorted(person_ids)))
        if space.chat is None:
            return space.managers
        few, chat = asyncio.Semaphore(AT_ONCE), space.chat

        async def is_one(sender_id: str) -> bool:
            async with few:
                return await self._by_platform(chat, sender_id, SIGN_LIMIT_S)

        async with asyncio.TaskGroup() as group:
            asking = [(person_id, group.create_task(is_one(sender_id))) for person_id, sender_id in space.others]
        return space.managers | {person_id for person_id, asked_of in asking if asked_of.result()}

    async def _by_platform(self, address: Address, sender_id: str, patience_s: float) -> bool:
        """What the platform says, or said lately; False when it does not answer within `patience_s`."""
        key, now = (str(address), sender_id), self._clock()
        if key in self._known and self._known[key][1] > now:
            return self._known[key][0]
        if key not in self._asking:
            self._asking[key] = self._group.create_task(self._ask(address, sender_id), name=f"who manages {address}")
        done, _ = await asyncio.wait([self._asking[key]], timeout=patience_s)
        return any(task.result() for task in done)

    async def _ask(self, address: Address, sender_id: str) -> bool:
        key = (str(address), sender_id)
        try:
            channel = self._find_channel(address.account)
            if not isinstance(channel, Managers):
                return False
            answer = await asked(channel.manages(address, sender_id), SIGN_LIMIT_S, f"asking who manages {address}")
            if isinstance(answer, Unknown):
                return False
            self._known[key] = (answer, self._clock() + KEPT)
            while len(self._known) > KEPT_MAX:
                self._known.pop(next(iter(self._known)))
            return answer
        finally:
            del self._asking[key]


def _by_us(connection: sa.Connection, address: Address, sender_id: str) -> bool:
    where = {"channel": address.account.channel, "account": address.account.name, "sender": sender_id}
    person = connection.execute(_ROLE, where).one_or_none()
    if person is None:
        return False
    if includes(person.role, "admin"):
        return True
    return connection.execute(_NAMED_HERE, {"key": str(address), "person": person.id}).first() is not None


def _space(connection: sa.Connection, space_id: str, ids: list[str]) -> _Space:
    blocked = set(connection.execute(_BLOCKED, {"ids": ids}).scalars())
    named = connection.execute(_NAMED, {"space": space_id, "ids": ids}).scalars()
    managers = frozenset([*connection.execute(_ADMINS, {"ids": ids}).scalars(), *named]) - blocked
    known = connection.execute(_THERE, {"space": space_id, "ids": ids}).all()
    key = connection.execute(_CHAT, {"space": space_id}).scalar()
    return _Space(
        managers=managers,
        others=tuple((row.person_id, row.platform_user_id) for row in known if row.person_id not in managers | blocked),
        chat=Address.parse(key) if key else None,
    )

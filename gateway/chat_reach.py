"""Which chats a person may look after: their own, and the groups that they manage (RS-37, RS-47, CH-118). Fails closed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import sqlalchemy as sa

from gateway.dreams.reading import FindManagers
from gateway.person import Person
from gateway.saved.shelves import AT_ONCE, PATIENCE_S, SPACES_ASKED
from memory import conversations
from memory.conversations import Conversation
from memory.database import Database
from memory.ids import SpaceId
from memory.schema import conversations as chats
from memory.schema import identities, spaces
from memory.scopes import space_scope

CHATS_SHOWN = 300


class NotYourChat(LookupError):
    """There is no such chat, or it is somebody else's; the two are never told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tended:
    """A chat that somebody may look after. `place`: what a group is called, empty for one's own."""

    chat: Conversation
    place: str = ""


class ChatReach:
    def __init__(self, *, db: Database, managers: FindManagers) -> None:
        self._db = db
        self._managers = managers

    async def of(self, person: Person) -> list[Tended]:
        """The chats that they may look after, the latest talk first. Challenge chats remember nothing and are left out."""
        own = await self._db.read(lambda connection: _chats(connection, chats.c.person_id == person.id))
        managed = [space for space in await self._near(person) if space]
        groups = await self._db.read(lambda connection: _chats(connection, chats.c.space_id.in_(managed))) if managed else []
        return sorted([*own, *groups], key=lambda each: each.chat.updated_at, reverse=True)[:CHATS_SHOWN]

    async def open(self, person: Person, chat_id: str) -> Tended:
        """The one chat. Raises NotYourChat."""
        found = await self._db.read(lambda connection: _chats(connection, chats.c.id == chat_id))
        if not found:
            raise NotYourChat(chat_id)
        chat = found[0].chat
        mine = await self._manages(person, str(chat.space_id)) if chat.space_id is not None else chat.person_id == person.id
        if not mine:
            raise NotYourChat(chat_id)
        return found[0]

    async def _near(self, person: Person) -> Sequence[str]:
        """The spaces they manage. Of whom the platform does not tell in time, nothing is believed."""
        if person.may("admin"):
            return await self._db.read(lambda connection: list(connection.execute(sa.select(spaces.c.id)).scalars()))
        near = await self._db.read(lambda connection: list(connection.execute(_NEAR, {"person": person.id}).scalars()))
        few, managed = asyncio.Semaphore(AT_ONCE), set[str]()

        async def ask(space: str) -> None:
            async with few:
                if await self._manages(person, space):
                    managed.add(space)

        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
                for space in near[:SPACES_ASKED]:
                    group.create_task(ask(space))
        return [each for each in near if each in managed]

    async def _manages(self, person: Person, space: str) -> bool:
        return person.may("admin") or person.id in await self._managers(space_scope(SpaceId(space)), frozenset({person.id}))


def _chats(connection: sa.Connection, wanted: sa.ColumnElement[bool]) -> list[Tended]:
    rows = connection.execute(_CHATS.where(wanted).limit(CHATS_SHOWN)).mappings()
    return [Tended(chat=conversations.conversation_of({key: row[key] for key in _COLUMNS}), place=row["place"] or "") for row in rows]


_COLUMNS = [*Conversation.__dataclass_fields__]
_CHATS = (
    sa.select(chats, spaces.c.title.label("place"))
    .outerjoin(spaces, spaces.c.id == chats.c.space_id)
    .where(chats.c.deleted_at.is_(None), chats.c.kind.in_(("dm", "web", "group")))
    .order_by(chats.c.updated_at.desc(), chats.c.id)
)
_NEAR = (
    sa.select(spaces.c.id)
    .join(identities, (identities.c.channel == spaces.c.channel) & (identities.c.account == spaces.c.account))
    .where(identities.c.person_id == sa.bindparam("person"))
    .distinct()
    .order_by(spaces.c.id)
)

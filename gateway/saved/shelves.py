"""Which lists of saved memories a person may open: their own with every character, those of the spaces they manage, and of other spaces what they
taught (SM-56). Fails closed: whoever does not manage a space gets none of its rows by id."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from channels.message import Address
from gateway.arrivals import place_titles
from gateway.config import Config
from gateway.dreams.reading import FindManagers
from gateway.person import Person
from memory.database import Database
from memory.ids import SpaceId
from memory.saved.lineages import lineage_of, lineages, names_of
from memory.saved.rows import ListKey, ListKind, character_list, global_list, space_list
from memory.saved_schema import memories
from memory.schema import conversations, identities, messages, spaces
from memory.scopes import space_scope

SPACES_ASKED = 20  # of how many spaces a platform is asked whether somebody who is no admin manages them
PATIENCE_S = 3.0  # for all of these answers together; a later one counts the next time
AT_ONCE = 4

_SPACES = sa.select(spaces.c.id, spaces.c.title, spaces.c.channel).order_by(spaces.c.title, spaces.c.id)
_NEAR = (
    sa.select(spaces.c.id)
    .join(identities, (identities.c.channel == spaces.c.channel) & (identities.c.account == spaces.c.account))
    .outerjoin(conversations, conversations.c.space_id == spaces.c.id)
    .where(identities.c.person_id == sa.bindparam("person"))
    .group_by(spaces.c.id)
    .order_by(sa.func.max(conversations.c.updated_at).desc().nulls_last(), spaces.c.id)
)
_HELD = (
    sa.select(memories.c.list_kind, memories.c.person_id, memories.c.space_id, memories.c.character_id)
    .where((memories.c.person_id == sa.bindparam("person")) | memories.c.space_id.in_(sa.bindparam("spaces", expanding=True)))
    .distinct()
)
_SOURCES = sa.select(memories.c.id, memories.c.space_id, memories.c.character_id, memories.c.source).where(
    memories.c.space_id.in_(sa.bindparam("spaces", expanding=True)), memories.c.source.is_not(None)
)
_SAID = sa.select(messages.c.turn_id, messages.c.id).where(
    messages.c.author_person_id == sa.bindparam("person"),
    messages.c.role == "user",
    messages.c.turn_id.in_(sa.bindparam("turns", expanding=True)) | messages.c.id.in_(sa.bindparam("ids", expanding=True)),
)
_SPOKE = sa.exists().where(messages.c.conversation_id == conversations.c.id, messages.c.author_person_id == sa.bindparam("person"))
_CHATS = (
    sa.select(conversations.c.key, conversations.c.title, conversations.c.channel, spaces.c.title.label("space_title"))
    .outerjoin(spaces, spaces.c.id == conversations.c.space_id)
    .where(
        conversations.c.deleted_at.is_(None),
        conversations.c.kind.in_(("dm", "group")),
        (conversations.c.person_id == sa.bindparam("person"))
        | conversations.c.space_id.in_(sa.bindparam("spaces", expanding=True))
        | (
            conversations.c.space_id.in_(
                sa.select(spaces.c.id)
                .join(identities, (identities.c.channel == spaces.c.channel) & (identities.c.account == spaces.c.account))
                .where(identities.c.person_id == sa.bindparam("person"))
            )
            & _SPOKE
        ),
    )
    .order_by(conversations.c.updated_at.desc())
    .limit(100)
)


class NotYours(LookupError):
    """There is no such list, or it is somebody else's; the two are never told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A list as people name it. `character`: its id in the configuration, or its lineage once it is no more there; `space`: its id."""

    kind: ListKind
    character: str = ""
    space: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """One list that a person may open. `character`: as in `Wish`; `manages`: False for a space of which they only see what they taught."""

    key: ListKey
    character: str = ""
    character_name: str = ""
    space_title: str = ""
    channel: str = ""
    manages: bool = True


@dataclass(frozen=True, slots=True)
class _Cast:
    """Id in the configuration and name of each lineage, and the lineages that the configuration has, in its order."""

    known: Mapping[str, tuple[str, str]]
    present: tuple[str, ...]

    def of(self, lineage: str) -> tuple[str, str]:
        return self.known.get(lineage, (lineage, lineage))

    def lineage(self, character: str) -> str:
        """Raises NotYours."""
        for lineage, (config_id, _) in self.known.items():
            if character in (config_id, lineage):
                return lineage
        raise NotYours(character)


class Shelves:
    def __init__(self, *, db: Database, clock: Callable[[], datetime], config: Callable[[], Config], managers: FindManagers) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._managers = managers

    async def of(self, person: Person) -> tuple[Shelf, ...]:
        """Every list they may open: GLOBAL first, then the characters in the configuration's order, then spaces. A character that is gone shows as
        long as it left rows."""
        cast = await self._cast()
        managed = await self._managed(person)
        taught = await self.taught(person.id, without={space for space, _, _ in managed})
        of = {"person": person.id, "spaces": [space for space, _, _ in managed]}
        held = await self._db.read(lambda connection: {_held(row) for row in connection.execute(_HELD, of)})
        shelves = [Shelf(key=global_list(person.id))]
        shelves += [
            self._shelf(cast, character_list(person.id, lineage))
            for lineage in _ordered(cast.present, {key.character for key in held if key.kind is ListKind.CHARACTER and key.owner == person.id})
        ]
        for space, title, channel in managed:
            left = {key.character for key in held if key.kind is ListKind.SPACE and key.owner == space}
            shelves += [
                replace(self._shelf(cast, space_list(space, lineage)), space_title=title, channel=channel) for lineage in _ordered(cast.present, left)
            ]
        names = {space: (title, channel) for space, title, channel in await self._db.read(_all_spaces)} if taught else {}
        shelves += [
            replace(self._shelf(cast, key), space_title=names[key.owner][0], channel=names[key.owner][1], manages=False)
            for key in sorted(taught, key=str)
            if key.owner in names
        ]
        return tuple(shelves)

    async def open(self, person: Person, wish: Wish) -> Shelf:
        """The one list that is meant. Raises NotYours."""
        cast = await self._cast()
        match wish.kind:
            case ListKind.GLOBAL:
                return Shelf(key=global_list(person.id))
            case ListKind.CHARACTER:
                return self._shelf(cast, character_list(person.id, cast.lineage(wish.character)))
            case ListKind.SPACE:
                key = space_list(wish.space, cast.lineage(wish.character))
                found = [each for each in await self._db.read(_all_spaces) if each[0] == wish.space]
                if not found or not await self.manages(person, key):
                    raise NotYours(wish.space)
                return replace(self._shelf(cast, key), space_title=found[0][1], channel=found[0][2])

    async def manages(self, person: Person, key: ListKey) -> bool:
        """Whether they may change the rows of this list (SM-56, SM-74)."""
        if key.kind is not ListKind.SPACE:
            return key.owner == person.id
        return person.may("admin") or await self._is_manager(person.id, key.owner)

    async def characters(self) -> Mapping[str, tuple[str, str]]:
        """Id (as in `Wish`) and name of every character that ever was, by lineage."""
        return (await self._cast()).known

    async def taught(self, person_id: str, *, without: Collection[str] = ()) -> dict[ListKey, frozenset[int]]:
        """Of spaces on platforms where this person is known: ids of the rows that rest on their own messages, by list."""

        def look(connection: sa.Connection) -> dict[ListKey, frozenset[int]]:
            near = [space for space in connection.execute(_NEAR, {"person": person_id}).scalars() if space not in without]
            if not near:
                return {}
            rows = connection.execute(_SOURCES, {"spaces": near}).all()
            turns = {str(row.source.get("turn", "")) for row in rows}
            ids = {str(each) for row in rows for each in row.source.get("messages") or ()}
            said = connection.execute(_SAID, {"person": person_id, "turns": [*turns], "ids": [*ids]}).all()
            own = {each for row in said for each in (row.turn_id, row.id) if each}
            found: dict[ListKey, frozenset[int]] = {}
            for row in rows:
                if own.intersection((row.source.get("turn", ""), *(row.source.get("messages") or ()))):
                    key = space_list(row.space_id, row.character_id)
                    found[key] = found.get(key, frozenset()) | {row.id}
            return found

        return await self._db.read(look)

    async def channels(self, person: Person, managed: Collection[str]) -> list[dict[str, str]]:
        """Chats that a row can be limited to, by address (SM-17): the person's own on platforms, those of spaces that they manage or spoke in."""

        def look(connection: sa.Connection) -> list[dict[str, str]]:
            rows = connection.execute(_CHATS, {"person": person.id, "spaces": sorted(managed)}).all()
            found: dict[str, dict[str, str]] = {}
            for row in reversed(rows):
                at = Address.parse(row.key.partition("#")[0])
                key = str(replace(at, thread_id=""))
                if key not in found or not at.thread_id:  # a topic tells of its group no more than the place
                    label = place_titles.whole(row.space_title or "", "" if at.thread_id else row.title)
                    found[key] = {"id": key, "label": label, "channel": row.channel}
            return list(found.values())

        return await self._db.read(look)

    # -- inside

    def _shelf(self, cast: _Cast, key: ListKey) -> Shelf:
        character, name = cast.of(key.character)
        return Shelf(key=key, character=character, character_name=name)

    async def _cast(self) -> _Cast:
        chosen = {name: each.name or name for name, each in self._config().characters.items()}
        known = await self._db.read(lineages)
        if missing := [name for name in chosen if name not in known]:
            now = self._clock()
            await self._db.write(lambda connection: [lineage_of(connection, name, chosen[name], now) for name in missing])
            known = await self._db.read(lineages)
        names = await self._db.read(lambda connection: names_of(connection, known.values()))
        both = {lineage: (config_id, chosen.get(config_id) or names.get(lineage) or config_id) for config_id, lineage in known.items()}
        return _Cast(
            {lineage: (config_id if config_id in chosen else lineage, name) for lineage, (config_id, name) in both.items()},
            tuple(known[name] for name in chosen),
        )

    async def _managed(self, person: Person) -> list[tuple[str, str, str]]:
        """Id, title and channel of the spaces they manage. Of whom the platform does not tell in time, nothing is believed."""
        everywhere = await self._db.read(_all_spaces)
        if person.may("admin"):
            return everywhere
        near = await self._db.read(lambda connection: list(connection.execute(_NEAR, {"person": person.id}).scalars()))
        few, managed = asyncio.Semaphore(AT_ONCE), set[str]()

        async def ask(space: str) -> None:
            async with few:
                if await self._is_manager(person.id, space):
                    managed.add(space)

        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
                for space in near[:SPACES_ASKED]:
                    group.create_task(ask(space))
        return [each for each in everywhere if each[0] in managed]

    async def _is_manager(self, person_id: str, space: str) -> bool:
        return person_id in await self._managers(space_scope(SpaceId(space)), frozenset({person_id}))


def _all_spaces(connection: sa.Connection) -> list[tuple[str, str, str]]:
    return [(row.id, row.title or row.id, row.channel) for row in connection.execute(_SPACES)]


def _held(row: Any) -> ListKey:
    kind = ListKind(row.list_kind)
    return ListKey(kind, row.space_id if kind is ListKind.SPACE else row.person_id, row.character_id or "")


def _ordered(present: Iterable[str], left: Collection[str]) -> list[str]:
    """Characters of the configuration, then those that are gone and left rows."""
    first = tuple(present)
    return [*first, *sorted(set(left) - set(first))]

"""Routes of the switches over saved memories: one's own, those of spaces, and characters that are no more (SM-13 to SM-15, SM-87, SM-92)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from aiohttp import web
from pydantic import Field, StringConstraints

from gateway import cast_changes, memory_switches
from gateway.cast_changes import Removed, StillThere
from gateway.config import Config
from gateway.http.base import Body, HttpFault, actor_of, answer, body, not_found, require_person
from gateway.memory_switches import Flip, OfSpace, Own, Switch
from gateway.people import People
from memory.database import Database
from memory.saved.lists import Privacy

Short = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class Bits(Body):
    learn: bool | None = None
    use: bool | None = None


Flips = Annotated[dict[Short, Bits], Field(max_length=200)]


class OwnChanges(Body):
    privacy: Literal["normal", "partial", "full"] | None = None
    share_private: bool | None = None
    characters: Flips = Field(default_factory=dict[str, Bits])


class SpaceChanges(Body):
    """`blacklist`: by id of the person, whether they are on it."""

    characters: Flips = Field(default_factory=dict[str, Bits])
    blacklist: Annotated[dict[Short, bool], Field(max_length=200)] = Field(default_factory=dict[str, bool])


class MemorySwitchRoutes:
    def __init__(self, *, db: Database, config: Callable[[], Config], clock: Callable[[], datetime], people: People) -> None:
        self._db = db
        self._config = config
        self._clock = clock
        self._people = people

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/memory/switches", self.mine),
            web.patch("/api/memory/switches", self.change_mine),
            web.post("/api/memory/switches/{character}/take-back", self.take_back),
            web.get("/api/operator/spaces/{id}/switches", self.of_space),
            web.patch("/api/operator/spaces/{id}/switches", self.change_space),
            web.get("/api/operator/characters", self.gone),
            web.delete("/api/operator/characters/{character}", self.delete),
        ]

    async def mine(self, request: web.Request) -> web.Response:
        return answer(await self._own(require_person(request, "user").id))

    async def change_mine(self, request: web.Request) -> web.Response:
        person = require_person(request, "user")
        wish = await body(request, OwnChanges)
        flips = self._flips(wish.characters)

        def work(connection: sa.Connection) -> None:
            memory_switches.flip(connection, self._config(), person.id, flips, self._clock())
            if wish.privacy is not None:
                memory_switches.set_privacy(connection, person.id, Privacy(wish.privacy))
            if wish.share_private is not None:
                memory_switches.set_sharing(connection, person.id, wish.share_private)

        await self._db.write(work)
        return answer(await self._own(person.id))

    async def take_back(self, request: web.Request) -> web.Response:
        """The asker's rows return to a character that was deleted and is there again."""
        person, character = require_person(request, "user"), request.match_info["character"]
        if character not in self._config().characters:
            raise not_found()
        work = partial(memory_switches.take_back, config=self._config(), person=person.id, character=character, now=self._clock())
        return answer({"moved": await self._db.write(work)})

    async def of_space(self, request: web.Request) -> web.Response:
        require_person(request, "admin")
        return answer(_space_json(await self._space(request)))

    async def change_space(self, request: web.Request) -> web.Response:
        require_person(request, "admin")
        space = await self._space(request)
        wish = await body(request, SpaceChanges)
        flips, by, now = self._flips(wish.characters), actor_of(request), self._clock()
        for person in wish.blacklist:
            if await self._people.person(person) is None:
                raise HttpFault(422, "unknown_person", "error_unknown_person", param="blacklist", id=person)

        def work(connection: sa.Connection) -> None:
            memory_switches.flip_space(connection, self._config(), by, space.id, flips, now)
            for person, barred in wish.blacklist.items():
                memory_switches.bar(connection, by, space.id, person, barred=barred, now=now)

        await self._db.write(work)
        return answer(_space_json(await self._space(request)))

    async def gone(self, request: web.Request) -> web.Response:
        """Characters that the configuration has no more, with what their deletion would move."""
        require_person(request, "admin")
        found = await self._db.read(partial(cast_changes.removed, config=self._config()))
        return answer({"characters": [_removed_json(each) for each in found]})

    async def delete(self, request: web.Request) -> web.Response:
        require_person(request, "admin")
        work = partial(
            cast_changes.delete,
            config=self._config(),
            by=actor_of(request),
            character=request.match_info["character"],
            now=self._clock(),
        )
        try:
            counts = await self._db.write(work)
        except StillThere as error:
            raise HttpFault(409, "character_there", "character_there", param="character", name=str(error)) from error
        except LookupError as error:
            raise not_found() from error
        return answer({"rows": counts.rows, "people": counts.people, "space_rows": counts.space_rows})

    async def _own(self, person: str) -> dict[str, Any]:
        work = partial(memory_switches.own, config=self._config(), person=person, now=self._clock())
        return _own_json(await self._db.write(work))

    async def _space(self, request: web.Request) -> OfSpace:
        """404 for a space that is none."""
        work = partial(memory_switches.of_space, config=self._config(), space=request.match_info["id"], now=self._clock())
        found = await self._db.write(work)
        if found is None:
            raise not_found()
        return found

    def _flips(self, wish: Mapping[str, Bits]) -> dict[str, Flip]:
        """422 for a character that is none."""
        known = self._config().characters
        for name in wish:
            if name not in known:
                raise HttpFault(422, "unknown_character", "character_unknown", param="characters", name=name, others=", ".join(known))
        return {name: Flip(learn=bits.learn, use=bits.use) for name, bits in wish.items()}


def _own_json(found: Own) -> dict[str, Any]:
    return {
        "privacy": str(found.privacy),
        "share_private": found.share_private,
        "characters": [_switch_json(each) | {"returnable": each.returnable} for each in found.characters],
    }


def _space_json(found: OfSpace) -> dict[str, Any]:
    return {
        "id": found.id,
        "title": found.title,
        "channel": found.channel,
        "characters": [_switch_json(each) for each in found.characters],
        "blacklist": [{"id": person, "name": name} for person, name in found.blacklist.items()],
    }


def _switch_json(switch: Switch) -> dict[str, Any]:
    return {"id": switch.character, "name": switch.name, "learn": switch.learning.learn, "use": switch.learning.use}


def _removed_json(found: Removed) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "removed_at": found.removed_at,
        "rows": found.counts.rows,
        "people": found.counts.people,
        "space_rows": found.counts.space_rows,
        "waits": found.waits,
    }

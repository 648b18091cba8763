"""Saved memories over HTTP: the lists a person may open and the rows in them (SM-2 to SM-5, SM-44, SM-49, SM-56, SM-74, WO-20, WO-21)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

from aiohttp import web
from pydantic import Field, StringConstraints

from gateway.config import Config
from gateway.http.base import Body, HttpFault, answer, body, not_found, require_person, row_id
from gateway.http.saved_views import Faces, Named, count, item, limits, refused, shelf, state_of, wish_of
from gateway.person import Person
from gateway.saved.desk import Allowed, Change, SavedDesk
from gateway.saved.shelves import NotYours, Shelf, Shelves, Wish
from memory.saved.rows import CHANNEL_MAX, CHANNELS_MAX, TAG_MAX, ListKind, Memory
from memory.saved.writing import Outcome, Result

STATES = ("", "active", "dormant", "pinned", "archived")
CONTENT_READ_MAX = 20_000  # characters that are taken in at all; how many may be saved is told with the exact numbers

Content = Annotated[str, StringConstraints(max_length=CONTENT_READ_MAX)]
Tag = Annotated[str, StringConstraints(max_length=TAG_MAX)]
Channel = Annotated[str, StringConstraints(min_length=1, max_length=CHANNEL_MAX)]


class NewMemory(Named):
    """`evict`: the id of the row that may go for it, as a full list named it (SM-49)."""

    content: Content
    evict: Annotated[int, Field(ge=1)] | None = None


class MemoryChange(Body):
    """`based_on`: the revision that the person saw; an edit of another one is refused. What is left out stays."""

    content: Content | None = None
    tags: Annotated[tuple[Tag, ...], Field(strict=False)] | None = None
    channel_ids: Annotated[tuple[Channel, ...], Field(strict=False, max_length=CHANNELS_MAX)] | None = None
    private: bool | None = None
    based_on: Annotated[str, StringConstraints(max_length=100)] = ""


class MemoryRoutes:
    def __init__(self, *, desk: SavedDesk, shelves: Shelves, config: Callable[[], Config]) -> None:
        self._desk = desk
        self._shelves = shelves
        self._config = config

    def routes(self) -> list[web.RouteDef]:
        one = "/api/memories/{id}"
        return [
            web.get("/api/memories", self.list_rows),
            web.post("/api/memories", self.add),
            web.get("/api/memories/lists", self.list_lists),
            web.get(one, self.get),
            web.patch(one, self.change),
            web.delete(one, self.remove),
            web.post(f"{one}/pin", self.pin),
            web.post(f"{one}/unpin", self.unpin),
            web.post(f"{one}/wake", self.wake),
        ]

    async def list_lists(self, request: web.Request) -> web.Response:
        """Every list the asker may open, with its use, and the channels that a row may be limited to."""
        person = require_person(request, "user")
        shelves = await self._shelves.of(person)
        rows = await self._desk.rows([each.key for each in shelves if each.manages])
        channels = await self._shelves.channels(person, {each.key.owner for each in shelves if each.key.kind is ListKind.SPACE and each.manages})
        return answer({"lists": [shelf(each, rows, saves=self._saves(each)) for each in shelves], "channels": channels, "limits": self._limits()})

    def _saves(self, each: Shelf) -> bool:
        """Without tools a model saves nothing in a talk. A list of no character in the configuration is for all of them."""
        config = self._config()
        cast = [config.characters[each.character]] if each.character in config.characters else config.characters.values()
        return any(config.account(character.model).calls_tools for character in cast)

    async def list_rows(self, request: web.Request) -> web.Response:
        """The rows of a list, of all characters (`list=character` without one), or of everything one's own; `state` filters."""
        person = require_person(request, "user")
        shelves, only = await self._chosen(person, wish_of(request), request.query.get("character", ""))
        rows = await self._desk.rows([each.key for each in shelves])
        shown = [row for row in rows if only is None or row.id in only]
        state, ageing_on = request.query.get("state", ""), self._desk.ageing_on
        if state not in STATES:
            reason = f"Input should be one of {', '.join(STATES[1:])}"
            raise HttpFault(400, "bad_field", "error_bad_field", param="state", field="state", reason=reason)
        wanted = [row for row in shown if not state or (row.pinned if state == "pinned" else state_of(row, ageing_on=ageing_on) == state)]
        faces = await self._faces(person, wanted)
        lists = [shelf(each, rows if each.manages else shown, saves=self._saves(each)) for each in shelves]
        return answer({"items": [item(row, faces, ageing_on=ageing_on) for row in wanted], "limits": {**self._limits(), "lists": lists}})

    async def get(self, request: web.Request) -> web.Response:
        person = require_person(request, "user")
        memory = await self._desk.row(row_id(request, "id"), self._may(person))
        if memory is None:
            raise not_found()
        return answer(await self._item(person, memory))

    async def add(self, request: web.Request) -> web.Response:
        """201 with the row; 422 for a text that is empty or too long; 409 for one that is there already, or a full list, with the row it is about."""
        person = require_person(request, "user")
        wish = await body(request, NewMemory)
        key = (await self._open(person, wish.wish)).key
        result = await self._desk.add(person.id, key, wish.content, evict=wish.evict)
        faces = await self._faces(person, [each for each in (result.memory, result.victim) if each])
        if refusal := refused(request, result, self._desk.limits, faces, duplicate=True):
            return refusal
        return await self._answer(person, result, status=201)

    async def change(self, request: web.Request) -> web.Response:
        person = require_person(request, "user")
        wish = await body(request, MemoryChange)
        most = self._config().saved.tags_max
        if wish.tags is not None and len(wish.tags) > most:
            raise HttpFault(422, "too_many_tags", "saved_tags_max", param="tags", limit=most)
        change = Change(content=wish.content, tags=wish.tags, channel_ids=wish.channel_ids, private=wish.private, based_on=wish.based_on)
        return await self._done(request, person, await self._desk.change(person.id, row_id(request, "id"), change, self._may(person)))

    async def remove(self, request: web.Request) -> web.Response:
        person = require_person(request, "user")
        return await self._done(request, person, await self._desk.remove(row_id(request, "id"), self._may(person)))

    async def pin(self, request: web.Request) -> web.Response:
        person = require_person(request, "user")
        return await self._done(request, person, await self._desk.pin(person.id, row_id(request, "id"), self._may(person)), pins=True)

    async def unpin(self, request: web.Request) -> web.Response:
        person = require_person(request, "user")
        return await self._done(request, person, await self._desk.unpin(person.id, row_id(request, "id"), self._may(person)))

    async def wake(self, request: web.Request) -> web.Response:
        person = require_person(request, "user")
        return await self._done(request, person, await self._desk.wake(row_id(request, "id"), self._may(person)))

    # -- inside

    async def _chosen(self, person: Person, wish: Wish | None, character: str) -> tuple[Sequence[Shelf], frozenset[int] | None]:
        """The lists that are asked for, and of a space they do not manage the only rows that they see."""
        if wish is None or (wish.kind is ListKind.CHARACTER and not character):
            kinds = (ListKind.CHARACTER,) if wish else (ListKind.GLOBAL, ListKind.CHARACTER)
            return [each for each in await self._shelves.of(person) if each.key.kind in kinds], None
        try:
            return [await self._shelves.open(person, wish)], None
        except NotYours:
            taught = {each.key: each for each in await self._shelves.of(person) if not each.manages} if wish.kind is ListKind.SPACE else {}
            found = next((each for key, each in taught.items() if (key.owner, each.character) == (wish.space, wish.character)), None)
            if found is None:
                raise not_found() from None
            return [found], (await self._shelves.taught(person.id)).get(found.key, frozenset())

    async def _open(self, person: Person, wish: Wish) -> Shelf:
        try:
            return await self._shelves.open(person, wish)
        except NotYours:
            raise not_found() from None

    def _may(self, person: Person) -> Allowed:
        return partial(self._shelves.manages, person)

    async def _done(self, request: web.Request, person: Person, result: Result, *, pins: bool = False) -> web.Response:
        faces = await self._faces(person, [result.memory] if result.memory else [])
        return refused(request, result, self._desk.limits, faces, pins=pins) or await self._answer(person, result)

    async def _answer(self, person: Person, result: Result, status: int = 200) -> web.Response:
        """What was done, and how full the list is now."""
        assert result.memory is not None
        rows = await self._desk.rows([result.memory.key])
        shown = None if result.outcome is Outcome.DELETED else await self._item(person, result.memory)
        forgotten = await self._item(person, result.victim) if result.victim else None
        use = count(rows, result.memory.key)
        return answer({"outcome": result.outcome.value, "memory": shown, "forgotten": forgotten, "use": use}, status=status)

    async def _item(self, person: Person, memory: Memory) -> dict[str, object]:
        return item(memory, await self._faces(person, [memory]), ageing_on=self._desk.ageing_on)

    async def _faces(self, person: Person, rows: Sequence[Memory]) -> Faces:
        return Faces(viewer=person.id, characters=await self._shelves.characters(), people=await self._desk.authors(rows))

    def _limits(self) -> dict[str, object]:
        saved = self._config().saved
        return limits(self._desk.limits, tags_max=saved.tags_max, dormant_after_days=saved.dormant_after_days, ageing_on=self._desk.ageing_on)

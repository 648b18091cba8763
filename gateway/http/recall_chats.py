"""The chats whose recall and summaries a person looks after, over HTTP: which they are, their switches, links between them (RS-9, RS-12, RS-187)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import StringConstraints

from gateway.chat_reach import ChatReach, NotYourChat, Tended
from gateway.embedding.vector_keeping import VectorStatus
from gateway.http.base import Body, HttpFault, answer, body, not_found, require_person
from gateway.person import Person
from gateway.recall.desk import Link, Overview, RecallDesk
from memory.recall.chunk_views import Totals

Id = Annotated[str, StringConstraints(min_length=1, max_length=100)]
CHAT = "/api/recall/chats/{id}"


class RecallChange(Body):
    """`recall`: put old passages into replies; `record`: what may be kept. What is left out stays."""

    recall: bool | None = None
    record: Literal["full", "recall_only", "none"] | None = None


class NewLink(Body):
    """The chat of the path may recall `source`."""

    source: Id


class RecallChatRoutes:
    def __init__(self, *, desk: RecallDesk, reach: ChatReach) -> None:
        self._desk = desk
        self._reach = reach

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/recall/chats", self.list_chats),
            web.get(CHAT, self.get),
            web.patch(CHAT, self.change),
            web.get(f"{CHAT}/links", self.links),
            web.post(f"{CHAT}/links", self.link),
            web.delete(f"{CHAT}/links/{{source}}", self.unlink),
        ]

    async def list_chats(self, request: web.Request) -> web.Response:
        """One's own chats and the groups that one manages, the latest talk first."""
        person = require_person(request, "user")
        return answer({"chats": [chat_view(each) for each in await self._reach.of(person)]})

    async def get(self, request: web.Request) -> web.Response:
        person, tended = await opened(request, self._reach)
        return answer(await self._shown(person, tended))

    async def change(self, request: web.Request) -> web.Response:
        """`asks_to_clear`: with the rule `none` something is kept that it would not have allowed (RS-12)."""
        person, tended = await opened(request, self._reach)
        wish = await body(request, RecallChange)
        asks = False
        if wish.recall is not None:
            await self._desk.switch(tended.chat.id, wish.recall)
        if wish.record is not None:
            asks = await self._desk.record(tended.chat.id, wish.record)
        return answer({**await self._shown(person, await open_chat(self._reach, person, tended.chat.id)), "asks_to_clear": asks})

    async def links(self, request: web.Request) -> web.Response:
        """Links of this chat, and the chats that it could be linked with."""
        person, tended = await opened(request, self._reach)
        mine = await self._reach.of(person)
        found = await self._desk.links([tended.chat.id])
        return answer({
            "links": [_link(each) for each in found],
            "chats": [chat_view(each) for each in mine if each.chat.id != tended.chat.id],
        })  # fmt: skip

    async def link(self, request: web.Request) -> web.Response:
        person, tended = await opened(request, self._reach)
        source = await open_chat(self._reach, person, (await body(request, NewLink)).source)
        if source.chat.id == tended.chat.id:
            raise HttpFault(422, "same_chat", "recall_link_same", param="source")
        await self._desk.link(person.id, tended.chat.id, source.chat.id)
        return answer({"links": [_link(each) for each in await self._desk.links([tended.chat.id])]}, status=201)

    async def unlink(self, request: web.Request) -> web.Response:
        """The chat of the path may recall the other no more. Who looks after either of the two may end it."""
        person = require_person(request, "user")
        reader, source = request.match_info["id"], request.match_info["source"]
        try:
            await self._reach.open(person, reader)
        except NotYourChat:
            await open_chat(self._reach, person, source)
        if not await self._desk.unlink(reader, source):
            raise not_found()
        return web.Response(status=204)

    async def _shown(self, person: Person, tended: Tended) -> dict[str, Any]:
        found = await self._desk.overview(tended.chat, person.id)
        return {**chat_view(tended), **overview_view(found)}


async def opened(request: web.Request, reach: ChatReach) -> tuple[Person, Tended]:
    """Who asks, and the chat of the path. 404 for one that they do not look after."""
    person = require_person(request, "user")
    return person, await open_chat(reach, person, request.match_info["id"])


async def open_chat(reach: ChatReach, person: Person, chat_id: str) -> Tended:
    try:
        return await reach.open(person, chat_id)
    except NotYourChat:
        raise not_found() from None


def chat_view(tended: Tended) -> dict[str, Any]:
    chat = tended.chat
    return {
        "id": chat.id, "title": chat.title, "place": tended.place, "channel": chat.channel, "kind": chat.kind, "updated_at": chat.updated_at,
        "shared": chat.space_id is not None,
    }  # fmt: skip


def overview_view(found: Overview) -> dict[str, Any]:
    return {
        "on": found.on,
        "chosen": found.chosen,
        "record": found.record,
        "own_record": found.own_record or "full",
        "totals": totals_view(found.totals),
        "vectors": vectors_view(found.vectors),
    }


def totals_view(found: Totals) -> Mapping[str, int]:
    return {name: getattr(found, name) for name in Totals.__dataclass_fields__}


def vectors_view(found: VectorStatus) -> Mapping[str, Any]:
    return {"state": found.vectors, "embedder": found.embedder, "reason": found.reason, "embedded": found.embedded, "passages": found.passages}


def _link(link: Link) -> dict[str, Any]:
    return {
        "reader": link.reader, "source": link.source, "reader_title": link.reader_title, "source_title": link.source_title, "made_at": link.created_at
    }  # fmt: skip

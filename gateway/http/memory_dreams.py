"""Dreams for the page: what each did and why, what waits for a yes, starting one, undoing one (WD-63, WD-77, WD-78, WD-81, WD-89)."""

from __future__ import annotations

from typing import Annotated

from aiohttp import web
from pydantic import Field

from gateway.http.base import Body, HttpFault, answer, body, not_found, query_int, require_person
from gateway.http.dream_views import DreamDesk, Refused
from gateway.http.memory_scope import MemoryScopes

LISTED = 20  # dreams in one answer; more on asking


class DreamWish(Body):
    """`days`: local dates up to today, by default 3; other numbers than 1 to 30 are clamped. `force`: an unchanged batch too (WD-63)."""

    days: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 3
    force: bool = False


class MemoryDreamRoutes:
    def __init__(self, *, scopes: MemoryScopes, desk: DreamDesk) -> None:
        self._scopes = scopes
        self._desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/memory/dreams", self.list_dreams),
            web.post("/api/memory/dreams", self.start),
            web.post("/api/memory/dreams/undo", self.undo),
            web.post("/api/memory/proposals/{id}/apply", self.apply),
            web.post("/api/memory/proposals/{id}/discard", self.discard),
        ]

    async def list_dreams(self, request: web.Request) -> web.Response:
        scope = await self._scopes.of(request)
        limit = query_int(request, "limit", LISTED, low=1, high=100)
        return answer(await self._desk.look(scope, before=request.query.get("before", ""), limit=limit))

    async def start(self, request: web.Request) -> web.Response:
        """202 when a dream was asked for; 200 with `running_since` when one runs already (WD-64)."""
        scope, wish = await self._scopes.of(request), await body(request, DreamWish)
        try:
            started = await self._desk.start(scope, require_person(request), days=wish.days, force=wish.force)
        except Refused as error:
            raise _fault(error) from error
        return answer(started, status=200 if started.running_since else 202)

    async def undo(self, request: web.Request) -> web.Response:
        scope = await self._scopes.of(request)
        try:
            done = await self._desk.undo(scope, require_person(request))
        except Refused as error:
            raise _fault(error) from error
        if done is None:
            raise HttpFault(409, "nothing_to_undo", "error_nothing_to_undo")
        return answer(done)

    async def apply(self, request: web.Request) -> web.Response:
        scope = await self._scopes.of(request)
        try:
            done = await self._desk.apply(scope, require_person(request), request.match_info["id"])
        except Refused as error:
            raise _fault(error) from error
        if done is None:
            raise not_found()
        return answer({"state": "applied", "difference": done})

    async def discard(self, request: web.Request) -> web.Response:
        scope = await self._scopes.of(request)
        if not await self._desk.discard(scope, require_person(request), request.match_info["id"]):
            raise not_found()
        return answer({"state": "discarded"})


def _fault(error: Refused) -> HttpFault:
    fault = HttpFault(409, error.code, error.key)
    fault.values = error.values
    return fault

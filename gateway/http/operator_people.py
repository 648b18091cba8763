"""The operator's page of people: who there is, their roles, blocks and passwords, and login links for them (WO-30, CH-118, CH-121).

Every change is in the audit log, in the transaction of the change; it holds from the next event on.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

from aiohttp import web

from gateway.config import Web
from gateway.http.base import CLIENT, Body, actor_of, answer, body, forbidden, not_found, require_person
from gateway.http.persons import GivenPassword, Name, listed, refusal
from gateway.login_links import LoginLinks
from gateway.people import People, PeopleError
from gateway.person import Person, Role, may_change, may_create


class NewPerson(Body):
    name: Name
    role: Role = "user"
    password: GivenPassword | None = None


class PersonChanges(Body):
    name: Name = ""
    role: Role = "user"
    blocked: bool = False
    password: GivenPassword = ""
    subscriber_until: date | None = None


class PeopleRoutes:
    """`settings` gives the present `channels.web`: login links begin with its `public_url`."""

    def __init__(self, *, people: People, links: LoginLinks, settings: Callable[[], Web]) -> None:
        self._people = people
        self._links = links
        self._settings = settings

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/operator/people", self.everybody),
            web.post("/api/operator/people", self.create),
            web.patch("/api/operator/people/{id}", self.change),
            web.post("/api/operator/people/{id}/login-link", self.login_link),
        ]

    async def everybody(self, request: web.Request) -> web.Response:
        return answer({"people": [listed(person, identities) for person, identities in await self._people.everybody()]})

    async def create(self, request: web.Request) -> web.Response:
        wish = await body(request, NewPerson)
        if not may_create(require_person(request), wish.role):
            raise forbidden()
        try:
            person = await self._people.create(actor_of(request), name=wish.name, role=wish.role, password=wish.password or "")
        except PeopleError as error:
            raise refusal(error) from error
        return answer(listed(person), status=201)

    async def change(self, request: web.Request) -> web.Response:
        wish = await body(request, PersonChanges)
        target = await self._target(request)
        changes: dict[str, Any] = wish.model_dump(exclude_unset=True)
        if not may_change(require_person(request), target, role=changes.get("role", target.role) != target.role):
            raise forbidden()
        try:
            person = await self._people.change(actor_of(request), target.id, **changes)
        except PeopleError as error:
            raise refusal(error) from error
        return answer(listed(person, await self._people.identities(person.id)))

    async def login_link(self, request: web.Request) -> web.Response:
        target = await self._target(request)
        if not may_change(require_person(request), target) or target.blocked:
            raise forbidden()
        code = await self._links.make(actor_of(request), target.id)
        scheme = "https" if request[CLIENT].https else "http"
        base = self._settings().public_url.rstrip("/") or f"{scheme}://{request.host}"
        return answer({"url": f"{base}/login/{code}"})

    async def _target(self, request: web.Request) -> Person:
        if person := await self._people.person(request.match_info["id"]):
            return person
        raise not_found()

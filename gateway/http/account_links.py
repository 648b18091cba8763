"""One's accounts on the page, and linking another: a code from here given in the other app or the other way round, then a yes in both (WD-13)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from aiohttp import web
from pydantic import StringConstraints

from gateway.access import includes
from gateway.config import Config
from gateway.credentials import Visit, Way
from gateway.http.base import Body, HttpFault, actor_of, answer, body, forbidden, require_visit
from gateway.linking import LIFETIME, PAGE, Linking, Pending
from gateway.people import People


class GivenCode(Body):
    code: Annotated[str, StringConstraints(max_length=40)]


class Decision(Body):
    """`id`: of which link, as it was shown."""

    agree: bool
    id: int


class AccountLinkRoutes:
    """A leaked API token must not become a person's accounts: all but looking needs a session."""

    def __init__(self, *, linking: Linking, people: People, config: Callable[[], Config], clock: Callable[[], datetime]) -> None:
        self._linking = linking
        self._people = people
        self._config = config
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/me/accounts", self.accounts),
            web.post("/api/me/accounts/code", self.begin),
            web.post("/api/me/accounts/link", self.give),
            web.post("/api/me/accounts/decision", self.decide),
        ]

    async def accounts(self, request: web.Request) -> web.Response:
        person_id = require_visit(request).person.id
        pending = await self._linking.pending(person_id)
        return answer({"accounts": list(await self._people.identities(person_id)), "pending": _shown(pending)})

    async def begin(self, request: web.Request) -> web.Response:
        """A code for the other app; the command is how it is given in a chat there."""
        code = await self._linking.begin(_in_session(request).person.id, PAGE)
        command = f"{self._config().command_prefixes[0]}link {code}"
        return answer({"code": code, "command": command, "until": self._clock() + LIFETIME}, status=201)

    async def give(self, request: web.Request) -> web.Response:
        """The code that the other app gave."""
        person_id, wish = _in_session(request).person.id, await body(request, GivenCode)
        other = await self._linking.give(wish.code, person_id, PAGE)
        if other is None:
            raise HttpFault(400, "wrong_code", "link_wrong", param="code")
        if other.person_id == person_id:
            raise HttpFault(409, "same_person", "link_same", param="code")
        return answer({"pending": _shown(await self._linking.pending(person_id))})

    async def decide(self, request: web.Request) -> web.Response:
        """`state`: waits for the other side's yes, joined, dropped, or none where that link waits no more."""
        visit, wish = _in_session(request), await body(request, Decision)
        if wish.agree:
            state = await self._linking.agree(actor_of(request), visit.person.id, link_id=wish.id)
            return answer({"state": "none" if state == "which" else state})
        return answer({"state": "dropped" if await self._linking.refuse(visit.person.id, link_id=wish.id) else "none"})


def _in_session(request: web.Request) -> Visit:
    visit = require_visit(request)
    if visit.way is not Way.SESSION or not includes(visit.person.role, "user"):
        raise forbidden()
    return visit


def _shown(pending: Pending | None) -> dict[str, object] | None:
    if pending is None:
        return None
    other = pending.other
    told = {"name": other.name, "accounts": other.accounts} if other else None
    return {"id": pending.id, "until": pending.until, "other": told, "agreed": pending.agreed}

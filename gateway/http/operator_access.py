"""The operator's page of who may come in: people who wait with a code, groups, and accounts that are logged in by scanning one
(CH-113, CH-115, CH-116, WO-30, WX-24)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from aiohttp import web

from channels.message import Account
from channels.port import LoginState, LoginView
from gateway.company import Company
from gateway.http.base import Body, HttpFault, actor_of, answer, body, forbidden, language_of, not_found, require_person, row_id
from gateway.http.persons import listed
from gateway.language import say
from gateway.logins import Drawing, Logins, drawing, sentence
from gateway.pairing import Locked, WrongCode
from gateway.person import may_create


class Approval(Body):
    code: str
    role: Literal["user", "admin"] = "user"


class PhoneNumber(Body):
    """What the phone shows."""

    number: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    id: int
    channel: str
    account: str
    platform_user_id: str
    name: str
    told_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginShown:
    """`link` is what the picture says, for a phone that opens it by hand; `mine`: the asker may say that it was they who scanned."""

    state: str
    text: str
    picture: Drawing | None = None
    link: str = ""
    mine: bool = False


class AccessRoutes:
    def __init__(self, *, company: Company, logins: Logins) -> None:
        self._company = company
        self._logins = logins

    def routes(self) -> list[web.RouteDef]:
        login = "/api/operator/logins/{channel}/{account}"
        return [
            web.get("/api/operator/pairings", self.waiting),
            web.post("/api/operator/pairings/approve", self.approve),
            web.post("/api/operator/pairings/{id}/decline", self.decline),
            web.get("/api/operator/groups", self.groups),
            web.get(login, self.login),
            web.post(login, self.start_login),
            web.delete(login, self.cancel_login),
            web.post(f"{login}/number", self.give_number),
            web.post(f"{login}/mine", self.mine),
        ]

    async def waiting(self, request: web.Request) -> web.Response:
        found = [
            Waiting(
                id=each.id,
                channel=each.identity.channel,
                account=each.identity.account,
                platform_user_id=each.identity.platform_user_id,
                name=each.identity.name,
                told_at=each.told_at,
                expires_at=each.expires_at,
            )
            for each in await self._company.pairing.waiting()
        ]
        return answer({"waiting": found})

    async def approve(self, request: web.Request) -> web.Response:
        """By the code alone: a name on the list proves nobody (CH-111)."""
        wish = await body(request, Approval)
        if not may_create(require_person(request), wish.role):
            raise forbidden()
        try:
            let_in = await self._company.pairing.approve(actor_of(request), wish.code, role=wish.role)
        except WrongCode as error:
            raise HttpFault(400, "wrong_code", "pair_wrong", param="code") from error
        except Locked as error:
            raise HttpFault(429, "locked", "error_pair_locked", param="code", until=f"{error.until:%H:%M}") from error
        return answer(listed(let_in.person, (let_in.identity,)))

    async def decline(self, request: web.Request) -> web.Response:
        if not await self._company.pairing.decline(actor_of(request), row_id(request, "id")):
            raise not_found()
        return web.Response(status=204)

    async def groups(self, _request: web.Request) -> web.Response:
        return answer({"groups": await self._company.places.groups()})

    async def login(self, request: web.Request) -> web.Response:
        return self._shown(request, self._logins.view(_account(request)))

    async def start_login(self, request: web.Request) -> web.Response:
        return self._shown(request, self._logins.start(actor_of(request), _account(request)))

    async def cancel_login(self, request: web.Request) -> web.Response:
        if not self._logins.cancel(_account(request)):
            raise not_found()
        return web.Response(status=204)

    async def give_number(self, request: web.Request) -> web.Response:
        wish = await body(request, PhoneNumber)
        if not self._logins.give_number(_account(request), wish.number):
            raise not_found()
        return self._shown(request, self._logins.view(_account(request)))

    async def mine(self, request: web.Request) -> web.Response:
        if not await self._logins.mine(actor_of(request), _account(request)):
            raise not_found()
        return web.Response(status=204)

    def _shown(self, request: web.Request, view: LoginView | None) -> web.Response:
        if view is None:
            raise not_found()
        key, code = sentence(view), view.code if view.state is LoginState.SCAN else ""
        shown = LoginShown(
            state=view.state.value,
            text=say(language_of(request), key) if key else "",
            picture=drawing(code) if code else None,
            link=code,
            mine=view.state is LoginState.DONE and bool(view.person_id) and self._logins.begun_by(_account(request)) == actor_of(request).id,
        )
        return answer(shown)


def _account(request: web.Request) -> Account:
    return Account(channel=request.match_info["channel"], name=request.match_info["account"])

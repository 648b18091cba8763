"""Signing in and out, one's own account and API tokens (WO-17, WO-61)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Literal

from aiohttp import web

from gateway.config.types import Zone
from gateway.credentials import Visit, Way
from gateway.http.auth import COOKIE, drop_cookie, set_cookie
from gateway.http.base import (
    CLIENT,
    Body,
    HttpFault,
    actor_of,
    answer,
    body,
    forbidden,
    language_of,
    not_found,
    require_person,
    require_visit,
    too_often,
    visit_of,
)
from gateway.http.persons import GivenPassword, Name, refusal, shown
from gateway.http.views import PageView
from gateway.login_links import LoginLinks
from gateway.people import People, PeopleError
from gateway.person import Person, sign_in_name
from gateway.sessions import LIFETIME, Sessions
from gateway.throttle import Throttle
from gateway.tokens import ApiTokens

TRIES_WINDOW = timedelta(minutes=15)
TRIES_PER_ACCOUNT = 10
TRIES_PER_ADDRESS = 30


class SignIn(Body):
    name: GivenPassword
    password: GivenPassword


class MyChanges(Body):
    name: Name = ""
    language: Literal["", "en", "ja", "zh"] = ""
    timezone: Zone = ""
    password: GivenPassword = ""
    current_password: GivenPassword = ""


class TokenWish(Body):
    name: Name


class Tries:
    """How often a password may be tried: per address first, for names can be invented, then per account (WO-61)."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._accounts = Throttle(TRIES_PER_ACCOUNT, TRIES_WINDOW)
        self._addresses = Throttle(TRIES_PER_ADDRESS, TRIES_WINDOW)

    def take(self, account: str, network: str) -> None:
        """Counts one try before it is made, so that a hundred at once are not all allowed. Raises the 429."""
        now = self._clock()
        if wait_s := self._addresses.take(network, now) or self._accounts.take(account, now):
            raise too_often(wait_s)

    def succeeded(self, account: str) -> None:
        self._accounts.forget(account)


class AccountRoutes:
    def __init__(
        self, *, people: People, sessions: Sessions, links: LoginLinks, tokens: ApiTokens, page: PageView, clock: Callable[[], datetime]
    ) -> None:
        self._people = people
        self._sessions = sessions
        self._links = links
        self._tokens = tokens
        self._page = page
        self._tries = Tries(clock)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/login/{code}", self.login, allow_head=False),  # looking is not using
            web.post("/api/session", self.sign_in),
            web.delete("/api/session", self.sign_out),
            web.get("/api/me", self.me),
            web.patch("/api/me", self.change_me),
            web.get("/api/tokens", self.tokens),
            web.post("/api/tokens", self.make_token),
            web.delete("/api/tokens/{id}", self.drop_token),
        ]

    async def login(self, request: web.Request) -> web.Response:
        """The one-time link: a session and the page, or the sign-in page with a word of why not."""
        person_id = await self._links.use(request.match_info["code"])
        person = await self._people.person(person_id) if person_id else None
        response = web.Response(status=303, headers={"Location": "/" if person else "/#/signin?error=link"})
        if person:
            await self._open(request, response, person)
        return response

    async def sign_in(self, request: web.Request) -> web.Response:
        wish = await body(request, SignIn)
        account = sign_in_name(wish.name)
        self._tries.take(account, request[CLIENT].network)
        person = await self._people.sign_in(wish.name, wish.password)
        if person is None:
            raise HttpFault(401, "wrong_password", "error_wrong_password")
        self._tries.succeeded(account)
        response = answer({"person": shown(person)})
        await self._open(request, response, person)
        return response

    async def sign_out(self, request: web.Request) -> web.Response:
        visit = require_visit(request)
        if visit.way is Way.SESSION:
            await self._sessions.end(visit.key)
        response = web.Response(status=204)
        drop_cookie(response)
        return response

    async def me(self, request: web.Request) -> web.Response:
        visit = visit_of(request)
        person = visit.person if visit else None
        about = self._page.about(person, language_of(request))
        answered: dict[str, object] = {
            "person": shown(person) if person else None,
            "csrf": visit.csrf if visit else "",
            "guests": about.guests,
            "model": about.model,
            "limits": about.limits,
            "version": about.version,
            "commands": about.commands,
            "characters": about.characters,
            "inspects": about.inspects,
        }
        response = answer(answered)
        if visit and visit.way is Way.SESSION:  # the cookie lives on with the session
            set_cookie(request, response, request.cookies[COOKIE], int(LIFETIME.total_seconds()))
        return response

    async def change_me(self, request: web.Request) -> web.Response:
        visit = require_visit(request)
        wish = await body(request, MyChanges)
        changes: dict[str, Any] = wish.model_dump(exclude_unset=True, exclude={"current_password"})
        if "password" in changes:
            await self._check_current(request, visit, wish.current_password)
        try:
            person = await self._people.change(actor_of(request), visit.person.id, spare_session=visit.key, **changes)
        except PeopleError as error:
            raise refusal(error) from error
        return answer({"person": shown(person)})

    async def tokens(self, request: web.Request) -> web.Response:
        return answer({"tokens": await self._tokens.of(require_person(request).id)})

    async def make_token(self, request: web.Request) -> web.Response:
        person = require_person(request)
        wish = await body(request, TokenWish)
        token, text = await self._tokens.make(actor_of(request), person.id, wish.name)
        return answer({"id": token.id, "name": token.name, "created_at": token.created_at, "token": text}, status=201)

    async def drop_token(self, request: web.Request) -> web.Response:
        if not await self._tokens.drop(actor_of(request), require_person(request).id, request.match_info["id"]):
            raise not_found()
        return web.Response(status=204)

    async def _check_current(self, request: web.Request, visit: Visit, current: str) -> None:
        """A new password needs the old one; the first needs a session, for a leaked API token must not become an account."""
        if not visit.person.has_password:
            if visit.way is Way.TOKEN:
                raise forbidden()
            return
        self._tries.take(visit.person.id, request[CLIENT].network)
        if not await self._people.knows_password(visit.person.id, current):
            raise HttpFault(400, "wrong_password", "error_wrong_password", param="current_password")
        self._tries.succeeded(visit.person.id)

    async def _open(self, request: web.Request, response: web.Response, person: Person) -> None:
        """A new session in the answer's cookie; the one that this browser had until now is over."""
        opened = await self._sessions.open(person.id, request.headers.get("User-Agent", ""))
        set_cookie(request, response, opened.token, int(LIFETIME.total_seconds()))
        former = visit_of(request)
        if former and former.way is Way.SESSION:
            await self._sessions.end(former.key)


"""The door: who asks, from where, and whether a browser was sent here by somebody else's page (WO-60, WO-61, WP-10 to WP-12). Fails closed.

Every route but those of `OPEN` needs somebody who is signed in, and `/api/operator/` an admin, whatever its handler does. Order of the checks: Host ·
the proxy's secret · who asks · Origin and CSRF token · signed in · role.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from gateway.config import Web
from gateway.config.types import is_loopback
from gateway.credentials import Visit, VisitCache, Way, fingerprint
from gateway.http.asker import CLIENT, VISIT, Client, require_person
from gateway.http.fault import HttpFault, forbidden
from gateway.http.reach import Names, names, plain_address
from gateway.people import People
from gateway.sessions import Sessions
from gateway.tokens import ApiTokens

COOKIE = "yumegate_session"
CSRF_HEADER = "X-CSRF-Token"
PROXY_SECRET_HEADER = "X-Proxy-Secret"

OPEN = frozenset(
    {
        ("GET", "/"),
        ("GET", "/static"),
        ("GET", "/login/{code}"),
        ("POST", "/api/session"),
        ("GET", "/api/me"),
        ("POST", "/api/guest"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),  # looks itself: loopback, or an admin's token
        ("POST", "/control"),  # looks itself: loopback, and the secret of the data directory's lock
    }
)
"""The routes that answer somebody who is not signed in; every other one is a 401 for them (WP-11)."""

OPERATORS_ONLY = "/api/operator/"

NOT_BY_TOKEN = frozenset({("POST", "/api/tokens")})
"""What a leaked API token must not do: make another one, which would outlive its revocation."""

_SAFE = ("GET", "HEAD", "OPTIONS")
_FORWARDED = (
    "Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "CF-Connecting-IP", PROXY_SECRET_HEADER,
)  # fmt: skip


class Door:
    """Looks at every request before its handler. `settings` gives the present `channels.web`, so that a change applies at once (WO-31)."""

    def __init__(self, settings: Callable[[], Web], people: People, sessions: Sessions, tokens: ApiTokens, cache: VisitCache) -> None:
        self._settings = settings
        self._people = people
        self._sessions = sessions
        self._tokens = tokens
        self._cache = cache

    def middleware(self) -> Middleware:
        @web.middleware
        async def door(request: web.Request, handler: Handler) -> web.StreamResponse:
            await self._admit(request)
            return await handler(request)

        return door

    async def _admit(self, request: web.Request) -> None:
        settings = self._settings()
        ours = _our_names(request, settings)
        if {host.lower() for host in request.headers.getall("Host", [""])} - ours.hosts:
            raise HttpFault(403, "bad_host", "error_host")
        trusted = _through_proxy(request, settings)
        request[CLIENT] = _client(request, ours, trusted)
        if "\0" in request.path or any("\0" in text for item in request.query.items() for text in item):
            raise HttpFault(400, "bad_request", "error_bad_request")
        visit = await self._visit(request, settings, trusted)
        if visit:
            request[VISIT] = visit
        if visit is None or visit.way is not Way.TOKEN:
            _check_page(request, ours, visit)
        canonical = request.match_info.route.resource.canonical if request.match_info.route.resource else ""
        if visit and visit.way is Way.TOKEN and (_method(request), canonical) in NOT_BY_TOKEN:
            raise forbidden()
        if canonical and (_method(request), canonical) not in OPEN:
            require_person(request, "admin" if canonical.startswith(OPERATORS_ONLY) else "guest")

    async def _visit(self, request: web.Request, settings: Web, trusted: bool) -> Visit | None:
        """An API token first, then the proxy's word, then the cookie. A wrong token is refused, never passed over for a cookie."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            if visit := await self._tokens.find(token.strip()):
                return visit
            raise HttpFault(401, "bad_token", "error_signin", headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})
        header = settings.trusted_proxy.header
        if trusted and header and (name := request.headers.get(header, "")):
            key = fingerprint(f"proxy {name}")
            return await self._cache.find(key, partial(self._introduced, name, key, settings.trusted_proxy.secret.get_secret_value()))
        cookie = request.cookies.get(COOKIE, "")
        return await self._sessions.find(cookie) if cookie else None

    async def _introduced(self, name: str, key: str, secret: str) -> Visit | None:
        """The person whom the proxy names: by the identity `web:proxy:NAME`, else by the name with which they would sign in."""
        person = await self._people.find_by_identity("web", "proxy", name) or await self._people.find_by_sign_in(name)
        if person is None or person.blocked:
            return None
        csrf = hmac.new(secret.encode(), f"csrf {person.id}".encode(), hashlib.sha256).hexdigest()
        return Visit(person=person, way=Way.PROXY, key=key, csrf=csrf)


def set_cookie(request: web.Request, response: web.StreamResponse, token: str, seconds: int) -> None:
    """The session cookie: not for scripts, not for other sites, and only through TLS where the browser uses it (WO-61)."""
    response.set_cookie(COOKIE, token, max_age=seconds, path="/", httponly=True, samesite="Strict", secure=request[CLIENT].https)


def drop_cookie(response: web.StreamResponse) -> None:
    response.del_cookie(COOKIE, path="/")


def _our_names(request: web.Request, settings: Web) -> Names:
    here = cast("tuple[Any, ...]", request.get_extra_info("sockname") or ("", 0))
    return names(settings.host, settings.public_url, plain_address(str(here[0])), int(here[1]))


def _check_page(request: web.Request, ours: Names, visit: Visit | None) -> None:
    """Writes and event streams come from our own page; a write of somebody signed in by cookie carries the CSRF token besides."""
    writes = request.method not in _SAFE
    if not writes and not request.path.endswith("/events"):
        return
    if any(origin.lower() not in ours.origins for origin in request.headers.getall("Origin", [])):
        raise HttpFault(403, "bad_origin", "error_forbidden")
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise HttpFault(403, "bad_origin", "error_forbidden")
    if writes and visit and not _equal(request.headers.get(CSRF_HEADER, ""), visit.csrf):
        raise HttpFault(403, "csrf", "error_csrf")


def _through_proxy(request: web.Request, settings: Web) -> bool:
    """Whether the request came through the trusted proxy. Raises 403 for a wrong secret, and for any secret while none is set."""
    given = request.headers.get(PROXY_SECRET_HEADER)
    if given is None:
        return False
    if not _equal(given, settings.trusted_proxy.secret.get_secret_value()):
        raise HttpFault(403, "bad_proxy", "error_forbidden")
    return True


def _client(request: web.Request, ours: Names, trusted: bool) -> Client:
    peer = plain_address(request.remote or "")
    forwarded = any(name in request.headers for name in _FORWARDED)
    https = request.secure or request.host.lower() in ours.https_hosts
    if trusted:  # of a list, the last address is the one that the proxy itself saw
        peer = plain_address(request.headers.get("X-Forwarded-For", "").rpartition(",")[2]) or peer
        https = https or request.headers.get("X-Forwarded-Proto", "") == "https"
    return Client(address=peer, local=is_loopback(peer) and not forwarded, https=https)


def _method(request: web.Request) -> str:
    return "GET" if request.method == "HEAD" else request.method


def _equal(given: str, expected: str) -> bool:
    """In constant time; nothing equals an empty expectation."""
    return bool(expected) and hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode("utf-8", "surrogatepass"))

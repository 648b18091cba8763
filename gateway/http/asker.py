"""Who asks and from where, as the door found out (`gateway.http.auth`); handlers read it here."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from aiohttp import web

from gateway.audit import Actor
from gateway.credentials import Visit
from gateway.http.fault import HttpFault, forbidden
from gateway.language import from_tag
from gateway.person import Person, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The other end. `address` is an IP address, empty when unknown.

    `local`: on this machine and through no proxy (WP-10). `https`: the browser sees TLS, whoever ends it.
    """

    address: str
    local: bool
    https: bool

    @property
    def network(self) -> str:
        """What limits count by: the address, of IPv6 the /64 that one customer has whole."""
        try:
            parsed = ipaddress.ip_address(self.address)
        except ValueError:
            return self.address
        return str(ipaddress.ip_network((parsed, 64), strict=False)) if parsed.version == 6 else self.address


VISIT = web.RequestKey("visit", Visit)
CLIENT = web.RequestKey("client", Client)


def visit_of(request: web.Request) -> Visit | None:
    """Who asks; None signed out."""
    return request.get(VISIT)


def require_visit(request: web.Request) -> Visit:
    """Who asks, and how they showed it. Raises the 401 signed out."""
    if visit := request.get(VISIT):
        return visit
    raise HttpFault(401, "signed_out", "error_signin", headers={"WWW-Authenticate": "Bearer"})


def require_person(request: web.Request, role: Role = "guest") -> Person:
    """Who asks, holding at least `role`. Raises the 401 signed out and the 403 below the role (CH-118)."""
    person = require_visit(request).person
    if not person.may(role):
        raise forbidden()
    return person


def actor_of(request: web.Request) -> Actor:
    """The asker, for the audit log. Raises the 401 signed out."""
    return Actor(id=require_person(request).id, address=request[CLIENT].address)


def language_of(request: web.Request) -> str:
    """The person's own language, else the browser's, else English."""
    visit = visit_of(request)
    return (visit.person.language if visit else "") or from_tag(request.headers.get("Accept-Language", "")) or "en"

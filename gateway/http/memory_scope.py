"""Whose memory a request is about: one's own, or for an owner that of a space. Anything else is not there (WD-9, WD-10). Fails closed."""

from __future__ import annotations

import re
from datetime import date
from functools import partial

import sqlalchemy as sa
from aiohttp import web

from gateway.http.base import answer, not_found, require_person
from gateway.person import Person
from memory.database import Database
from memory.ids import SpaceId
from memory.schema import spaces
from memory.scopes import Access, Kind, Scope, parse_scope, scope_of, space_scope

_SPACES = sa.select(spaces.c.id, spaces.c.title, spaces.c.channel).order_by(spaces.c.title, spaces.c.id)
_SPACE = sa.select(spaces.c.id).where(spaces.c.id == sa.bindparam("space"))
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class MemoryScopes:
    def __init__(self, *, db: Database) -> None:
        self._db = db

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/api/memory/scopes", self.list_scopes)]

    async def list_scopes(self, request: web.Request) -> web.Response:
        """What the asker may open, their own first. `label` is what people call it."""
        person = require_person(request, "user")
        found = [{"scope": str(own(person)), "kind": "own", "label": person.name, "channel": ""}]
        if person.may("owner"):
            found += await self._db.read(_spaces)
        return answer({"scopes": found})

    async def of(self, request: web.Request) -> Scope:
        """The scope that the query names, by default the asker's own. Raises 401 signed out, 403 for a guest, 404 for what the asker may not open."""
        person = require_person(request, "user")
        mine = own(person)
        wanted = request.query.get("scope", str(mine))
        if wanted == str(mine):
            return mine
        try:
            scope = parse_scope(wanted)
        except ValueError:
            raise not_found() from None
        if scope.kind is not Kind.SPACE or not person.may("owner") or not await self._db.read(partial(_is_space, space=scope.id)):
            raise not_found()
        return scope


def own(person: Person) -> Scope:
    """A person's own scope. A row that names none, or a space, is nobody's memory: 404."""
    try:
        scope = parse_scope(person.scope)
    except ValueError:
        raise not_found() from None
    if scope.kind is Kind.SPACE:
        raise not_found()
    return scope


def access_to(scope: Scope) -> Access:
    """What a conversation of this scope may touch."""
    if scope.kind is Kind.SPACE:
        return scope_of("group", person=None, space=scope, memory_on=True, known=True)
    return scope_of("web", person=scope, space=None, memory_on=True, known=True)


def day_in(text: str) -> date:
    """A local date of a path, as `2026-03-08`; 404 for anything that is none."""
    if not _DATE.fullmatch(text):
        raise not_found()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise not_found() from None


def _spaces(connection: sa.Connection) -> list[dict[str, str]]:
    return [
        {"scope": str(space_scope(SpaceId(row.id))), "kind": "space", "label": row.title or row.id, "channel": row.channel}
        for row in connection.execute(_SPACES)
    ]


def _is_space(connection: sa.Connection, *, space: str) -> bool:
    return connection.execute(_SPACE, {"space": space}).first() is not None

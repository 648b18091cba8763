"""What do you know about me: one answer with all of it, or a file to keep; and forget me, after two confirmations (WO-22)."""

from __future__ import annotations

from typing import Annotated

import pydantic_core
from aiohttp import web
from pydantic import StringConstraints

from gateway import held
from gateway.forget_me import STEPS, CannotForget, ForgetExpired, ForgetMe
from gateway.http.base import Body, HttpFault, actor_of, answer, body, language_of, not_found, require_person, row_id
from gateway.http.memory_scope import own
from gateway.person import Person
from gateway.saved.shelves import Shelves
from memory.database import Database
from memory.workspace_threads import WorkspaceThreads

_FORMS = ("", "json", "markdown")


class Yes(Body):
    """`token` came with the question."""

    token: Annotated[str, StringConstraints(max_length=100)]


class HeldRoutes:
    def __init__(self, *, db: Database, files: WorkspaceThreads, shelves: Shelves, forget_me: ForgetMe) -> None:
        self._db = db
        self._files = files
        self._shelves = shelves
        self._forget_me = forget_me

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/me/held", self.look),
            web.post("/api/me/forget", self.ask),
            web.post("/api/me/forget/{step}", self.confirm),
        ]

    async def look(self, request: web.Request) -> web.Response:
        """Without `as` for the page; `as=json` and `as=markdown` are files."""
        person, form = require_person(request, "user"), request.query.get("as", "")
        if form not in _FORMS:
            raise HttpFault(400, "bad_field", "error_bad_field", param="as", field="as", reason=f"Input should be {' or '.join(_FORMS[1:])}")
        found = await self._held(person)
        if form == "markdown":
            return _file(held.markdown(found, language_of(request)).encode(), "about-me.md", "text/markdown")
        return _file(pydantic_core.to_json(found, indent=1), "about-me.json", "application/json") if form else answer(found)

    async def ask(self, request: web.Request) -> web.Response:
        """The first question; nothing is forgotten yet. 409 for the owner of the machine."""
        person = require_person(request)
        try:
            return answer(await self._forget_me.ask(person))
        except CannotForget:
            raise HttpFault(409, "owner", "forget_me_owner") from None

    async def confirm(self, request: web.Request) -> web.Response:
        """A yes to a step: the next question, or null once everything is forgotten and nobody is signed in any more."""
        person, step = require_person(request), row_id(request, "step")
        if step not in STEPS:
            raise not_found()
        wish = await body(request, Yes)
        try:
            return answer({"next": await self._forget_me.confirm(actor_of(request), person, step, wish.token)})
        except ForgetExpired:
            raise HttpFault(409, "expired", "saved_clear_over", param="token") from None

    async def _held(self, person: Person) -> dict[str, object]:
        scope = own(person)
        listed = await self._files.read(lambda workspace: workspace.files(scope))
        files = [{"path": file.path, "size": file.size, "changed_at": file.changed_at} for file in listed]
        characters = await self._shelves.characters()
        return await self._db.read(lambda connection: held.held(connection, person, characters, files))


def _file(body: bytes, name: str, content_type: str) -> web.Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return web.Response(body=body, content_type=content_type, charset="utf-8", headers=headers)

"""The chunks of a chat over HTTP: look, forget one, clear all in two steps, make anew, export and import (RS-37 to RS-42, WO-21)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import Field, StringConstraints

from gateway.chat_reach import ChatReach
from gateway.http.base import Body, HttpFault, answer, body, not_found, query_int, row_id
from gateway.http.recall_chats import CHAT, opened, totals_view
from gateway.recall.desk import Label, RecallDesk
from memory.recall import transfer
from memory.recall.chunk_views import Seen
from memory.recall.confirming import CodeExpired
from memory.recall.transfer import NotAnExport, Packed, Plan

PAGE = 50
IMPORT_MAX = 32 << 20  # bytes
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")

Code = Annotated[str, StringConstraints(max_length=20)]


class Question(Body):
    """What shall be confirmed; `chunk`: which one shall be forgotten."""

    what: Literal["clear", "everything", "forget"]
    chunk: Annotated[int, Field(ge=1)] | None = None


class Confirmed(Body):
    """`code`: of the question. `everything`: summaries too."""

    code: Code
    everything: bool = False


class Import(Body):
    """`document`: the text of a file."""

    document: str


class RecallChunkRoutes:
    def __init__(self, *, desk: RecallDesk, reach: ChatReach) -> None:
        self._desk = desk
        self._reach = reach

    def routes(self) -> list[web.RouteDef]:
        chunks = f"{CHAT}/chunks"
        return [
            web.get(chunks, self.list_chunks),
            web.delete(rf"{chunks}/{{chunk:\d+}}", self.forget),
            web.post(f"{chunks}/confirm", self.ask),
            web.post(f"{chunks}/clear", self.clear),
            web.post(f"{chunks}/rebuild", self.rebuild),
            web.get(f"{chunks}/export", self.export),
            web.post(f"{chunks}/import/preview", self.preview),
            web.post(f"{chunks}/import", self.bring_in),
            web.post(f"{chunks}/share", self.share),
        ]

    async def list_chunks(self, request: web.Request) -> web.Response:
        """The newest talk first. `reason`: why no vectors can be made now, `off` for no embedding model; empty when they can."""
        person, tended = await opened(request, self._reach)
        limit, offset = query_int(request, "limit", PAGE, low=1, high=200), query_int(request, "offset", 0, low=0, high=10**9)
        found = await self._desk.chunks(tended.chat.id, person.id, limit=limit, offset=offset)
        items = [_item(row, label, person.id) for row, label in zip(found.rows, found.labels, strict=True)]
        return answer({
            "items": items, "more": offset + len(items) < found.totals.chunks, "totals": totals_view(found.totals), "reason": found.reason
        })  # fmt: skip

    async def ask(self, request: web.Request) -> web.Response:
        """The first step; nothing is forgotten yet. The code is good once, for this person and target, for five minutes (RS-42)."""
        person, tended = await opened(request, self._reach)
        wish = await body(request, Question)
        if (wish.what == "forget") is (wish.chunk is None):
            raise HttpFault(400, "bad_field", "error_bad_field", param="chunk", field="chunk", reason="goes with forget, and with nothing else")
        target = f"forget:{wish.chunk}" if wish.what == "forget" else wish.what
        return answer({"code": await self._desk.ask(tended.chat.id, person.id, target)})

    async def forget(self, request: web.Request) -> web.Response:
        person, tended = await opened(request, self._reach)
        try:
            done = await self._desk.forget(tended.chat.id, person.id, row_id(request, "chunk"), request.query.get("code", ""))
        except CodeExpired:
            raise _over() from None
        if not done:
            raise not_found()
        return web.Response(status=204)

    async def clear(self, request: web.Request) -> web.Response:
        person, tended = await opened(request, self._reach)
        wish = await body(request, Confirmed)
        act = self._desk.clear_everything if wish.everything else self._desk.clear
        try:
            return answer({"cleared": await act(tended.chat.id, person.id, wish.code)})
        except CodeExpired:
            raise _over() from None

    async def rebuild(self, request: web.Request) -> web.Response:
        """Chunks are made at once, vectors follow: how far they are is in `totals` of the list (RS-41)."""
        _, tended = await opened(request, self._reach)
        return answer({"chunks": await self._desk.rebuild(tended.chat.id)}, status=202)

    async def export(self, request: web.Request) -> web.Response:
        """One JSON file of what the asker may read, without vectors (RS-39)."""
        person, tended = await opened(request, self._reach)
        text = await self._desk.export(tended.chat, person.id)
        name = _UNSAFE.sub("-", tended.chat.title).strip("-")[:40] or "chat"
        headers = {"Content-Disposition": f'attachment; filename="{name}.yumegate.json"'}
        return web.Response(body=text.encode(), content_type="application/json", charset="utf-8", headers=headers)

    async def preview(self, request: web.Request) -> web.Response:
        """What the import would do; it changes nothing."""
        person, tended = await opened(request, self._reach)
        return answer(_plan(await self._desk.preview(tended.chat.id, person.id, await _packed(request))))

    async def bring_in(self, request: web.Request) -> web.Response:
        person, tended = await opened(request, self._reach)
        return answer(_plan(await self._desk.bring_in(tended.chat, person.id, await _packed(request))))

    async def share(self, request: web.Request) -> web.Response:
        """What was brought into a group becomes readable by whoever may read its messages (RS-40)."""
        _, tended = await opened(request, self._reach)
        return answer({"shared": await self._desk.share(tended.chat.id)})


async def _packed(request: web.Request) -> tuple[Packed, ...]:
    wish = await body(request, Import, size_max=IMPORT_MAX)
    try:
        return transfer.parse(wish.document)
    except NotAnExport:
        raise HttpFault(422, "no_export", "recall_import_bad", param="document") from None


def _over() -> HttpFault:
    return HttpFault(409, "expired", "recall_code_over", param="code")


def _plan(plan: Plan) -> dict[str, int]:
    return {"new": len(plan.found), "off": len(plan.lost), "standing": plan.standing}


def _item(row: Seen, label: Label, person_id: str) -> dict[str, Any]:
    return {
        "id": row.id, "status": label, "state": row.state, "outdated": row.outdated > 0, "origin": row.origin, "text": row.text,
        "messages": row.messages, "tokens": row.tokens, "said_from": row.said_from, "said_to": row.said_to, "created_at": row.created_at,
        "mine_alone": row.area.endswith(f"/importer:{person_id}"),
    }  # fmt: skip

"""Many saved memories at once over HTTP: clearing in two steps, drafts, what programs did, export, import (SM-57 to SM-60, SM-72, SM-76, SM-91)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from aiohttp import web
from pydantic import Field, StringConstraints

from agent.errors import ModelError
from gateway.background import BudgetSpent
from gateway.cast import character_of
from gateway.config import Config
from gateway.http.base import Body, HttpFault, answer, body, language_of, not_found, require_person, row_id
from gateway.http.saved_views import Faces, Named, batch_refused, entry, item, place, wish_of
from gateway.person import Person
from gateway.saved.desk import Birth, SavedDesk
from gateway.saved.drafts import DESCRIPTION_MAX, Drafting, NoDrafts, NoHelper
from gateway.saved.picks import PICKED_MAX, NotPicked, Picked, Refusal, packed, picked
from gateway.saved.shelves import NotYours, Shelf, Shelves, Wish
from gateway.zone_names import first_known, otherwise
from memory.database import Database
from memory.saved import transfer
from memory.saved.clearing import Cleared, ClearingExpired, Question
from memory.saved.rows import ListKey, ListKind, Origin
from memory.saved.transfer import Document, ImportRefused, Mode, NotAnExport

READ_MAX = 20_000  # characters of a text that are taken in at all
IMPORT_MAX = 8 << 20  # bytes
DRAFTS_READ_MAX = 200

log = logging.getLogger(__name__)

Text = Annotated[str, StringConstraints(max_length=READ_MAX)]
Id = Annotated[str, StringConstraints(max_length=100)]


class ClearStep(Named):
    """A yes or a no to the question of a step; `token` came with it."""

    token: Id
    yes: bool


class Description(Named):
    description: Text


class Pick(Named):
    """`how`: the model takes out what matters, or the messages stand as they are."""

    chat: Id
    messages: Annotated[tuple[Id, ...], Field(strict=False, max_length=DRAFTS_READ_MAX)]
    how: Literal["extract", "verbatim"]


class Drafts(Named):
    """`chat` and `messages` of those that were made of a talk (`from_chat`)."""

    origin: Literal["generate", "from_chat"]
    drafts: Annotated[tuple[Text, ...], Field(strict=False, max_length=DRAFTS_READ_MAX)]
    chat: Id = ""
    messages: Annotated[tuple[Id, ...], Field(strict=False, max_length=DRAFTS_READ_MAX)] = ()


class Target(Named):
    """Where the list at this place of the document goes."""

    at: Annotated[int, Field(ge=0, lt=transfer.LISTS_MAX)]


class Import(Body):
    """`document`: the text of an export. Without `targets` each list goes where it came from, as far as that is the asker's."""

    document: str
    mode: Literal["merge", "replace"] = "merge"
    targets: Annotated[tuple[Target, ...], Field(strict=False)] | None = None
    keep_pins: bool = False
    cross: bool = False


_PICKS: Mapping[Refusal, tuple[int, str, str]] = {
    Refusal.UNKNOWN: (404, "not_found", "error_not_found"),
    Refusal.NUMBER: (422, "pick_number", "saved_pick_number"),
    Refusal.SYSTEM_LINE: (422, "pick_system", "saved_pick_system"),
    Refusal.CHALLENGE: (409, "challenge", "saved_pick_challenge"),
    Refusal.LEARNING_OFF: (409, "learning_off", "saved_pick_learning"),
    Refusal.LIST: (422, "list_not_allowed", "saved_pick_list"),
}


class MemoryBatchRoutes:
    def __init__(
        self,
        *,
        db: Database,
        desk: SavedDesk,
        shelves: Shelves,
        drafting: Drafting,
        config: Callable[[], Config],
        clock: Callable[[], datetime],
    ) -> None:
        self._db = db
        self._desk = desk
        self._shelves = shelves
        self._drafting = drafting
        self._config = config
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/api/memories/clear", self.ask_clear),
            web.post("/api/memories/clear/{step}", self.clear),
            web.post("/api/memories/generate", self.generate),
            web.post("/api/memories/extract", self.extract),
            web.post("/api/memories/drafts", self.save_drafts),
            web.get("/api/memories/changes", self.changes),
            web.post("/api/memories/changes/{id}/undo", self.undo),
            web.get("/api/memories/export", self.export),
            web.post("/api/memories/import/preview", self.preview),
            web.post("/api/memories/import", self.bring_in),
        ]

    # -- clearing

    async def ask_clear(self, request: web.Request) -> web.Response:
        """The first question; nothing is deleted yet (SM-76)."""
        person = require_person(request, "user")
        key = (await self._open(person, await body(request, Named))).key
        return answer(await self._question(person, await self._desk.ask_clear(person.id, key)))

    async def clear(self, request: web.Request) -> web.Response:
        """A yes to a step, with the next question in `next`, or a no. 409 for a token that answers no open question of this step (SM-77)."""
        person, step = require_person(request, "user"), row_id(request, "step")
        if step not in (1, 2):
            raise not_found()
        wish = await body(request, ClearStep)
        key = (await self._open(person, wish)).key
        if not wish.yes:
            await self._desk.decline_clear(person.id, key, wish.token)
            return answer({"deleted": 0, "next": None})
        try:
            done: Cleared = await self._desk.clear(person.id, key, wish.token, step=step)
        except ClearingExpired:
            raise HttpFault(409, "expired", "saved_clear_over", param="token") from None
        return answer({"deleted": done.deleted, "next": await self._question(person, done.question) if done.question else None})

    async def _question(self, person: Person, asked: Question) -> dict[str, object]:
        faces = Faces(viewer=person.id, characters=await self._shelves.characters())
        return {"token": asked.token, "step": asked.step, "count": asked.count, "pins": [item(each, faces) for each in asked.pins]}

    # -- drafts

    async def generate(self, request: web.Request) -> web.Response:
        """Drafts from a description alone (SM-57). Nothing is saved."""
        person = require_person(request, "user")
        wish = await body(request, Description)
        await self._open(person, wish)
        description = wish.description.strip()
        if not description:
            raise HttpFault(422, "empty", "saved_describe_empty", param="description")
        if len(description) > DESCRIPTION_MAX:
            raise HttpFault(422, "too_long", "saved_describe_long", param="description", length=len(description), limit=DESCRIPTION_MAX)
        most = self._config().saved.generate_drafts_max
        drafts = await self._asked(self._drafting.generate(description, most=most, person_id=person.id))
        return answer({"drafts": drafts, "found": len(drafts), "limit": most})

    async def extract(self, request: web.Request) -> web.Response:
        """Drafts from picked messages (SM-58, SM-59); `found` says how many there would have been. Nothing is saved."""
        person = require_person(request, "user")
        wish = await body(request, Pick)
        key = (await self._open(person, wish)).key
        chosen = await self._picked(person, wish.chat, wish.messages, key)
        most, length = self._config().saved.from_chat_drafts_max, self._desk.limits.content
        if wish.how == "verbatim":
            drafts = packed([message.text for message in chosen.messages], length=length, pieces=most)
            if drafts is None:
                raise HttpFault(422, "too_long", "saved_pick_long", param="messages", limit=length, drafts=most)
        else:
            character = character_of(self._config(), chosen.chat.character)
            zone = otherwise(first_known(person.timezone, self._config().timezone))
            drafts = await self._asked(
                self._drafting.extract(
                    chosen.messages, name=character.name, character_model=character.model, zone=zone, person_id=person.id,
                    conversation_id=chosen.chat.id,
                )
            )  # fmt: skip
        return answer({"drafts": drafts[:most], "found": len(drafts), "limit": most})

    async def save_drafts(self, request: web.Request) -> web.Response:
        """The drafts that the person kept, as they edited them: all or none (SM-60)."""
        person = require_person(request, "user")
        wish = await body(request, Drafts)
        key = (await self._open(person, wish)).key
        saved, from_chat = self._config().saved, wish.origin == "from_chat"
        most = saved.from_chat_drafts_max if from_chat else saved.generate_drafts_max
        if not 1 <= len(wish.drafts) <= most:
            raise HttpFault(422, "draft_number", "saved_draft_number", param="drafts", limit=most)
        birth = Birth(source={"platform": "web"})
        if from_chat:
            chosen = await self._picked(person, wish.chat, wish.messages, key)
            source = {"platform": chosen.chat.channel, "chat": chosen.chat.id, "messages": [message.id for message in chosen.messages]}
            birth = Birth(source=source)
        batch = await self._desk.save_drafts(person.id, key, wish.drafts, birth, origin=Origin(wish.origin))
        if refusal := batch_refused(request, batch, self._desk.limits, pinned=from_chat):
            return refusal
        rows = [*batch.added, *batch.standing]
        faces = Faces(viewer=person.id, characters=await self._shelves.characters(), people=await self._desk.authors(rows))
        shown = {name: [item(each, faces) for each in group] for name, group in (("added", batch.added), ("standing", batch.standing))}
        return answer(shown, status=201)

    async def _picked(self, person: Person, chat: str, messages: Sequence[str], key: ListKey) -> Picked:
        try:
            return await self._db.read(lambda connection: picked(connection, person.id, chat, messages, key))
        except NotPicked as error:
            status, code, text = _PICKS[error.why]
            raise HttpFault(status, code, text, param="messages", limit=PICKED_MAX) from None

    async def _asked(self, drafts: Awaitable[list[str]]) -> list[str]:
        try:
            return await drafts
        except NoHelper:
            raise HttpFault(409, "no_model", "saved_no_model") from None
        except BudgetSpent as error:
            seconds = str(int(error.retry_after_s))
            raise HttpFault(429, "budget", "saved_drafts_budget", headers={"Retry-After": seconds}) from None
        except (NoDrafts, ModelError) as error:
            log.info("no drafts of memories: %s", error)
            raise HttpFault(503, "model", "saved_drafts_failed") from None

    # -- what programs did

    async def changes(self, request: web.Request) -> web.Response:
        """What programs did to the lists that are asked for, or to all one's own, as far as it can be taken back (SM-72)."""
        person = require_person(request, "user")
        wish = wish_of(request)
        if wish is None:
            keys = [each.key for each in await self._shelves.of(person) if each.key.kind is not ListKind.SPACE]
        else:
            keys = [(await self._opened(person, wish)).key]
        faces = Faces(viewer=person.id, characters=await self._shelves.characters())
        return answer({"changes": [entry(each, faces) for each in await self._desk.changes(keys)]})

    async def undo(self, request: web.Request) -> web.Response:
        """Take one change back. 409 when a later change goes before it, so nothing was done (SM-66); 404 when it cannot be taken back any more."""
        person = require_person(request, "user")
        done = await self._desk.undo(row_id(request, "id"), partial(self._shelves.manages, person))
        if done is None:
            raise not_found()
        if not done:
            raise HttpFault(409, "kept", "saved_undo_kept")
        faces = Faces(viewer=person.id, characters=await self._shelves.characters())
        rows = {"removed": done.removed, "rewritten": done.rewritten, "restored": done.restored}
        shown = {name: [item(each, faces) for each in group] for name, group in rows.items()}
        return answer({**shown, "forgotten": len(done.forgotten)})

    # -- out and in

    async def export(self, request: web.Request) -> web.Response:
        """One JSON file: the list that is asked for, or all that the asker manages."""
        person = require_person(request, "user")
        wish, now = wish_of(request), self._clock()
        shelves = [await self._opened(person, wish)] if wish else [each for each in await self._shelves.of(person) if each.manages]
        keys = [each.key for each in shelves]
        text = await self._db.read(lambda connection: transfer.export(connection, keys, now))
        headers = {"Content-Disposition": f'attachment; filename="memories-{now:%Y-%m-%d}.json"'}
        return web.Response(body=text.encode(), content_type="application/json", charset="utf-8", headers=headers)

    async def preview(self, request: web.Request) -> web.Response:
        """What the import would do, where each list would go, and which rows do not fit. It changes nothing."""
        person = require_person(request, "user")
        plan = await self._plan(person, await body(request, Import, size_max=IMPORT_MAX))
        shown = await self._db.read(lambda connection: transfer.preview(connection, plan, limits=self._desk.limits))
        faces = Faces(viewer=person.id, characters=await self._shelves.characters())
        lists = [
            {
                "at": at,
                "list": each.kind.value,
                "character": each.character,
                "character_name": each.character_name,
                "rows": len(each.rows),
                "pins": sum(row.pinned for row in each.rows),
                "target": place(plan.targets[at], faces) if at in plan.targets else None,
            }
            for at, each in enumerate(plan.document.lists)
        ]
        return answer({"lists": lists, **_shown(shown, plan.document)})

    async def bring_in(self, request: web.Request) -> web.Response:
        """All of it or nothing. 409 with the preview when a row does not fit, or a crossing was not agreed to."""
        person = require_person(request, "user")
        plan = await self._plan(person, await body(request, Import, size_max=IMPORT_MAX))
        try:
            done = await self._desk.bring_in(person.id, plan)
        except ImportRefused as error:
            crosses = error.preview.crosses and not error.preview.faults
            fault = HttpFault(409, "crosses", "saved_import_crosses") if crosses else HttpFault(409, "refused", "saved_import_refused")
            return answer({**fault.shown(language_of(request)), **_shown(error.preview, plan.document)}, status=409)
        return answer(_shown(done, plan.document))

    async def _plan(self, person: Person, wish: Import) -> transfer.Wish:
        """The right to every list is looked at before the document is (SM-91)."""
        targets = None if wish.targets is None else {each.at: (await self._open(person, each)).key for each in wish.targets}
        mine = await self._shelves.of(person) if targets is None else ()
        try:
            document = transfer.parse(wish.document)
        except NotAnExport:
            raise HttpFault(422, "no_export", "saved_import_bad", param="document") from None
        if targets is None:
            spaces = {each.key.owner for each in mine if each.key.kind is ListKind.SPACE and each.manages}
            targets = await self._db.read(lambda connection: transfer.targets_of(connection, document, person=person.id, spaces=spaces))
        kept = {at: key for at, key in targets.items() if at < len(document.lists)}
        return transfer.Wish(document=document, targets=kept, mode=Mode(wish.mode), keep_pins=wish.keep_pins, agreed_to_cross=wish.cross)

    # -- inside

    async def _open(self, person: Person, named: Named) -> Shelf:
        return await self._opened(person, named.wish)

    async def _opened(self, person: Person, wish: Wish) -> Shelf:
        try:
            return await self._shelves.open(person, wish)
        except NotYours:
            raise not_found() from None


def _shown(preview: transfer.Preview, document: Document) -> dict[str, object]:
    faults = [
        {"list": each.list_at, "row": each.row_at, "reason": each.reason.value, "content": document.lists[each.list_at].rows[each.row_at].content}
        for each in preview.faults
    ]
    counts = {"new": preview.new, "standing": preview.standing, "replaced": preview.replaced}
    return {**counts, "left_out": preview.left_out, "crosses": preview.crosses, "faults": faults}

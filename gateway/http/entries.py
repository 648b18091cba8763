"""Summary entries of a chat over HTTP, and the templates that all chats share (RS-81 to RS-95)."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import Field, StringConstraints

from gateway.chat_reach import ChatReach
from gateway.entries.desk import (
    TEXT_MAX,
    TITLE_MAX,
    Changed,
    EntriesView,
    Entry,
    EntryDesk,
    NoSuchEntry,
    NoSuchTemplate,
    NotPossible,
    RangeRefused,
    SettingRefused,
    Template,
)
from gateway.entries.words import REFUSALS, sentence
from gateway.http.base import Body, HttpFault, answer, body, language_of, not_found, require_person, row_id
from gateway.http.recall_chats import opened
from gateway.job_words import failure

ENTRIES, TEMPLATES = "/api/chats/{id}/entries", "/api/summary-templates"
SWITCHED_AT_ONCE = 1_000

Text = Annotated[str, StringConstraints(max_length=TEXT_MAX)]
Title = Annotated[str, StringConstraints(max_length=TITLE_MAX)]
RowId = Annotated[int, Field(ge=1, lt=1 << 63)]


class NewEntry(Body):
    """Which messages: the `last` ones, or those numbered `first` to `to`; neither: as many as the chat's setting says. Bounds are the desk's."""

    action: Literal["generate", "write"]
    last: int | None = None
    first: int | None = None
    to: int | None = None
    title: Title = ""
    text: Text = ""


class EntryChange(Body):
    """`based_on`: `updated_at` as the person saw it; an edit of another state is refused. What is left out stays."""

    title: Title | None = None
    text: Text | None = None
    based_on: Annotated[str, StringConstraints(max_length=60)] = ""


class Switch(Body):
    ids: Annotated[tuple[RowId, ...], Field(strict=False, max_length=SWITCHED_AT_ONCE)] | Literal["all"]
    enabled: bool


class Decision(Body):
    accept: bool


class SettingsChange(Body):
    """null gives the gateway's own value; what is left out stays."""

    last_n: int | None = None
    every: int | None = None
    automatic: bool | None = None
    max_output: int | None = None
    hide: bool | None = None
    tail: int | None = None
    collapse: bool | None = None
    review: bool | None = None
    template_id: int | None = None
    prompt_override: Text | None = None


class TemplateBody(Body):
    name: Title
    text: Text


class TemplateChange(Body):
    name: Title | None = None
    text: Text | None = None


class EntryRoutes:
    def __init__(self, *, desk: EntryDesk, reach: ChatReach) -> None:
        self._desk = desk
        self._reach = reach

    def routes(self) -> list[web.RouteDef]:
        one, template = rf"{ENTRIES}/{{entry:\d+}}", rf"{TEMPLATES}/{{template:\d+}}"
        return [
            web.get(ENTRIES, self.list_entries),
            web.post(ENTRIES, self.make),
            web.post(f"{ENTRIES}/switch", self.switch),
            web.patch(f"{ENTRIES}/settings", self.configure),
            web.post(f"{ENTRIES}/backfill", self.backfill),
            web.post(f"{ENTRIES}/stop", self.stop),
            web.patch(one, self.change),
            web.delete(one, self.delete),
            web.post(f"{one}/decide", self.decide),
            web.get(TEMPLATES, self.list_templates),
            web.post(TEMPLATES, self.add_template),
            web.patch(template, self.change_template),
            web.delete(template, self.delete_template),
            web.post(f"{template}/copy", self.copy_template),
        ]

    async def list_entries(self, request: web.Request) -> web.Response:
        """The oldest talk first, with those that are off or wait for a yes, the chat's settings and how far a backfill is."""
        person, tended = await opened(request, self._reach)
        return answer(whole_view(await self._desk.listing(tended.chat.id, person.id), language_of(request)))

    async def make(self, request: web.Request) -> web.Response:
        """`generate`: 202, a job asks the model; `write`: 201 with the entry, no model is asked (RS-82)."""
        person, tended = await opened(request, self._reach)
        wish = await body(request, NewEntry)
        chat = tended.chat.id
        with refusals():
            if wish.action == "generate":
                await self._desk.generate(chat, person.id, last=wish.last, first=wish.first, to=wish.to)
                return answer({"begun": True}, status=202)
            made = await self._desk.write(chat, person.id, title=wish.title, text=wish.text, last=wish.last, first=wish.first, to=wish.to)
        return answer({"item": entry_view(made)}, status=201)

    async def change(self, request: web.Request) -> web.Response:
        person, tended = await opened(request, self._reach)
        wish, entry = await body(request, EntryChange), row_id(request, "entry")
        with refusals():
            done = await self._desk.change(tended.chat.id, person.id, entry, title=wish.title, text=wish.text, based_on=wish.based_on)
        return answer({"item": entry_view(done)})

    async def switch(self, request: web.Request) -> web.Response:
        """Several at once, in one step (RS-84)."""
        person, tended = await opened(request, self._reach)
        wish = await body(request, Switch)
        ids = None if wish.ids == "all" else wish.ids
        return answer({"changed": await self._desk.switch(tended.chat.id, person.id, ids, enabled=wish.enabled)})

    async def delete(self, request: web.Request) -> web.Response:
        """What it hid is sent again (RS-94)."""
        person, tended = await opened(request, self._reach)
        if not await self._desk.delete(tended.chat.id, person.id, [row_id(request, "entry")]):
            raise not_found()
        return web.Response(status=204)

    async def decide(self, request: web.Request) -> web.Response:
        """`settled`: false when nothing waits under this number, as after an earlier yes or no; then nothing changed (RS-85)."""
        person, tended = await opened(request, self._reach)
        wish, entry = await body(request, Decision), row_id(request, "entry")
        return answer({"settled": await self._desk.decide(tended.chat.id, person.id, entry, accept=wish.accept)})

    async def configure(self, request: web.Request) -> web.Response:
        _, tended = await opened(request, self._reach)
        wish = await body(request, SettingsChange)
        with refusals():
            done = await self._desk.configure(tended.chat.id, {name: getattr(wish, name) for name in wish.model_fields_set})
        return answer({"settings": done})

    async def backfill(self, request: web.Request) -> web.Response:
        """It goes on without the page; how far it is stands in `progress` (RS-87)."""
        _, tended = await opened(request, self._reach)
        with refusals():
            await self._desk.backfill(tended.chat.id)
        return answer({"begun": True}, status=202)

    async def stop(self, request: web.Request) -> web.Response:
        _, tended = await opened(request, self._reach)
        return answer({"stopped": await self._desk.stop(tended.chat.id)})

    # -- templates: everybody may read and choose them, operators change them

    async def list_templates(self, request: web.Request) -> web.Response:
        require_person(request, "user")
        return answer({"items": [template_view(each) for each in await self._desk.templates()]})

    async def add_template(self, request: web.Request) -> web.Response:
        require_person(request, "admin")
        wish = await body(request, TemplateBody)
        with refusals():
            return answer({"item": template_view(await self._desk.add_template(wish.name, wish.text))}, status=201)

    async def change_template(self, request: web.Request) -> web.Response:
        number = _of_operator(request)
        wish = await body(request, TemplateChange)
        with refusals():
            return answer({"item": template_view(await self._desk.change_template(number, name=wish.name, text=wish.text))})

    async def delete_template(self, request: web.Request) -> web.Response:
        number = _of_operator(request)
        with refusals():
            await self._desk.delete_template(number)
        return web.Response(status=204)

    async def copy_template(self, request: web.Request) -> web.Response:
        number = _of_operator(request)
        with refusals():
            return answer({"item": template_view(await self._desk.copy_template(number))}, status=201)


@contextmanager
def refusals() -> Generator[None]:
    """What the desk refuses, as an answer."""
    try:
        yield
    except REFUSALS as error:
        key, values = sentence(error)
        match error:
            case RangeRefused():
                raise HttpFault(422, f"range_{error.key}", key, param="last", **values) from None
            case NotPossible():
                raise HttpFault(409, error.reason, key, **values) from None
            case SettingRefused():
                raise HttpFault(422, "bad_setting", key, **values) from None
    except Changed:
        raise HttpFault(409, "changed", "recall_summary_changed", param="based_on") from None
    except (NoSuchEntry, NoSuchTemplate):
        raise not_found() from None


def _of_operator(request: web.Request) -> int:
    """The number of the template that an operator means."""
    require_person(request, "admin")
    return row_id(request, "template")


def whole_view(found: EntriesView, language: str) -> dict[str, Any]:
    """What failed is told in words (WD-100)."""
    progress = found.progress
    told = progress and (replace(progress, reason=failure(language, progress.reason)) if progress.reason else progress)
    return {
        "items": [entry_view(each) for each in found.entries], "settings": found.settings, "messages": found.messages,
        "uncovered": found.uncovered, "waiting": found.waiting, "making": found.making, "failed": found.failed,
        "stuck": [replace(each, reason=failure(language, each.reason)) for each in found.stuck], "progress": told,
        "allowed": found.allowed, "has_model": found.has_model,
    }  # fmt: skip


def entry_view(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id, "title": entry.title, "text": entry.text, "enabled": entry.enabled, "waiting": entry.waiting,
        "withheld": entry.withheld, "origin": entry.origin,
        "first": entry.first, "last": entry.last, "messages": entry.messages, "tokens": entry.tokens, "said_from": entry.said_from,
        "said_to": entry.said_to, "hidden": entry.hidden, "left_out": entry.left_out, "replaced": entry.replaced, "by_hand": entry.hand_edited,
        "stale": entry.stale, "updated_at": entry.updated_at.isoformat(),
    }  # fmt: skip


def template_view(template: Template) -> dict[str, Any]:
    return {"id": template.id, "name": template.name, "text": template.text, "builtin": template.builtin}

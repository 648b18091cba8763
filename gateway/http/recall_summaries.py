"""Summaries of a chat over HTTP: rolling ones by level, days and weeks, where the window begins (RS-47, RS-48, RS-54, RS-56 to RS-58, RS-68)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import Field, StringConstraints

from gateway.chat_reach import ChatReach
from gateway.http.base import Body, HttpFault, answer, body, language_of, not_found, row_id
from gateway.http.recall_chats import CHAT, opened
from gateway.job_words import failure
from gateway.shapes import message_json, prepare
from gateway.summaries.desk import Changed, HandEdited, Missing, Row, SettingRefused, SummaryDesk, TailAsked, Window
from memory.recall.confirming import CodeExpired
from memory.recall.summary_rows import Detail

TEXT_MAX, DETAILS_MAX = 40_000, 200

Words = Annotated[str, StringConstraints(min_length=1, max_length=TEXT_MAX)]
Line = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
Due = Annotated[str, StringConstraints(pattern=r"^(\d{4}-\d{2}-\d{2})?$")]


class DetailBody(Body):
    text: Line
    kind: Literal["promise", "plan", "question", "fact", "event"] = "fact"
    state: Literal["open", "resolved"] = "open"
    due: Due = ""


class SummaryChange(Body):
    """`based_on`: `updated_at` as the person saw it; an edit of another state is refused. What is left out stays."""

    text: Words | None = None
    details: Annotated[tuple[DetailBody, ...], Field(strict=False, max_length=DETAILS_MAX)] | None = None
    based_on: Annotated[str, StringConstraints(max_length=60)] = ""


class Consent(Body):
    """`consent`: also what a person wrote is replaced."""

    consent: bool = False


class Backfill(Body):
    days: Annotated[int, Field(ge=1, le=60)] | None = None


class DaySettings(Body):
    """null gives the gateway's own value; `sure`: also a tail above 500."""

    rollover_hour: int | None = None
    tail: int | None = None
    sure: bool = False


class RecallSummaryRoutes:
    def __init__(self, *, desk: SummaryDesk, reach: ChatReach) -> None:
        self._desk = desk
        self._reach = reach

    def routes(self) -> list[web.RouteDef]:
        rows = f"{CHAT}/summaries"
        one = rf"{rows}/{{summary:\d+}}"
        return [
            web.get(rows, self.list_rows),
            web.post(f"{rows}/rebuild", self.rebuild),
            web.patch(one, self.edit),
            web.delete(one, self.forget),
            web.get(f"{one}/inputs", self.inputs),
            web.post(f"{one}/confirm", self.ask),
            web.post(f"{one}/rebuild", self.rebuild),
            web.post(f"{one}/unfold", self.unfold),
            web.post(f"{one}/approve", self.approve),
            web.post(f"{CHAT}/window/undo", self.undo),
            web.get(f"{CHAT}/calendar", self.calendar),
            web.patch(f"{CHAT}/calendar", self.set),
            web.post(f"{CHAT}/calendar/backfill", self.backfill),
        ]

    async def list_rows(self, request: web.Request) -> web.Response:
        """`uncovered`: messages outside the window that no summary stands for, null where the profile makes none (RS-47)."""
        person, tended = await opened(request, self._reach)
        found = await self._desk.whole(tended.chat, person.id)
        return answer({
            "items": [row_view(each) for each in found.rows], "uncovered": found.uncovered, "window": await _window(found.window),
            "allowed": found.allowed, "has_model": found.has_model,
        })  # fmt: skip

    async def edit(self, request: web.Request) -> web.Response:
        person, tended = await opened(request, self._reach)
        wish = await body(request, SummaryChange)
        details = None if wish.details is None else [Detail(text=each.text, kind=each.kind, state=each.state, due=each.due) for each in wish.details]
        try:
            found = await self._desk.edit(
                tended.chat.id, person.id, row_id(request, "summary"), text=wish.text, details=details, based_on=wish.based_on
            )
        except Changed:
            raise HttpFault(409, "changed", "recall_summary_changed", param="based_on") from None
        return _one(found)

    async def inputs(self, request: web.Request) -> web.Response:
        """The rows that it was made from."""
        person, tended = await opened(request, self._reach)
        found = await self._desk.inputs(tended.chat.id, person.id, row_id(request, "summary"))
        return answer({"items": [row_view(each) for each in found]})

    async def ask(self, request: web.Request) -> web.Response:
        person, tended = await opened(request, self._reach)
        return answer({"code": await self._desk.ask(tended.chat.id, person.id, row_id(request, "summary"))})

    async def forget(self, request: web.Request) -> web.Response:
        """The row goes, its messages stay and are uncovered."""
        person, tended = await opened(request, self._reach)
        try:
            done = await self._desk.forget(tended.chat.id, person.id, row_id(request, "summary"), request.query.get("code", ""))
        except CodeExpired:
            raise HttpFault(409, "expired", "recall_code_over", param="code") from None
        if not done:
            raise not_found()
        return web.Response(status=204)

    async def rebuild(self, request: web.Request) -> web.Response:
        """One row anew, or whatever left the window and nothing stands for. 409 `hand_edited` without consent (RS-48)."""
        person, tended = await opened(request, self._reach)
        wish = await body(request, Consent)
        wanted = row_id(request, "summary") if "summary" in request.match_info else None
        try:
            jobs = await self._desk.rebuild(tended.chat, person.id, wanted, consent=wish.consent)
        except HandEdited:
            raise HttpFault(409, "hand_edited", "recall_summary_by_hand", param="consent") from None
        if not jobs:
            raise not_found()
        return answer({"begun": True}, status=202)

    async def unfold(self, request: web.Request) -> web.Response:
        """What it was made from counts again, and it does not (RS-45)."""
        person, tended = await opened(request, self._reach)
        back = await self._desk.unfold(tended.chat.id, person.id, row_id(request, "summary"))
        if not back:
            raise not_found()
        return answer({"restored": back})

    async def approve(self, request: web.Request) -> web.Response:
        person, tended = await opened(request, self._reach)
        return _one(await self._desk.approve(tended.chat.id, person.id, row_id(request, "summary")))

    async def undo(self, request: web.Request) -> web.Response:
        """The window begins again where it began before it jumped (RS-68)."""
        _, tended = await opened(request, self._reach)
        if await self._desk.undo_jump(tended.chat.id) is None:
            raise HttpFault(409, "nothing_to_undo", "context_undo_none")
        return answer({"undone": True})

    # -- days

    async def calendar(self, request: web.Request) -> web.Response:
        """Years, months and weeks first, then days that are not folded yet, and the days without a row with their reasons (RS-54, RS-58)."""
        person, tended = await opened(request, self._reach)
        found = await self._desk.calendar(tended.chat, person.id)
        return answer({
            "items": [row_view(each) for each in found.rows], "missing": [_missing(request, each) for each in found.missing],
            "settings": {key.partition(".")[2]: value for key, value in found.settings.items()}, "zone": found.zone, "made": found.made,
            "allowed": found.allowed, "wrong_zone": found.wrong_zone,
        })  # fmt: skip

    async def set(self, request: web.Request) -> web.Response:
        """422 names the bounds; 409 `tail_long` asks for a yes above 500 (RS-57). `warnings`: `old_hour` (RS-56)."""
        _, tended = await opened(request, self._reach)
        wish = await body(request, DaySettings)
        values = {f"days.{name}": getattr(wish, name) for name in ("rollover_hour", "tail") if name in wish.model_fields_set}
        try:
            warnings = await self._desk.set(tended.chat, values, sure=wish.sure)
        except SettingRefused as error:
            raise HttpFault(422, "bad_setting", "recall_setting_bounds", reason=str(error)) from None
        except TailAsked:
            raise HttpFault(409, "tail_long", "recall_tail_long", param="sure", tail=wish.tail) from None
        return answer({"warnings": warnings})

    async def backfill(self, request: web.Request) -> web.Response:
        """The newest missing days are made now, whatever back-off they are in; how far they are is in `missing` of the calendar (RS-167)."""
        _, tended = await opened(request, self._reach)
        wish = await body(request, Backfill)
        days, _ = await self._desk.backfill(tended.chat, most=wish.days)
        return answer({"days": [_missing(request, each) for each in days]}, status=202)


def row_view(row: Row) -> dict[str, Any]:
    of = row.summary
    return {
        "id": of.id, "kind": of.kind.value, "state": of.state.value, "title": of.title, "text": of.text, "date": of.local_date, "part": of.part,
        "details": [{"text": each.text, "kind": each.kind, "state": each.state, "due": each.due} for each in of.details],
        "said_from": row.said_from, "said_to": row.said_to, "messages": row.messages, "inputs": row.inputs, "tokens": of.tokens,
        "by_hand": of.hand_edited, "stale": of.stale, "failed_days": list(of.failed_days), "model": of.model, "created_at": of.created_at,
        "updated_at": of.updated_at.isoformat(),
    }  # fmt: skip


def _one(found: Row | None) -> web.Response:
    if found is None:
        raise not_found()
    return answer({"item": row_view(found)})


def _missing(request: web.Request, found: Missing) -> dict[str, Any]:
    error = found.error and failure(language_of(request), found.error)
    return {"date": found.day.isoformat(), "reason": found.reason, "error": error, "running": found.running}


async def _window(window: Window) -> dict[str, Any]:
    await prepare([window.first] if window.first is not None else [])
    return {
        "profile": window.profile,
        "first": message_json(window.first) if window.first is not None else None,
        "can_undo": window.jump is not None,
    }

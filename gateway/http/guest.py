"""Guests: a talk without signing in, where the operator allows it (WO-17). The page brings the words each time; nothing of them is kept here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Annotated, Literal

from aiohttp import web
from pydantic import Field, StringConstraints

from agent.turn import Said
from channels.html import snapshot_html, to_html
from gateway.config import DEFAULT_CHARACTER, Config
from gateway.http.asker import CLIENT, language_of, visit_of
from gateway.http.body import Body, body
from gateway.http.fault import HttpFault
from gateway.http.sse_writer import EventWriter, has_left
from gateway.language import say
from gateway.progress import Ended, Grown, Step
from gateway.stateless import UNKEPT, Asked, Stateless, alternating
from memory.ids import new_turn

MESSAGES_MAX = 200
TEXT_MAX = 16_000  # characters of one message
TALK_MAX = 200_000  # characters of all of them
SNAPSHOT_EVERY_S = 0.25
SNAPSHOT_SHARE = 20  # a snapshot that took 10 ms is followed by the next after 200 ms at the earliest


_SENTENCES = UNKEPT | {"draining": "error_draining"}


class GuestMessage(Body):
    role: Literal["user", "assistant"]
    text: Annotated[str, StringConstraints(max_length=TEXT_MAX)]


class GuestTalk(Body):
    messages: Annotated[list[GuestMessage], Field(min_length=1, max_length=MESSAGES_MAX)]


class GuestRoutes:
    def __init__(self, *, config: Callable[[], Config], stateless: Stateless) -> None:
        self._config = config
        self._stateless = stateless

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/api/guest", self.answer)]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The event stream of one answer, as of a chat; a guest who leaves ends it."""
        config = self._config()
        if not config.channels.web.guests:
            raise HttpFault(403 if visit_of(request) else 401, "guests_off", "error_guests_off")
        talk = await body(request, GuestTalk)
        if (length := sum(len(message.text) for message in talk.messages)) > TALK_MAX:
            raise HttpFault(422, "text_too_long", "error_text_long", param="messages", length=length, limit=TALK_MAX)
        said = alternating([Said(text=message.text, by_us=message.role == "assistant") for message in talk.messages])
        if not said or said[-1].by_us:
            raise HttpFault(422, "blank", "error_text_blank", param="messages")
        asked = Asked(
            purpose="guest",
            channel="web",
            rate_key=f"guest {request[CLIENT].network}",
            character=DEFAULT_CHARACTER,
            said=said,
            turns_max=config.agent_max_context_turns,
        )
        if refused := self._stateless.refusal(asked):
            raise _refusal(refused)
        async with asyncio.TaskGroup() as group, aclosing(self._stateless.answer(asked, group)) as steps:
            return await _Show(request).run(steps)


def _refusal(why: str) -> HttpFault:
    """`why` as `Stateless.refusal` says it."""
    kind, _, what = why.partition(":")
    match kind:
        case "draining":
            return HttpFault(503, kind, "error_draining", headers={"Retry-After": "5"})
        case "rate":
            return HttpFault(429, kind, "rate", headers={"Retry-After": "60"})
        case _:
            return HttpFault(429, kind, "budget_stop", what=what)


class _Show:
    """The steps of one answer as the events that the page knows from its chats."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._writer = EventWriter(request)
        self._turn = new_turn()
        self._shown = ""
        self._next_snapshot = 0.0

    async def run(self, steps: AsyncGenerator[Step]) -> web.StreamResponse:
        await self._event("turn", attempt=1)
        async for step in steps:
            if isinstance(step, Ended):
                await self._end(step)
            elif isinstance(step, Grown):
                await self._grow(step.text)
            else:
                await self._writer.keep_alive()
            if has_left(self._request):
                break
        return self._writer.response

    async def _grow(self, text: str) -> None:
        if not text.startswith(self._shown):
            self._shown = ""
            await self._event("reset")
        if more := text[len(self._shown) :]:
            await self._event("delta", text=more)
        self._shown = text
        began = time.monotonic()
        if text and began >= self._next_snapshot:
            await self._event("snapshot", html=await asyncio.to_thread(snapshot_html, text))
            self._next_snapshot = time.monotonic() + max(SNAPSHOT_EVERY_S, SNAPSHOT_SHARE * (time.monotonic() - began))

    async def _end(self, ended: Ended) -> None:
        language = language_of(self._request)
        if ended.state == "failed":
            await self._event("error", code=ended.code, message=say(language, _SENTENCES.get(ended.code, ended.code)))
        else:
            await self._grow(ended.text)
            await self._event("snapshot", html=await asyncio.to_thread(to_html, ended.text or say(language, "empty")))
        await self._event("done", outcome=ended.state)

    async def _event(self, name: str, **data: object) -> None:
        await self._writer.event({"turn_id": self._turn} | data, name)

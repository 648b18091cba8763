"""What was sent to the model for a reply, and what would be sent now (RS-78)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from agent.errors import ModelError
from agent.llm.port import ToolSpec
from gateway.config import Config
from gateway.http.base import HttpFault, answer, language_of, not_found, query_int, require_person
from gateway.person import Person
from gateway.prompt_desk import NoSuchChat, NotKept, PromptDesk, Shown

REQUESTS_MOST = 1_000  # of one reply, beyond any limit of steps and tries


class PromptRoutes:
    def __init__(self, *, desk: PromptDesk, config: Callable[[], Config]) -> None:
        self._desk = desk
        self._config = config

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/chats/{id}/preview", self.preview),
            web.get("/api/chats/{id}/turns/{turn_id}/prompt", self.sent),
        ]

    async def preview(self, request: web.Request) -> web.Response:
        """It starts nothing: no model call, no recall (RS-15)."""
        person = self._person(request)
        try:
            found = await self._desk.preview(person, request.match_info["id"], language=language_of(request))
        except NoSuchChat:
            raise not_found() from None
        except ModelError as error:
            raise HttpFault(409, "no_model", error.code) from error
        return answer({
            "model": found.model, "provider": found.provider, "messages": _messages(found.messages), "tools": _tools(found.tools),
            "sections": [{"name": each.name, "tokens": each.tokens} for each in found.sections], "tokens": found.tokens,
            "left_out": found.left_out, "room": found.room, "jump": found.jump, "fault": found.fault,
            "estimates": ["messages", "sections", "tokens", "room"],
        })  # fmt: skip

    async def sent(self, request: web.Request) -> web.Response:
        """`?number=`: which request of the reply, the last one without it."""
        person = self._person(request)
        number = query_int(request, "number", 1, low=1, high=REQUESTS_MOST) if "number" in request.query else None
        try:
            found = await self._desk.sent(person, request.match_info["id"], request.match_info["turn_id"], number)
        except NoSuchChat:
            raise not_found() from None
        except NotKept:
            raise HttpFault(404, "not_kept", "prompt_not_kept") from None
        return answer({
            "turn_id": found.turn_id, "attempt": found.attempt, "at": found.at, "until": found.until, "number": found.number,
            "requests": found.requests, "model": found.model, "provider": found.provider, "messages": _messages(found.messages),
            "tools": _tools(found.tools), "estimates": ["messages"],
        })  # fmt: skip

    def _person(self, request: web.Request) -> Person:
        return require_person(request, self._config().inspector.role)


def _messages(found: Sequence[Shown]) -> list[dict[str, Any]]:
    return [
        {
            "role": each.role,
            "text": each.text,
            "tokens": each.tokens,
            "pictures": each.pictures,
            "calls": [{"name": name, "arguments": arguments} for name, arguments in each.calls],
        }
        for each in found
    ]


def _tools(found: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    return [{"name": each.name, "description": each.description, "parameters": each.parameters} for each in found]

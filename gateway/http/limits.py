"""The page of limits: each with its present value (WO-21)."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from gateway import limits
from gateway.config import Config
from gateway.http.base import answer, language_of, require_person


class LimitRoutes:
    def __init__(self, config: Callable[[], Config]) -> None:
        self._config = config

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/api/limits", self.shown)]

    async def shown(self, request: web.Request) -> web.Response:
        require_person(request)
        return answer({"groups": limits.shown(self._config(), language_of(request))})

"""The door for the command line of the same machine: a secret from the lock file of the data directory, from loopback only (WD-120)."""

from __future__ import annotations

import hmac
from typing import Any

from aiohttp import web

from gateway.admin import Admin, AdminFault
from gateway.http.base import CLIENT, Body, answer, body, not_found

PATH = "/control"
SECRET_HEADER = "X-Control-Secret"


class Order(Body):
    command: str
    arguments: dict[str, Any] = {}  # noqa: RUF012  # pydantic copies defaults


class ControlRoutes:
    def __init__(self, admin: Admin, secret: str) -> None:
        self._admin = admin
        self._secret = secret

    def routes(self) -> list[web.RouteDef]:
        return [web.post(PATH, self.control)]

    async def control(self, request: web.Request) -> web.Response:
        given = request.headers.get(SECRET_HEADER, "")
        if not request[CLIENT].local or not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._secret.encode()):
            raise not_found()
        order = await body(request, Order)
        try:
            return answer({"ok": await self._admin.run(order.command, order.arguments)})
        except AdminFault as fault:
            return answer({"fault": str(fault)})

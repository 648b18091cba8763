"""What saved memory is in one chat of the asker's: whether deep memory runs there (SM-85, WO-23)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import sqlalchemy as sa
from aiohttp import web

from gateway import chats
from gateway.config import Config
from gateway.http.base import answer, not_found, require_person
from gateway.policy import resolve
from gateway.saved.deep_gate import gate_of
from memory.database import Database


class MemoryChatRoutes:
    def __init__(self, *, db: Database, clock: Callable[[], datetime], config: Callable[[], Config]) -> None:
        self._db = db
        self._clock = clock
        self._config = config

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/api/chats/{id}/memory", self.look)]

    async def look(self, request: web.Request) -> web.Response:
        """`deep_memory`: the badge, by the very rule that the job runs by."""
        person, now = require_person(request), self._clock()

        def work(connection: sa.Connection) -> dict[str, bool] | None:
            chat = chats.find(connection, request.match_info["id"], person.id)
            if chat is None:
                return None
            policy = resolve(self._config().policies, platform=chat.channel, chat_kind=chat.kind, in_space=False, signed_in=True)
            return {"deep_memory": policy.deep_memory and gate_of(connection, chat, now).is_open, "memory_on": chat.memory_on}

        found = await self._db.read(work)
        if found is None:
            raise not_found()
        return answer(found)

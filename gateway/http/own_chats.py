"""The chats of whoever asks: found by their id in the address, as the page sees them, and how an answer in one is stopped."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

from aiohttp import web

from gateway import attempts, chats
from gateway.attempts import Attempt
from gateway.http.base import language_of, not_found, require_person
from gateway.lanes import Lanes
from gateway.shapes import chat_json
from memory.conversations import Conversation
from memory.database import Database


class StopTurn(Protocol):
    async def __call__(self, address: str, *, drop_waiting: bool) -> bool:
        """End what runs in a chat, and what waits too when asked; whether there was anything."""
        ...


class OwnChats:
    def __init__(self, db: Database, lanes: Lanes) -> None:
        self._db = db
        self._lanes = lanes

    async def of(self, request: web.Request) -> Conversation:
        """404 where there is none, or it is of somebody else."""
        chat = await self.find(request)
        if chat is None:
            raise not_found()
        return chat

    async def find(self, request: web.Request) -> Conversation | None:
        person = require_person(request)
        return await self._db.read(partial(chats.find, chat_id=request.match_info["id"], person_id=person.id))

    async def shown_whole(self, request: web.Request, chat: Conversation) -> dict[str, Any]:
        found = await self._db.read(partial(attempts.of_chats, chat_ids=[chat.id])) if chat.kind == "challenge" else {}
        return self.shown(request, chat, attempt=found.get(chat.id))

    def shown(self, request: web.Request, chat: Conversation, snippet: str = "", attempt: Attempt | None = None) -> dict[str, Any]:
        running = self._lanes.running(chat.key) is not None
        return chat_json(chat, language=language_of(request), running=running, snippet=snippet, attempt=attempt)

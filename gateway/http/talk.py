"""Talking in a chat: its messages, what is sent to it, and the stream of what becomes of that (WO-10, WO-11)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Annotated

from aiohttp import web
from pydantic import StringConstraints

from channels.message import Attachment
from channels.port import Accepted
from channels.web.adapter import TEXT_MAX, WebChannel
from gateway import challenges, chats
from gateway.attachments import Attachments
from gateway.config import Config
from gateway.entries import folds as entry_folds
from gateway.http.base import Body, HttpFault, answer, body, not_found, query_int, require_person
from gateway.http.own_chats import OwnChats, StopTurn
from gateway.http.sse_writer import EventWriter, has_left
from gateway.lanes import Lanes
from gateway.person import Person
from gateway.shapes import message_json, prepare
from gateway.streams import Streams
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.ids import opaque

PAGE_MAX = 200
HEARTBEAT_S = 15.0

Short = Annotated[str, StringConstraints(max_length=200)]
ClientId = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class NewMessage(Body):
    client_id: ClientId
    text: str = ""
    attachments: tuple[Short, ...] = ()
    replaces: Short = ""


class Again(Body):
    client_id: ClientId | None = None
    turn_id: Short = ""


class Stop(Body):
    all: bool = False


class TalkRoutes:
    def __init__(
        self,
        *,
        db: Database,
        config: Callable[[], Config],
        chats: OwnChats,
        channel: Callable[[], WebChannel],
        streams: Streams,
        lanes: Lanes,
        attachments: Attachments,
        stop: StopTurn,
    ) -> None:
        self._db = db
        self._config = config
        self._chats = chats
        self._channel = channel
        self._streams = streams
        self._lanes = lanes
        self._attachments = attachments
        self._stop = stop

    def routes(self) -> list[web.RouteDef]:
        chat = "/api/chats/{id}"
        return [
            web.get(f"{chat}/messages", self.messages),
            web.post(f"{chat}/messages", self.post),
            web.get(f"{chat}/events", self.events, allow_head=False),
            web.post(f"{chat}/regenerate", self.regenerate),
            web.post(f"{chat}/stop", self.stop),
            web.get(f"{chat}/turns/{{turn_id}}/receipt", self.receipt),
        ]

    async def messages(self, request: web.Request) -> web.Response:
        chat = await self._chats.of(request)
        limit = query_int(request, "limit", 50, low=1, high=PAGE_MAX)
        page = await self._db.read(partial(chats.page, chat_id=chat.id, before=request.query.get("before", ""), limit=limit))
        running = self._lanes.running(chat.key)
        folded = await self._db.read(partial(entry_folds.folded, config=self._config(), chat=chat, shown=page.messages))
        await prepare(page.messages)
        shown = [message_json(message, waiting=message.id in page.waiting) for message in page.messages]
        shown = [each | {"folded": True} if each["id"] in folded else each for each in shown]
        return answer({"messages": shown, "running_turn": running.turn_id if running else None, "more": page.more})

    async def post(self, request: web.Request) -> web.Response:
        person = require_person(request)
        wish = await body(request, NewMessage)
        files = await self._files(wish, person)
        if len(wish.text) > TEXT_MAX:
            raise HttpFault(422, "text_too_long", "error_text_long", param="text", length=len(wish.text), limit=TEXT_MAX)
        accepted = await self._channel().post(
            chat_id=request.match_info["id"],
            person_id=person.id,
            client_id=wish.client_id,
            text=wish.text,
            attachments=files,
            replaces=wish.replaces,
            language=request.headers.get("Accept-Language", ""),
        )
        return self._accepted(accepted)

    async def regenerate(self, request: web.Request) -> web.Response:
        chat = await self._chats.of(request)
        wish = await body(request, Again)
        turn_id = await self._db.read(partial(chats.turn_to_regenerate, chat_id=chat.id, turn_id=wish.turn_id))
        if turn_id is None:
            raise HttpFault(409, "no_turn", "error_no_turn")
        person = require_person(request)
        client_id = wish.client_id or opaque("r")
        accepted = await self._channel().regenerate(chat_id=chat.id, person_id=person.id, client_id=client_id, turn_id=turn_id)
        return self._accepted(accepted)

    async def stop(self, request: web.Request) -> web.Response:
        chat = await self._chats.of(request)
        wish = await body(request, Stop) if request.can_read_body else Stop()
        return answer({"stopped": await self._stop(chat.key, drop_waiting=wish.all)})

    async def receipt(self, request: web.Request) -> web.Response:
        chat, person = await self._chats.of(request), require_person(request)
        found = await self._db.read(partial(chats.receipt, chat=chat, turn_id=request.match_info["turn_id"], person_id=person.id))
        if found is None:
            raise not_found()
        return answer(found)

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events of one chat until the viewer leaves, the chat is deleted or the program stops (WO-11)."""
        chat = await self._chats.of(request)
        writer = EventWriter(request)
        await writer.write(b"retry: 1000\n\n")
        last_id = request.headers.get("Last-Event-ID", "")
        async with aclosing(self._streams.follow(chat.id, last_id, heartbeat_s=HEARTBEAT_S)) as batches:
            async for batch in batches:
                frames = "".join(f"id: {self._streams.event_id(event)}\nevent: {event.name}\ndata: {event.data}\n\n" for event in batch)
                await writer.write(frames.encode() or b": \n\n")
                if has_left(request) or not (batch or await self._stands(request)):
                    break  # the viewer left, and the run goes on; or somewhere else the chat was taken away
        return writer.response

    async def _stands(self, request: web.Request) -> bool:
        """Whether the chat is still the viewer's, as far as can be told now."""
        try:
            return await self._chats.find(request) is not None
        except StoreUnavailable:
            return True  # asked again with the next heartbeat

    async def _files(self, wish: NewMessage, person: Person) -> tuple[Attachment, ...]:
        most = self._config().channels.web.attachments_max
        if len(wish.attachments) > most:
            raise HttpFault(422, "too_many_files", "error_attachments_many", param="attachments", limit=most)
        found: list[Attachment] = []
        for file_id in wish.attachments:
            stored = await self._attachments.find(file_id, person.id)
            if stored is None:
                raise not_found()
            found.append(stored.attachment)
        return tuple(found)

    def _accepted(self, accepted: Accepted) -> web.Response:
        """202 with the ids, or why the message was not taken."""
        if accepted.state in ("ignored", "dead"):
            raise refusal(accepted.rule, self._config().busy.waiting_max)
        return answer({"message_id": accepted.message_id, "turn_id": accepted.turn_id}, status=202)


def refusal(rule: str, waiting_max: int) -> HttpFault:
    """Why a message was not taken; `rule` is what intake said."""
    match rule:
        case "blank":
            return HttpFault(422, "blank", "error_text_blank", param="text")
        case "rate":
            return HttpFault(429, "rate", "rate", headers={"Retry-After": "60"})
        case "full":
            return HttpFault(429, "full", "busy_full", headers={"Retry-After": "10"}, count=waiting_max)
        case "role":
            return HttpFault(403, "role", "error_forbidden")
        case challenges.OVER:
            return HttpFault(409, "challenge_over", "challenge_over")
        case "unreadable" | "id-too-long":
            return HttpFault(400, "unreadable", "error_bad_request")
        case _:
            return not_found()

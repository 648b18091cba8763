"""The chat API that the page uses, and any program with a token (WO-10, WO-11, WO-51)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal, Protocol

from aiohttp import web
from pydantic import StringConstraints

from channels.message import Attachment
from channels.port import Accepted
from channels.web.adapter import TEXT_MAX, WebChannel
from gateway import chats
from gateway.attachments import Attachments
from gateway.config import Config
from gateway.http.base import Body, HttpFault, answer, body, language_of, not_found, query_int, require_person
from gateway.http.sse_writer import EventWriter, has_left
from gateway.lanes import Lanes
from gateway.person import Person
from gateway.shapes import chat_json, message_json
from gateway.streams import Streams
from memory import conversations as store
from memory.conversations import Conversation
from memory.database import Database
from memory.ids import opaque

PAGE_MAX = 200
HEARTBEAT_S = 15.0

Short = Annotated[str, StringConstraints(max_length=200)]
ClientId = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class NewChat(Body):
    title: Short = ""
    character: Short = "default"
    kind: Literal["web", "challenge"] = "web"


class ChatChange(Body):
    title: Annotated[str, StringConstraints(min_length=1, max_length=chats.TITLE_MAX)] | None = None
    character: Short | None = None
    seen: Short | None = None


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


class Fork(Body):
    message_id: Short = ""


class StopTurn(Protocol):
    async def __call__(self, address: str, *, drop_waiting: bool) -> bool:
        """End what runs in a chat, and what waits too when asked; whether there was anything."""
        ...


class ChatRoutes:
    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        channel: Callable[[], WebChannel],
        streams: Streams,
        lanes: Lanes,
        attachments: Attachments,
        stop: StopTurn,
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._channel = channel
        self._streams = streams
        self._lanes = lanes
        self._attachments = attachments
        self._stop = stop

    def routes(self) -> list[web.RouteDef]:
        chat = "/api/chats/{id}"
        return [
            web.post("/api/chats", self.create),
            web.get("/api/chats", self.list),
            web.get(chat, self.get),
            web.patch(chat, self.change),
            web.delete(chat, self.delete),
            web.get(f"{chat}/messages", self.messages),
            web.post(f"{chat}/messages", self.post),
            web.get(f"{chat}/events", self.events, allow_head=False),
            web.post(f"{chat}/regenerate", self.regenerate),
            web.post(f"{chat}/stop", self.stop),
            web.post(f"{chat}/fork", self.fork),
            web.get(f"{chat}/turns/{{turn_id}}/receipt", self.receipt),
        ]

    async def create(self, request: web.Request) -> web.Response:
        person = require_person(request)
        wish = await body(request, NewChat)
        self._known_character(wish.character)
        chat_id = await self._db.write(
            partial(chats.create, person_id=person.id, now=self._clock(), title=wish.title, character=wish.character, kind=wish.kind)
        )
        return answer({"id": chat_id}, status=201)

    async def list(self, request: web.Request) -> web.Response:
        person = require_person(request)
        query = request.query.get("q", "")[:200]
        found = await self._db.read(partial(chats.listed, person_id=person.id, query=query))
        return answer({"chats": [self._shown(request, chat, snippet) for chat, snippet in found]})

    async def get(self, request: web.Request) -> web.Response:
        return answer(self._shown(request, await self._chat(request)))

    async def change(self, request: web.Request) -> web.Response:
        chat = await self._chat(request)
        wish = await body(request, ChatChange)
        values: dict[str, Any] = {}
        if wish.title is not None:
            values |= {"title": wish.title, "title_origin": "person"}
        if wish.character is not None:
            self._known_character(wish.character)
            values["character"] = wish.character

        def work(connection: Any) -> Conversation | None:
            if values:
                store.change(connection, chat.id, **values)
            if wish.seen is not None:
                chats.seen(connection, chat, wish.seen)
            return store.conversation(connection, chat.id)

        changed = await self._db.write(work)
        if changed is None:
            raise not_found()
        shown = self._shown(request, changed)
        if values:
            self._streams.publish(chat.id, "chat", shown)
        return answer(shown)

    async def delete(self, request: web.Request) -> web.Response:
        chat = await self._chat(request)
        await self._stop(chat.key, drop_waiting=True)
        await self._db.write(partial(store.delete_conversation, conversation_id=chat.id))
        return web.Response(status=204)

    async def messages(self, request: web.Request) -> web.Response:
        chat = await self._chat(request)
        limit = query_int(request, "limit", 50, low=1, high=PAGE_MAX)
        page = await self._db.read(partial(chats.page, chat_id=chat.id, before=request.query.get("before", ""), limit=limit))
        running = self._lanes.running(chat.key)
        shown = [message_json(message, waiting=message.id in page.waiting) for message in page.messages]
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
        chat = await self._chat(request)
        wish = await body(request, Again)
        turn_id = await self._db.read(partial(chats.turn_to_regenerate, chat_id=chat.id, turn_id=wish.turn_id))
        if turn_id is None:
            raise HttpFault(409, "no_turn", "error_no_turn")
        person = require_person(request)
        client_id = wish.client_id or opaque("r")
        accepted = await self._channel().regenerate(chat_id=chat.id, person_id=person.id, client_id=client_id, turn_id=turn_id)
        return self._accepted(accepted)

    async def stop(self, request: web.Request) -> web.Response:
        chat = await self._chat(request)
        wish = await body(request, Stop) if request.can_read_body else Stop()
        return answer({"stopped": await self._stop(chat.key, drop_waiting=wish.all)})

    async def fork(self, request: web.Request) -> web.Response:
        chat = await self._chat(request)
        wish = await body(request, Fork) if request.can_read_body else Fork()
        new_id = await self._db.write(partial(chats.fork, chat=chat, message_id=wish.message_id, now=self._clock()))
        if new_id is None:
            raise not_found()
        return answer({"id": new_id}, status=201)

    async def receipt(self, request: web.Request) -> web.Response:
        chat = await self._chat(request)
        found = await self._db.read(partial(chats.receipt, chat_id=chat.id, turn_id=request.match_info["turn_id"]))
        if found is None:
            raise not_found()
        return answer(found)

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events of one chat until the viewer leaves or the program stops (WO-11)."""
        chat = await self._chat(request)
        writer = EventWriter(request)
        await writer.write(b"retry: 1000\n\n")
        last_id = request.headers.get("Last-Event-ID", "")
        async with aclosing(self._streams.follow(chat.id, last_id, heartbeat_s=HEARTBEAT_S)) as batches:
            async for batch in batches:
                frames = "".join(f"id: {self._streams.event_id(event)}\nevent: {event.name}\ndata: {event.data}\n\n" for event in batch)
                await writer.write(frames.encode() or b": \n\n")
                if has_left(request):
                    break  # the viewer left; the run goes on
        return writer.response

    async def _chat(self, request: web.Request) -> Conversation:
        person = require_person(request)
        chat = await self._db.read(partial(chats.find, chat_id=request.match_info["id"], person_id=person.id))
        if chat is None:
            raise not_found()
        return chat

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

    def _known_character(self, name: str) -> None:
        if name not in self._config().characters:
            raise HttpFault(400, "unknown_character", "character_unknown", param="character", name=name, others=", ".join(self._config().characters))

    def _shown(self, request: web.Request, chat: Conversation, snippet: str = "") -> dict[str, Any]:
        running = self._lanes.running(chat.key) is not None
        return chat_json(chat, language=language_of(request), running=running, snippet=snippet)


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
        case "unreadable":
            return HttpFault(400, "unreadable", "error_bad_request")
        case _:
            return not_found()

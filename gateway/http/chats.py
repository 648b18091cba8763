"""The chats of a person, as the page and any program with a token list, make, change and delete them (WO-10, WO-51)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from aiohttp import web
from pydantic import Field, StringConstraints

from gateway import attempts, chats
from gateway.attempts import Attempt
from gateway.casting import MEMBERS_MAX
from gateway.config import Config
from gateway.http.base import Body, HttpFault, answer, body, not_found, require_person
from gateway.http.challenges import ChallengeRoutes
from gateway.http.own_chats import OwnChats, StopTurn
from gateway.streams import Streams
from memory import conversations as store
from memory import whole_conversations
from memory.conversations import Conversation
from memory.database import Database

Short = Annotated[str, StringConstraints(max_length=200)]
Members = Annotated[tuple[Short, ...], Field(max_length=MEMBERS_MAX)]


class NewChat(Body):
    """`characters`: of a group chat, the first one answers when nobody is addressed. `challenge`: which one a challenge chat plays."""

    title: Short = ""
    character: Short = "default"
    characters: Members = ()
    kind: Literal["web", "challenge"] = "web"
    challenge: Short = ""


class ChatChange(Body):
    title: Annotated[str, StringConstraints(min_length=1, max_length=chats.TITLE_MAX)] | None = None
    character: Short | None = None
    characters: Members | None = None
    seen: Short | None = None


class Fork(Body):
    message_id: Short = ""


class ChatRoutes:
    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        chats: OwnChats,
        challenges: ChallengeRoutes,
        streams: Streams,
        stop: StopTurn,
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._chats = chats
        self._challenges = challenges
        self._streams = streams
        self._stop = stop

    def routes(self) -> list[web.RouteDef]:
        chat = "/api/chats/{id}"
        return [
            web.post("/api/chats", self.create),
            web.get("/api/chats", self.list),
            web.get(chat, self.get),
            web.patch(chat, self.change),
            web.delete(chat, self.delete),
            web.post(f"{chat}/fork", self.fork),
        ]

    async def create(self, request: web.Request) -> web.Response:
        person = require_person(request)
        wish = await body(request, NewChat)
        if wish.challenge:
            return answer({"id": await self._challenges.start(request, person, wish.challenge, title=wish.title)}, status=201)
        character, characters = self._members(wish.characters) if wish.characters else (wish.character, ())
        self._known_character(character)
        if characters and wish.kind == "challenge":
            raise HttpFault(422, "one_character", "error_challenge_one", param="characters")
        chat_id = await self._db.write(
            partial(
                chats.create,
                person_id=person.id,
                now=self._clock(),
                title=wish.title,
                character=character,
                characters=characters,
                kind=wish.kind,
            )
        )
        return answer({"id": chat_id}, status=201)

    async def list(self, request: web.Request) -> web.Response:
        person = require_person(request)
        query = request.query.get("q", "")[:200]

        def look(connection: sa.Connection) -> tuple[list[tuple[Conversation, str]], dict[str, Attempt]]:
            found = chats.listed(connection, person.id, query)
            return found, attempts.of_chats(connection, [chat.id for chat, _ in found if chat.kind == "challenge"])

        found, tried = await self._db.read(look)
        return answer({"chats": [self._chats.shown(request, chat, snippet, tried.get(chat.id)) for chat, snippet in found]})

    async def get(self, request: web.Request) -> web.Response:
        return answer(await self._chats.shown_whole(request, await self._chats.of(request)))

    async def change(self, request: web.Request) -> web.Response:
        chat = await self._chats.of(request)
        wish = await body(request, ChatChange)
        values: dict[str, Any] = {}
        if wish.title is not None:
            values |= {"title": wish.title, "title_origin": "person"}
        if (wish.character is not None or wish.characters is not None) and chat.challenge:
            raise HttpFault(409, "challenge_cast", "challenge_cast", param="character")
        if wish.character is not None:
            self._known_character(wish.character)
            values |= {"character": wish.character, "characters": None}
        if wish.characters:
            if chat.kind == "challenge":
                raise HttpFault(422, "one_character", "error_challenge_one", param="characters")
            values["character"], members = self._members(wish.characters)
            values["characters"] = list(members) or None

        def work(connection: Any) -> Conversation | None:
            if values:
                store.change(connection, chat.id, **values)
            if wish.seen is not None:
                chats.seen(connection, chat, wish.seen)
            return store.conversation(connection, chat.id)

        changed = await self._db.write(work)
        if changed is None:
            raise not_found()
        shown = await self._chats.shown_whole(request, changed)
        if values:
            self._streams.publish(chat.id, "chat", shown)
        return answer(shown)

    async def delete(self, request: web.Request) -> web.Response:
        chat = await self._chats.of(request)
        await self._stop(chat.key, drop_waiting=True)
        await self._db.write(partial(whole_conversations.delete, conversation_id=chat.id))
        self._streams.drop(chat.id)
        return web.Response(status=204)

    async def fork(self, request: web.Request) -> web.Response:
        chat = await self._chats.of(request)
        wish = await body(request, Fork) if request.can_read_body else Fork()
        now = self._clock()

        def work(connection: sa.Connection) -> str | None:
            new_id = chats.fork(connection, chat, wish.message_id, now=now)
            if new_id is not None:
                attempts.forked(connection, chat, new_id, now)
            return new_id

        new_id = await self._db.write(work)
        if new_id is None:
            raise not_found()
        return answer({"id": new_id}, status=201)

    def _members(self, names: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """The first of a group chat's characters, and all of them; none where it is only one. Each exists, and counts once."""
        for name in names:
            self._known_character(name)
        members = tuple(dict.fromkeys(names))
        return members[0], members if len(members) > 1 else ()

    def _known_character(self, name: str) -> None:
        if name not in self._config().characters:
            raise HttpFault(400, "unknown_character", "character_unknown", param="character", name=name, others=", ".join(self._config().characters))

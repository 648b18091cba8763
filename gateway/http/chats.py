"""The chat API that the page uses, and any program with a token (WO-10, WO-11, WO-51)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal, Protocol

import sqlalchemy as sa
from aiohttp import web
from pydantic import Field, StringConstraints

from channels.message import Attachment
from channels.port import Accepted
from channels.web.adapter import TEXT_MAX, WebChannel
from gateway import attempts, challenges, chats, entry_folds
from gateway.access import includes
from gateway.attachments import Attachments
from gateway.attempts import Attempt, Tries
from gateway.casting import MEMBERS_MAX
from gateway.challenge_files import ChallengeFiles
from gateway.challenges import played
from gateway.config import Config
from gateway.http.base import Body, HttpFault, answer, body, language_of, not_found, query_int, require_person
from gateway.http.sse_writer import EventWriter, has_left
from gateway.lanes import Lanes
from gateway.person import Person
from gateway.shapes import challenge_json, chat_json, message_json
from gateway.streams import Streams
from memory import conversations as store
from memory import whole_conversations
from memory.conversations import Conversation
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.ids import opaque

PAGE_MAX = 200
HEARTBEAT_S = 15.0

Short = Annotated[str, StringConstraints(max_length=200)]
ClientId = Annotated[str, StringConstraints(min_length=1, max_length=200)]


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
        challenge_files: ChallengeFiles,
        wake_jobs: Callable[[], None],
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._channel = channel
        self._streams = streams
        self._lanes = lanes
        self._attachments = attachments
        self._stop = stop
        self._challenges = challenge_files
        self._wake_jobs = wake_jobs

    def routes(self) -> list[web.RouteDef]:
        chat = "/api/chats/{id}"
        return [
            web.post("/api/chats", self.create),
            web.get("/api/chats", self.list),
            web.get("/api/challenges", self.challenges),
            web.get(chat, self.get),
            web.patch(chat, self.change),
            web.delete(chat, self.delete),
            web.get(f"{chat}/messages", self.messages),
            web.post(f"{chat}/messages", self.post),
            web.get(f"{chat}/events", self.events, allow_head=False),
            web.post(f"{chat}/regenerate", self.regenerate),
            web.post(f"{chat}/stop", self.stop),
            web.post(f"{chat}/fork", self.fork),
            web.post(f"{chat}/finish", self.finish),
            web.post(f"{chat}/again", self.again),
            web.get(f"{chat}/turns/{{turn_id}}/receipt", self.receipt),
        ]

    async def create(self, request: web.Request) -> web.Response:
        person = require_person(request)
        wish = await body(request, NewChat)
        if wish.challenge:
            return answer({"id": await self._start(request, person, wish.challenge, title=wish.title)}, status=201)
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
        return answer({"chats": [self._shown(request, chat, snippet, tried.get(chat.id)) for chat, snippet in found]})

    async def get(self, request: web.Request) -> web.Response:
        return answer(await self._shown_whole(request, await self._chat(request)))

    async def change(self, request: web.Request) -> web.Response:
        chat = await self._chat(request)
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
        shown = await self._shown_whole(request, changed)
        if values:
            self._streams.publish(chat.id, "chat", shown)
        return answer(shown)

    async def delete(self, request: web.Request) -> web.Response:
        chat = await self._chat(request)
        await self._stop(chat.key, drop_waiting=True)
        await self._db.write(partial(whole_conversations.delete, conversation_id=chat.id))
        self._streams.drop(chat.id)
        return web.Response(status=204)

    async def messages(self, request: web.Request) -> web.Response:
        chat = await self._chat(request)
        limit = query_int(request, "limit", 50, low=1, high=PAGE_MAX)
        page = await self._db.read(partial(chats.page, chat_id=chat.id, before=request.query.get("before", ""), limit=limit))
        running = self._lanes.running(chat.key)
        folded = await self._db.read(partial(entry_folds.folded, config=self._config(), chat=chat, shown=page.messages))
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

    async def challenges(self, request: web.Request) -> web.Response:
        """What may be played, with what the asker has made of it so far; operators also hear which files are faulty."""
        person = require_person(request)
        defined = await self._challenges.all()
        tries = await self._db.read(partial(attempts.tries, person_id=person.id))
        characters = self._config().characters
        shown = [
            challenge_json(name, challenge, language=language_of(request))
            | {"character_name": characters[challenge.character].name or challenge.character}
            | {"attempts": (mine := tries.get(name, Tries())).count, "won": mine.won, "best": mine.best}
            for name, challenge in defined.challenges.items()
        ]
        return answer({"challenges": shown, "faults": list(defined.faults) if includes(person.role, "admin") else []})

    async def finish(self, request: web.Request) -> web.Response:
        """The attempt ends here and is judged; what runs in it is stopped."""
        chat = await self._chat(request)
        await self._stop(chat.key, drop_waiting=True)
        if not await self._db.write(partial(attempts.finish, chat_id=chat.id)):
            raise HttpFault(409, "challenge_over", "challenge_over")
        self._wake_jobs()
        return answer(await self._shown_whole(request, await self._chat(request)))

    async def again(self, request: web.Request) -> web.Response:
        """The same challenge from its beginning, in a chat of its own; an attempt that was open is given up."""
        chat = await self._chat(request)
        if not chat.challenge:
            raise HttpFault(409, "no_challenge", "challenge_none")
        await self._stop(chat.key, drop_waiting=True)
        chat_id = await self._start(request, require_person(request), chat.challenge, instead_of=chat)
        return answer({"id": chat_id}, status=201)

    async def _start(
        self, request: web.Request, person: Person, challenge_id: str, *, title: str = "", instead_of: Conversation | None = None
    ) -> str:
        """A chat that plays the challenge as its file says it now; one whose file is gone is played again as it was."""
        challenge = (await self._challenges.all()).challenges.get(challenge_id) or (played(instead_of) if instead_of else None)
        if challenge is None or challenge.character not in self._config().characters:
            raise HttpFault(404, "unknown_challenge", "challenge_unknown", param="challenge", name=challenge_id)
        now = self._clock()

        def work(connection: sa.Connection) -> str:
            if instead_of is not None:
                attempts.give_up(connection, instead_of.id, now)
            return attempts.start(connection, person.id, challenge_id, challenge, language=language_of(request), now=now, title=title)

        return await self._db.write(work)

    async def receipt(self, request: web.Request) -> web.Response:
        chat, person = await self._chat(request), require_person(request)
        found = await self._db.read(partial(chats.receipt, chat=chat, turn_id=request.match_info["turn_id"], person_id=person.id))
        if found is None:
            raise not_found()
        return answer(found)

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events of one chat until the viewer leaves, the chat is deleted or the program stops (WO-11)."""
        chat = await self._chat(request)
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
            return await self._find(request) is not None
        except StoreUnavailable:
            return True  # asked again with the next heartbeat

    async def _chat(self, request: web.Request) -> Conversation:
        chat = await self._find(request)
        if chat is None:
            raise not_found()
        return chat

    async def _find(self, request: web.Request) -> Conversation | None:
        person = require_person(request)
        return await self._db.read(partial(chats.find, chat_id=request.match_info["id"], person_id=person.id))

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

    def _members(self, names: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """The first of a group chat's characters, and all of them; none where it is only one. Each exists, and counts once."""
        for name in names:
            self._known_character(name)
        members = tuple(dict.fromkeys(names))
        return members[0], members if len(members) > 1 else ()

    def _known_character(self, name: str) -> None:
        if name not in self._config().characters:
            raise HttpFault(400, "unknown_character", "character_unknown", param="character", name=name, others=", ".join(self._config().characters))

    async def _shown_whole(self, request: web.Request, chat: Conversation) -> dict[str, Any]:
        found = await self._db.read(partial(attempts.of_chats, chat_ids=[chat.id])) if chat.kind == "challenge" else {}
        return self._shown(request, chat, attempt=found.get(chat.id))

    def _shown(self, request: web.Request, chat: Conversation, snippet: str = "", attempt: Attempt | None = None) -> dict[str, Any]:
        running = self._lanes.running(chat.key) is not None
        return chat_json(chat, language=language_of(request), running=running, snippet=snippet, attempt=attempt)


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

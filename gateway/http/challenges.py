"""Challenges on the page: what may be played, the end of an attempt, and the next one (WO-40)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

import sqlalchemy as sa
from aiohttp import web

from gateway import attempts
from gateway.access import includes
from gateway.attempts import Tries
from gateway.challenge_files import ChallengeFiles
from gateway.challenges import played
from gateway.config import Config
from gateway.http.base import HttpFault, answer, language_of, require_person
from gateway.http.own_chats import OwnChats, StopTurn
from gateway.person import Person
from gateway.shapes import challenge_json
from memory.conversations import Conversation
from memory.database import Database


class ChallengeRoutes:
    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        chats: OwnChats,
        files: ChallengeFiles,
        stop: StopTurn,
        wake_jobs: Callable[[], None],
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._chats = chats
        self._files = files
        self._stop = stop
        self._wake_jobs = wake_jobs

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/challenges", self.challenges),
            web.post("/api/chats/{id}/finish", self.finish),
            web.post("/api/chats/{id}/again", self.again),
        ]

    async def challenges(self, request: web.Request) -> web.Response:
        """What may be played, with what the asker has made of it so far; operators also hear which files are faulty."""
        person = require_person(request)
        defined = await self._files.all()
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
        chat = await self._chats.of(request)
        await self._stop(chat.key, drop_waiting=True)
        if not await self._db.write(partial(attempts.finish, chat_id=chat.id)):
            raise HttpFault(409, "challenge_over", "challenge_over")
        self._wake_jobs()
        return answer(await self._chats.shown_whole(request, await self._chats.of(request)))

    async def again(self, request: web.Request) -> web.Response:
        """The same challenge from its beginning, in a chat of its own; an attempt that was open is given up."""
        chat = await self._chats.of(request)
        if not chat.challenge:
            raise HttpFault(409, "no_challenge", "challenge_none")
        await self._stop(chat.key, drop_waiting=True)
        chat_id = await self.start(request, require_person(request), chat.challenge, instead_of=chat)
        return answer({"id": chat_id}, status=201)

    async def start(self, request: web.Request, person: Person, challenge_id: str, *, title: str = "", instead_of: Conversation | None = None) -> str:
        """A chat that plays the challenge as its file says it now; one whose file is gone is played again as it was."""
        challenge = (await self._files.all()).challenges.get(challenge_id) or (played(instead_of) if instead_of else None)
        if challenge is None or challenge.character not in self._config().characters:
            raise HttpFault(404, "unknown_challenge", "challenge_unknown", param="challenge", name=challenge_id)
        now = self._clock()

        def work(connection: sa.Connection) -> str:
            if instead_of is not None:
                attempts.give_up(connection, instead_of.id, now)
            return attempts.start(connection, person.id, challenge_id, challenge, language=language_of(request), now=now, title=title)

        return await self._db.write(work)

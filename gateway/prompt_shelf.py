"""The prompts of the newest replies, word for word, for whoever may look at them (RS-78). They lie in memory and nowhere else
(docs/decisions/0015): a restart, a while, or a word of them that is taken back lets them go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from agent.turn import Record, Sent
from channels.message import EventKind
from gateway.access import includes
from gateway.config import Config
from gateway.turn_store import TurnEnd, TurnStart
from memory.conversations import Conversation
from memory.database import Database
from memory.forget_match import Held
from memory.schema import inbox, messages
from memory.scopes import Scope

KEPT_MOST = 60  # replies, of all chats together
PRIVATE = ("web", "dm")  # elsewhere the prompt holds what several people said, or what a challenge hides


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What was sent for one reply. `said`: the words of its messages by number, None for those that were recalled; `pictures` are only counted:
    they lie among the attachments."""

    turn_id: str
    chat_id: str
    person_id: str
    scope: str
    attempt: int
    at: datetime
    sent: tuple[Sent, ...]
    pictures: tuple[tuple[int, ...], ...]
    said: Mapping[int, str | None]


def is_private(chat: Conversation) -> bool:
    """Whether a chat is one person's alone, so that its prompts may be shown to them."""
    return chat.space_id is None and chat.kind in PRIVATE


class PromptShelf:
    """Called on the event loop. Also a `Forgetter` (`gateway.forgetting`)."""

    name = "prompt"

    def __init__(self, *, db: Database, clock: Callable[[], datetime], config: Callable[[], Config]) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._kept: dict[tuple[str, str], Kept] = {}  # by chat and turn, the oldest first

    def keep(self, start: TurnStart, ending: TurnEnd, record: Record) -> None:
        """Only what its person may look at is kept at all."""
        settings, chat = self._config().inspector, start.conversation
        person = start.person
        if not settings.replies or not record.sent or not is_private(chat) or not includes(str(person.get("role", "")), settings.role):
            return
        key = (str(chat.id), ending.turn_id)
        self._kept.pop(key, None)
        self._kept[key] = Kept(
            turn_id=ending.turn_id,
            chat_id=str(chat.id),
            person_id=str(person.get("id", "")),
            scope=start.scope,
            attempt=start.attempt,
            at=self._clock(),
            sent=tuple(map(_without_pictures, record.sent)),
            pictures=tuple(tuple(len(message.images) for message in each.request.messages) for each in record.sent),
            said={**_recalled(ending), **{message.seq: message.text for message in (*start.history, *start.questions)}},
        )
        self._let_go()

    async def of(self, chat_id: str, turn_id: str) -> Kept | None:
        """What is kept of a reply; None once anything in it was edited, deleted or forgotten."""
        self._let_go()
        kept = self._kept.get((chat_id, turn_id))
        if kept is None:
            return None
        if await self._db.read(lambda connection: _still_so(connection, kept)):
            return kept
        self._kept.pop((chat_id, turn_id), None)
        return None

    def forget_person(self, person_id: str) -> None:
        """Something about a person changed: their role, or that there is one."""
        self._kept = {key: kept for key, kept in self._kept.items() if kept.person_id != person_id}

    async def find(self, scope: Scope, held: Held) -> tuple[str, ...]:
        """Prompts are copies, and go unasked."""
        del scope, held
        return ()

    async def forget(self, scope: Scope, held: Held) -> int:
        """Every prompt of this memory goes, whatever it says: tools and files put in their own words what is forgotten."""
        del held
        self._kept = {key: kept for key, kept in self._kept.items() if kept.scope != str(scope)}
        return 0

    def _let_go(self) -> None:
        """What is too old or too many, by the settings of now."""
        settings = self._config().inspector
        begin = self._clock() - timedelta(minutes=settings.minutes)
        fresh = [item for item in self._kept.items() if item[1].at >= begin]
        seen: dict[str, int] = {}
        left: list[tuple[tuple[str, str], Kept]] = []
        for key, kept in reversed(fresh[-KEPT_MOST:]):
            seen[kept.chat_id] = seen.get(kept.chat_id, 0) + 1
            if seen[kept.chat_id] <= settings.replies:
                left.append((key, kept))
        self._kept = dict(reversed(left))


def _without_pictures(sent: Sent) -> Sent:
    messages = tuple(replace(each, images=()) if each.images else each for each in sent.request.messages)
    return replace(sent, request=replace(sent.request, messages=messages))


def _still_so(connection: sa.Connection, kept: Kept) -> bool:
    """Whether nothing that the prompt says was changed since: its messages read as they did, and none of its chat was edited or deleted, for what
    that one said may stand in a summary of the prompt."""
    now = {row.seq: row for row in connection.execute(_SAID, {"seqs": list(kept.said)})}
    if any(seq not in now or now[seq].state != "live" or text not in (None, now[seq].text) for seq, text in kept.said.items()):
        return False
    return connection.execute(_CHANGED, {"of": kept.chat_id, "since": kept.at}).first() is None


def _recalled(ending: TurnEnd) -> dict[int, None]:
    return {seq: None for passage in (ending.recalled or {}).get("passages", ()) for seq in passage["seqs"]}


_SAID = sa.select(messages.c.seq, messages.c.state, messages.c.text).where(
    messages.c.seq.in_(sa.bindparam("seqs", type_=sa.BigInteger, expanding=True))
)
_CHANGED = sa.select(inbox.c.id).where(
    inbox.c.conversation_id == sa.bindparam("of"),
    inbox.c.kind.in_([EventKind.EDITED.value, EventKind.DELETED.value]),
    inbox.c.finished_at >= sa.bindparam("since", type_=inbox.c.finished_at.type),
)

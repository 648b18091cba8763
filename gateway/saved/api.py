"""Saved memories for clients that bring their own window: read and written by the policy of the API, told in a field of the result (WO-50, 3.5).

There is no conversation and no turn of ours behind such an answer. An id of its own ties what it wrote together, so that it is taken back when the
answer fails, and can be taken back in the panel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import sqlalchemy as sa

from agent.characters import Character
from agent.llm.port import ChatModel
from agent.turn import Record, Said
from gateway.memory_notices import Changed, changes
from gateway.saved import undo as saved_undo
from gateway.saved.turn import NO_SAVED_TURN, Asker, SavedTurn, SavedTurns
from gateway.turn_store import TurnStart
from memory.conversations import Conversation, Message
from memory.database import Database
from memory.errors import StoreError
from memory.ids import PersonId, new_conversation, new_message, new_turn
from memory.saved import journal
from memory.saved.policy import Notice
from memory.saved.writing import Limits
from memory.schema import people

_PERSON = sa.select(people.c.id, people.c.name, people.c.role, people.c.scope, people.c.language, people.c.timezone).where(
    people.c.id == sa.bindparam("id"), sa.not_(people.c.blocked)
)


class ApiMemories:
    def __init__(self, *, db: Database, clock: Callable[[], datetime], turns: SavedTurns, limits: Callable[[], Limits]) -> None:
        self._db = db
        self._clock = clock
        self._turns = turns
        self._limits = limits

    async def of(self, person_id: str, channel: str, said: Sequence[Said], character: Character, record: Record, model: ChatModel) -> SavedTurn:
        """For one answer to `person_id`; nothing for a guest. `said`: the client's window, the newest words last."""
        if not person_id:
            return NO_SAVED_TURN
        try:
            start = await self._db.read(lambda connection: self._start(connection, person_id, channel, said))
        except StoreError:
            return NO_SAVED_TURN
        if start is None:
            return NO_SAVED_TURN
        can_call = model.supports_tools and model.provider != "demo"
        asker = Asker(character=character, model=model.name, can_call=can_call, record=record, foreign=lambda: record.read_foreign)
        return await self._turns.prepare(start, asker, self._turns.query(start))

    async def told(self, saved: SavedTurn) -> tuple[Changed, ...]:
        """What the answer changed, for its result; nothing where the policy says otherwise, or when it cannot be read just now."""
        if not saved.tools or saved.policy.notice is not Notice.RESULT:
            return ()
        try:
            return changes(await self._db.read(lambda connection: journal.of_writer(connection, saved.writer)), saved.where)
        except StoreError:
            return ()

    async def take_back(self, saved: SavedTurn) -> None:
        """There is no answer after all (SM-71)."""
        if saved.tools:
            writer, now = saved.writer, self._clock()
            await self._db.write(lambda c: saved_undo.unanswered(c, writer.turn_id, writer.attempt, now, self._limits()))

    def _start(self, connection: sa.Connection, person_id: str, channel: str, said: Sequence[Said]) -> TurnStart | None:
        person = connection.execute(_PERSON, {"id": person_id}).mappings().one_or_none()
        if person is None:
            return None
        now, chat_id, turn_id = self._clock(), new_conversation(), new_turn()
        chat = Conversation(
            id=chat_id, key=f"{channel}:api:{chat_id}", channel=channel, account="api", kind="api", person_id=PersonId(person_id), space_id=None,
            character="", persona="", profile="", timezone="", busy="", memory_on=True, title="", title_origin="", window_edge=0, seen_seq=0,
            last_seq=0, turns_left=None, created_at=now, updated_at=now,
        )  # fmt: skip
        log = [
            Message(
                seq=seq, id=new_message(), conversation_id=chat_id, turn_id=turn_id, role="assistant" if each.by_us else "user",
                author_person_id="" if each.by_us else person_id, author_name="", text=each.text, state="live",
                origin="assistant" if each.by_us else "person", attempt=1, outcome="", attachments=(), reply_to=None, created_at=now,
                scope=str(person["scope"]),
            )
            for seq, each in enumerate(said, 1)
        ]  # fmt: skip
        return TurnStart(
            conversation=chat, person=dict(person), questions=tuple(log[-1:]), history=tuple(log[:-1]), attempt=1, scope=str(person["scope"])
        )  # fmt: skip

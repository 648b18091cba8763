"""The end of a turn, in one transaction: with an answer, with what was said before a stop, or with one sentence that says why not (CH-64, CH-85)."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

import sqlalchemy as sa

from agent import slots
from agent.characters import Character
from channels.message import Address
from gateway import casting, chat_scope, turn_store, windows
from gateway.answered_edge import Edge, edge_of
from gateway.ceiling import Held, sent_window
from gateway.config import Config
from gateway.delivery.previews import Preview
from gateway.delivery.replies import Replies
from gateway.language import say
from gateway.memory_notices import MemoryNotices
from gateway.models import Models
from gateway.observer import Observer
from gateway.onboarding import Onboarding
from gateway.patience import write_at_last
from gateway.receipts import receipt
from gateway.saved.turn import limits_of
from gateway.shapes import prepare
from gateway.sitting import Outcome, Sitting
from gateway.summaries import calendar_state
from gateway.turn_store import TurnEnd, TurnStart
from memory.conversations import Message
from memory.database import Database

FollowUp = Callable[[sa.Connection, TurnStart, TurnEnd], None]


class TurnEndings:
    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        models: Models,
        onboarding: Onboarding,
        replies: Replies,
        observer: Observer,
        notices: MemoryNotices,
        follow_up: FollowUp,
    ) -> None:
        """`follow_up` writes the jobs a turn makes necessary, in its last transaction."""
        self._db = db
        self._clock = clock
        self._config = config
        self._models = models
        self._onboarding = onboarding
        self._replies = replies
        self._observer = observer
        self._notices = notices
        self._follow_up = follow_up

    async def store(self, sitting: Sitting, outcome: Outcome, preview: Preview) -> None:
        """While the database cannot be written the end is kept here and tried again, for nothing acknowledged may be lost (RL-4)."""
        held = sitting.held or Held(start=sitting.start)
        start, running, record = held.start, sitting.running, sitting.record
        if running.discarded:  # the talk was reset: nothing of before is said any more (DL-14)
            outcome = Outcome(state="stopped")
        now, config, chat, language = self._clock(), self._config(), start.conversation, start.language
        address = chat.key.removesuffix(f"#{chat.id}")  # put aside by `/new` before it began: its chat is where it was
        character = sitting.character or casting.who_answers(config, chat, start.questions, start.history)
        seconds = time.monotonic() - sitting.began
        ending = _ending(sitting, held, outcome, character, config, seconds)
        reply = self._replies.compose(Address.parse(address), ending, running.items[0], language=language, now=now, preview=preview)
        usage = {
            "turn_id": running.turn_id,
            "person_id": running.person_id,
            "conversation_id": chat.id,
            "channel": chat.channel,
        }
        calls = [(call, usage | {"cost": self._models.cost(call)}) for call in record.calls]

        def work(connection: sa.Connection) -> list[Message]:
            added = turn_store.end(connection, ending, parts=reply.parts, calls=calls, now=now, limits=limits_of(config))
            if reply.tells_losses:
                self._replies.mark_told(connection, address)
            self._onboarding.after(connection, sitting.asked, answered=outcome.state == "answered", now=now)
            self._follow_up(connection, start, ending)
            if held.ahead:
                calendar_state.summarise_ahead(connection, config, chat.id, held.ahead)
            return added

        added = await write_at_last(self._db, work, "an answer")
        self._replies.stored(address, reply)
        await prepare(added)
        self._observer.ended(start, ending, added, record, seconds)
        if record.tools and any(message.role == "assistant" for message in added):  # without a call nothing was remembered
            await self._notices.after(start, sitting.saved, language=language)


def _ending(sitting: Sitting, held: Held, outcome: Outcome, character: Character, config: Config, seconds: float) -> TurnEnd:
    start, running, record = held.start, sitting.running, sitting.record
    chat, language = start.conversation, start.language
    one_of_several = casting.one_of_several(chat, character)
    edge = Edge() if sitting.held is None else edge_of(start, record, config, recalled=sitting.recall.text, answering=one_of_several)
    return TurnEnd(
        turn_id=running.turn_id,
        conversation_id=chat.id,
        state=outcome.state,
        rows=tuple(item.row_id for item in running.items),
        attempt=start.attempt,
        answer=outcome.text.strip() if outcome.state in ("answered", "stopped") else "",
        scope=start.scope,
        foreign_text=record.read_foreign or any(question.foreign_text for question in start.questions),
        character=character.id,
        character_name=character.name,
        speaks_as=character.name if one_of_several else "",
        notice=say(language, outcome.notice, what=outcome.error_code.partition(":")[2]) if outcome.notice else outcome.told,
        error_code=outcome.error_code,
        steered=tuple(running.taken),
        window_edge=edge.seq,
        into=windows.into(config, chat),
        overflowed=edge.overflowed,
        row_state="dead" if start.dead else "done",
        recalled=sitting.recall.snapshot,
        receipt=receipt(
            record,
            turn_id=running.turn_id,
            attempt=start.attempt,
            outcome=outcome.state,
            total_ms=round(seconds * 1000),
            trimmed=sum(1 for message in start.history if edge.seq is not None and message.seq <= edge.seq),
            memory_reason=chat_scope.why_none(chat, start.scope),
            saved=sitting.saved.report(record),
            recall=sitting.recall.report,
            places=slots.places(character.prompt),
            window=sent_window(held, config, standing_cut=record.standing_cut),
            via=start.via,
        ),
    )

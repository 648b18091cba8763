"""One turn from its stored question to its stored answer: begin, think, end. Called by the lane, one at a time for each conversation.

Whatever happens inside, the turn ends in one transaction: with an answer, with what was said before a stop, or with one sentence that says why not
(CH-64, CH-85). While the database cannot be written the end is kept here and tried again, for nothing acknowledged may be lost (RL-4).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from agent.characters import Character
from agent.errors import AgentError, BudgetExceeded
from agent.llm.port import Image
from agent.runtime import Runtime, Sleep
from agent.tools.port import Tool
from agent.turn import Budget, Record, Said, Sink, Turn
from channels.message import Account, Address, is_blank
from channels.port import Channel
from channels.render import is_silent
from gateway import turn_store
from gateway.attachments import Attachments
from gateway.cast import character_of
from gateway.config import Config
from gateway.fetching import Fetcher
from gateway.heads import Heads
from gateway.lanes import RunningTurn
from gateway.language import guess, say
from gateway.logs import delivery
from gateway.models import Models
from gateway.patience import write_at_last
from gateway.receipts import receipt
from gateway.replies import Replies
from gateway.talk import history, late_note, sizes, spoken
from gateway.turn_store import TurnEnd, TurnStart
from memory.conversations import Message
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.window import edge_after_trim

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]


class Stage(Protocol):
    """Where a turn is shown while it runs: live viewers of the page, or the signs of a chat app."""

    async def __aenter__(self) -> Sink: ...

    async def __aexit__(self, *error: object) -> None: ...

    async def settle(self) -> str:
        """The words are final; the platform id of a preview on show, or empty."""
        ...


class MakeStage(Protocol):
    def __call__(self, start: TurnStart, turn: RunningTurn, channel: Channel | None) -> Stage: ...


class Observer(Protocol):
    """Told how turns went: metrics, live viewers, follow-up jobs."""

    def ended(self, start: TurnStart, ending: TurnEnd, added: Sequence[Message], record: Record, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How thinking ended: `state` answered, empty, silent, stopped or failed; `notice` is the key of a sentence for the person."""

    state: str
    text: str = ""
    error_code: str = ""
    notice: str = ""


def _steering(running: RunningTurn) -> tuple[Said, ...]:
    return tuple(Said(text=item.text, by_us=False) for item in running.take_steering())


class Turns:
    """Runs turns for the lanes."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        config: Callable[[], Config],
        models: Models,
        attachments: Attachments,
        heads: Heads,
        replies: Replies,
        find_channel: Callable[[Account], Channel | None],
        make_stage: MakeStage,
        observer: Observer,
        follow_up: Callable[[sa.Connection, TurnStart, TurnEnd], None],
        budget_used: Callable[[TurnStart], str],
        tools: Sequence[Tool] = (),
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`follow_up` writes the jobs a turn makes necessary, in its last transaction. `budget_used` names a used-up budget, or is empty."""
        self._db = db
        self._clock = clock
        self._config = config
        self._models = models
        self._attachments = attachments
        self._heads = heads
        self._fetcher = Fetcher(db=db, attachments=attachments, find_channel=find_channel, clock=clock)
        self._replies = replies
        self._find_channel = find_channel
        self._make_stage = make_stage
        self._observer = observer
        self._follow_up = follow_up
        self._budget_used = budget_used
        self._tools = tools
        self._sleep = sleep
        self._learned: dict[str, int] = {}  # windows of models, as they turned out (WD-96)

    async def run(self, turn: RunningTurn) -> None:
        began = time.monotonic()
        with delivery(turn.items[0].delivery_id):
            attempts_max = self._config().delivery.attempts
            begin = partial(turn_store.begin, items=turn.items, now=self._clock(), attempts_max=attempts_max)
            start = await write_at_last(self._db, begin, "the begin of a turn")
            if start is None:
                return
            record = Record()
            account = Account(channel=start.conversation.channel, name=start.conversation.account)
            stage = self._make_stage(start, turn, self._find_channel(account))
            async with stage as sink:
                outcome = await self._think(start, turn, sink, record)
                preview_id = await stage.settle()
            await self._end(start, turn, outcome, record, preview_id, began)

    async def _think(self, start: TurnStart, running: RunningTurn, sink: Sink, record: Record) -> Outcome:
        if start.dead:
            log.error("turn %s was tried %d times and is given up", running.turn_id, self._config().delivery.attempts)
            return Outcome(state="failed", error_code="dead", notice="dead")
        if used_up := self._budget_used(start):
            return Outcome(state="failed", error_code=f"budget:{used_up}", notice="budget_stop")
        config = self._config()
        limits = config.turn
        budget = Budget(steps=limits.max_steps, tokens=limits.max_tokens, seconds=limits.max_seconds, tool_seconds=limits.tool_timeout_s)
        character = self._character(start)
        scope: asyncio.Timeout | None = None
        try:
            async with self._models.for_reply(character.model) as models, asyncio.timeout(budget.seconds) as scope:
                running.scope = scope
                if running.stopped:
                    return Outcome(state="stopped")
                turn = await self._turn(start, running, character, sees_images=models[0].sees_images)
                runtime = Runtime(
                    models, budget=budget, max_prompt=config.agent_max_context_tokens, learned=self._learned, sleep=self._sleep
                )
                await runtime.run(turn, sink=sink, record=record, steering=lambda: _steering(running), tools=self._tools)
        except TimeoutError:
            if running.stopped:
                return Outcome(state="stopped", text=record.text)
            return Outcome(state="failed", error_code=BudgetExceeded.code, notice=BudgetExceeded.code)
        except AgentError as error:
            log.error("turn %s failed: %s %s", running.turn_id, error, getattr(error, "excerpt", ""))
            return Outcome(state="failed", error_code=error.code, notice=error.code)
        except StoreUnavailable:
            return Outcome(state="failed", error_code="store", notice="store")
        except Exception:  # the lane worker's home (STYLE), taken here so that the person hears of it and the row ends
            log.exception("turn %s failed unforeseen", running.turn_id)
            return Outcome(state="failed", error_code="failed", notice="failed")
        finally:
            running.scope = None
        if is_silent(record.text):
            return Outcome(state="silent")
        if is_blank(record.text):
            return Outcome(state="empty", notice="empty")
        return Outcome(state="answered", text=record.text, notice="shortened" if record.shortened else "")

    async def _turn(self, start: TurnStart, running: RunningTurn, character: Character, *, sees_images: bool) -> Turn:
        chat = start.conversation
        account = Account(channel=chat.channel, name=chat.account)
        language = self.language(start)
        in_group = chat.space_id is not None
        words: list[str] = []
        images: list[Image] = []
        for question in start.questions:
            held = await self._fetcher.files(question, account)
            files, seen = await self._attachments.for_prompt(held, sees_images=sees_images, language=language)
            words.append(spoken(question, language=language, files=files, in_group=in_group))
            images += seen
        head = await self._heads.of(start)
        now = self._clock()
        zone = chat.timezone or start.person.get("timezone") or self._config().timezone
        stale = timedelta(seconds=self._config().delivery.stale_s)
        late = late_note(min(item.since for item in running.items), now, late_after=stale, language=language)
        return Turn(
            character=character,
            persona=chat.persona,
            system_text=head.system,
            head_notes=head.notes,
            newest=Said(text="\n".join(words), by_us=False, images=tuple(images)),
            history=history(start.history, language=language, in_group=in_group),
            now=now.astimezone(ZoneInfo(zone)) if zone else now.astimezone(),
            zone=zone or "local",
            tail_notes=(late,) if late else (),
            clock=chat.kind != "challenge",
        )

    def _character(self, start: TurnStart) -> Character:
        return character_of(self._config(), start.conversation.character)

    def language(self, start: TurnStart) -> str:
        """The person's setting, else the script of what they wrote."""
        return start.person.get("language") or guess(start.questions[-1].text)

    async def _end(
        self, start: TurnStart, running: RunningTurn, outcome: Outcome, record: Record, preview_id: str, began: float
    ) -> None:
        if running.discarded:  # the talk was reset: nothing of before is said any more (DL-14)
            outcome = Outcome(state="stopped")
        now = self._clock()
        language = self.language(start)
        chat = start.conversation
        config = self._config()
        character = self._character(start)
        seconds = time.monotonic() - began
        most = config.agent_max_context_tokens
        edge = edge_after_trim(
            sizes([*start.history, *start.questions]),
            max_turns=config.agent_max_context_turns,
            max_tokens=most if record.talk_room is None else min(most, record.talk_room),
            floor_tokens=config.context.trim_floor_tokens,
        )
        if edge is not None:  # answers may stand after a question that came meanwhile: no question leaves before it was answered
            edge = min(edge, *(question.seq - 1 for question in start.questions))
        answer = outcome.text.strip() if outcome.state in ("answered", "stopped") else ""
        notice = say(language, outcome.notice, what=outcome.error_code.partition(":")[2]) if outcome.notice else ""
        trimmed = sum(1 for message in start.history if edge is not None and message.seq <= edge)
        ending = TurnEnd(
            turn_id=running.turn_id,
            conversation_id=chat.id,
            state=outcome.state,
            rows=tuple(item.row_id for item in running.items),
            attempt=start.attempt,
            answer=answer,
            character=character.id,
            character_name=character.name,
            notice=notice,
            error_code=outcome.error_code,
            steered=tuple(running.taken),
            window_edge=edge,
            row_state="dead" if start.dead else "done",
            receipt=receipt(
                record,
                turn_id=running.turn_id,
                attempt=start.attempt,
                outcome=outcome.state,
                total_ms=round(seconds * 1000),
                trimmed=trimmed,
                memory_reason="",
            ),
        )
        reply = self._replies.compose(
            Address.parse(chat.key), ending, running.items[0], language=language, now=now, preview_id=preview_id
        )
        usage = {
            "turn_id": running.turn_id,
            "person_id": running.person_id,
            "conversation_id": chat.id,
            "channel": chat.channel,
        }
        rows = [usage | {"cost": self._models.cost(call)} for call in record.calls]

        def work(connection: sa.Connection) -> list[Message]:
            added = turn_store.end(connection, ending, parts=reply.parts, calls=list(zip(record.calls, rows, strict=True)), now=now)
            if reply.tells_losses:
                self._replies.mark_told(connection, chat.key)
            self._follow_up(connection, start, ending)
            return added

        added = await write_at_last(self._db, work, "an answer")
        self._replies.stored(chat.key, reply)
        self._observer.ended(start, ending, added, record, seconds)

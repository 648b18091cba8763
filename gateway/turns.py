"""One turn from its stored question to its stored answer: begin, think, end. Called by the lane, one at a time for each conversation.

Whatever happens inside, the turn ends in one transaction: with an answer, with what was said before a stop, or with one sentence that says why not
(CH-64, CH-85). While the database cannot be written the end is kept here and tried again, for nothing acknowledged may be lost (RL-4).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from agent import slots
from agent.characters import Character
from agent.errors import AgentError, BudgetExceeded, TooLarge
from agent.llm.calibration import Calibration
from agent.llm.port import ChatModel, Image
from agent.runtime import Runtime, Sleep
from agent.tools.port import Tool
from agent.turn import Budget, Record, Said, Sink, Turn, Weight
from channels.message import Account, Address, is_blank
from channels.port import Channel
from channels.render import is_silent
from gateway import calendar_state, casting, too_large, turn_store, windows
from gateway.answered_edge import Edge, edge_of
from gateway.attachments import Attachments
from gateway.ceiling import Ceiling, Held, sent_window
from gateway.config import Config
from gateway.equipping import Equipment, Equipping
from gateway.fetching import Fetcher
from gateway.lanes import RunningTurn
from gateway.language import guess, say
from gateway.logs import delivery
from gateway.memory_notices import MemoryNotices
from gateway.models import Models
from gateway.onboarding import NOTHING, Onboarding, OnboardingTurn
from gateway.patience import write_at_last
from gateway.previews import Preview
from gateway.recalling import NO_RECALL, RecallTurn
from gateway.receipts import receipt
from gateway.replies import Replies
from gateway.saved_turn import NO_SAVED_TURN, SavedTurn, limits_of
from gateway.talk import history, late_note, spoken
from gateway.transcribing import Transcribing
from gateway.turn_store import TurnEnd, TurnStart
from gateway.turnstile import Place, Turnstile
from gateway.zone_names import first_known
from memory.conversations import Conversation, Message
from memory.database import Database
from memory.errors import StoreUnavailable

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]


class Stage(Protocol):
    """Where a turn is shown while it runs: live viewers of the page, or the signs of a chat app."""

    async def __aenter__(self) -> Sink: ...

    async def __aexit__(self, *error: object) -> None: ...

    async def settle(self) -> Preview:
        """The words are final; what is known of a preview on show."""
        ...


class MakeStage(Protocol):
    def __call__(self, start: TurnStart, turn: RunningTurn, channel: Channel | None) -> Stage: ...


class Observer(Protocol):
    """Told how turns went: metrics, live viewers, follow-up jobs."""

    def ended(self, start: TurnStart, ending: TurnEnd, added: Sequence[Message], record: Record, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How thinking ended: `state` answered, empty, silent, stopped or failed; `notice` is the key of a sentence for the person,
    `told` the sentence itself where it has more to say."""

    state: str
    text: str = ""
    error_code: str = ""
    notice: str = ""
    told: str = ""


@dataclass(slots=True, kw_only=True)
class Sitting:
    """What is known of a turn while it runs, and stays known when it is stopped or fails."""

    place: Place
    record: Record = field(default_factory=Record)
    asked: OnboardingTurn = NOTHING
    saved: SavedTurn = NO_SAVED_TURN
    recall: RecallTurn = NO_RECALL
    character: Character | None = None  # as it answers, once that is known
    held: Held | None = None  # what of the talk is sent, once that is settled


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
        equip: Equipping,
        onboarding: Onboarding,
        replies: Replies,
        find_channel: Callable[[Account], Channel | None],
        make_stage: MakeStage,
        observer: Observer,
        follow_up: Callable[[sa.Connection, TurnStart, TurnEnd], None],
        budget_used: Callable[[TurnStart], str],
        transcribing: Transcribing,
        notices: MemoryNotices,
        tools: Sequence[Tool] = (),
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`follow_up` writes the jobs a turn makes necessary, in its last transaction. `budget_used` names a used-up budget, or is empty."""
        self._db = db
        self._clock = clock
        self._config = config
        self._models = models
        self._attachments = attachments
        self._equip = equip
        self._onboarding = onboarding
        self._fetcher = Fetcher(db=db, attachments=attachments, find_channel=find_channel, clock=clock)
        self._transcribing = transcribing
        self._notices = notices
        self._replies = replies
        self._find_channel = find_channel
        self._make_stage = make_stage
        self._observer = observer
        self._follow_up = follow_up
        self._budget_used = budget_used
        self._tools = tools
        self._ceiling = Ceiling(db=db, config=config, clock=clock)
        self._sleep = sleep
        self._learned: dict[str, int] = {}  # windows of models, as they turned out (WD-96)
        self._calibration = Calibration()
        self._turnstile = Turnstile()

    async def run(self, turn: RunningTurn) -> None:
        began = time.monotonic()
        with delivery(turn.items[0].delivery_id):
            config = self._config()
            attempts_max, limits = config.delivery.attempts, limits_of(config)
            place = await self._turnstile.enter()
            begin = partial(turn_store.begin, items=turn.items, now=self._clock(), attempts_max=attempts_max, limits=limits, config=config)
            start = await write_at_last(self._db, begin, "the begin of a turn")
            if start is None:
                place.leave()
                return
            sitting = Sitting(place=place)
            account = Account(channel=start.conversation.channel, name=start.conversation.account)
            stage = self._make_stage(start, turn, self._find_channel(account))
            async with stage as sink:
                outcome = await self._think(start, turn, sink, sitting)
                preview = await stage.settle()
            await self._end(sitting.held or Held(start=start), turn, outcome, sitting, preview, began)

    async def _think(self, start: TurnStart, running: RunningTurn, sink: Sink, sitting: Sitting) -> Outcome:
        if start.dead:
            log.error("turn %s was tried %d times and is given up", running.turn_id, self._config().delivery.attempts)
            return Outcome(state="failed", error_code="dead", notice="dead")
        if used_up := self._budget_used(start):
            return Outcome(state="failed", error_code=f"budget:{used_up}", notice="budget_stop")
        config = self._config()
        character = self._character(start)
        record = sitting.record
        scope: asyncio.Timeout | None = None
        try:
            async with self._models.for_reply(character.model) as models, asyncio.timeout(config.turn.max_seconds) as scope:
                running.scope = scope
                if running.stopped:
                    return Outcome(state="stopped")
                equipment = await self._equip.of(start, character, record, models[0], language=self._prompt_language(start))
                sitting.asked, sitting.saved = equipment.asked, equipment.saved
                character = sitting.character = casting.named(character, equipment.system)
                turn = await self._turn(start, running, character, equipment, sees_images=models[0].sees_images)
                runtime = self.runtime(models, start.conversation)
                tools = (*equipment.tools, *self._tools)
                weight = runtime.weigh(turn, ceiling=config.context.ceiling, tools=tools)
                held = sitting.held = await self._held(
                    start, character, weight, reserve=self._equip.reserve(start, character, equipment, weight.ceiling)
                )
                equipment = await self._equip.recalled(held.start, character, equipment, window_tokens=models[0].context_window)
                sitting.recall = equipment.recall
                turn = replace(
                    turn,
                    history=self._history(held.start, character),
                    standing_notes=equipment.standing_notes,
                    recalled=equipment.recalled,
                )
                sitting.place.leave()
                await runtime.run(turn, sink=sink, record=record, steering=lambda: _steering(running), tools=tools)
        except TimeoutError:
            if running.stopped:
                return Outcome(state="stopped", text=record.text)
            return Outcome(state="failed", error_code=BudgetExceeded.code, notice=BudgetExceeded.code)
        except TooLarge as error:  # before anything left the window: that would be for nothing (RS-70)
            log.error("turn %s failed: %s", running.turn_id, error)
            language = self.language(start)
            told = f"{too_large.told(error, config, start.conversation, language)} {say(language, 'room_kept')}"
            return Outcome(state="failed", error_code=f"{error.code}:{error.needed}", told=told)
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
        text = "\n\n".join(filter(None, (record.text, sitting.asked.append)))
        return Outcome(state="answered", text=text, notice="shortened" if record.shortened else "")

    def runtime(self, models: Sequence[ChatModel], chat: Conversation) -> Runtime:
        """What thinks for a turn of `chat`, with all that is known of these models."""
        config, limits = self._config(), self._config().turn
        alike = chat.kind == "challenge"  # what other turns taught must not change its prompt (SM-88)
        return Runtime(
            models,
            budget=Budget(steps=limits.max_steps, tokens=limits.max_tokens, seconds=limits.max_seconds, tool_seconds=limits.tool_timeout_s),
            max_prompt=windows.prompt_limit(config, chat),
            learned=None if alike else self._learned,
            calibration=None if alike else self._calibration,
            sleep=self._sleep,
        )

    async def _turn(self, start: TurnStart, running: RunningTurn, character: Character, equipment: Equipment, *, sees_images: bool) -> Turn:
        chat = start.conversation
        account = Account(channel=chat.channel, name=chat.account)
        language = self._prompt_language(start)
        alike = chat.kind == "challenge"
        in_group = chat.space_id is not None
        words: list[str] = []
        images: list[Image] = []
        attached: list[str] = []
        for question in start.questions:
            held = await self._transcribing.words(question, await self._fetcher.files(question, account))
            shown = await self._attachments.for_prompt(held, sees_images=sees_images, language=language)
            words.append(spoken(question, language=language, files=shown.words, in_group=in_group))
            images += shown.images
            attached += shown.texts
        now = self._clock()
        zone = first_known(chat.timezone, str(start.person.get("timezone") or ""), self._config().timezone)
        stale = timedelta(seconds=self._config().delivery.stale_s)
        late = late_note(min(item.since for item in running.items), now, late_after=stale, language=language)
        return Turn(
            character=character,
            persona="" if alike else chat.persona,
            system_text=equipment.system,
            head_notes=(*casting.head_notes(self._config(), chat, character), *equipment.head_notes),
            saved=equipment.saved.shown,
            standing_notes=equipment.standing_notes,
            recalled=equipment.recalled,
            newest=Said(text="\n".join(words), by_us=False, images=tuple(images), attached=tuple(attached)),
            history=self._history(start, character),
            now=now.astimezone(ZoneInfo(zone)) if zone else now.astimezone(),
            zone=zone or "local",
            tail_notes=(*equipment.tail_notes, *([late] if late and not alike else [])),
            clock=not alike,
        )

    async def _held(self, start: TurnStart, character: Character, weight: Weight, *, reserve: int) -> Held:
        answering = casting.one_of_several(start.conversation, character)
        return await self._ceiling.hold(start, weight, answering=answering, language=self._prompt_language(start), reserve=reserve)

    def _history(self, start: TurnStart, character: Character) -> tuple[Said, ...]:
        chat = start.conversation
        return history(
            start.history,
            language=self._prompt_language(start),
            in_group=chat.space_id is not None,
            answering=casting.one_of_several(chat, character),
            dates=start.dates,
        )

    def _character(self, start: TurnStart) -> Character:
        """Who answers this turn (WO-40)."""
        return casting.who_answers(self._config(), start.conversation, start.questions, start.history)

    def language(self, start: TurnStart) -> str:
        """The person's setting, else the script of what they wrote."""
        return start.person.get("language") or guess(start.questions[-1].text)

    def _prompt_language(self, start: TurnStart) -> str:
        """Of our own words in the prompt; nothing of the person shows in that of a challenge (SM-88)."""
        return guess(start.questions[-1].text) if start.conversation.kind == "challenge" else self.language(start)

    async def _end(self, held: Held, running: RunningTurn, outcome: Outcome, sitting: Sitting, preview: Preview, began: float) -> None:
        start = held.start
        record = sitting.record
        if running.discarded:  # the talk was reset: nothing of before is said any more (DL-14)
            outcome = Outcome(state="stopped")
        now = self._clock()
        language = self.language(start)
        chat = start.conversation
        config = self._config()
        character = sitting.character or self._character(start)
        seconds = time.monotonic() - began
        one_of_several = casting.one_of_several(chat, character)
        edge = Edge() if sitting.held is None else edge_of(start, record, config, recalled=sitting.recall.text, answering=one_of_several)
        answer = outcome.text.strip() if outcome.state in ("answered", "stopped") else ""
        notice = say(language, outcome.notice, what=outcome.error_code.partition(":")[2]) if outcome.notice else outcome.told
        trimmed = sum(1 for message in start.history if edge.seq is not None and message.seq <= edge.seq)
        ending = TurnEnd(
            turn_id=running.turn_id,
            conversation_id=chat.id,
            state=outcome.state,
            rows=tuple(item.row_id for item in running.items),
            attempt=start.attempt,
            answer=answer,
            scope=start.scope,
            foreign_text=record.read_foreign or any(question.foreign_text for question in start.questions),
            character=character.id,
            character_name=character.name,
            speaks_as=character.name if one_of_several else "",
            notice=notice,
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
                trimmed=trimmed,
                memory_reason="",
                saved=sitting.saved.report(record),
                recall=sitting.recall.report,
                places=slots.places(character.prompt),
                window=sent_window(held, config, standing_cut=record.standing_cut),
                via=start.via,
            ),
        )
        reply = self._replies.compose(Address.parse(chat.key), ending, running.items[0], language=language, now=now, preview=preview)
        usage = {
            "turn_id": running.turn_id,
            "person_id": running.person_id,
            "conversation_id": chat.id,
            "channel": chat.channel,
        }
        rows = [usage | {"cost": self._models.cost(call)} for call in record.calls]

        def work(connection: sa.Connection) -> list[Message]:
            calls = list(zip(record.calls, rows, strict=True))
            added = turn_store.end(connection, ending, parts=reply.parts, calls=calls, now=now, limits=limits_of(config))
            if reply.tells_losses:
                self._replies.mark_told(connection, chat.key)
            self._onboarding.after(connection, sitting.asked, answered=outcome.state == "answered", now=now)
            self._follow_up(connection, start, ending)
            if held.ahead:
                calendar_state.summarise_ahead(connection, config, chat.id, held.ahead)
            return added

        added = await write_at_last(self._db, work, "an answer")
        self._replies.stored(chat.key, reply)
        self._observer.ended(start, ending, added, record, seconds)
        if record.tools and any(message.role == "assistant" for message in added):  # without a call nothing was remembered
            await self._notices.after(start, sitting.saved, language=language)

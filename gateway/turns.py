"""One turn from its stored question to its stored answer: begin, think, end. Called by the lane, one at a time for each conversation.

Whatever happens inside, the turn ends (`turn_ending`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from agent.errors import AgentError, BudgetExceeded, TooLarge
from agent.tools.port import Tool
from agent.turn import Said, Sink
from channels.message import Account, is_blank
from channels.port import Channel
from channels.render import is_silent
from gateway import casting, too_large, turn_store
from gateway.ceiling import Ceiling
from gateway.config import Config
from gateway.equipping import Equipping
from gateway.lanes import RunningTurn
from gateway.language import say
from gateway.logs import delivery
from gateway.models import Models
from gateway.patience import write_at_last
from gateway.runtimes import Runtimes
from gateway.saved.turn import limits_of
from gateway.sitting import Outcome, Sitting
from gateway.stages import Stages
from gateway.turn_ending import TurnEndings
from gateway.turn_prompt import TurnPrompts, told_talk
from gateway.turn_store import TurnStart
from gateway.turnstile import Turnstile
from memory.database import Database
from memory.errors import StoreUnavailable

log = logging.getLogger(__name__)


class Turns:
    """Runs turns for the lanes."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        models: Models,
        equip: Equipping,
        prompts: TurnPrompts,
        runtimes: Runtimes,
        make_stage: Stages,
        endings: TurnEndings,
        find_channel: Callable[[Account], Channel | None],
        budget_used: Callable[[TurnStart], str],
        tools: Sequence[Tool],
    ) -> None:
        """`budget_used` names a used-up budget, or is empty. `tools`: beside those that `equip` gives."""
        self._db = db
        self._clock = clock
        self._config = config
        self._models = models
        self._equip = equip
        self._prompts = prompts
        self._runtimes = runtimes
        self._make_stage = make_stage
        self._endings = endings
        self._find_channel = find_channel
        self._budget_used = budget_used
        self._tools = tools
        self._ceiling = Ceiling(db=db, config=config, clock=clock)
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
            sitting = Sitting(start=start, running=turn, place=place, began=began)
            account = Account(channel=start.conversation.channel, name=start.conversation.account)
            stage = self._make_stage(start, turn, self._find_channel(account))
            async with stage as sink:
                outcome = await self._outcome(sitting, sink)
                preview = await stage.settle()
            await self._endings.store(sitting, outcome, preview)

    async def _outcome(self, sitting: Sitting, sink: Sink) -> Outcome:
        """How thinking ended, whatever happened in it."""
        start, running, record = sitting.start, sitting.running, sitting.record
        if start.dead:
            log.error("turn %s was tried %d times and is given up", running.turn_id, self._config().delivery.attempts)
            return Outcome(state="failed", error_code="dead", notice="dead")
        if used_up := self._budget_used(start):
            return Outcome(state="failed", error_code=f"budget:{used_up}", notice="budget_stop")
        config = self._config()
        try:
            await self._think(sitting, sink, config)
        except TimeoutError:
            if running.stopped:
                return Outcome(state="stopped", text=record.text)
            return Outcome(state="failed", error_code=BudgetExceeded.code, notice=BudgetExceeded.code)
        except TooLarge as error:  # before anything left the window: that would be for nothing (RS-70)
            log.error("turn %s failed: %s", running.turn_id, error)
            told = f"{too_large.told(error, config, start.conversation, start.language)} {say(start.language, 'room_kept')}"
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

    async def _think(self, sitting: Sitting, sink: Sink, config: Config) -> None:
        """Until the record holds the answer. Raises TimeoutError when the time is up or somebody stopped it."""
        start, running, record = sitting.start, sitting.running, sitting.record
        language = start.prompt_language
        character = casting.who_answers(config, start.conversation, start.questions, start.history)
        async with self._models.for_reply(character.model) as models, asyncio.timeout(config.turn.max_seconds) as running.scope:
            if running.stopped:
                raise TimeoutError
            equipment = await self._equip.of(start, character, record, models[0], language=language)
            sitting.asked, sitting.saved = equipment.asked, equipment.saved
            character = sitting.character = casting.named(character, equipment.system)
            turn = await self._prompts.of(sitting, character, equipment, sees_images=models[0].sees_images)
            runtime = self._runtimes.of(models, start.conversation)
            tools = (*equipment.tools, *self._tools)
            weight = runtime.weigh(turn, ceiling=config.context.ceiling, tools=tools)
            reserve = self._equip.reserve(start, character, equipment, weight.ceiling)
            answering = casting.one_of_several(start.conversation, character)
            held = sitting.held = await self._ceiling.hold(start, weight, answering=answering, language=language, reserve=reserve)
            equipment = await self._equip.recalled(held.start, character, equipment, window_tokens=models[0].context_window)
            sitting.recall = equipment.recall
            turn = replace(
                turn,
                history=told_talk(held.start, character),
                standing_notes=equipment.standing_notes,
                recalled=equipment.recalled,
            )
            sitting.place.leave()
            await runtime.run(turn, sink=sink, record=record, steering=lambda: _steering(running), tools=tools)


def _steering(running: RunningTurn) -> tuple[Said, ...]:
    return tuple(Said(text=item.text, by_us=False) for item in running.take_steering())

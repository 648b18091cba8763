"""One answer without a conversation: whoever asks brings the whole talk, and nothing of it is kept but what it cost (WO-17, WO-50).

The same characters, models, budgets and rate limits as in a chat. Saved memories are read and written as the policy says; deep memory never runs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from agent.errors import AgentError, BudgetExceeded
from agent.llm.port import Usage
from agent.runtime import Runtime
from agent.turn import Budget, Record, Said, Turn
from channels.message import is_blank
from channels.render import is_silent
from gateway import too_large
from gateway.budgets import Budgets
from gateway.cast import character_of
from gateway.config import Config
from gateway.memory_notices import as_json
from gateway.model_calls import record_calls
from gateway.models import Models
from gateway.progress import Ended, Grown, Quiet, Step
from gateway.rates import Rates
from gateway.saved.api import ApiMemories
from gateway.saved.turn import NO_SAVED_TURN, SavedTurn
from gateway.tally import Tally
from gateway.zone_names import first_known, otherwise
from memory.database import Database
from memory.errors import StoreUnavailable

log = logging.getLogger(__name__)

QUIET_S = 1.0
UNKEPT = {"failed": "unkept_failed", "model_busy": "unkept_model_busy", "model_broken": "unkept_model_broken"} | too_large.UNKEPT
"""Sentences for codes whose usual one says that the message is kept: here it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question with its talk. `said` is oldest first, the sides take turns (`alternating`), and the last words are the person's.

    `purpose` and `channel` stand in the usage; `person_id` is empty for a guest; `rate_key` is what the rate limits count by. `instructions` come
    from whoever asks and are shown to the model as theirs, behind our own. `turns_max` 0 sends all of the talk that fits the model.
    """

    purpose: str
    channel: str
    rate_key: str
    character: str
    said: tuple[Said, ...]
    person_id: str = ""
    instructions: str = ""
    timezone: str = ""
    turns_max: int = 0
    temperature: float | None = None
    max_output_tokens: int | None = None


def alternating(said: Sequence[Said]) -> tuple[Said, ...]:
    """Neighbouring messages of one side as one, for models that insist on taking turns; messages without words and pictures are left out."""
    merged: list[Said] = []
    for each in said:
        if is_blank(each.text) and not each.images:
            continue
        if merged and merged[-1].by_us == each.by_us:
            last = merged[-1]
            merged[-1] = replace(last, text=f"{last.text}\n{each.text}", images=(*last.images, *each.images))
        else:
            merged.append(each)
    return tuple(merged)


class Stateless:
    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        models: Models,
        budgets: Budgets,
        rates: Rates,
        tally: Tally,
        memories: ApiMemories,
        concurrency: int,
    ) -> None:
        """`concurrency`: answers made at the same time; more wait."""
        self._db = db
        self._clock = clock
        self._config = config
        self._models = models
        self._budgets = budgets
        self._rates = rates
        self._tally = tally
        self._memories = memories
        self._slots = asyncio.Semaphore(concurrency)
        self._learned: dict[str, int] = {}  # windows of models, as they turned out (WD-96)
        self._running: set[_Waker] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._open = True
        self._cut = False

    def close(self) -> None:
        """Take nothing more; what runs may end (CH-100)."""
        self._open = False

    async def quiet(self) -> None:
        """Returns when no answer is being made; the caller bounds the wait."""
        await self._idle.wait()

    def end(self) -> None:
        """What still runs ends with the code `draining`."""
        self._cut = True
        for sink in self._running:
            sink.changed.set()

    def refusal(self, asked: Asked) -> str:
        """Why this is not answered now: `draining`, `rate`, or `budget:` and which. Empty when it may be, and then it counts for the rate limits."""
        if not self._open:
            return "draining"
        if used_up := self._budgets.used_up_for(asked.person_id):
            return f"budget:{used_up}"
        return "rate" if self._rates.over(asked.rate_key, asked.rate_key) else ""

    async def answer(self, asked: Asked, group: asyncio.TaskGroup) -> AsyncGenerator[Step]:
        """The answer as it grows, `Ended` last; a child of `group` makes it. Closing this early stops the model: nobody would hear the rest."""
        sink = _Waker()
        record = Record()
        task = group.create_task(self._made(asked, sink, record), name=f"{asked.purpose} answer")
        task.add_done_callback(lambda _: sink.changed.set())
        seen = ""
        self._running.add(sink)
        self._idle.clear()
        try:
            while not task.done():
                if self._cut:
                    yield Ended(state="failed", code="draining")
                    return
                yield Grown(record.text) if record.text != seen else Quiet()
                seen = record.text
                await sink.wait(QUIET_S)
            yield task.result()
        finally:
            task.cancel()
            self._running.discard(sink)
            if not self._running:
                self._idle.set()

    async def _made(self, asked: Asked, sink: _Waker, record: Record) -> Ended:
        began = time.monotonic()
        sitting = _Sitting()
        state = "stopped"
        try:
            async with self._slots:
                ended = await self._thought(asked, sink, record, sitting)
            state = ended.state
        finally:
            await self._settle(sitting.saved, answered=state == "answered")
            await self._account(asked, record, state, time.monotonic() - began)
        return ended

    async def _settle(self, saved: SavedTurn, *, answered: bool) -> None:
        """Without an answer nothing stays of what it wrote to saved memories (SM-71)."""
        if not answered:
            try:
                await self._memories.take_back(saved)
            except StoreUnavailable as error:
                log.warning("what a failed answer remembered could not be taken back: %s", error)

    async def _thought(self, asked: Asked, sink: _Waker, record: Record, sitting: _Sitting) -> Ended:
        config = self._config()
        limits = config.turn
        budget = Budget(steps=limits.max_steps, tokens=limits.max_tokens, seconds=limits.max_seconds, tool_seconds=limits.tool_timeout_s)
        turn = _turn(asked, config, self._clock())
        try:
            async with self._models.for_reply(turn.character.model) as models, asyncio.timeout(budget.seconds):
                said = (*turn.history, turn.newest)
                sitting.saved = await self._memories.of(asked.person_id, asked.channel, said, turn.character, record, models[0])
                turn = replace(turn, saved=sitting.saved.shown)
                runtime = Runtime(models, budget=budget, max_prompt=config.agent_max_context_tokens, learned=self._learned)
                await runtime.run(turn, sink=sink, record=record, steering=tuple, tools=sitting.saved.tools)
        except TimeoutError:
            return Ended(state="failed", code=BudgetExceeded.code, usage=_usage(record))
        except AgentError as error:
            log.warning("an answer for %s failed: %s", asked.purpose, error)
            return Ended(state="failed", code=error.code, usage=_usage(record))
        text = "" if is_silent(record.text) else record.text.strip()
        if is_blank(text):
            return Ended(state="empty", text=text, usage=_usage(record), finish=record.finish)
        memories = tuple(as_json(await self._memories.told(sitting.saved)))
        return Ended(state="answered", text=text, usage=_usage(record), finish=record.finish, memories=memories)

    async def _account(self, asked: Asked, record: Record, state: str, seconds: float) -> None:
        """What it cost, for budgets, metrics and the usage page. A store that cannot be written costs these rows, never the answer."""
        costs = [self._models.cost(call) for call in record.calls]
        self._budgets.spend_for(asked.person_id, "", record.calls, sum(costs))
        self._tally.turned(record, seconds, purpose=asked.purpose)
        of = {"person_id": asked.person_id, "channel": asked.channel, "purpose": asked.purpose}
        rows = [(call, of | {"cost": cost}) for call, cost in zip(record.calls, costs, strict=True)]

        def work(connection: sa.Connection) -> None:
            record_calls(connection, rows, self._clock())

        try:
            await self._db.write(work)
        except StoreUnavailable as error:
            log.warning("the usage of an answer for %s was not stored: %s", asked.purpose, error)


@dataclass(slots=True)
class _Sitting:
    """What is known of an answer while it is made, and stays known when it fails."""

    saved: SavedTurn = NO_SAVED_TURN


class _Waker:
    """A sink that only says that something changed: the words are in the record."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()

    def delta(self, text: str) -> None:
        self.changed.set()

    def reset(self) -> None:
        self.changed.set()

    def tool(self, name: str, state: str) -> None:
        self.changed.set()

    async def wait(self, seconds: float) -> None:
        """Until something changed since the last wait, at most `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self.changed.wait()
        except TimeoutError:
            return
        self.changed.clear()


def _turn(asked: Asked, config: Config, now: datetime) -> Turn:
    character = character_of(config, asked.character)
    zone = first_known(asked.timezone, config.timezone)
    own_limit = config.account(character.model).max_output_tokens
    limits = [limit for limit in (asked.max_output_tokens, own_limit) if limit]
    *earlier, newest = asked.said
    if asked.turns_max:
        earlier = earlier[-2 * (asked.turns_max - 1) :] if asked.turns_max > 1 else []
    return Turn(
        character=character,
        newest=newest,
        history=tuple(earlier),
        now=now.astimezone(otherwise(zone)),
        zone=zone or "local",
        head_notes=(f"[instructions of the program that asks]\n{asked.instructions}\n[end of its instructions]",) if asked.instructions else (),
        purpose=asked.purpose,
        temperature=asked.temperature,
        max_output_tokens=min(limits) if asked.max_output_tokens else None,
    )


def _usage(record: Record) -> Usage:
    return Usage(
        input_tokens=sum(call.usage.input_tokens for call in record.calls),
        output_tokens=sum(call.usage.output_tokens for call in record.calls),
        cached_tokens=sum(call.usage.cached_tokens for call in record.calls),
        estimated=any(call.usage.estimated for call in record.calls),
    )

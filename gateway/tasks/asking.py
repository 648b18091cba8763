"""The turn of thought of a task of kind `ask`: the chat's head and window, and the task as the newest message. It has no tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from agent.errors import BudgetExceeded
from agent.prompt import words
from agent.runtime import Runtime, Sleep
from agent.turn import Budget, Record, Said, Turn
from channels.render import SILENT
from gateway.budgets import Budgets
from gateway.cast import character_of
from gateway.config import Config
from gateway.heads import Heads, access_of
from gateway.model_calls import record_calls
from gateway.models import Models
from gateway.saved.turn import Asker, SavedTurns
from gateway.talk import history
from gateway.turn_store import TurnStart
from memory.database import Database
from memory.tasks import Task

PURPOSE = "task"


class BudgetUsed(Exception):
    """A budget of today leaves no room; `what` names it, as for replies (WO-38)."""

    def __init__(self, what: str) -> None:
        super().__init__(f"today's budget is used up: {what}")
        self.what = what


class Unheard:
    """A sink: nobody watches a task being thought about."""

    def delta(self, text: str) -> None:
        pass

    def reset(self) -> None:
        pass

    def tool(self, name: str, state: str) -> None:
        pass


class Asking:
    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        models: Models,
        heads: Heads,
        saved: SavedTurns,
        budgets: Budgets,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._models = models
        self._heads = heads
        self._saved = saved
        self._budgets = budgets
        self._sleep = sleep

    async def answer(self, task: Task, start: TurnStart, zone: ZoneInfo, made_at: datetime) -> str:
        """What the model would post. `start` has the chat, who made the task, the talk so far, and the scope that may be read now, empty for none.

        Raises BudgetUsed, AgentError and StoreUnavailable. Every request is recorded with purpose `task`, whatever came of it.
        """
        if used_up := self._budgets.used_up(start):
            raise BudgetUsed(used_up)
        config, record = self._config(), Record()
        character = character_of(config, start.conversation.character)
        head = await self._heads.of(access_of(start), knowledge=config.knowledge and start.knowledge is not False)
        now = self._clock()
        asker = Asker(character=character, model="", can_call=False, record=record, foreign=lambda: False)
        saved = await self._saved.prepare(start, asker, self._saved.query(start))  # nobody has written: rows of the head alone (SM-30)
        asked = words("task").format(
            name=start.person.get("name") or "a person", date=f"{made_at.astimezone(zone):%Y-%m-%d}", text=task.text
        )
        silence = f"If there is nothing to say, answer with {SILENT} alone." if task.silent else ""
        turn = Turn(
            character=character,
            persona=start.conversation.persona,
            system_text=head.system,
            head_notes=head.notes,
            saved=saved.shown,
            standing_notes=tuple(filter(None, (start.blocks,))),
            newest=Said(text="\n\n".join(filter(None, (asked, silence))), by_us=False),
            history=history(start.history, language=task.language, in_group=start.conversation.space_id is not None, dates=start.dates),
            now=now.astimezone(zone),
            zone=zone.key,
            purpose=PURPOSE,
        )
        limits = config.turn
        budget = Budget(steps=limits.max_steps, tokens=limits.max_tokens, seconds=limits.max_seconds, tool_seconds=limits.tool_timeout_s)
        try:
            async with self._models.for_reply(character.model) as models, asyncio.timeout(budget.seconds):
                runtime = Runtime(models, budget=budget, max_prompt=config.agent_max_context_tokens, sleep=self._sleep)
                return await runtime.run(turn, sink=Unheard(), record=record, steering=lambda: ())
        except TimeoutError as error:
            raise BudgetExceeded("time") from error
        finally:
            await self._account(task, start, record)

    async def _account(self, task: Task, start: TurnStart, record: Record) -> None:
        chat, now = start.conversation, self._clock()
        of = {"turn_id": task.run_turn, "person_id": task.person_id, "conversation_id": chat.id, "channel": chat.channel, "purpose": PURPOSE}
        rows = [(call, {**of, "cost": self._models.cost(call)}) for call in record.calls]
        self._budgets.spend(start, record.calls, sum(map(self._models.cost, record.calls)))
        await self._db.write(lambda connection: record_calls(connection, rows, now))

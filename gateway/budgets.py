"""Daily budgets of tokens and cost, for everybody, a person and a chat (WO-38).

Counted in memory from the stored calls, so checking costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from agent.turn import ModelCall
from gateway.config import Config
from gateway.turn_store import TurnStart
from memory.database import Database
from memory.schema import model_calls

ALL = "*"


class Budgets:
    """What was spent today, in the configured zone."""

    def __init__(self, db: Database, *, clock: Callable[[], datetime], config: Callable[[], Config]) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._day: date | None = None
        self._tokens: Counter[str] = Counter()
        self._cost = 0.0

    async def load(self) -> None:
        """Read what was spent since the day began."""
        now = self._clock()
        local = self._local(now)
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
        spent = sa.select(
            model_calls.c.person_id, model_calls.c.conversation_id, model_calls.c.input_tokens + model_calls.c.output_tokens, model_calls.c.cost
        ).where(model_calls.c.at >= midnight)
        self._day, self._tokens, self._cost = local.date(), Counter(), 0.0
        for person_id, conversation_id, tokens, cost in await self._db.read(lambda connection: connection.execute(spent).all()):
            self._add(person_id, conversation_id, tokens, cost)

    def used_up(self, start: TurnStart) -> str:
        """The budget that this turn may not pass any more: day, person, chat or cost; empty when there is room."""
        self._turn_day()
        limits = self._config().budgets
        person = str(start.person.get("id", ""))
        spent = (
            ("day", self._tokens[ALL], limits.day_tokens),
            ("person", self._tokens[f"p {person}"], limits.person_day_tokens),
            ("chat", self._tokens[f"c {start.conversation.id}"], limits.chat_day_tokens),
            ("cost", self._cost, limits.day_cost),
        )
        return next((name for name, used, limit in spent if limit and used >= limit), "")

    def spend(self, start: TurnStart, calls: Sequence[ModelCall], cost: float) -> None:
        self._turn_day()
        tokens = sum(call.usage.input_tokens + call.usage.output_tokens for call in calls)
        self._add(str(start.person.get("id", "")), start.conversation.id, tokens, cost)

    def _add(self, person_id: str, conversation_id: str, tokens: int, cost: float) -> None:
        for key in (ALL, f"p {person_id}", f"c {conversation_id}"):
            self._tokens[key] += tokens
        self._cost += cost

    def _turn_day(self) -> None:
        today = self._local(self._clock()).date()
        if today != self._day:
            self._day, self._tokens, self._cost = today, Counter(), 0.0

    def _local(self, now: datetime) -> datetime:
        zone = self._config().timezone
        return now.astimezone(ZoneInfo(zone)) if zone else now.astimezone()


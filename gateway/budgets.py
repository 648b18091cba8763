"""Daily budgets of tokens and cost, for everybody, a person and a chat (WO-38).

Counted in memory from the stored calls, so checking costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime

import sqlalchemy as sa

from agent.turn import ModelCall
from gateway.config import Config
from gateway.turn_store import TurnStart
from gateway.zone_names import otherwise
from memory.database import Database
from memory.schema import model_calls

ALL = "*"
ANSWERS = ("reply", "api", "guest", "task")  # purposes; background work has a budget of its own, so that it never silences anybody


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
        ).where(model_calls.c.at >= midnight, model_calls.c.purpose.in_(ANSWERS))
        self._day, self._tokens, self._cost = local.date(), Counter(), 0.0
        for person_id, conversation_id, tokens, cost in await self._db.read(lambda connection: connection.execute(spent).all()):
            self._add(person_id, conversation_id, tokens, cost)

    def used_up(self, start: TurnStart) -> str:
        """The budget that this turn may not pass any more: day, person, chat or cost; empty when there is room."""
        return self.used_up_for(*_ids(start))

    def spend(self, start: TurnStart, calls: Sequence[ModelCall], cost: float) -> list[str]:
        """Count what a turn cost. Returns the budgets that thereby passed `warn_percent` of their limit."""
        return self.spend_for(*_ids(start), calls, cost)

    def used_up_for(self, person_id: str, conversation_id: str = "") -> str:
        """As `used_up`, for an answer without a conversation, or for nobody in particular (both ids may be empty)."""
        self._turn_day()
        return next((name for name, used, limit in self._spent(person_id, conversation_id) if used >= limit), "")

    def spend_for(self, person_id: str, conversation_id: str, calls: Sequence[ModelCall], cost: float) -> list[str]:
        self._turn_day()
        before = {name: used for name, used, _ in self._spent(person_id, conversation_id)}
        tokens = sum(call.usage.input_tokens + call.usage.output_tokens for call in calls)
        self._add(person_id, conversation_id, tokens, cost)
        share = self.warn_percent / 100
        return [name for name, used, limit in self._spent(person_id, conversation_id) if before[name] < limit * share <= used]

    @property
    def warn_percent(self) -> int:
        return self._config().budgets.warn_percent

    def _spent(self, person_id: str, conversation_id: str) -> list[tuple[str, float, float]]:
        """The budgets that are set: name, what is used of it, its limit."""
        limits = self._config().budgets
        everything = (
            ("day", self._tokens[ALL], limits.day_tokens),
            ("person", self._tokens[f"p {person_id}"] if person_id else 0, limits.person_day_tokens),
            ("chat", self._tokens[f"c {conversation_id}"] if conversation_id else 0, limits.chat_day_tokens),
            ("cost", self._cost, limits.day_cost),
        )
        return [(name, used, limit) for name, used, limit in everything if limit]

    def _add(self, person_id: str, conversation_id: str, tokens: int, cost: float) -> None:
        for key in (ALL, f"p {person_id}", f"c {conversation_id}"):
            self._tokens[key] += tokens
        self._cost += cost

    def _turn_day(self) -> None:
        today = self._local(self._clock()).date()
        if today != self._day:
            self._day, self._tokens, self._cost = today, Counter(), 0.0

    def _local(self, now: datetime) -> datetime:
        return now.astimezone(otherwise(self._config().timezone))


def _ids(start: TurnStart) -> tuple[str, str]:
    return str(start.person.get("id", "")), start.conversation.id

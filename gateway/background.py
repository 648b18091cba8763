"""Model requests of background work: counted, recorded, and held back when the day's tokens for it are used up (WD-87, WD-99)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from agent.errors import ModelError
from agent.llm.port import ChatModel, Finished, ModelRequest, Usage
from agent.llm.whole import whole
from agent.turn import ModelCall
from gateway.budgets import ANSWERS
from gateway.config import Config
from gateway.model_calls import record_calls
from gateway.models import Models
from gateway.zone_names import otherwise
from memory.database import Database
from memory.schema import model_calls

_SPENT = sa.select(sa.func.coalesce(sa.func.sum(model_calls.c.input_tokens + model_calls.c.output_tokens), 0)).where(
    model_calls.c.at >= sa.bindparam("since", type_=model_calls.c.at.type), model_calls.c.purpose.not_in(ANSWERS)
)


class BudgetSpent(Exception):
    """The tokens that background work may take today are used up; the job comes back when the next day begins, `retry_after_s` from now."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__("today's tokens for background work are used up: it goes on tomorrow, or set background.daily_token_budget higher")
        self.retry_after_s = retry_after_s


class Background:
    """Asks models for jobs. Days begin in the configured zone."""

    def __init__(self, *, db: Database, models: Models, config: Callable[[], Config], clock: Callable[[], datetime]) -> None:
        self._db = db
        self._models = models
        self._config = config
        self._clock = clock

    async def check(self) -> None:
        """Raises BudgetSpent."""
        most = self._config().background.daily_token_budget
        if not most:
            return
        now = self._clock()
        local = now.astimezone(otherwise(self._config().timezone))
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
        spent = await self._db.read(lambda connection: connection.execute(_SPENT, {"since": midnight.astimezone(UTC)}).scalar_one())
        if spent >= most:
            tomorrow = (midnight + timedelta(days=1)).astimezone(UTC)
            raise BudgetSpent(max(60.0, (tomorrow - now).total_seconds()))

    async def ask(self, model: ChatModel, request: ModelRequest, of: Mapping[str, object] | None = None) -> tuple[str, Finished]:
        """The whole answer and its end; the request is recorded under its purpose, whatever came of it. Raises BudgetSpent and ModelError.

        `of`: whose it was, as `model_calls.record_calls` takes it (conversation_id, person_id …).
        """
        await self.check()
        began = time.monotonic()
        outcome, usage = "stopped", Usage()
        try:
            text, end = await whole(model, request)
            outcome, usage = "ok", end.usage
            return text, end
        except ModelError as error:
            outcome = error.code
            raise
        finally:
            milliseconds = round((time.monotonic() - began) * 1000)
            call = ModelCall(model=model.name, provider=model.provider, outcome=outcome, usage=usage, milliseconds=milliseconds)
            row = {**(of or {}), "purpose": request.purpose, "cost": self._models.cost(call)}
            now = self._clock()
            await self._db.write(lambda connection: record_calls(connection, [(call, row)], now))

"""Usage: every request to a provider is a row, with what it was for and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from agent.turn import ModelCall
from memory.schema import model_calls

CallRow = tuple[ModelCall, Mapping[str, Any]]

_CALL = sa.insert(model_calls)


def record_calls(connection: sa.Connection, calls: Sequence[CallRow], now: datetime) -> None:
    """Usage: each request with what it was for (turn, person, conversation, channel, purpose, cost; all optional)."""
    if calls:
        connection.execute(_CALL, [_call_row(call, of, now) for call, of in calls])


def _call_row(call: ModelCall, of: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    return {
        "model": call.model, "outcome": call.outcome, "input_tokens": call.usage.input_tokens, "output_tokens": call.usage.output_tokens,
        "cached_tokens": call.usage.cached_tokens, "estimated": call.usage.estimated, "milliseconds": call.milliseconds, "at": now,
        "turn_id": "", "person_id": "", "conversation_id": "", "channel": "", "purpose": "reply", "cost": 0.0, **of,
    }  # fmt: skip

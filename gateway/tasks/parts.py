"""What a run of a task has in the outbox: how far it came, and the note that follows a reminder which lay there too long (WD-135, CH-84)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from channels.message import from_json
from channels.port import OutboundPart
from gateway.delivery import outbox_store
from gateway.delivery.outbox_store import NewPart
from gateway.delivery.rules import PartState
from memory.schema import outbox

_LATE = ".late"
_SHOWN = ("state", "reason", "attempts", "platform_ids", "part_id", "part", "expires_at", "created_at", "conversation_id", "message_id")
_OF_RUN = (
    sa.select(*(outbox.c[name] for name in _SHOWN))
    .where(outbox.c.turn_id == sa.bindparam("turn"), outbox.c.kind == "reminder")
    .order_by(outbox.c.id)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
    """A part that a run made: its state, why it failed, since when it lies there.

    One that a channel took without naming a message has not arrived (SC-11).
    """

    state: str
    reason: str
    stored_at: datetime
    is_note: bool


def parts_of_run(connection: sa.Connection, turn: str) -> list[RunPart]:
    """In the order they go out."""
    return [_part(row) for row in connection.execute(_OF_RUN, {"turn": turn}).mappings()]


def add_late_note(connection: sa.Connection, turn: str, note: str, now: datetime) -> None:
    """Let `note` follow what a run has stored and could not send in time."""
    last = connection.execute(_OF_RUN, {"turn": turn}).mappings().all()[-1]
    part = from_json(OutboundPart, last["part"])
    added = NewPart(
        part=replace(part, part_id=f"{turn}{_LATE}", text=note, entities=()),
        kind="reminder",
        expires_at=last["expires_at"],
        conversation_id=last["conversation_id"],
        turn_id=turn,
        message_id=last["message_id"],
    )
    outbox_store.put(connection, [added], now)


def _part(row: Any) -> RunPart:
    tried = row["attempts"] > 0  # else the channel's readers see the log itself
    unnamed = row["state"] == PartState.SENT and tried and not row["platform_ids"]
    return RunPart(
        state=PartState.FAILED.value if unnamed else row["state"],
        reason="the channel named no message" if unnamed else row["reason"],
        stored_at=row["created_at"],
        is_note=row["part_id"].endswith(_LATE),
    )

"""When the model's work on saved memories is taken back: with the attempt that made it, and with talk that is taken back (SM-65, SM-69, SM-71).

Called inside of the transactions that begin and end a turn and that rewind a chat, so that it happens once, whatever is killed when (SM-68).
"""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from memory.saved import undo
from memory.saved.undo import Rewound
from memory.saved.writing import Limits
from memory.schema import messages

_LAST_SEEN = 2**62  # beyond every number of the log
_GONE = (
    sa.select(messages.c.id, messages.c.turn_id)
    .where(messages.c.conversation_id == sa.bindparam("of"), messages.c.seq.between(sa.bindparam("first"), _LAST_SEEN))
    .where(messages.c.state == "live")
    .order_by(messages.c.seq.desc())
)


def before_attempt(connection: sa.Connection, turn_id: str, attempt: int, now: datetime, limits: Limits) -> None:
    """What a killed try of this attempt wrote, then what the attempt before it wrote: it is being answered anew."""
    for number in (attempt, attempt - 1):
        if number > 0:
            undo.undo_attempt(connection, turn_id, number, now, limits=limits)


def unanswered(connection: sa.Connection, turn_id: str, attempt: int, now: datetime, limits: Limits) -> None:
    """The attempt ended without a stored reply."""
    undo.undo_attempt(connection, turn_id, attempt, now, limits=limits)


def rewound(connection: sa.Connection, conversation_id: str, first: int, now: datetime, *, limits: Limits, journal_days: int) -> Rewound:
    """The messages from number `first` on are about to leave the chat. Call it before they do."""
    rows = connection.execute(_GONE, {"of": conversation_id, "first": first}).all()
    turns = list(dict.fromkeys(row.turn_id for row in rows if row.turn_id))
    removed = [row.id for row in rows]
    return undo.rewind(connection, conversation_id, turns, removed, now, limits=limits, journal_days=journal_days)

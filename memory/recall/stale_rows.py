"""Summaries that say what is so no more, and since when (RS-166). Plain functions on a `Connection`."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

import sqlalchemy as sa

from memory.recall.summary_rows import State
from memory.recall_schema import summaries, summary_sources
from memory.schema import messages


def due(connection: sa.Connection, changed_before: datetime, *, conversation_id: str = "") -> dict[str, list[int]]:
    """By chat, the rows to be made anew: what was withheld at once, the others when their messages last changed before `changed_before`; the withheld
    ones first. Of one chat, or of all. None that a person wrote."""
    found: dict[str, list[int]] = defaultdict(list)
    for row in connection.execute(_DUE if not conversation_id else _DUE_OF, {"of": conversation_id} if conversation_id else {}):
        if row.state == State.WITHHELD or row.changed_at is None or row.changed_at <= changed_before:
            found[row.conversation_id].append(row.id)
    return found


_C, _M = summaries.c, messages.c
_SHOWN = _C.state.in_([State.ACTIVE, State.WITHHELD])
_DUE = (
    sa.select(_C.id, _C.conversation_id, _C.state, sa.func.max(_M.edited_at, type_=_M.edited_at.type).label("changed_at"))
    .outerjoin(summary_sources, summary_sources.c.summary_id == _C.id)
    .outerjoin(messages, _M.seq == summary_sources.c.message_seq)
    .where(_C.stale, ~_C.hand_edited, _SHOWN)
    .group_by(_C.id, _C.conversation_id, _C.state, _C.first_seq)
    .order_by(_C.state.desc(), _C.first_seq, _C.id)
)
_DUE_OF = _DUE.where(_C.conversation_id == sa.bindparam("of"))

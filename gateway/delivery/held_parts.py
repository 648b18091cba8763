"""Parts that wait for a person: nothing may be sent to them before they write again (WX-44). Plain functions on a `Connection`.

`hold` when a channel said so, `release` in the transaction that stores the person's next message. A held part stays `queued`, with the reason
`waiting(user)`, for a day; a notice, such as the answer to a command, for its own minute (CH-82). Behind it everything else in that chat waits too
(CH-81), so all of it is held and released together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from channels.message import from_json, to_json
from channels.port import OutboundPart, TextUnit
from channels.units import measure
from gateway.delivery.rules import OPEN, PartState
from gateway.language import say
from memory.schema import outbox

WAITING = "waiting(user)"
NOTICE = "notice"
HELD = timedelta(hours=24)
HELD_MAX = 3  # answers and reminders of one person; an answer counts once, however many parts it has

_OPEN_STATES = tuple(state.value for state in OPEN)
_OPEN = (
    sa.select(outbox)
    .where(outbox.c.address == sa.bindparam("of"), outbox.c.state.in_(_OPEN_STATES))
    .order_by(outbox.c.id)
)
_HOLD = (
    sa.update(outbox)
    .where(outbox.c.id == sa.bindparam("row"))
    .values(reason=WAITING, **{name: sa.bindparam(f"new_{name}", type_=outbox.c[name].type) for name in ("not_before", "expires_at", "updated_at")})
)
_RELEASE = (
    sa.update(outbox)
    .where(outbox.c.id == sa.bindparam("row"))
    .values(reason="", not_before=None, **{name: sa.bindparam(f"new_{name}", type_=outbox.c[name].type) for name in ("part", "updated_at")})
)
_END = (
    sa.update(outbox)
    .where(outbox.c.id == sa.bindparam("row"))
    .values(
        state=PartState.EXPIRED.value, **{name: sa.bindparam(f"new_{name}", type_=outbox.c[name].type) for name in ("kind", "reason", "updated_at")}
    )
)
_HELD = sa.select(sa.func.count()).where(outbox.c.address == sa.bindparam("of"), outbox.c.reason == WAITING, outbox.c.state.in_(_OPEN_STATES))


def hold(connection: sa.Connection, address: str, now: datetime) -> int:
    """Everything open in a chat waits for its person, a day from when it was first held. Returns how many parts expired for want of room:
    reminders first, the oldest first. Notices wait too, but no longer than they may at all, and take nobody's room."""
    rows = connection.execute(_OPEN, {"of": address}).all()
    surplus = _surplus(rows)
    for row in rows:
        if row.id in surplus:
            connection.execute(_END, {"row": row.id, "new_kind": row.kind, "new_reason": "expired", "new_updated_at": now})
        else:
            until = row.expires_at if row.reason == WAITING or row.kind == NOTICE else max(row.expires_at, now + HELD)
            connection.execute(_HOLD, {"row": row.id, "new_not_before": until, "new_expires_at": until, "new_updated_at": now})
    return len(surplus)


def release(connection: sa.Connection, address: str, now: datetime, *, language: str, limit: int, unit: TextUnit, most: int) -> int:
    """The person wrote: what waited for that goes out, each answer marked "(earlier)" and in as few messages as `limit` allows, `most` in all.

    `most` is the new budget without its last message: that is the new message's own answer's, and what is more than that would stand in its way,
    so it expires, as does a notice whose minute is over. Returns how many parts are left to send.
    """
    rows = [row for row in connection.execute(_OPEN, {"of": address}).all() if row.reason == WAITING]
    marked: set[str] = set()
    left = 0
    for group in _groups(rows, limit, unit):
        *merged, last = group
        part = from_json(OutboundPart, last.part)
        source = _source(last)
        if left == most or (source.startswith(NOTICE) and last.expires_at <= now):
            for row in group:
                connection.execute(_END, {"row": row.id, "new_kind": row.kind, "new_reason": "expired", "new_updated_at": now})
            continue
        if last.state == PartState.QUEUED.value and not last.unknowns:  # of the others a copy may be on show: their words stay
            words = "\n\n".join(from_json(OutboundPart, row.part).text for row in group)
            part = replace(part, text=words, aside=True, earlier_note="" if source in marked else say(language, "earlier"))
        marked.add(source)
        connection.execute(_RELEASE, {"row": last.id, "new_part": to_json(part), "new_updated_at": now})
        for row in merged:  # of another kind now, so that nobody takes it for a lost answer or sends its words once more
            connection.execute(_END, {"row": row.id, "new_kind": "merged", "new_reason": "merged", "new_updated_at": now})
        left += 1
    return left


def held(connection: sa.Connection, address: str) -> int:
    """How many parts wait for the person: what a job or `/status` shows of its wait (WX-43)."""
    return connection.execute(_HELD, {"of": address}).scalar() or 0


def _source(row: sa.Row[Any]) -> str:
    """What a part belongs to: the turn of an answer or reminder, else itself."""
    return f"{row.kind}/{row.turn_id or row.part_id}"


def _surplus(rows: Sequence[sa.Row[Any]]) -> set[int]:
    """Rows that find no room: answers go before reminders, and of each the oldest goes first."""
    sources = list(dict.fromkeys(_source(row) for row in rows if row.kind != NOTICE))
    kinds = {_source(row): row.kind for row in rows}
    in_order = [source for source in sources if kinds[source] == "reminder"] + [source for source in sources if kinds[source] != "reminder"]
    gone = set(in_order[: max(len(sources) - HELD_MAX, 0)])
    return {row.id for row in rows if _source(row) in gone}


def _groups(rows: Sequence[sa.Row[Any]], limit: int, unit: TextUnit) -> list[list[sa.Row[Any]]]:
    """Neighbours of one answer that fit one message together."""
    groups: list[list[sa.Row[Any]]] = []
    length = 0
    for row in rows:
        part = from_json(OutboundPart, row.part)
        size = measure(part.text, unit)
        plain = row.state == PartState.QUEUED.value and not row.unknowns and not part.attachments
        if groups and plain and _source(groups[-1][-1]) == _source(row) and length + 2 + size <= limit:
            groups[-1].append(row)
            length += 2 + size
        else:
            groups.append([row])
            length = size if plain else limit
    return groups

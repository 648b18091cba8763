"""How a search and a use change the ageing of saved memories: conditional updates, right whatever else happens at the same time (SM-35 to SM-43)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from memory.saved_schema import memories, memory_decay

DORMANT_AFTER_DAYS = 7

_d = memory_decay.c
_IDS = sa.bindparam("ids", expanding=True, type_=sa.BigInteger)
_TODAY = sa.bindparam("today", type_=sa.Date)
_MOST = sa.bindparam("most", type_=sa.BigInteger)
_UNPINNED = sa.exists().where(memories.c.id == _d.memory_id, ~memories.c.pinned)
# Two searches at once take the rows in one order, so neither waits for the other for ever.
_HOLD = sa.select(_d.memory_id).where(_d.memory_id.in_(_IDS)).order_by(_d.memory_id).with_for_update()
_HIT = (
    sa.update(memory_decay)
    .where(_d.memory_id.in_(_IDS), _UNPINNED)
    .values(
        unused_days=0,
        dormant=False,
        last_tick_day=sa.case((_d.last_tick_day < _TODAY, _TODAY), else_=_d.last_tick_day),
        last_matched_at=sa.bindparam("now", type_=_d.last_matched_at.type),
    )
)
_TICK = (
    sa.update(memory_decay)
    .where(_d.memory_id.in_(_IDS), _UNPINNED, _d.last_tick_day < _TODAY)
    .values(
        unused_days=sa.case((_d.unused_days + 1 < _MOST, _d.unused_days + 1), else_=_MOST),
        dormant=_d.unused_days + 1 >= _MOST,
        last_tick_day=_TODAY,
    )
)


def commit_search(
    connection: sa.Connection,
    matched: Collection[int],
    may_tick: Collection[int],
    now: datetime,
    *,
    dormant_after_days: int = DORMANT_AFTER_DAYS,
) -> None:
    """The changes of one search that succeeded (SM-43): `matched` rows are used; every other one of `may_tick` that has not ticked today, ticks.

    `may_tick`: rows that were compared and whose owner takes part today (SM-42). A row pinned or removed meanwhile is left alone. Call it before the
    generation starts, and not at all for a search that failed or while ageing is off.
    """
    rest = set(may_tick) - set(matched)
    everything = sorted({*matched, *rest})
    if not everything:
        return
    today = {"today": now.date()}
    connection.execute(_HOLD, {"ids": everything})
    if matched:
        connection.execute(_HIT, {**today, "ids": sorted(set(matched)), "now": now})
    if rest:
        connection.execute(_TICK, {**today, "ids": sorted(rest), "most": dormant_after_days})


def use(connection: sa.Connection, memory_id: int, now: datetime) -> None:
    """The row counts as matched now (SM-4)."""
    commit_search(connection, [memory_id], [], now)

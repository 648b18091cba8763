"""Starts and ends, as the database remembers them: three unclean ends within five minutes park what earlier runs left (CH-102).

An unclean end leaves no note; it is noticed, and counted, at the start after it. What is parked stays so until the operator releases it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from memory.schema import settings

KEY = "lifecycle"
WITHIN = timedelta(minutes=5)
UNCLEAN_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """`running_since` is set while a run has not said goodbye; `unclean` holds when it was noticed that one never did.

    `parked`: what earlier runs left waits for the operator.
    """

    running_since: datetime | None = None
    unclean: tuple[datetime, ...] = ()
    parked: bool = False


def begun(life: Life, now: datetime) -> Life:
    """The life after a start."""
    noticed = (*life.unclean, now) if life.running_since else life.unclean
    unclean = tuple(at for at in noticed if now - at < WITHIN)
    return Life(running_since=now, unclean=unclean, parked=life.parked or len(unclean) >= UNCLEAN_MAX)


def load(connection: sa.Connection) -> Life:
    value = connection.execute(sa.select(settings.c.value).where(settings.c.key == KEY)).scalar()
    if not value:
        return Life()
    since = value.get("running_since")
    return Life(
        running_since=datetime.fromisoformat(since) if since else None,
        unclean=tuple(datetime.fromisoformat(at) for at in value.get("unclean", ())),
        parked=value.get("parked", False),
    )


def save(connection: sa.Connection, life: Life, now: datetime) -> None:
    value = {
        "running_since": life.running_since.isoformat() if life.running_since else None,
        "unclean": [at.isoformat() for at in life.unclean],
        "parked": life.parked,
    }
    changed = connection.execute(sa.update(settings).where(settings.c.key == KEY).values(value=value, updated_at=now))
    if changed.rowcount == 0:
        connection.execute(sa.insert(settings), {"key": KEY, "value": value, "updated_at": now})


def start(connection: sa.Connection, now: datetime) -> bool:
    """Note a start; True when runs ended badly so often that what they left is parked."""
    life = begun(load(connection), now)
    save(connection, life, now)
    return life.parked


def release(connection: sa.Connection, now: datetime) -> None:
    """The operator has decided: nothing is parked any more, and unclean ends count anew."""
    save(connection, replace(load(connection), unclean=(), parked=False), now)


def stop(connection: sa.Connection, now: datetime) -> None:
    """Note a clean end."""
    save(connection, Life(parked=load(connection).parked), now)

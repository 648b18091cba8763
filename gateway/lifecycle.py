"""Starts and ends, as the database remembers them: three unclean ends within five minutes park what an earlier run left (CH-102)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from memory.schema import settings

KEY = "lifecycle"
WITHIN = timedelta(minutes=5)
UNCLEAN_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """`running_since` is set while a run has not said goodbye; `unclean` holds the starts of runs that never did."""

    running_since: datetime | None = None
    unclean: tuple[datetime, ...] = ()


def begun(life: Life, now: datetime) -> tuple[Life, bool]:
    """The life after a start, and whether what is unfinished must wait for the operator."""
    unclean = tuple(at for at in (*life.unclean, *((life.running_since,) if life.running_since else ())) if now - at < WITHIN)
    return Life(running_since=now, unclean=unclean), len(unclean) >= UNCLEAN_MAX


def load(connection: sa.Connection) -> Life:
    value = connection.execute(sa.select(settings.c.value).where(settings.c.key == KEY)).scalar()
    if not value:
        return Life()
    since = value.get("running_since")
    return Life(
        running_since=datetime.fromisoformat(since) if since else None,
        unclean=tuple(datetime.fromisoformat(at) for at in value.get("unclean", ())),
    )


def save(connection: sa.Connection, life: Life, now: datetime) -> None:
    value = {
        "running_since": life.running_since.isoformat() if life.running_since else None,
        "unclean": [at.isoformat() for at in life.unclean],
    }
    changed = connection.execute(sa.update(settings).where(settings.c.key == KEY).values(value=value, updated_at=now))
    if changed.rowcount == 0:
        connection.execute(sa.insert(settings), {"key": KEY, "value": value, "updated_at": now})


def start(connection: sa.Connection, now: datetime) -> bool:
    """Note a start; True when the last runs ended badly so often that deliveries are parked."""
    life, parked = begun(load(connection), now)
    save(connection, life, now)
    return parked


def stop(connection: sa.Connection, now: datetime) -> None:
    """Note a clean end."""
    save(connection, Life(), now)

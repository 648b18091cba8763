"""Who changed what (WO-64, CH-121): one row per operator action, written in the transaction of the change itself, secrets masked.

Plain functions on a `Connection`: an action that is undone leaves no trace, and a trace without its action cannot exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import cast

import sqlalchemy as sa

from memory.schema import audit

MASK = "***"

_SECRET_KEY = re.compile(r"pass|secret|token|api_?key|hash|cookie|csrf", re.IGNORECASE)

_ADD = sa.insert(audit)
_NEWEST = sa.select(audit).order_by(audit.c.id.desc()).limit(sa.bindparam("limit"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts, for the log: a person's id (or a word such as `console`) and where from, an IP address or a chat's address."""

    id: str
    address: str = ""


CONSOLE = Actor(id="console")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of the log. `before` and `after` hold only what changed; None when there was nothing before, or is nothing after."""

    at: datetime
    actor: str
    action: str
    target: str
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None
    address: str


def record(
    connection: sa.Connection,
    actor: Actor,
    action: str,
    *,
    at: datetime,
    target: str = "",
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> None:
    """Add an entry. `action` is `noun.verb` such as `person.change`; `before` and `after` are JSON data, and their secrets are masked here."""
    values = {"at": at, "actor": actor.id, "action": action, "target": target, "before": _shown(before), "after": _shown(after)}
    connection.execute(_ADD, {**values, "address": actor.address})


def newest(connection: sa.Connection, limit: int) -> list[Entry]:
    """The last `limit` entries, newest first."""
    return [
        Entry(at=row.at, actor=row.actor, action=row.action, target=row.target, before=row.before, after=row.after, address=row.address)
        for row in connection.execute(_NEWEST, {"limit": limit})
    ]


def masked(value: object, key: str = "") -> object:
    """`value` with everything under a secret's name shown as stars (an empty one stays empty), however deep it lies."""
    if isinstance(value, Mapping):
        return {name: masked(item, name) for name, item in cast("Mapping[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [masked(item, key) for item in cast("list[object]", value)]
    hidden = value and not isinstance(value, bool) and _SECRET_KEY.search(key) and not key.endswith("_name")
    return MASK if hidden else value


def _shown(values: Mapping[str, object] | None) -> object:
    return None if values is None else masked(values)

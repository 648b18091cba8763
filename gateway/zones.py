"""In which time zone the days of a memory begin: its own, its person's or place's, the configured one, the system's (WD-56)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from gateway.zone_names import is_zone, otherwise
from memory.file_schema import scope_settings
from memory.schema import conversations, people, spaces
from memory.scopes import Kind

_SPACES = f"{Kind.SPACE}/"

log = logging.getLogger(__name__)

_OWN = sa.select(scope_settings.c.scope, scope_settings.c.timezone).where(scope_settings.c.timezone != "")
_PERSON = sa.select(people.c.scope, people.c.timezone).where(people.c.timezone != "")
_SPACE = sa.select((_SPACES + spaces.c.id).label("scope"), spaces.c.timezone).where(spaces.c.timezone != "")
_CHATS = sa.select(conversations.c.id, conversations.c.timezone).where(conversations.c.timezone != "", conversations.c.deleted_at.is_(None))
# The later ones win.
_SOURCES = (
    ("people.timezone", _PERSON, _PERSON.where(people.c.scope == sa.bindparam("scope"))),
    ("spaces.timezone", _SPACE, _SPACE.where(spaces.c.id == sa.bindparam("space"))),
    ("scope_settings.timezone", _OWN, _OWN.where(scope_settings.c.scope == sa.bindparam("scope"))),
)


def zone_of(connection: sa.Connection, scope: str, default: str) -> ZoneInfo:
    """The zone of a scope. `default`: the configuration's `timezone`, empty for the system's. A stored name that is none is logged and left out."""
    values = {"scope": scope, "space": scope.removeprefix(_SPACES)}
    found = _known((key, row.scope, row.timezone) for key, _, one in _SOURCES for row in connection.execute(one, values))
    return found.get(scope) or otherwise(default)


def zones(connection: sa.Connection, default: str) -> Callable[[str], ZoneInfo]:
    """The same for all scopes at once."""
    found = _known((key, row.scope, row.timezone) for key, everybody, _ in _SOURCES for row in connection.execute(everybody))
    rest = otherwise(default)
    return lambda scope: found.get(scope, rest)


def wrong(connection: sa.Connection) -> list[tuple[str, str, str]]:
    """Every stored name that is no zone: the column, whose it is, the name (RS-160)."""
    found = [("conversations.timezone", row.id, row.timezone) for row in connection.execute(_CHATS)]
    found += [(key, row.scope, row.timezone) for key, everybody, _ in _SOURCES for row in connection.execute(everybody)]
    return [(key, of, name) for key, of, name in found if name.strip() and not is_zone(name)]


def _known(rows: Iterable[tuple[str, str, str]]) -> dict[str, ZoneInfo]:
    found: dict[str, ZoneInfo] = {}
    for key, scope, name in rows:
        if is_zone(name):
            found[scope] = ZoneInfo(name)
        else:
            log.error("%s of %s is %r, which is no time zone", key, scope, name)
    return found

"""In which time zone the days of a memory begin: its own, its person's or place's, the configured one, the system's (WD-56)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import sqlalchemy as sa

from memory.file_schema import scope_settings
from memory.schema import conversations, people, spaces
from memory.scopes import Kind

LOCALTIME = Path("/etc/localtime")
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


def otherwise(default: str) -> ZoneInfo:
    """The zone of this name, that of the system for none: of whoever has no zone of their own."""
    return ZoneInfo(default) if default else system_zone()


def first_known(*names: str) -> str:
    """The first of these names that is a zone; empty when none is. One that is none was warned of where it is kept, and the next one counts
    (RS-160)."""
    return next((name for name in names if name.strip() and is_zone(name)), "")


def is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


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


def system_zone(localtime: Path = LOCALTIME) -> ZoneInfo:
    """The zone of this machine: TZ, else the system's file, else UTC."""
    linked = str(localtime.resolve()).rpartition("zoneinfo/")[2] if localtime.is_symlink() else ""
    for name in (os.environ.get("TZ", "").removeprefix(":"), linked):
        with suppress(ZoneInfoNotFoundError, ValueError, OSError):
            if name:
                return ZoneInfo(name)
    with suppress(OSError, ValueError), localtime.open("rb") as file:
        return ZoneInfo.from_file(file, key="localtime")
    return ZoneInfo("UTC")

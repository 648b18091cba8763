"""Names of time zones, and the one of this machine. Apart from what is stored (`gateway.zones`), for checking a configuration loads no database."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

LOCALTIME = Path("/etc/localtime")


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

"""The menu of commands, checked before it is registered: one bad entry would have the server refuse all of them (CH-158)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from channels.telegram.settings import MenuEntry

ENTRIES_MAX = 100
DESCRIPTION_MAX = 256
_NAME = re.compile(r"[a-z0-9_]{1,32}")


def checked(entries: Sequence[MenuEntry]) -> tuple[tuple[MenuEntry, ...], tuple[str, ...]]:
    """The entries that can be registered, in their order, and a line for each that was changed or left out. The first 100 stay."""
    kept: dict[str, MenuEntry] = {}
    lines: list[str] = []
    for entry in entries:
        name, description = entry.name.lower(), " ".join(entry.description.split())
        if not _NAME.fullmatch(name):
            lines.append(f"/{entry.name} is left out: a name has 1 to 32 letters a-z, digits and _")
        elif not description:
            lines.append(f"/{name} is left out: it has no description")
        elif name in kept:
            lines.append(f"/{entry.name} is left out: /{name} is there already")
        elif len(kept) == ENTRIES_MAX:
            lines.append(f"/{name} is left out: the menu holds {ENTRIES_MAX} commands; typed by hand it works")
        else:
            if len(description) > DESCRIPTION_MAX:
                lines.append(f"the description of /{name} is cut to {DESCRIPTION_MAX} characters")
            kept[name] = MenuEntry(name, description[:DESCRIPTION_MAX])
    return tuple(kept.values()), tuple(lines)

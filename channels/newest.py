"""What a channel remembers has an end: of a dict that grows, the newest entries are kept."""

from __future__ import annotations

from typing import Any


def keep_newest(kept: dict[Any, Any], most: int) -> None:
    """Drop the entries that were put in first until `most` are left."""
    while len(kept) > most:
        del kept[next(iter(kept))]

"""What a person had forgotten, for those who read old messages: no summary may tell it again (WD-92)."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from memory.file_schema import line_bars

_SOURCES = sa.select(line_bars.c.sources).where(line_bars.c.scope == sa.bindparam("scope"), line_bars.c.reason == "forgotten")


def forgotten_messages(connection: sa.Connection, scope: str) -> frozenset[str]:
    """Ids of the messages of a scope that something forgotten rested on, or that said it: they count as covered, and nothing is made of them."""
    found: Sequence[Sequence[str] | None] = connection.execute(_SOURCES, {"scope": scope}).scalars().all()
    return frozenset(each for sources in found for each in sources or ())

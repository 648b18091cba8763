"""Summaries for a reply that is tried again: nothing in its prompt may be newer than its question (RS-76)."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from memory.recall import summary_rows
from memory.recall.summary_rows import Summary


def older(connection: sa.Connection, rows: Iterable[Summary], before: int) -> list[Summary]:
    """These rows as they stood before message number `before` was said: one that tells of it or of later talk gives way to those it was made of, and
    what is left of a row that was made of messages is not told, for its words cannot be parted."""
    found: list[Summary] = []
    for row in rows:
        if row.last_seq < before:
            found.append(row)
        elif row.first_seq < before:
            found += older(connection, summary_rows.inputs_of(connection, row.id), before)
    return found

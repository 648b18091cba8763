"""Every row of one database into another of the same schema, on SQLite and PostgreSQL alike: what a backup and its way back are made of (WO-39)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from memory import file_schema, index_schema, lexical, pairing_schema, recall_schema, saved_schema, schema, task_schema
from memory.columns import metadata
from memory.index_kinds import FILES, MESSAGES

TABLES = (schema, file_schema, index_schema, task_schema, pairing_schema, saved_schema, recall_schema)  # each adds its own to the metadata
_AT_ONCE = 1_000  # rows


def copy_rows(source: sa.Connection, target: sa.Connection) -> int:
    """Put all rows of `source` in the place of those of `target`, and return how many there are. Both are in a transaction of the caller's."""
    tables = metadata.sorted_tables  # parents first
    for table in reversed(tables):
        target.execute(table.delete())
    copied = 0
    for table in tables:
        for rows in _rows_of(source, table):
            target.execute(table.insert(), rows)
            copied += len(rows)
        _count_on(target, table)
    for kind in (FILES, MESSAGES):
        lexical.copy(source, target, kind)
    return copied


def _rows_of(source: sa.Connection, table: sa.Table) -> Iterator[Sequence[dict[str, Any]]]:
    found = source.execution_options(yield_per=_AT_ONCE).execute(sa.select(table).order_by(*table.primary_key))
    for part in found.mappings().partitions():
        yield [{name: _storable(value) for name, value in row.items()} for row in part]


def _storable(value: Any) -> Any:
    """SQLite holds zero characters, as a file may have them; PostgreSQL holds none."""
    return value.replace("\x00", "") if isinstance(value, str) else value


def _count_on(target: sa.Connection, table: sa.Table) -> None:
    """PostgreSQL's counters stand apart from the rows: the next number is the one behind the highest."""
    counted = table.autoincrement_column
    if target.dialect.name == "postgresql" and counted is not None:
        highest = sa.select(sa.func.coalesce(sa.func.max(counted), 0) + 1).scalar_subquery()
        target.execute(sa.select(sa.func.setval(sa.func.pg_get_serial_sequence(table.name, counted.name), highest, False)))

"""Inserts for rows that may be there already. Both databases know the clause, each by an insert of its own kind; so a statement is built for both.

Use one as `connection.execute(STATEMENT[connection.dialect.name], values)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

ByDialect: TypeAlias = Mapping[str, sa.Insert]


def insert_or_keep(table: sa.Table, keys: Sequence[str]) -> ByDialect:
    """A row whose `keys` are taken stays as it is."""
    return {
        "sqlite": sqlite.insert(table).on_conflict_do_nothing(index_elements=keys),
        "postgresql": postgresql.insert(table).on_conflict_do_nothing(index_elements=keys),
    }


def insert_or_change(table: sa.Table, keys: Sequence[str], changed: Sequence[str]) -> ByDialect:
    """A row whose `keys` are taken gets the new values of the columns `changed`."""
    lite, post = sqlite.insert(table), postgresql.insert(table)
    return {
        "sqlite": lite.on_conflict_do_update(index_elements=keys, set_={name: lite.excluded[name] for name in changed}),
        "postgresql": post.on_conflict_do_update(index_elements=keys, set_={name: post.excluded[name] for name in changed}),
    }

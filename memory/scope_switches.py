"""What a scope has settled for itself in `scope_settings`: whether it uses knowledge pages. Plain functions on a `Connection`."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from memory.file_schema import scope_settings
from memory.upserts import insert_or_change

_READ = sa.select(scope_settings.c.knowledge).where(scope_settings.c.scope == sa.bindparam("of"))
_SET = insert_or_change(scope_settings, ["scope"], ["knowledge", "updated_at"])


def knowledge_of(connection: sa.Connection, scope: str) -> bool | None:
    """The scope's own switch for knowledge pages; None when it never set one, and the configuration's `knowledge` counts alone."""
    return connection.execute(_READ, {"of": scope}).scalar()


def set_knowledge(connection: sa.Connection, scope: str, on: bool, now: datetime) -> None:
    connection.execute(_SET[connection.dialect.name], {"scope": scope, "knowledge": on, "updated_at": now})

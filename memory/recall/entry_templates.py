"""Instructions for entries that people wrote, shared by the whole application (RS-88). Plain functions on a `Connection`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory.recall_schema import summary_templates


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    id: int
    name: str
    text: str


def every(connection: sa.Connection) -> list[Kept]:
    """By name."""
    return [_kept(row) for row in connection.execute(_EVERY)]


def one(connection: sa.Connection, template_id: int) -> Kept | None:
    row = connection.execute(_ONE, {"id": template_id}).one_or_none()
    return None if row is None else _kept(row)


def add(connection: sa.Connection, name: str, text: str, now: datetime) -> Kept:
    number = connection.execute(_ADD, {"name": name, "text": text, "created_at": now, "updated_at": now}).scalar_one()
    return Kept(id=number, name=name, text=text)


def change(connection: sa.Connection, template_id: int, name: str, text: str, now: datetime) -> bool:
    return connection.execute(_CHANGE, {"of": template_id, "new_name": name, "new_text": text, "now": now}).rowcount > 0


def delete(connection: sa.Connection, template_id: int) -> bool:
    """Chats that name it take the built-in one."""
    return connection.execute(_DELETE, {"of": template_id}).rowcount > 0


def _kept(row: sa.Row[Any, Any, Any]) -> Kept:
    return Kept(id=row.id, name=row.name, text=row.text)


# -- statements, built once ------------------------------------------------------------------------------------------------

_C = summary_templates.c
_EVERY = sa.select(_C.id, _C.name, _C.text).order_by(sa.func.lower(_C.name), _C.id)
_ONE = sa.select(_C.id, _C.name, _C.text).where(_C.id == sa.bindparam("id"))
_ADD = sa.insert(summary_templates).returning(_C.id)
_CHANGE = (
    sa.update(summary_templates)
    .where(_C.id == sa.bindparam("of"))
    .values(name=sa.bindparam("new_name"), text=sa.bindparam("new_text"), updated_at=sa.bindparam("now"))
)
_DELETE = sa.delete(summary_templates).where(_C.id == sa.bindparam("of"))

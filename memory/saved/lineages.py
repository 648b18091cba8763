"""The lineage of a character: the id by which memories know it, whatever happens to it in the configuration (SM-92)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

import sqlalchemy as sa

from memory.ids import opaque
from memory.schema import characters
from memory.upserts import insert_or_keep

_MAKE = insert_or_keep(characters, ["config_id"])
_ALL = sa.select(characters.c.config_id, characters.c.id)
_BY_ID = sa.select(characters.c.id, characters.c.name).where(characters.c.id.in_(sa.bindparam("ids", type_=sa.Text, expanding=True)))
_BY_CONFIG = sa.select(characters).where(characters.c.config_id == sa.bindparam("config_id"))


def lineage_of(connection: sa.Connection, config_id: str, name: str, now: datetime) -> str:
    """The lineage of the character with this id in the configuration; made on first use. It keeps the latest name."""
    found = connection.execute(_BY_CONFIG, {"config_id": config_id}).one_or_none()
    if found is None:
        made = {"id": opaque("h"), "config_id": config_id, "name": name, "created_at": now}
        connection.execute(_MAKE[connection.dialect.name], made)
        found = connection.execute(_BY_CONFIG, {"config_id": config_id}).one()
    if found.name != name:
        connection.execute(sa.update(characters).where(characters.c.id == found.id).values(name=name))
    return found.id


def make_lineages(connection: sa.Connection, names: Mapping[str, str], now: datetime) -> None:
    """One for each of these that has none; `names`: by id in the configuration. Those that there are stay as they are."""
    known = lineages(connection)
    for config_id, name in names.items():
        if config_id not in known:
            lineage_of(connection, config_id, name, now)


def lineages(connection: sa.Connection) -> dict[str, str]:
    """Lineage by id in the configuration, of every character that ever was used, removed ones too."""
    return {row.config_id: row.id for row in connection.execute(_ALL)}


def names_of(connection: sa.Connection, ids: Collection[str]) -> dict[str, str]:
    """Latest name by lineage."""
    return {row.id: row.name for row in connection.execute(_BY_ID, {"ids": list(ids)})}

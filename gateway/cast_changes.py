"""The characters of the configuration and their lineages, kept in step (SM-92).

A character that leaves the configuration answers no more, and its memories wait where they are: a slip in a file moves nothing. Only when an admin
confirms its deletion do the rows that people have with it become GLOBAL ones. One that comes back is the same character as before.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from gateway import audit
from gateway.audit import Actor
from gateway.config import Config
from memory.saved import moves
from memory.saved.lineages import lineage_of
from memory.saved.moves import Counts
from memory.saved_schema import memories
from memory.schema import characters

_ALL = sa.select(characters).order_by(characters.c.config_id)
_WAITING = sa.select(sa.func.count()).where(memories.c.character_id == sa.bindparam("lineage"), memories.c.archived_at.is_(None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """A character that the configuration has no more. `waits`: rows are in its lists, until somebody confirms that it is deleted."""

    id: str
    name: str
    removed_at: datetime | None
    counts: Counts
    waits: bool


class StillThere(Exception):
    """The character is in the configuration: it must leave it first."""


def keep_in_step(connection: sa.Connection, config: Config, now: datetime) -> list[str]:
    """At each start and after each change of the configuration: names and removals are noted, returned characters have their SPACE rows again.

    Returns the ids of those that are gone since the last look.
    """
    for name, character in config.characters.items():
        lineage_of(connection, name, character.name or name, now)
    gone: list[str] = []
    for row in connection.execute(_ALL).all():
        if row.config_id in config.characters and row.removed_at is not None:
            moves.return_character(connection, row.id)
        elif row.config_id not in config.characters and row.removed_at is None:
            connection.execute(sa.update(characters).where(characters.c.id == row.id).values(removed_at=now))
            gone.append(row.config_id)
    return gone


def removed(connection: sa.Connection, config: Config) -> list[Removed]:
    """All that the configuration has no more, with what deleting each would move."""
    return [
        Removed(
            id=row.config_id,
            name=row.name or row.config_id,
            removed_at=row.removed_at,
            counts=moves.count_of_character(connection, row.id),
            waits=connection.execute(_WAITING, {"lineage": row.id}).scalar_one() > 0,
        )
        for row in connection.execute(_ALL)
        if row.config_id not in config.characters
    ]


def delete(connection: sa.Connection, config: Config, by: Actor, character: str, now: datetime) -> Counts:
    """Confirmed by an admin: rows of people become GLOBAL, rows of spaces are archived. LookupError for an unknown one; StillThere."""
    if character in config.characters:
        raise StillThere(character)
    row = connection.execute(sa.select(characters).where(characters.c.config_id == character)).one_or_none()
    if row is None:
        raise LookupError(character)
    counts = moves.delete_character(connection, row.id, now)
    after = {"rows": counts.rows, "people": counts.people, "space_rows": counts.space_rows}
    audit.record(connection, by, "character.delete", at=now, target=character, before={"name": row.name}, after=after)
    return counts

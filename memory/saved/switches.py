"""The switches of people and spaces over saved memories, as they are stored: learning, blacklist, privacy, sharing (SM-13 to SM-15, SM-87).

A row that is not there means the usual: learning on, on no blacklist.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from memory.saved.lists import LEARNING_ON, Learning, Participant, Privacy
from memory.saved_schema import blacklist, learning, space_learning
from memory.schema import people
from memory.upserts import insert_or_change, insert_or_keep

_SET = insert_or_change(learning, ["person_id", "character_id"], ["learn", "use"])
_SET_SPACE = insert_or_change(space_learning, ["space_id", "character_id"], ["learn", "use"])
_BAR = insert_or_keep(blacklist, ["space_id", "person_id"])
_BARRED = sa.select(blacklist.c.person_id).where(blacklist.c.space_id == sa.bindparam("space"))


def learning_of(connection: sa.Connection, people_ids: Collection[str], characters: Collection[str]) -> dict[tuple[str, str], Learning]:
    """By person and lineage; a missing one is on."""
    mine = learning.c.person_id.in_(list(people_ids)) & learning.c.character_id.in_(list(characters))
    return {(row.person_id, row.character_id): Learning(learn=row.learn, use=row.use) for row in connection.execute(sa.select(learning).where(mine))}


def set_learning(connection: sa.Connection, person_id: str, character_id: str, switch: Learning) -> None:
    """The panel flips both bits together; the API may set them apart."""
    values = {"person_id": person_id, "character_id": character_id, "learn": switch.learn, "use": switch.use}
    connection.execute(_SET[connection.dialect.name], values)


def space_learning_of(connection: sa.Connection, space_id: str, character_id: str) -> Learning:
    """Of the rows of the space itself."""
    mine = (space_learning.c.space_id == space_id) & (space_learning.c.character_id == character_id)
    row = connection.execute(sa.select(space_learning).where(mine)).one_or_none()
    return LEARNING_ON if row is None else Learning(learn=row.learn, use=row.use)


def set_space_learning(connection: sa.Connection, space_id: str, character_id: str, switch: Learning) -> None:
    values = {"space_id": space_id, "character_id": character_id, "learn": switch.learn, "use": switch.use}
    connection.execute(_SET_SPACE[connection.dialect.name], values)


def blacklisted(connection: sa.Connection, space_id: str) -> frozenset[str]:
    """Ids of the people on the blacklist of this space (SM-14)."""
    return frozenset(connection.execute(_BARRED, {"space": space_id}).scalars())


def set_blacklisted(connection: sa.Connection, space_id: str, person_id: str, barred: bool, now: datetime) -> None:
    if barred:
        connection.execute(_BAR[connection.dialect.name], {"space_id": space_id, "person_id": person_id, "created_at": now})
        return
    connection.execute(sa.delete(blacklist).where(blacklist.c.space_id == space_id, blacklist.c.person_id == person_id))


def privacy_of(connection: sa.Connection, person_id: str) -> Privacy:
    """LookupError for nobody."""
    found = connection.execute(sa.select(people.c.privacy).where(people.c.id == person_id)).scalar()
    if found is None:
        raise LookupError(person_id)
    return Privacy(found or Privacy.NORMAL)


def set_privacy(connection: sa.Connection, person_id: str, level: Privacy) -> None:
    value = "" if level is Privacy.NORMAL else level.value  # empty is the usual, as for every text of a person
    connection.execute(sa.update(people).where(people.c.id == person_id).values(privacy=value))


def shares_private(connection: sa.Connection, person_id: str) -> bool:
    """Whether the person uses private memories in shared places (SM-15)."""
    return bool(connection.execute(sa.select(people.c.share_private).where(people.c.id == person_id)).scalar())


def set_shares_private(connection: sa.Connection, person_id: str, shares: bool) -> None:
    connection.execute(sa.update(people).where(people.c.id == person_id).values(share_private=shares))


def participants_of(
    connection: sa.Connection, speakers: Collection[str], *, space_id: str | None, spoke_today: Collection[str]
) -> tuple[Participant, ...]:
    """The people of a live window with their switches, in the order of `speakers`; who is nobody any more is left out."""
    rows = {row.id: row for row in connection.execute(sa.select(people).where(people.c.id.in_(list(speakers))))}
    barred = blacklisted(connection, space_id) if space_id is not None else frozenset[str]()
    return tuple(
        Participant(
            person=person,
            spoke_today=person in spoke_today,
            privacy=Privacy(row.privacy or Privacy.NORMAL),
            blacklisted=person in barred,
            shares_private=row.share_private,
        )
        for person in dict.fromkeys(speakers)
        if (row := rows.get(person)) is not None
    )

"""Rows that change their list because their character or their person is no more (SM-6, SM-90, SM-92).

Nothing is lost, so a list may stand above its cap. Moves change no date and no revision: nobody changed the row, and what a program did to it can
still be taken back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory.saved import journal, stored
from memory.saved.rows import ListKey, ListKind, Memory, character_list, global_list, norm_hash
from memory.saved_schema import blacklist, clear_tokens, learning, memories
from memory.schema import characters

_m = memories.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Of a character, for the question before its deletion: rows that become GLOBAL and how many people they belong to; rows of spaces, archived."""

    rows: int
    people: int
    space_rows: int


def count_of_character(connection: sa.Connection, character: str) -> Counts:
    own = (_m.character_id == character) & (_m.list_kind == ListKind.CHARACTER.value)
    counted = connection.execute(sa.select(sa.func.count(), sa.func.count(_m.person_id.distinct())).where(own)).one()
    spaces = connection.execute(sa.select(sa.func.count()).select_from(memories).where(_of_spaces(character))).scalar_one()
    return Counts(rows=counted[0], people=counted[1], space_rows=spaces)


def delete_character(connection: sa.Connection, character: str, now: datetime) -> Counts:
    """Its CHARACTER rows become GLOBAL of the same person; its SPACE rows are archived and never given to anybody (SM-92)."""
    counts = count_of_character(connection, character)
    own = sa.select(_m.person_id).where(_m.character_id == character, _m.list_kind == ListKind.CHARACTER.value).distinct()
    owners: list[str] = sorted(row.person_id for row in connection.execute(own))
    pairs = [(character_list(owner, character), global_list(owner)) for owner in owners]
    stored.lock(connection, [key for pair in pairs for key in pair])
    for old, new in pairs:
        _move(connection, old, new, origin_character=character)
    connection.execute(sa.update(memories).where(_of_spaces(character), _m.archived_at.is_(None)).values(archived_at=now))
    connection.execute(sa.update(characters).where(characters.c.id == character).values(removed_at=now))
    return counts


def return_character(connection: sa.Connection, character: str) -> None:
    """The lineage is in the configuration again: its SPACE rows return. Rows of people stay GLOBAL until each takes theirs back (`move_back`)."""
    connection.execute(sa.update(characters).where(characters.c.id == character).values(removed_at=None))
    connection.execute(sa.update(memories).where(_of_spaces(character), _m.archived_at.is_not(None)).values(archived_at=None))


def returnable(connection: sa.Connection, person: str, character: str) -> list[Memory]:
    """Rows that came to the person's GLOBAL list when this character was deleted."""
    return stored.rows_where(connection, stored.in_list(global_list(person)) & (_m.origin_character == character))


def move_back(connection: sa.Connection, person: str, character: str) -> list[Memory]:
    """The person takes them back into the list of the character; the rows as they are now. The list may stand above its cap (SM-6)."""
    old, new = global_list(person), character_list(person, character)
    stored.lock(connection, [old, new])
    rows = returnable(connection, person, character)
    ids = [memory.id for memory in rows]
    if ids:
        values = {"list_kind": new.kind.value, "character_id": character, "origin_character": ""}
        connection.execute(sa.update(memories).where(_m.id.in_(ids)).values(**values))
        journal.rename_list(connection, old, new, only=ids)
    return list(stored.rows_by_id(connection, ids).values())


def join_people(connection: sa.Connection, *, keep: str, gone: str) -> None:
    """`gone` is `keep` from now on: rows move, exact duplicates become one of which a pin wins, and of switches the stricter counts (SM-90)."""
    lists = _lists_of(connection, gone)
    pairs = [(old, replace(old, owner=keep)) for old in lists]
    stored.lock(connection, [key for pair in pairs for key in pair])
    for old, new in pairs:
        _merge(connection, old, new)
        _move(connection, old, new)
    for column in (_m.author_id, _m.updated_by):
        connection.execute(sa.update(memories).where(column == gone).values({column: keep}))
    _join_learning(connection, keep, gone)
    own = sa.select(blacklist.c.space_id).where(blacklist.c.person_id == keep)
    connection.execute(sa.update(blacklist).where(blacklist.c.person_id == gone, blacklist.c.space_id.not_in(own)).values(person_id=keep))
    connection.execute(sa.delete(blacklist).where(blacklist.c.person_id == gone))
    connection.execute(sa.delete(clear_tokens).where(clear_tokens.c.person_id == gone))


def forget_person(connection: sa.Connection, person: str) -> None:
    """The person is about to be deleted: rows, vectors and journal of their lists, and their switches (SM-90). Rows of spaces stay with the space."""
    keys = _lists_of(connection, person)
    stored.lock(connection, keys)
    stored.delete(connection, stored.rows_of(connection, keys))
    journal.delete_lists(connection, keys)
    for column in (learning.c.person_id, blacklist.c.person_id, clear_tokens.c.person_id):
        connection.execute(sa.delete(column.table).where(column == person))


def _lists_of(connection: sa.Connection, person: str) -> list[ListKey]:
    """Every list of a person that holds a row, or of which the journal tells."""
    held = sa.select(_m.list_kind, _m.character_id).where(_m.person_id == person).distinct()
    found = {ListKey(ListKind(row.list_kind), person, row.character_id or "") for row in connection.execute(held)}
    return sorted(found | journal.lists_of(connection, person), key=str)


def _of_spaces(character: str) -> sa.ColumnElement[bool]:
    return (_m.character_id == character) & (_m.list_kind == ListKind.SPACE.value)


def _move(connection: sa.Connection, old: ListKey, new: ListKey, **values: Any) -> None:
    """Every row of a person's list; the caller holds both."""
    to = {"list_kind": new.kind.value, "person_id": new.owner, "character_id": new.character or None}
    connection.execute(sa.update(memories).where(stored.in_list(old)).values(**to, **values))
    journal.rename_list(connection, old, new)


def _merge(connection: sa.Connection, old: ListKey, new: ListKey) -> None:
    """Of rows in both lists that say exactly the same, one remains: the pinned one, else the one of the list that stays. It keeps the better of both
    protections and counters."""
    standing = _by_text(stored.rows_of(connection, [new]))
    for moving in stored.rows_of(connection, [old]):
        there = standing.get(norm_hash(moving.content))
        if there is None:
            continue
        winner, loser = (moving, there) if moving.pinned and not there.pinned else (there, moving)
        stored.write(connection, replace(winner, protected=winner.protected or loser.protected))
        stored.set_decay(
            connection,
            winner.id,
            unused_days=0 if winner.pinned else min(winner.unused_days, loser.unused_days),
            dormant=winner.dormant and loser.dormant,
            last_tick_day=max(winner.last_tick_day, loser.last_tick_day),
            last_matched_at=max(filter(None, (winner.last_matched_at, loser.last_matched_at)), default=None),
        )
        stored.delete(connection, [loser])
        standing[norm_hash(moving.content)] = winner


def _by_text(rows: Iterable[Memory]) -> dict[str, Memory]:
    return {norm_hash(memory.content): memory for memory in sorted(rows, key=lambda memory: (memory.pinned, -memory.id))}


def _join_learning(connection: sa.Connection, keep: str, gone: str) -> None:
    own = {row.character_id: row for row in connection.execute(sa.select(learning).where(learning.c.person_id == keep))}
    for row in connection.execute(sa.select(learning).where(learning.c.person_id == gone)).all():
        theirs = (learning.c.person_id == gone) & (learning.c.character_id == row.character_id)
        if (mine := own.get(row.character_id)) is None:
            connection.execute(sa.update(learning).where(theirs).values(person_id=keep))
            continue
        both = {"learn": mine.learn and row.learn, "use": mine.use and row.use}
        connection.execute(sa.update(learning).where(learning.c.person_id == keep, learning.c.character_id == row.character_id).values(**both))
        connection.execute(sa.delete(learning).where(theirs))


def lists_of_people(connection: sa.Connection, people: Sequence[str]) -> list[ListKey]:
    """Every personal list of these people, for a search through all of it (WD-92)."""
    return [key for person in people for key in _lists_of(connection, person)]


def lists_of_spaces(connection: sa.Connection, spaces: Collection[str]) -> list[ListKey]:
    """Every list of these spaces."""
    held = sa.select(_m.space_id, _m.character_id).where(_m.space_id.in_(list(spaces))).distinct()
    rows = {ListKey(ListKind.SPACE, row.space_id, row.character_id) for row in connection.execute(held)}
    return sorted(rows.union(*(journal.lists_of(connection, space) for space in spaces)), key=str)

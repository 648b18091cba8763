"""The switches over saved memories as people set them: learning, privacy, sharing, a space's blacklist (SM-13 to SM-15, SM-87).

Plain functions on a `Connection`. Characters are named by their id in the configuration. What a manager or an admin sets for a space is in the audit
log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from gateway import audit
from gateway.audit import Actor
from gateway.config import Config
from memory.saved import moves, switches
from memory.saved.lineages import lineage_of
from memory.saved.lists import LEARNING_ON, Learning, Privacy
from memory.schema import people, spaces

_NAMES = sa.select(people.c.id, people.c.name).where(people.c.id.in_(sa.bindparam("ids", expanding=True))).order_by(people.c.name, people.c.id)
_SPACES = sa.select(spaces.c.id, spaces.c.title, spaces.c.channel).order_by(spaces.c.title, spaces.c.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """A wish about one learning switch: None leaves that bit. People flip both together; the API may set them apart."""

    learn: bool | None = None
    use: bool | None = None

    def on(self, now: Learning) -> Learning:
        return replace(now, learn=now.learn if self.learn is None else self.learn, use=now.use if self.use is None else self.use)


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """`returnable`: rows that became GLOBAL when this character was deleted, and may be taken back now that it has returned (SM-92)."""

    character: str
    name: str
    learning: Learning
    returnable: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """What one person has set."""

    privacy: Privacy
    share_private: bool
    characters: tuple[Switch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfSpace:
    """What is set for one space; `blacklist`: names by id of the person."""

    id: str
    title: str
    channel: str
    characters: tuple[Switch, ...]
    blacklist: Mapping[str, str]


def own(connection: sa.Connection, config: Config, person: str, now: datetime) -> Own:
    known = _lineages(connection, config, config.characters, now)
    found = switches.learning_of(connection, [person], list(known.values()))
    rows = tuple(
        Switch(
            character=name,
            name=config.characters[name].name or name,
            learning=found.get((person, lineage), LEARNING_ON),
            returnable=len(moves.returnable(connection, person, lineage)),
        )
        for name, lineage in known.items()
    )
    return Own(privacy=switches.privacy_of(connection, person), share_private=switches.shares_private(connection, person), characters=rows)


def flip(connection: sa.Connection, config: Config, person: str, characters: Mapping[str, Flip], now: datetime) -> None:
    """A person's own switches with these characters. KeyError for one that the configuration has not."""
    known = _lineages(connection, config, characters, now)
    before = switches.learning_of(connection, [person], list(known.values()))
    for name, wish in characters.items():
        switches.set_learning(connection, person, known[name], wish.on(before.get((person, known[name]), LEARNING_ON)))


def set_privacy(connection: sa.Connection, person: str, level: Privacy) -> None:
    switches.set_privacy(connection, person, level)


def set_sharing(connection: sa.Connection, person: str, shares: bool) -> None:
    switches.set_shares_private(connection, person, shares)


def take_back(connection: sa.Connection, config: Config, person: str, character: str, now: datetime) -> int:
    """The person's rows return to a character that was deleted and is there again; how many. KeyError as in `flip`."""
    lineage = _lineages(connection, config, [character], now)[character]
    return len(moves.move_back(connection, person, lineage))


# -- of a space -------------------------------------------------------------------------------------------------------------


def of_space(connection: sa.Connection, config: Config, space: str, now: datetime) -> OfSpace | None:
    """None when there is no such space."""
    found = connection.execute(_SPACES.where(spaces.c.id == space)).one_or_none()
    if found is None:
        return None
    known = _lineages(connection, config, config.characters, now)
    rows = tuple(
        Switch(character=name, name=config.characters[name].name or name, learning=switches.space_learning_of(connection, space, lineage))
        for name, lineage in known.items()
    )
    return OfSpace(id=found.id, title=found.title, channel=found.channel, characters=rows, blacklist=barred(connection, space))


def barred(connection: sa.Connection, space: str) -> dict[str, str]:
    """Names of the people on the blacklist of a space, by their id."""
    return {row.id: row.name for row in connection.execute(_NAMES, {"ids": list(switches.blacklisted(connection, space))})}


def flip_space(connection: sa.Connection, config: Config, by: Actor, space: str, characters: Mapping[str, Flip], now: datetime) -> None:
    """The space's own switches, for the rows of the space. KeyError as in `flip`."""
    known = _lineages(connection, config, characters, now)
    for name, wish in characters.items():
        before = switches.space_learning_of(connection, space, known[name])
        after = wish.on(before)
        switches.set_space_learning(connection, space, known[name], after)
        if after != before:
            audit.record(connection, by, "space.learning", at=now, target=space, before=_bits(name, before), after=_bits(name, after))


def bar(connection: sa.Connection, by: Actor, space: str, person: str, *, barred: bool, now: datetime) -> None:
    """Put a person on the blacklist of a space, or take them off (SM-14)."""
    before = person in switches.blacklisted(connection, space)
    switches.set_blacklisted(connection, space, person, barred, now)
    if before != barred:
        audit.record(connection, by, "space.blacklist", at=now, target=space, before={person: before}, after={person: barred})


def _lineages(connection: sa.Connection, config: Config, characters: Sequence[str] | Mapping[str, object], now: datetime) -> dict[str, str]:
    """Lineage by id in the configuration. KeyError for one that it has not."""
    return {name: lineage_of(connection, name, config.characters[name].name or name, now) for name in characters}


def _bits(character: str, learning: Learning) -> dict[str, object]:
    return {"character": character, "learn": learning.learn, "use": learning.use}

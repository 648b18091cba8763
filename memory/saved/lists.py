"""Where a reply is made, and which lists are in effect there (SM-9, SM-10). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from memory.saved.policy import MemoryPolicy
from memory.saved.rows import ListKey, character_list, global_list, space_list


class Privacy(StrEnum):
    """Of a person, effective in spaces (SM-13)."""

    NORMAL = "normal"
    PARTIAL = "partial"  # their rows are neither read nor written
    FULL = "full"  # their messages do not count either


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """A learning switch: `learn` writes, `use` reads (SM-87)."""

    learn: bool = True
    use: bool = True


LEARNING_ON = Learning()


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """A person with a message in the live window. `spoke_today`: one of these has today's UTC date (SM-42); `blacklisted`: in this space (SM-14);
    `shares_private`: uses private memories in shared places (SM-15)."""

    person: str
    spoke_today: bool = False
    privacy: Privacy = Privacy.NORMAL
    blacklisted: bool = False
    shares_private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The place of one reply.

    `character`: the lineage that responds; `members`: the lineages of a group chat, empty elsewhere. `space`: None in a private chat, which is its
    `author`'s. `author`: who is answered, empty for nobody (a turn of the system in a space). `participants`: newest first. `channels`: the
    channel as `channel:account:chat`, then the ones that it is a thread of (SM-17); `open_channel`: all members of the space can read it (SM-16).
    `learning`: by person and lineage, a missing one is on; `space_learning`: of the space and `character`. `window`: texts of raw messages (SM-18).
    """

    policy: MemoryPolicy
    character: str
    author: str
    members: tuple[str, ...] = ()
    space: str | None = None
    participants: tuple[Participant, ...] = ()
    participants_max: int = 8
    channels: tuple[str, ...] = ()
    open_channel: bool = True
    learning: Mapping[tuple[str, str], Learning] = field(default_factory=dict[tuple[str, str], Learning])
    space_learning: Learning = LEARNING_ON
    window: tuple[str, ...] = ()

    def switch(self, person: str, character: str) -> Learning:
        return self.learning.get((person, character), LEARNING_ON)

    def participant(self, person: str) -> Participant | None:
        """None for who is not among those that count here."""
        return next((each for each in counted(self) if each.person == person), None)


def counted(where: Where) -> tuple[Participant, ...]:
    """Whose lists count: the author first, then the most recent speakers, `participants_max` in all (SM-10). In a private chat its author alone."""
    known = {each.person: each for each in reversed(where.participants)}
    author = (known.get(where.author, Participant(person=where.author)),) if where.author else ()
    if where.space is None:
        return author
    others = tuple(dict.fromkeys(each.person for each in where.participants if each.person != where.author))
    return (author + tuple(known[person] for person in others))[: where.participants_max]


def in_effect(where: Where) -> tuple[ListKey, ...]:
    """The lists in effect, each once (SM-9); none where rows are not read (SM-88, SM-89)."""
    if not where.policy.read_rows:
        return ()
    people = [each.person for each in counted(where)]
    if where.space is not None:
        own = [key for person in people for key in (global_list(person), character_list(person, where.character))]
        return (space_list(where.space, where.character), *own)
    characters = dict.fromkeys((where.character, *where.members))
    return tuple(key for person in people for key in (global_list(person), *(character_list(person, each) for each in characters)))

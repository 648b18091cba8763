"""What the AI may write in a place, before any row is looked at (SM-13 to SM-16, SM-51, SM-52, SM-87). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from memory.saved.lists import Privacy, Where
from memory.saved.rows import ListKey, ListKind, character_list, global_list, space_list
from memory.saved.writing import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """How a row that is made here begins (SM-15, SM-16). `channel_ids` is of a space's rows alone."""

    private_origin: bool
    channel_ids: tuple[str, ...] = ()


def target(where: Where, kind: ListKind) -> ListKey | Outcome:
    """The list that a save goes to, or why there is none. Personal lists are those of the author of the message that is answered (SM-51)."""
    if fault := _fault(where):
        return fault
    if kind is ListKind.SPACE:
        if where.space is None:
            return Outcome.LIST_NOT_ALLOWED
        return space_list(where.space, where.character) if where.space_learning.learn else Outcome.LEARNING_OFF
    if not where.author:
        return Outcome.LIST_NOT_ALLOWED
    if where.space is not None and _privacy(where) is not Privacy.NORMAL:
        return Outcome.PRIVACY
    return global_list(where.author) if kind is ListKind.GLOBAL else character_list(where.author, where.character)


def writable(where: Where) -> frozenset[ListKey]:
    """Lists whose rows the AI may make and touch: the targets of a save, and in a group chat those of the author with each member that learns."""
    found = {key for kind in ListKind if isinstance(key := target(where, kind), ListKey)}
    if found and where.space is None:
        found |= {character_list(where.author, each) for each in where.members if where.switch(where.author, each).learn}
    return frozenset(found)


def birth(where: Where, kind: ListKind) -> Birth:
    """Where not all members of the space can read, personal rows are private and a space's rows stay in that channel (SM-16)."""
    shared = where.space is not None and where.open_channel
    if kind is ListKind.SPACE:
        return Birth(private_origin=False, channel_ids=() if shared else where.channels[:1])
    return Birth(private_origin=not shared)


def _fault(where: Where) -> Outcome | None:
    """What closes every list: in a space the person's own switches close the space's list too (SM-14, SM-87)."""
    if not where.policy.write_rows:
        return Outcome.MEMORY_OFF
    if where.author and not where.switch(where.author, where.character).learn:
        return Outcome.LEARNING_OFF
    if where.space is not None and (author := where.participant(where.author)) is not None:
        if author.privacy is Privacy.FULL:
            return Outcome.PRIVACY
        if author.blacklisted:
            return Outcome.BLACKLISTED
    return None


def _privacy(where: Where) -> Privacy:
    author = where.participant(where.author)
    return author.privacy if author is not None else Privacy.NORMAL

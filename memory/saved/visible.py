"""Which rows count in a reply, and why others do not: the one place that says so, for prompt, search, permits and preview (SM-11 to SM-19). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from memory.saved.lists import Participant, Privacy, Where, counted, in_effect
from memory.saved.rows import ListKind, Memory
from memory.saved.tag_words import Talk


class Hiding(StrEnum):
    """Why a row is hidden; of several reasons the first that holds, in this order."""

    MEMORY_OFF = "memory_off"
    OTHER_LIST = "other_list"
    ARCHIVED = "archived"
    LEARNING_OFF = "learning_off"
    PRIVACY = "privacy"
    BLACKLISTED = "blacklisted"
    PRIVATE_ORIGIN = "private_origin"
    CHANNEL = "channel"
    TAGS = "tags"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """`visible` in the order of the rows given; `hidden`: the others, each with its reason."""

    visible: tuple[Memory, ...] = ()
    hidden: tuple[tuple[Memory, Hiding], ...] = ()


def look(rows: Iterable[Memory], where: Where) -> Seen:
    """Sort rows into those that count here and those that do not. A row that appears twice is told once."""
    people = {each.person: each for each in counted(where)}
    keys, talk = frozenset(in_effect(where)), Talk(where.window)
    visible: list[Memory] = []
    hidden: list[tuple[Memory, Hiding]] = []
    for memory in {each.id: each for each in rows}.values():
        if not where.policy.read_rows:
            why = Hiding.MEMORY_OFF
        elif memory.key not in keys:
            why = Hiding.OTHER_LIST
        else:
            why = _hiding(memory, where, people.get(memory.key.owner), talk)
        if why is None:
            visible.append(memory)
        else:
            hidden.append((memory, why))
    return Seen(visible=tuple(visible), hidden=tuple(hidden))


def visible(rows: Iterable[Memory], where: Where) -> tuple[Memory, ...]:
    return look(rows, where).visible


def _hiding(memory: Memory, where: Where, owner: Participant | None, talk: Talk) -> Hiding | None:
    """`owner`: of a personal row; None for a space's."""
    if memory.archived:
        return Hiding.ARCHIVED
    if not _reads(memory, where):
        return Hiding.LEARNING_OFF
    if owner is not None and memory.key.kind is not ListKind.SPACE and where.space is not None:
        if owner.privacy is not Privacy.NORMAL:
            return Hiding.PRIVACY
        if owner.blacklisted:
            return Hiding.BLACKLISTED
        if memory.private_origin and not owner.shares_private:
            return Hiding.PRIVATE_ORIGIN
    if memory.channel_ids and not set(memory.channel_ids) & set(where.channels):
        return Hiding.CHANNEL
    if memory.tags and not memory.pinned and not any(map(talk.has, memory.tags)):
        return Hiding.TAGS
    return None


def _reads(memory: Memory, where: Where) -> bool:
    """By the switch of the character that responds, and of the one whose list it is: in a group chat an off member neither gives nor gets (SM-87)."""
    if memory.key.kind is ListKind.SPACE:
        return where.space_learning.use
    mine = where.switch(memory.key.owner, where.character).use
    return mine and (not memory.key.character or where.switch(memory.key.owner, memory.key.character).use)

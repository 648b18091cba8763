"""What ages after a search, and what is recalled by it (SM-25, SM-40, SM-42). Pure; the counters themselves are changed in `decay_store`."""

from __future__ import annotations

from collections.abc import Iterable

from memory.saved.found import Found
from memory.saved.lists import Where, counted
from memory.saved.rows import ListKind, Memory


def may_tick(found: Found, where: Where) -> frozenset[int]:
    """Ids of compared rows for which today is a day of talk: a space's rows, and those of who has a message of today in the window (SM-42).

    A search that did not succeed counts for nobody (SM-41).
    """
    here = {each.person for each in counted(where) if each.spoke_today}
    return frozenset(each.id for each in found.compared if each.key.kind is ListKind.SPACE or each.key.owner in here)


def tail(found: Found, head: Iterable[Memory]) -> tuple[Memory, ...]:
    """Matches that do not stand in the head already: sleeping ones, and active ones that had no place (SM-25). Best first."""
    there = {each.id for each in head}
    return tuple(each for each in found.matches if each.id not in there)

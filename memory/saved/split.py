"""Which rows stand in the head of a prompt: every pin, and the newest unpinned active ones, evenly over the lists (SM-20 to SM-23). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.saved.rows import ListKey, Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """`rows`: what stands there, in no order that matters; `left_out`: active rows without a place, which stay searchable (SM-21)."""

    rows: tuple[Memory, ...] = ()
    left_out: tuple[Memory, ...] = ()


def head(visible: Iterable[Memory], limit: int | None, *, ageing_on: bool) -> Head:
    """`limit`: unpinned rows, None for all active ones. While ageing is off every row counts as active (SM-98)."""
    rows = tuple(visible)
    pins = tuple(each for each in rows if each.pinned)
    active = tuple(each for each in rows if not each.pinned and not (ageing_on and each.dormant))
    if limit is None:
        return Head(rows=(*pins, *active))
    chosen = {each.id for each in newest_of_each(active, limit)}
    return Head(rows=(*pins, *(each for each in active if each.id in chosen)), left_out=tuple(each for each in active if each.id not in chosen))


def newest_of_each(rows: Iterable[Memory], limit: int) -> list[Memory]:
    """At most `limit` rows. Lists get equal shares; what one cannot fill is shared out among the others, and a remainder goes to the lists whose next
    row is newest (SM-22)."""
    waiting: dict[ListKey, list[Memory]] = {}
    for memory in sorted(rows, key=newness, reverse=True):
        waiting.setdefault(memory.key, []).append(memory)
    places = _places({key: len(each) for key, each in waiting.items()}, waiting, limit)
    return [memory for key, each in waiting.items() for memory in each[: places[key]]]


def newness(memory: Memory) -> tuple[datetime, int]:
    """Greater is newer (SM-23)."""
    return memory.updated_at, memory.id


def _places(wanted: Mapping[ListKey, int], newest_first: Mapping[ListKey, Sequence[Memory]], limit: int) -> dict[ListKey, int]:
    given, left = dict.fromkeys(wanted, 0), limit
    while hungry := [key for key in wanted if given[key] < wanted[key]]:
        share = left // len(hungry)
        if not share:
            break
        for key in hungry:
            more = min(share, wanted[key] - given[key])
            given[key] += more
            left -= more
    hungry.sort(key=lambda key: newness(newest_first[key][given[key]]), reverse=True)
    for key in hungry[:left]:
        given[key] += 1
    return given

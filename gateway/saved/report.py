"""Which saved memories a reply was given, and why others were not: the part of its receipt (WO-15, SM-28). Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from memory.saved.found import Found
from memory.saved.rows import Memory
from memory.saved.shown import Shown
from memory.saved.split import Head
from memory.saved.visible import Hiding, Seen


def report(seen: Seen, head: Head, found: Found, shown: Shown, gave_way: Collection[int], *, in_space: bool) -> dict[str, Any]:
    """Plain JSON. `sent`: in the prompt, each with why: pinned, active, or recalled by the search; `left_out`: active ones without a place;
    `asleep`: those that the search did not recall; `gave_way`: for the prompt was too long; `hidden`: by reason. In a space rows that are hidden
    there are counted and not named (SM-63)."""
    tail = {memory.id for memory in shown.tail}
    gone = frozenset(gave_way)
    sent = [_sent(memory, memory.id in tail) for memory in shown.rows if memory.id not in gone]
    there = {memory.id for memory in shown.rows}
    waiting = {memory.id for memory in head.left_out}
    return {
        "search": found.mode.value,
        "search_reason": found.reason,
        "sent": sorted(sent, key=lambda row: row["id"]),
        "gave_way": list(gave_way),
        "left_out": sorted(waiting - there),
        "asleep": sorted(memory.id for memory in seen.visible if memory.id not in there | waiting),
        "hidden": [_hidden(why, [memory.id for memory, reason in seen.hidden if reason is why], in_space=in_space) for why in _reasons(seen)],
    }


def _sent(memory: Memory, recalled: bool) -> dict[str, Any]:
    why = "pinned" if memory.pinned else "recalled" if recalled else "active"
    return {"id": memory.id, "list": memory.key.kind.value, "why": why}


def _reasons(seen: Seen) -> list[Hiding]:
    there = {why for _, why in seen.hidden}
    return [why for why in Hiding if why in there]


def _hidden(why: Hiding, ids: list[int], *, in_space: bool) -> dict[str, Any]:
    return {"why": why.value, "count": len(ids), "ids": [] if in_space else sorted(ids)}

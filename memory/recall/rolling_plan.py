"""Rolling summaries: which stretches that left the window are summarised next, and which rows merge (RS-43 to RS-50). Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby

from memory.recall.kinds import Kind
from memory.recall.summary_rows import Summary

FAN_IN = 4
BLOCKS_PER_RUN = 3
NEXT = {Kind.RECENT: Kind.CONSOLIDATED, Kind.CONSOLIDATED: Kind.LONG_TERM}


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A real message outside the window: its number and the key of its audience (RS-186)."""

    seq: int
    audience: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Messages of one audience that become one recent summary."""

    audience: str
    seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Rows that become one of `kind`; `halve`: into about half their size (RS-50)."""

    kind: Kind
    inputs: tuple[Summary, ...]
    halve: bool = False


def blocks_to_summarise(waiting: Sequence[Left], size: int) -> list[Block]:
    """The next blocks of at most `size` messages, the oldest first, at most three (RS-43). Rows never mix audiences.

    `waiting`: messages outside the window that no row stands for (RS-47), in any order."""
    blocks: list[Block] = []
    ordered = sorted(waiting, key=lambda message: (message.audience, message.seq))
    for audience, messages in groupby(ordered, key=lambda message: message.audience):
        seqs = [message.seq for message in messages]
        blocks += [Block(audience=audience, seqs=tuple(seqs[at : at + size])) for at in range(0, len(seqs), size)]
    return sorted(blocks, key=lambda block: block.seqs[0])[:BLOCKS_PER_RUN]


def next_merge(rows: Sequence[Summary], *, room: int, passed: Collection[int] = ()) -> Merge | None:
    """What merges next among the active rolling rows, or None: four of a level into one of the next (RS-45), and while all rows take more than `room`
    tokens the two oldest long-term ones into about half their size (RS-50). `passed`: ids of rows that are left as they are (RS-111)."""
    levels: dict[tuple[str, Kind], list[Summary]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.first_seq, row.id)):
        if row.id not in passed:
            levels[(row.audience, row.kind)].append(row)
    for (_, kind), found in sorted(levels.items()):
        if kind in NEXT and len(found) >= FAN_IN:
            return Merge(kind=NEXT[kind], inputs=tuple(found[:FAN_IN]))
    if sum(row.tokens for row in rows) > room:
        for (_, kind), found in sorted(levels.items()):
            if kind is Kind.LONG_TERM and len(found) >= 2:
                return Merge(kind=Kind.LONG_TERM, inputs=tuple(found[:2]), halve=True)
    return None

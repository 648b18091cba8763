"""Entries of a chat: which messages one covers, what is hidden, what is left out, when one is due, which are merged (RS-72, RS-82, RS-86 to RS-95).

Pure. A message is told by its number in the log; what is seen follows from coverage alone, so nothing that is hidden can stay so by mistake.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory.recall.calendar_plan import Stamp

FEWEST, MOST = 5, 500  # messages of one entry that is asked for
ACTIVE_MOST = 200  # automatic entries in force
MERGED_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Covering:
    """An entry in force with the messages it stands for that may be in the window; none of these when all are behind its edge."""

    id: int
    seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mergeable:
    """An automatic entry in force. `level`: how many merges are in it."""

    id: int
    audience: str
    first_seq: int
    level: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Messages that become one entry, in order and of one audience."""

    audience: str
    seqs: tuple[int, ...]


def due(own: int, every: int, *, own_ever: int) -> bool:
    """Whether an automatic entry is due: `own` of the person's messages since the last one or the switching on. Never after the very first message of
    a chat (RS-86)."""
    return own >= every and own_ever > 1


def hidden(entries: Iterable[Covering], tail: int) -> frozenset[int]:
    """Messages that leave the prompt because entries stand for them: all but the newest `tail` of those. What no entry stands for is never among
    them (RS-90 to RS-92)."""
    stood = sorted({seq for entry in entries for seq in entry.seqs})
    return frozenset(stood[: max(0, len(stood) - tail)])


def left_out(entries: Sequence[Covering], live: Collection[int], gone: Collection[int]) -> frozenset[int]:
    """Entries that are not sent, for a message they stand for is (RS-72). But whatever is hidden (`gone`) is told by an entry that is sent: so one
    stays beside the tail of its own messages, as a day does."""
    beside = [entry for entry in entries if not set(entry.seqs).isdisjoint(live)]
    apart = {entry.id for entry in beside}
    untold = set(gone) - {seq for entry in entries if entry.id not in apart for seq in entry.seqs}
    out: set[int] = set()
    for entry in beside:
        told = untold.intersection(entry.seqs)
        untold -= told
        if not told:
            out.add(entry.id)
    return frozenset(out)


def batches(talk: Iterable[Stamp], stood: Collection[int], size: int) -> list[Batch]:
    """The messages that no entry stands for, the oldest first, in batches of at most `size`: each audience apart (RS-186), and no batch reaches over
    messages that an entry stands for."""
    found: list[Batch] = []
    open_: dict[str, list[int]] = defaultdict(list)

    def close(audience: str) -> None:
        if seqs := open_.pop(audience, []):
            found.append(Batch(audience=audience, seqs=tuple(seqs)))

    for message in talk:
        if message.seq in stood:
            close(message.audience)
            continue
        open_[message.audience].append(message.seq)
        if len(open_[message.audience]) == size:
            close(message.audience)
    for audience in list(open_):
        close(audience)
    return sorted(found, key=lambda batch: batch.seqs[0])


def to_merge(entries: Sequence[Mergeable], *, room: int = 0, passed: Collection[int] = ()) -> tuple[int, ...]:
    """Ids of the entries that become one next, the oldest talk first; none while there are few enough, and their text fits `room` tokens (0: any).

    Entries that were merged least go first, so that no text is told again and again; only those of one audience become one (RS-95, RS-186).
    `passed`: ids of entries that are left as they are (RS-111).
    """
    many = len(entries) > ACTIVE_MOST
    if not many and not (room and sum(entry.tokens for entry in entries) > room):
        return ()
    groups: dict[tuple[int, str], list[Mergeable]] = defaultdict(list)
    for entry in sorted((entry for entry in entries if entry.id not in passed), key=lambda entry: (entry.first_seq, entry.id)):
        groups[(entry.level, entry.audience)].append(entry)
    full = [groups[key] for key in sorted(groups) if len(groups[key]) >= 2 * MERGED_AT_ONCE]
    if full:
        return tuple(entry.id for entry in full[0][:MERGED_AT_ONCE])
    by_audience: dict[str, list[Mergeable]] = defaultdict(list)
    for group in groups.values():
        by_audience[group[0].audience] += group
    if not by_audience:
        return ()
    largest = max(by_audience.values(), key=len)
    oldest = sorted(largest, key=lambda entry: (entry.first_seq, entry.id))[:MERGED_AT_ONCE]
    return tuple(entry.id for entry in oldest) if len(oldest) > 1 else ()


def places(seqs: Sequence[int]) -> Mapping[int, int]:
    """The number of each message as people see it: its position among the real messages of its chat, from 1. `seqs`: those of the chat, ascending."""
    return {seq: place for place, seq in enumerate(seqs, start=1)}

"""What taking back a program's work does to the rows as they are now (SM-65 to SM-67). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memory.saved.journal import Entry, Op
from memory.saved.rows import ListKey, Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`remove`: rows that go; `rewrite`: rows as they become; `restore`: rows that return with their ids and counters. `skipped`: ids of rows that
    stay as they are, pinned or changed by somebody since; `forgotten`: ids of evicted rows for which there is no place."""

    remove: tuple[Memory, ...] = ()
    rewrite: tuple[Memory, ...] = ()
    restore: tuple[Memory, ...] = ()
    skipped: tuple[int, ...] = ()
    forgotten: tuple[int, ...] = ()


def plan(entries: Sequence[Entry], rows: Mapping[int, Memory], free: Mapping[ListKey, int]) -> Plan:
    """`entries`: of one attempt or run, in order; undone and void ones do not count. `rows`: those of them that exist now. `free`: places for
    unpinned rows of each list now, below 0 when it is over its cap.

    Of several operations on one row the last decides whether the row is as the attempt left it, and the first what it was before.
    """
    groups: dict[int, list[Entry]] = {}
    for entry in entries:
        if not entry.undone and not entry.void:
            groups.setdefault(entry.memory_id, []).append(entry)
    remove: list[Memory] = []
    rewrite: list[Memory] = []
    restore: list[Memory] = []
    skipped: list[int] = []
    saves: set[int] = set()  # places in the order of the saves that are taken back
    for memory_id, group in groups.items():
        first, last = group[0], group[-1]
        present = rows.get(memory_id)
        if last.op is Op.EVICT:
            continue
        if last.op is Op.DELETE:
            if first.before is None:
                saves.add(first.seq)
            elif present is None:
                restore.append(_as_before(first, last))
            else:
                skipped.append(memory_id)
        elif present is None or present.pinned or present.revision != last.after_revision:
            skipped.append(memory_id)
        elif first.before is None:
            saves.add(first.seq)
            remove.append(present)
        else:
            rewrite.append(_with_old_text(present, first.before))
    room = Counter(dict(free))
    room.update(row.key for row in remove)
    room.subtract(row.key for row in restore)
    forgotten: list[int] = []
    for memory_id, group in groups.items():
        first, last = group[0], group[-1]
        if last.op is not Op.EVICT:
            continue
        if memory_id in rows:
            skipped.append(memory_id)
        elif last.cause_seq in saves or room[last.key] > 0:
            restore.append(_as_before(first, last))
            room[last.key] -= 1
        else:
            forgotten.append(memory_id)
    return Plan(remove=tuple(remove), rewrite=tuple(rewrite), restore=tuple(restore), skipped=tuple(skipped), forgotten=tuple(forgotten))


def _as_before(first: Entry, last: Entry) -> Memory:
    """The row with the text from before the attempt, and the counters that it had when it went: these are not taken back (SM-70)."""
    assert first.before is not None
    assert last.before is not None
    return _with_old_text(last.before, first.before)


def _with_old_text(present: Memory, before: Memory) -> Memory:
    """Text, its date and the revision as before; flags of a person, list and counters as they are (SM-65, SM-70)."""
    return replace(
        present,
        content=before.content,
        content_hash=before.content_hash,
        updated_at=before.updated_at,
        updated_by=before.updated_by,
        private_origin=before.private_origin,
        revision=before.revision,
    )

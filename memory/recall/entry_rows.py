"""Entries of a chat in the database: rows of `summaries` of the kind `entry`, and what of the talk they stand for (RS-86, RS-87, RS-92, RS-95).

Plain functions on a `Connection`. An entry that is switched off, or waits for a yes, still stands for its messages: nothing makes another one for
them by itself (RS-106). One whose words were taken away stands for none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from memory.coverage import COUNTS
from memory.recall.audiences import audience_key
from memory.recall.calendar_plan import Stamp
from memory.recall.entry_plan import Covering, Mergeable
from memory.recall.kinds import Kind
from memory.recall.summary_rows import State
from memory.recall_schema import summaries, summary_inputs, summary_sources
from memory.schema import messages

AUTOMATIC = "automatic"


@dataclass(frozen=True, slots=True)
class Span:
    """Of one entry: how many real messages it stands for, and their first and last number in the log."""

    many: int
    first: int
    last: int


def real(connection: sa.Connection, conversation_id: str, *, after: int = 0) -> list[Stamp]:
    """Every real message numbered above `after`, in order."""
    rows = connection.execute(_REAL, {"of": conversation_id, "after": after})
    return [Stamp(seq=row.seq, at=row.created_at, audience=audience_key(row.audience_people, row.audience_personas)) for row in rows]


def places_of(connection: sa.Connection, conversation_id: str, seqs: Sequence[int]) -> list[int]:
    """The numbers of messages as people see them: the position among the real messages of the chat, from 1. Of one that is not real: that of the last
    one before it."""
    counted: dict[int, int] = {}
    after, place = -1, 0
    for seq in sorted(set(seqs)):
        place += connection.execute(_BETWEEN, {"of": conversation_id, "after": after, "seq": seq}).scalar_one()
        after, counted[seq] = seq, place
    return [counted[seq] for seq in seqs]


def own_since(connection: sa.Connection, conversation_id: str, after: int, *, most: int) -> int:
    """How many real messages of people there are behind the message numbered `after`, counted up to `most` (RS-86)."""
    return len(connection.execute(_OWN, {"of": conversation_id, "after": after, "most": most}).all())


def newest_own(connection: sa.Connection, conversation_id: str) -> int:
    """The number of the newest real message of a person; 0 for none."""
    return connection.execute(_NEWEST_OWN, {"of": conversation_id}).scalar() or 0


def stood(connection: sa.Connection, conversation_id: str, *, active: bool = False) -> set[int]:
    """Messages that an entry stands for: one in force (`active`), or any that says something."""
    return set(connection.execute(_STOOD_ACTIVE if active else _STOOD, {"of": conversation_id}).scalars())


def coverings(connection: sa.Connection, entry_ids: Collection[int], *, after: int) -> list[Covering]:
    """The entries with their messages numbered above `after`, in the order of `entry_ids`."""
    found: dict[int, list[int]] = {each: [] for each in entry_ids}
    for row in connection.execute(_BEYOND, {"ids": list(entry_ids), "after": after}):
        found[row.summary_id].append(row.message_seq)
    return [Covering(id=each, seqs=tuple(seqs)) for each, seqs in found.items()]


def mergeable(connection: sa.Connection, conversation_id: str) -> list[Mergeable]:
    """The automatic entries in force, with the number of merges in each."""
    rows = connection.execute(_AUTOMATIC, {"of": conversation_id}).all()
    levels: dict[int, int] = {}
    below: dict[int, list[int]] = {}
    ahead = [row.id for row in rows]
    while ahead:
        links = connection.execute(_INPUTS, {"ids": ahead}).all()
        for link in links:
            below.setdefault(link.summary_id, []).append(link.input_id)
        ahead = [link.input_id for link in links if link.input_id not in below]

    def level(of: int) -> int:
        if of not in levels:
            levels[of] = 1 + max(map(level, below[of])) if of in below else 0
        return levels[of]

    return [Mergeable(id=row.id, audience=row.audience, first_seq=row.first_seq, level=level(row.id), tokens=row.tokens) for row in rows]


def replaced(connection: sa.Connection, conversation_id: str) -> set[int]:
    """Entries that stand in another one that is in force."""
    return set(connection.execute(_REPLACED, {"of": conversation_id}).scalars())


def spans(connection: sa.Connection, entry_ids: Collection[int]) -> dict[int, Span]:
    rows = connection.execute(_SPANS, {"ids": list(entry_ids)}) if entry_ids else ()
    return {row.summary_id: Span(row.many, row.first, row.last) for row in rows}


# -- statements, built once ------------------------------------------------------------------------------------------------

_C, _S, _X = messages.c, summaries.c, summary_sources.c
_OF = _C.conversation_id == sa.bindparam("of", type_=sa.Text)
_ENTRIES = (_S.conversation_id == sa.bindparam("of", type_=sa.Text)) & (_S.kind == Kind.ENTRY)
_IDS = sa.bindparam("ids", type_=sa.BigInteger, expanding=True)
_ABOVE = sa.bindparam("after", type_=sa.BigInteger)
_REAL = sa.select(_C.seq, _C.created_at, _C.audience_people, _C.audience_personas).where(_OF, COUNTS, _C.seq > _ABOVE).order_by(_C.seq)
_BETWEEN = sa.select(sa.func.count()).where(_OF, COUNTS, _C.seq > _ABOVE, _C.seq <= sa.bindparam("seq", type_=sa.BigInteger))
_OWN = sa.select(_C.seq).where(_OF, COUNTS, _C.role == "user", _C.seq > _ABOVE).limit(sa.bindparam("most", type_=sa.Integer))
_NEWEST_OWN = sa.select(sa.func.max(_C.seq)).where(_OF, COUNTS, _C.role == "user")
_STOOD_ACTIVE = sa.select(_X.message_seq).join(summaries, _S.id == _X.summary_id).where(_ENTRIES, _S.state == State.ACTIVE, _S.text != "")
_TO_COME = (_S.state == State.WITHHELD) & _S.stale & ~_S.hand_edited  # made anew by itself
_STOOD = (
    sa.select(_X.message_seq)
    .join(summaries, _S.id == _X.summary_id)
    .where(
        _ENTRIES,
        (_S.state == State.ACTIVE) | _TO_COME | (_S.state.in_([State.INACTIVE, State.WAITING]) & ((_S.text != "") | (_S.title != ""))),
    )
)
_BEYOND = sa.select(_X.summary_id, _X.message_seq).where(_X.summary_id.in_(_IDS), _X.message_seq > _ABOVE).order_by(_X.message_seq)
_AUTOMATIC = (
    sa.select(_S.id, _S.audience, _S.first_seq, _S.tokens)
    .where(_ENTRIES, _S.state == State.ACTIVE, _S.origin == AUTOMATIC)
    .order_by(_S.first_seq, _S.id)
)
_INPUTS = sa.select(summary_inputs.c.summary_id, summary_inputs.c.input_id).where(summary_inputs.c.summary_id.in_(_IDS))
_REPLACED = (
    sa.select(summary_inputs.c.input_id).join(summaries, _S.id == summary_inputs.c.summary_id).where(_ENTRIES, _S.state == State.ACTIVE).distinct()
)
_SPANS = (
    sa.select(_X.summary_id, sa.func.count().label("many"), sa.func.min(_X.message_seq).label("first"), sa.func.max(_X.message_seq).label("last"))
    .join(messages, (_C.seq == _X.message_seq) & COUNTS)
    .where(_X.summary_id.in_(_IDS))
    .group_by(_X.summary_id)
)

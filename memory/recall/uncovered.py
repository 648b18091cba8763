"""Which real messages no summary of some kinds stands for, read from the log (RS-44, RS-47, RS-51, RS-159). Plain functions on a `Connection`."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from memory.blocks import Block
from memory.columns import UtcTime
from memory.coverage import COUNTS
from memory.file_schema import summary_blocks
from memory.recall import real_talk
from memory.recall.audiences import audience_key
from memory.recall.calendar_plan import Stamp
from memory.recall.chunks import Spoken
from memory.recall.kinds import Kind
from memory.recall.summary_rows import State
from memory.recall_schema import summaries, summary_sources
from memory.schema import messages

_TO_THE_END = 2**62


def waiting(connection: sa.Connection, conversation_id: str, kinds: Collection[Kind], *, after: int = 0, last: int = _TO_THE_END) -> list[Stamp]:
    """Real messages numbered above `after`, up to `last`, that wait for a summary, in order: no row of these kinds that is sent stands for them, nor
    one that is withheld until it is made anew."""
    return _stamps(connection, _WAITING, conversation_id, kinds, after, last)


def unsaid(connection: sa.Connection, conversation_id: str, kinds: Collection[Kind], *, after: int = 0, last: int = _TO_THE_END) -> list[Stamp]:
    """The same of what no row that is sent stands for: what must be sent word for word, or by an extract."""
    return _stamps(connection, _UNSAID, conversation_id, kinds, after, last)


def first_since(connection: sa.Connection, conversation_id: str, since: datetime, *, after: int) -> int | None:
    """The number of the first message above `after`, of any kind, that was said at `since` or later."""
    return connection.execute(_SINCE, {"of": conversation_id, "since": since, "after": after}).scalar()


def tail_before(connection: sa.Connection, conversation_id: str, before: datetime, count: int, *, after: int) -> int | None:
    """The number of the oldest of the newest `count` real messages that were said earlier than `before`."""
    numbers = list(connection.execute(_TAIL, {"of": conversation_id, "before": before, "count": count, "after": after}).scalars())
    return min(numbers, default=None)


def last_said(connection: sa.Connection, conversation_id: str) -> datetime | None:
    """When the newest real message was said."""
    return connection.execute(_LAST_SAID, {"of": conversation_id}).scalar()


def blocks_needed(connection: sa.Connection, conversation_id: str, kinds: Collection[Kind], edge: int) -> list[Block]:
    """Those that stand for turns up to `edge` of which some message is in no sent row of these kinds, in order (RS-44)."""
    values = {"of": conversation_id, "kinds": list(kinds), "after": 0, "last": edge}
    return [Block(**row._mapping) for row in connection.execute(_BLOCKS, values)]  # pyright: ignore[reportPrivateUsage]


def talk(connection: sa.Connection, conversation_id: str, seqs: Collection[int]) -> tuple[list[Spoken], dict[int, str]]:
    """What a summary of these messages is made of: those that still count, and who wrote each."""
    return real_talk.by_seq(connection, conversation_id, seqs), authors(connection, conversation_id, seqs)


def authors(connection: sa.Connection, conversation_id: str, seqs: Collection[int]) -> dict[int, str]:
    """Who wrote each message, by the person's lasting id; empty for the answers (RS-61)."""
    rows = connection.execute(_AUTHORS, {"of": conversation_id, "seqs": list(seqs)})
    return {row.seq: row.author_person_id for row in rows}


def scope_of(connection: sa.Connection, conversation_id: str) -> str:
    """Whose memory the newest real message of a chat belongs to; empty when there is none."""
    return connection.execute(_SCOPE, {"of": conversation_id}).scalar() or ""


def _stamps(connection: sa.Connection, query: sa.Executable, of: str, kinds: Collection[Kind], after: int, last: int) -> list[Stamp]:
    rows = connection.execute(query, {"of": of, "kinds": list(kinds), "after": after, "last": last})
    return [Stamp(seq=row.seq, at=row.created_at, audience=audience_key(row.audience_people, row.audience_personas)) for row in rows]


# -- statements, built once ------------------------------------------------------------------------------------------------

_C, _S = messages.c, summaries.c
_OF = _C.conversation_id == sa.bindparam("of", type_=sa.Text)
_AFTER, _LAST = sa.bindparam("after", type_=sa.BigInteger), sa.bindparam("last", type_=sa.BigInteger)
_IN = _C.seq > _AFTER
_TO = _C.seq <= _LAST
_KINDS = _S.kind.in_(sa.bindparam("kinds", type_=sa.Text, expanding=True))


def _without(states: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Not among the messages that such rows of the chat stand for. Their numbers are gathered once from an index, and what is among them is passed
    over without a look at the message itself: a chat of any length costs little more than what no row stands for."""
    number = summary_sources.c.message_seq
    told = sa.select(number).join(summaries, _S.id == summary_sources.c.summary_id)
    of = _S.conversation_id == sa.bindparam("of", type_=sa.Text)
    reaches = (_S.last_seq > _AFTER) & (_S.first_seq <= _LAST)
    return _C.seq.not_in(told.where(of, _KINDS, states, reaches, number > _AFTER, number <= _LAST))


_ACTIVE = _S.state == State.ACTIVE
_TO_COME = _ACTIVE | ((_S.state == State.WITHHELD) & _S.stale & ~_S.hand_edited)
_TALK = sa.select(_C.seq, _C.created_at, _C.audience_people, _C.audience_personas).where(_OF, _IN, _TO, COUNTS).order_by(_C.seq)
_UNSAID = _TALK.where(_without(_ACTIVE))
_WAITING = _TALK.where(_without(_TO_COME))
_SINCE = sa.select(sa.func.min(_C.seq)).where(_OF, _IN, _C.created_at >= sa.bindparam("since", type_=UtcTime))
_TAIL = (
    sa.select(_C.seq)
    .where(_OF, _IN, COUNTS, _C.created_at < sa.bindparam("before", type_=UtcTime))
    .order_by(_C.seq.desc())
    .limit(sa.bindparam("count", type_=sa.Integer))
)
_LAST_SAID = sa.select(_C.created_at).where(_OF, COUNTS).order_by(_C.seq.desc()).limit(1)
_B = summary_blocks.c
_BLOCKS = (
    sa.select(*(_B[name] for name in Block.__dataclass_fields__))
    .where(
        _B.conversation_id == sa.bindparam("of", type_=sa.Text),
        _B.last_seq <= sa.bindparam("last", type_=sa.BigInteger),
        sa.exists().where(_OF, _C.seq.between(_B.first_seq, _B.last_seq), COUNTS, _without(_ACTIVE)).correlate(summary_blocks),
    )
    .order_by(_B.last_seq)
)
_AUTHORS = sa.select(_C.seq, _C.author_person_id).where(_OF, _C.seq.in_(sa.bindparam("seqs", type_=sa.BigInteger, expanding=True)))
_SCOPE = sa.select(_C.scope).where(_OF, COUNTS).order_by(_C.seq.desc()).limit(1)

"""Chunks of a chat as a person looks at them: how many, how they stand, only what that person may read (RS-37, RS-38). Plain functions on a
`Connection`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from memory.index_schema import vectors
from memory.recall import chunk_store, real_talk
from memory.recall.chunk_clearing import CLEARED
from memory.recall_schema import chunk_passages, message_chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One chunk. `passages`: parts that get a vector, `embedded`: those that have one of the present embedder, `outdated`: those with one of another
    alone (RS-29). `state`: live, stale (being made anew) or off (imported, its messages are not here)."""

    id: int
    area: str
    state: str
    origin: str
    importer: str
    text: str
    messages: int
    tokens: int
    passages: int
    embedded: int
    outdated: int
    said_from: datetime
    said_to: datetime
    created_at: datetime

    @property
    def shared(self) -> bool:
        return not self.area.endswith(f"/{importer_key(self.importer)}") if self.importer else True


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """`waiting`: messages that no chunk holds yet (RS-17); the other numbers count chunks."""

    chunks: int
    tokens: int
    vectorized: int
    outdated: int
    imported: int
    off: int
    waiting: int


def importer_key(person_id: str) -> str:
    """The audience of what one person brought in, until it is shared (RS-40)."""
    return f"importer:{person_id}"


def may_read(area: str, conversation_id: str, person_id: str) -> bool:
    """Whether a chunk of this area of the chat is for the person's eyes. What cannot be read as an audience is for nobody's."""
    whole = str(chunk_store.area_of(conversation_id))
    if area == whole:
        return True
    key = area.removeprefix(f"{whole}/")
    if key in (area, CLEARED):
        return False
    if key.startswith("importer:"):
        return key == importer_key(person_id)
    limits: dict[str, str] = {part[:1]: part[2:] for part in key.split("|") if part[1:2] == ":"}
    if len(limits) != len(key.split("|")) or not limits.keys() <= {"p", "c"}:
        return False
    return "p" not in limits or person_id in limits["p"].split(",")


def areas(connection: sa.Connection, conversation_id: str, person_id: str) -> list[str]:
    """The areas of a chat that have chunks and are for the person's eyes."""
    found = connection.execute(_AREAS, {"of": conversation_id}).scalars()
    return [area for area in found if may_read(area, conversation_id, person_id)]


def totals(connection: sa.Connection, conversation_id: str, readable: Collection[str], fingerprint: str, person_id: str) -> Totals:
    """`readable`: of `areas`; `fingerprint`: of the present embedder, empty for none."""
    values = {"of": conversation_id, "areas": list(readable), "fingerprint": fingerprint}
    counted = connection.execute(_TOTALS, values).one()
    uncut = [each for each in real_talk.uncut(connection, conversation_id) if may_hear(each.audience, conversation_id, person_id)]
    return Totals(**{name: int(value or 0) for name, value in counted._mapping.items()}, waiting=len(uncut))  # pyright: ignore[reportPrivateUsage]


def page(connection: sa.Connection, conversation_id: str, readable: Collection[str], fingerprint: str, *, limit: int, offset: int = 0) -> list[Seen]:
    """The newest talk first."""
    values = {"of": conversation_id, "areas": list(readable), "fingerprint": fingerprint, "most": limit, "after": offset}
    return [Seen(**row._mapping) for row in connection.execute(_PAGE, values)]  # pyright: ignore[reportPrivateUsage]  (SQLAlchemy's public name)


def may_hear(audience: str, conversation_id: str, person_id: str) -> bool:
    """The same by the key of an audience, as messages and summaries have it."""
    return may_read(str(chunk_store.area_of(conversation_id, audience)), conversation_id, person_id)


# -- statements, built once ------------------------------------------------------------------------------------------------

_C, _P, _V = message_chunks.c, chunk_passages.c, vectors.c
_OF = _C.conversation_id == sa.bindparam("of", type_=sa.Text)
_PARTS = sa.select(sa.func.count()).where(_P.chunk_id == _C.id).correlate(message_chunks)
_HAS = sa.exists().where(_V.text_hash == _P.text_hash, _V.fingerprint == sa.bindparam("fingerprint", type_=sa.Text)).correlate(chunk_passages)
_OTHER = sa.exists().where(_V.text_hash == _P.text_hash, _V.fingerprint != sa.bindparam("fingerprint", type_=sa.Text)).correlate(chunk_passages)
_AREAS = sa.select(_C.area).where(_OF).distinct().order_by(_C.area)
_LISTED = (
    sa.select(
        *(_C[name] for name in Seen.__dataclass_fields__ if name not in ("passages", "embedded", "outdated")),
        _PARTS.scalar_subquery().label("passages"),
        _PARTS.where(_HAS).scalar_subquery().label("embedded"),
        _PARTS.where(_OTHER, ~_HAS).scalar_subquery().label("outdated"),
    )
    .where(_OF, _C.area.in_(sa.bindparam("areas", type_=sa.Text, expanding=True)))
    .order_by(_C.last_seq.desc(), _C.said_to.desc(), _C.id.desc())
)
_PAGE = _LISTED.limit(sa.bindparam("most", type_=sa.Integer)).offset(sa.bindparam("after", type_=sa.Integer))


def _many(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((condition, 1), else_=0))


_ALL = _LISTED.order_by(None).subquery()
_TOTALS = sa.select(
    sa.func.count().label("chunks"),
    sa.func.sum(_ALL.c.tokens).label("tokens"),
    _many((_ALL.c.state == "live") & (_ALL.c.embedded == _ALL.c.passages)).label("vectorized"),
    _many(_ALL.c.outdated > 0).label("outdated"),
    _many(_ALL.c.origin == "imported").label("imported"),
    _many(_ALL.c.state == "off").label("off"),
)

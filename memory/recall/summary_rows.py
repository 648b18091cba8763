"""Summaries of a chat in the one form of every profile: rows of `summaries`, the messages each stands for and the rows it was made from.

Plain functions on a `Connection`. Rows are added, changed by a person, or change their state; none is deleted for a newer one (RS-195). Which of them
are made and sent is for profiles and plans to decide.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from memory import tokens
from memory.recall.audiences import audience_lists
from memory.recall.kinds import Kind
from memory.recall_schema import summaries, summary_inputs, summary_sources


class State(StrEnum):
    """`active` rows are sent; `inactive` ones were folded into another or switched off, and can come back; `waiting` ones wait for a person's yes;
    `withheld` ones rest on something that was forgotten."""

    ACTIVE = "active"
    INACTIVE = "inactive"
    WAITING = "waiting"
    WITHHELD = "withheld"


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """One thing worth keeping (RS-55). `kind`: promise, plan, question, fact, event; `state`: open or resolved; `due`: a local date, or empty."""

    text: str
    kind: str = "fact"
    state: str = "open"
    due: str = ""

    @property
    def sense(self) -> str:
        """Equal for details that say the same, whatever their letter case and blanks."""
        return " ".join(self.text.casefold().split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One row. `audience`: key of who may read it, empty for everybody in the chat; `local_date`, `zone`, `rollover_hour`: of calendar rows;
    `first_seq`, `last_seq`: the span of the messages it stands for; `fingerprint`: of what it was made from."""

    id: int
    conversation_id: str
    kind: Kind
    state: State
    text: str
    details: tuple[Detail, ...]
    title: str
    audience: str
    first_seq: int
    last_seq: int
    local_date: str
    part: int
    zone: str
    rollover_hour: int
    failed_days: tuple[str, ...]
    hand_edited: bool
    stale: bool
    fingerprint: str
    model: str
    origin: str
    tokens: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSummary:
    """A row to be made. `sources`: numbers of the messages it stands for; `inputs`: ids of the rows it was made from, which become inactive;
    `audience`: as `audiences.audience_key` makes it."""

    conversation_id: str
    kind: Kind
    text: str
    sources: Sequence[int]
    details: tuple[Detail, ...] = ()
    inputs: Sequence[int] = ()
    title: str = ""
    audience: str = ""
    state: State = State.ACTIVE
    local_date: str = ""
    zone: str = ""
    rollover_hour: int = 0
    failed_days: tuple[str, ...] = ()
    fingerprint: str = ""
    model: str = ""
    origin: str = ""


def add(connection: sa.Connection, new: NewSummary, now: datetime) -> int:
    """Store a row, and make its inputs inactive in the same transaction. Returns its id. A second row for one date is part 2 (RS-159).

    One that is made of stale rows is stale too, or what they say now would be told for good (RS-166)."""
    numbers = sorted(set(new.sources))
    people, personas = audience_lists(new.audience)
    part = 0
    if new.local_date:
        part = connection.execute(
            _PARTS, {"of": new.conversation_id, "kind": new.kind, "date": new.local_date, "audience": new.audience}
        ).scalar_one()
    row = connection.execute(_ADD, {
        "conversation_id": new.conversation_id, "kind": new.kind, "state": new.state, "text": new.text, "title": new.title,
        "details": _stored(new.details), "audience": new.audience,
        "audience_people": people, "audience_personas": personas,
        "first_seq": numbers[0] if numbers else 0, "last_seq": numbers[-1] if numbers else 0,
        "local_date": new.local_date, "part": part + 1 if part else 0, "zone": new.zone, "rollover_hour": new.rollover_hour,
        "failed_days": list(new.failed_days) or None, "fingerprint": new.fingerprint, "model": new.model, "origin": new.origin,
        "tokens": size(new.text, new.details), "created_at": now, "updated_at": now,
    }).scalar_one()  # fmt: skip
    if numbers:
        connection.execute(_ADD_SOURCE, [{"summary_id": row, "message_seq": number} for number in numbers])
    if new.inputs:
        connection.execute(_ADD_INPUT, [{"summary_id": row, "input_id": each} for each in new.inputs])
        set_state(connection, new.inputs, State.INACTIVE, now)
        connection.execute(_INHERIT, {"of": row, "ids": list(new.inputs)})
    return row


def of_chat(
    connection: sa.Connection, conversation_id: str, *, kinds: Collection[Kind] = tuple(Kind), states: Collection[State] = (State.ACTIVE,)
) -> list[Summary]:
    """Rows of a chat, the oldest talk first."""
    rows = connection.execute(_OF_CHAT, {"of": conversation_id, "kinds": list(kinds), "states": list(states)})
    return [_summary(row) for row in rows]


def one(connection: sa.Connection, summary_id: int) -> Summary | None:
    row = connection.execute(_ONE, {"id": summary_id}).one_or_none()
    return None if row is None else _summary(row)


def several(connection: sa.Connection, summary_ids: Collection[int]) -> dict[int, Summary]:
    """Those of these rows that there are, by id."""
    return {row.id: _summary(row) for row in connection.execute(_SEVERAL, {"ids": list(summary_ids)})}


def unchanged(connection: sa.Connection, rows: Sequence[Summary]) -> bool:
    """Whether rows still read as they did, and are in their place (RS-194, RS-195)."""
    now = [one(connection, row.id) for row in rows]
    return all(
        found is not None and (found.state, found.text, found.details, found.stale) == (row.state, row.text, row.details, row.stale)
        for found, row in zip(now, rows, strict=True)
    )


def inputs_of(connection: sa.Connection, summary_id: int) -> list[Summary]:
    """The rows it was made from, the oldest talk first (RS-45)."""
    return [_summary(row) for row in connection.execute(_INPUTS, {"id": summary_id})]


def sources_of(connection: sa.Connection, summary_ids: Collection[int]) -> dict[int, list[int]]:
    """The numbers of the messages that each row stands for, ascending."""
    found: dict[int, list[int]] = {each: [] for each in summary_ids}
    for row in connection.execute(_SOURCES, {"ids": list(summary_ids)}):
        found[row.summary_id].append(row.message_seq)
    return found


def union_of(connection: sa.Connection, summary_ids: Collection[int]) -> list[int]:
    """The numbers of the messages that any of these rows stands for, ascending."""
    return sorted({seq for seqs in sources_of(connection, summary_ids).values() for seq in seqs})


def edit(
    connection: sa.Connection,
    summary_id: int,
    now: datetime,
    *,
    text: str | None = None,
    details: Sequence[Detail] | None = None,
    title: str | None = None,
) -> Summary | None:
    """A person's change: the row is theirs from then on and no automatic path rewrites it (RS-48, RS-166). One that is not sent and stale, as of
    something that was forgotten, stays both until its text is another one. None when it is gone."""
    old = one(connection, summary_id)
    if old is None:
        return None
    text = old.text if text is None else text
    kept = old.details if details is None else tuple(details)
    values = {"new_text": text, "new_details": _stored(kept), "new_title": old.title if title is None else title, "new_tokens": size(text, kept)}
    same = old.stale and old.state is not State.ACTIVE and text == old.text  # it may still say what was taken away
    values |= {"by_hand": old.hand_edited or not same, "still": same}
    connection.execute(_EDIT, {"of": summary_id, "now": now, **values})
    return one(connection, summary_id)


def set_state(connection: sa.Connection, summary_ids: Collection[int], state: State, now: datetime) -> None:
    connection.execute(_STATE, {"ids": list(summary_ids), "new_state": state, "now": now})


def bring_back(connection: sa.Connection, rows: Collection[Summary], now: datetime) -> None:
    """They count again. One that is stale may tell of something that was taken away: it is withheld until it was made anew, or its person wrote other
    words (RS-189)."""
    for state in (State.ACTIVE, State.WITHHELD):
        set_state(connection, [row.id for row in rows if row.stale is (state is State.WITHHELD)], state, now)


def erase(connection: sa.Connection, summary_ids: Collection[int], now: datetime) -> None:
    """A newer row stands in their place, and what they said is not to be kept, for it rests on words that were changed or taken away (RS-189)."""
    connection.execute(_ERASE, {"ids": list(summary_ids), "now": now})


def release(connection: sa.Connection, summary_ids: Collection[int], now: datetime) -> None:
    """A person agrees that these rows are made anew, whoever wrote them (RS-48). They read as they do until then."""
    connection.execute(_RELEASE, {"ids": list(summary_ids), "now": now})


def delete(connection: sa.Connection, summary_ids: Collection[int]) -> None:
    """Remove rows because a person said so, with what they stand for; their messages are uncovered again."""
    below = {each.id for of in summary_ids for each in inputs_of(connection, of) if each.stale and each.state is State.INACTIVE}
    for statement in (_DROP_SOURCES, _DROP_INPUTS, _DROP):
        connection.execute(statement, {"ids": list(summary_ids)})
    _silence(connection, below.difference(summary_ids))


def mark_changed(connection: sa.Connection, conversation_id: str, first: int, last: int, *, forgotten: bool) -> None:
    """Messages with these numbers were edited or came late: what stands for them is stale. `forgotten`: taken away, so that it is withheld at once
    (RS-166, RS-189). What is switched off or waits says nothing any more; a person's own words wait for that person."""
    values = {"of": conversation_id, "first": first, "last": last}
    connection.execute(_CHANGED, values)
    if forgotten:
        connection.execute(_WITHHELD, values)
        _silence(connection, connection.execute(_OFF, values).scalars().all())


def _silence(connection: sa.Connection, summary_ids: Collection[int]) -> None:
    """Rows that are not sent, and tell of something that was taken away: no job looks after them, but for those below a row that is made anew."""
    idle = set(summary_ids) - _below_remade(connection, summary_ids)
    for statement in (_KEEP_OFF, _EMPTY):
        connection.execute(statement, {"ids": list(idle)})


def _below_remade(connection: sa.Connection, summary_ids: Collection[int]) -> set[int]:
    """Those of these rows that a row which is made anew by itself was made from, at whatever depth."""
    above = {each: {each} for each in summary_ids}  # each row with those of `summary_ids` below it
    found: set[int] = set()
    while above:
        higher: dict[int, set[int]] = {}
        for row in connection.execute(_ABOVE, {"ids": list(above)}):
            below = above[row.input_id] - found
            if row.state in (State.ACTIVE, State.WITHHELD) and not row.hand_edited:
                found |= below
            elif below:
                higher.setdefault(row.id, set()).update(below)
        above = higher
    return found


def _summary(row: sa.Row[Any]) -> Summary:
    values = dict(row._mapping)  # pyright: ignore[reportPrivateUsage]  (SQLAlchemy's public name for it)
    values["kind"], values["state"] = Kind(values["kind"]), State(values["state"])
    values["details"] = tuple(Detail(**each) for each in values["details"] or ())
    values["failed_days"] = tuple(values["failed_days"] or ())
    return Summary(**values)


def _stored(details: Sequence[Detail]) -> list[dict[str, str]] | None:
    return [{"text": each.text, "kind": each.kind, "state": each.state, "due": each.due} for each in details] or None


def size(text: str, details: Sequence[Detail]) -> int:
    """Tokens of a row that says this."""
    return tokens.count("\n".join([text, *(each.text for each in details)]))


# -- statements, built once ------------------------------------------------------------------------------------------------

_C = summaries.c
_FIELDS = [_C[name] for name in Summary.__dataclass_fields__]
_IDS = sa.bindparam("ids", type_=sa.BigInteger, expanding=True)
_KINDS = _C.kind.in_(sa.bindparam("kinds", type_=sa.Text, expanding=True))
_STATES = _C.state.in_(sa.bindparam("states", type_=sa.Text, expanding=True))
_OF = _C.conversation_id == sa.bindparam("of")
_ORDER = (_C.first_seq, _C.id)
_ADD = sa.insert(summaries).returning(_C.id)
_ADD_SOURCE = sa.insert(summary_sources)
_ADD_INPUT = sa.insert(summary_inputs)
_MADE_OF = summaries.alias("made_of")
_INHERIT = (
    sa.update(summaries)
    .where(_C.id == sa.bindparam("of"), sa.exists().where(_MADE_OF.c.id.in_(_IDS), _MADE_OF.c.stale, ~_MADE_OF.c.hand_edited))
    .values(stale=True)
)
_PARTS = sa.select(sa.func.count()).where(
    _OF, _C.kind == sa.bindparam("kind"), _C.local_date == sa.bindparam("date"), _C.audience == sa.bindparam("audience"), _C.state == State.ACTIVE
)
_OF_CHAT = sa.select(*_FIELDS).where(_OF, _KINDS, _STATES).order_by(*_ORDER)
_SEVERAL = sa.select(*_FIELDS).where(_C.id.in_(_IDS))
_ONE = sa.select(*_FIELDS).where(_C.id == sa.bindparam("id"))
_INPUTS = (
    sa.select(*_FIELDS)
    .join(summary_inputs, summary_inputs.c.input_id == _C.id)
    .where(summary_inputs.c.summary_id == sa.bindparam("id"))
    .order_by(*_ORDER)
)
_SOURCES = (
    sa.select(summary_sources.c.summary_id, summary_sources.c.message_seq)
    .where(summary_sources.c.summary_id.in_(_IDS))
    .order_by(summary_sources.c.message_seq)
)
_HOLDS = _OF & _C.id.in_(
    sa.select(summary_sources.c.summary_id).where(
        summary_sources.c.message_seq.between(sa.bindparam("first", type_=sa.BigInteger), sa.bindparam("last", type_=sa.BigInteger))
    )
)
_CHANGED = sa.update(summaries).where(_HOLDS).values(stale=True)
_WITHHELD = sa.update(summaries).where(_HOLDS, _C.state == State.ACTIVE).values(state=State.WITHHELD)
_OFF = sa.select(_C.id).where(_HOLDS, _C.state.in_([State.INACTIVE, State.WAITING]))
_ABOVE = (
    sa.select(summary_inputs.c.input_id, _C.id, _C.state, _C.hand_edited)
    .join(summaries, _C.id == summary_inputs.c.summary_id)
    .where(summary_inputs.c.input_id.in_(_IDS))
)
_KEEP_OFF = sa.update(summaries).where(_C.id.in_(_IDS), _C.hand_edited).values(state=State.WITHHELD)
_SAYS_NOTHING: dict[str, Any] = {"state": State.INACTIVE, "stale": False, "text": "", "details": None, "title": "", "tokens": 0}
_EMPTY = sa.update(summaries).where(_C.id.in_(_IDS), ~_C.hand_edited).values(_SAYS_NOTHING)
_EDIT = (
    sa.update(summaries)
    .where(_C.id == sa.bindparam("of"))
    .values(
        text=sa.bindparam("new_text"), details=sa.bindparam("new_details"), title=sa.bindparam("new_title"), tokens=sa.bindparam("new_tokens"),
        hand_edited=sa.bindparam("by_hand"), stale=sa.bindparam("still"), updated_at=sa.bindparam("now"),
    )
)  # fmt: skip
_STATE = sa.update(summaries).where(_C.id.in_(_IDS)).values(state=sa.bindparam("new_state"), updated_at=sa.bindparam("now"))
_ERASE = sa.update(summaries).where(_C.id.in_(_IDS)).values({**_SAYS_NOTHING, "updated_at": sa.bindparam("now")})
_DROP_SOURCES = sa.delete(summary_sources).where(summary_sources.c.summary_id.in_(_IDS))
_DROP_INPUTS = sa.delete(summary_inputs).where(summary_inputs.c.summary_id.in_(_IDS) | summary_inputs.c.input_id.in_(_IDS))
_DROP = sa.delete(summaries).where(_C.id.in_(_IDS))
_RELEASE = sa.update(summaries).where(_C.id.in_(_IDS)).values(hand_edited=False, stale=True, updated_at=sa.bindparam("now"))

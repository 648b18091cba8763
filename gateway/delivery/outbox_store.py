"""The rows of the outbox: a reply is stored as ordered parts before anything is sent (CH-80). Plain functions on a `Connection`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from channels.message import from_json, to_json
from channels.port import OutboundPart
from gateway.delivery import held_parts
from gateway.delivery.rules import OPEN, Change, PartState, PartView
from memory.schema import outbox

_OPEN_STATES = tuple(state.value for state in OPEN)
CODE_PART = "code-"  # how the ids of parts begin whose words are kept no longer than it takes to send them: they hold a code (CH-113)
PREVIEW = "preview"  # the kind of a preview of which nobody knows; it is no answer, so its row goes once that is settled
_LOST = (PartState.FAILED.value, PartState.EXPIRED.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPart:
    """A part to be stored. `kind`: answer, notice, reminder or preview; `conversation_id` and the rest link it back for receipts and `/why`.

    `tried_at`: it left then, and nobody knows whether it arrived.
    """

    part: OutboundPart
    kind: str
    expires_at: datetime
    conversation_id: str = ""
    turn_id: str = ""
    message_id: str = ""
    delivery_id: str = ""
    tried_at: datetime | None = None
    delivered: bool = False  # the channel's readers see the log itself: storing the message was sending it


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPart:
    """A stored part that is not finished."""

    row_id: int
    kind: str
    turn_id: str
    message_id: str
    delivery_id: str
    part: OutboundPart
    view: PartView


_INSERT = sa.insert(outbox)
_ANSWER_BEHIND = (
    sa.select(outbox)
    .where(
        outbox.c.id > sa.bindparam("row"),
        outbox.c.turn_id == sa.bindparam("turn"),
        outbox.c.kind == "answer",
        outbox.c.state == PartState.QUEUED.value,
    )
    .order_by(outbox.c.id)
    .limit(1)
)
_NEXT = (
    sa.select(outbox)
    .where(outbox.c.address == sa.bindparam("of"), outbox.c.id > sa.bindparam("after"), outbox.c.state.in_(_OPEN_STATES))
    .order_by(outbox.c.id)
    .limit(1)
)
_SENDING = (
    sa.update(outbox)
    .where(outbox.c.id == sa.bindparam("row"), outbox.c.state.in_(_OPEN_STATES))
    .values(
        state=PartState.SENDING.value,
        attempts=outbox.c.attempts + 1,
        attempted_at=sa.case((outbox.c.unknowns > 0, outbox.c.attempted_at), else_=sa.bindparam("now", type_=outbox.c.attempted_at.type)),
        updated_at=sa.bindparam("now", type_=outbox.c.updated_at.type),
        part=sa.bindparam("new_part", type_=outbox.c.part.type),
    )
)
_CHANGING = ("state", "reason", "platform_ids", "not_before", "unknowns", "part", "address", "updated_at")
_CHANGE = (
    sa.update(outbox)
    .where(outbox.c.id == sa.bindparam("row"))
    .values({name: sa.bindparam(f"new_{name}") for name in _CHANGING})
)
_RECOVER = (
    sa.update(outbox)
    .where(outbox.c.state == PartState.SENDING.value)
    .values(state=PartState.UNKNOWN.value, unknowns=outbox.c.unknowns + 1, updated_at=sa.bindparam("now"))
)
_CANCEL = (
    sa.update(outbox)
    .where(outbox.c.address == sa.bindparam("of"), outbox.c.state.in_(_OPEN_STATES), outbox.c.kind == "answer")
    .values(state=PartState.EXPIRED.value, reason="reset", told=True, updated_at=sa.bindparam("now"))
)
_EXPIRE = (
    sa.update(outbox)
    .where(outbox.c.state.in_(_OPEN_STATES), outbox.c.expires_at <= sa.bindparam("now", type_=outbox.c.expires_at.type))
    .values(state=PartState.EXPIRED.value, reason="expired", updated_at=sa.bindparam("now", type_=outbox.c.updated_at.type))
)
_NEWEST_ROW = sa.select(sa.func.max(outbox.c.id))
_ADDRESSES = (
    sa.select(
        outbox.c.address,
        sa.func.max(sa.case((outbox.c.reason != held_parts.WAITING, outbox.c.not_before)), type_=outbox.c.not_before.type).label("not_before"),
    )
    .where(outbox.c.state.in_(_OPEN_STATES))
    .group_by(outbox.c.address)
)
_UNTOLD = sa.select(outbox.c.address).where(outbox.c.state.in_(_LOST), outbox.c.kind == "answer", sa.not_(outbox.c.told)).distinct()
_TOLD = sa.update(outbox).where(outbox.c.address == sa.bindparam("of"), outbox.c.state.in_(_LOST), sa.not_(outbox.c.told)).values(told=True)
_NEWEST = (
    sa.select(outbox.c.turn_id)
    .where(outbox.c.address == sa.bindparam("of"), outbox.c.kind == "answer", outbox.c.turn_id != "")
    .order_by(outbox.c.id.desc())
    .limit(1)
)
_OF_TURN = (
    sa.select(outbox)
    .where(outbox.c.address == sa.bindparam("of"), outbox.c.turn_id == sa.bindparam("turn"), outbox.c.kind == "answer")
    .order_by(outbox.c.id)
)


def put(connection: sa.Connection, parts: Sequence[NewPart], now: datetime) -> None:
    """Store parts in the order they are to go out."""
    if not parts:
        return
    connection.execute(_INSERT, [
        {
            "part_id": new.part.part_id, "channel": new.part.address.account.channel, "account": new.part.address.account.name,
            "address": str(new.part.address), "conversation_id": new.conversation_id, "turn_id": new.turn_id, "message_id": new.message_id,
            "delivery_id": new.delivery_id, "kind": new.kind, "part": to_json(new.part), "expires_at": new.expires_at,
            "state": _first_state(new).value, "unknowns": int(new.tried_at is not None), "attempted_at": new.tried_at,
            "created_at": now, "updated_at": now,
        }
        for new in parts
    ])  # fmt: skip


def _first_state(new: NewPart) -> PartState:
    if new.delivered:
        return PartState.SENT
    return PartState.QUEUED if new.tried_at is None else PartState.UNKNOWN


def next_open(connection: sa.Connection, address: str, *, after: int = 0) -> OpenPart | None:
    """The oldest unfinished part of a chat: the only one that may be sent (CH-81). Rows up to `after` are parked."""
    row = connection.execute(_NEXT, {"of": address, "after": after}).one_or_none()
    return _open_part(row) if row else None


def _open_part(row: sa.Row[Any]) -> OpenPart:
    part = from_json(OutboundPart, row.part)
    view = PartView(
        state=PartState(row.state),
        attempts=row.attempts,
        unknowns=row.unknowns,
        expires_at=row.expires_at,
        not_before=row.not_before,
        attempted_at=row.attempted_at,
        is_edit=bool(part.edit_of),
        sent_again=part.sent_again,
        is_preview=row.kind == PREVIEW,
    )
    return OpenPart(
        row_id=row.id, kind=row.kind, turn_id=row.turn_id, message_id=row.message_id, delivery_id=row.delivery_id, part=part, view=view
    )


def mark_sending(connection: sa.Connection, row_id: int, part: OutboundPart, now: datetime) -> bool:
    """Before the request leaves: `part` as it will leave. False when it is finished already."""
    return connection.execute(_SENDING, {"row": row_id, "new_part": to_json(part), "now": now}).rowcount == 1


def apply(connection: sa.Connection, opened: OpenPart, change: Change, now: datetime, *, part: OutboundPart | None = None) -> None:
    """Write what a try came to. `part`: the words now to be sent, when they differ from the stored ones."""
    current = part or opened.part
    if change.new_chat_id:
        current = moved(current, change.new_chat_id)
    if change.thread_gone:
        current = outside_topic(current)
    if change.as_new:
        current = replace(current, edit_of="")
    if current.part_id.startswith(CODE_PART) and change.state not in OPEN:
        current = replace(current, text="", entities=())
    connection.execute(_CHANGE, {
        "row": opened.row_id, "new_state": change.state.value, "new_reason": change.reason, "new_platform_ids": list(change.platform_ids) or None,
        "new_not_before": change.not_before, "new_unknowns": change.unknowns, "new_part": to_json(current), "new_address": str(current.address),
        "new_updated_at": now,
    })  # fmt: skip
    if change.until_written:
        held_parts.hold(connection, str(current.address), now)


def answer_behind(connection: sa.Connection, opened: OpenPart) -> OpenPart | None:
    """The part that takes the place of a preview: the first of its turn's answer."""
    row = connection.execute(_ANSWER_BEHIND, {"row": opened.row_id, "turn": opened.turn_id}).one_or_none()
    return _open_part(row) if row else None


def remove(connection: sa.Connection, row_id: int) -> None:
    connection.execute(sa.delete(outbox).where(outbox.c.id == row_id))


def reword(connection: sa.Connection, row_id: int, part: OutboundPart) -> None:
    """A part that has not left yet, as it is to leave now."""
    connection.execute(sa.update(outbox).where(outbox.c.id == row_id).values(part=to_json(part)))


def readdress(connection: sa.Connection, chat_key: str, new_chat_id: str) -> None:
    """A chat moved: what waits to be sent there, and in its topics, goes to the new one (CH-166)."""
    like = outbox.c.address.startswith(f"{chat_key}:", autoescape=True)
    query = sa.select(outbox.c.id, outbox.c.address, outbox.c.part).where(outbox.c.state.in_(_OPEN_STATES), (outbox.c.address == chat_key) | like)
    for row in connection.execute(query).all():
        if row.address == chat_key or row.address.startswith(f"{chat_key}:"):
            part = moved(from_json(OutboundPart, row.part), new_chat_id)
            connection.execute(sa.update(outbox).where(outbox.c.id == row.id).values(address=str(part.address), part=to_json(part)))


def leave_topic(connection: sa.Connection, topic_key: str) -> None:
    """A topic is gone: what waits to be sent there goes to its chat."""
    query = sa.select(outbox.c.id, outbox.c.part).where(outbox.c.state.in_(_OPEN_STATES), outbox.c.address == topic_key)
    for row in connection.execute(query).all():
        part = outside_topic(from_json(OutboundPart, row.part))
        connection.execute(sa.update(outbox).where(outbox.c.id == row.id).values(address=str(part.address), part=to_json(part)))


def outside_topic(part: OutboundPart) -> OutboundPart:
    return replace(part, address=replace(part.address, thread_id=""))


def moved(part: OutboundPart, new_chat_id: str) -> OutboundPart:
    """Messages are numbered anew there: what it was to change, or to answer, would be another one (CH-166)."""
    if part.address.chat_id == new_chat_id:
        return part
    return replace(part, address=replace(part.address, chat_id=new_chat_id), edit_of="", reply_to="")


def cancel(connection: sa.Connection, address: str, now: datetime) -> None:
    """The talk of a chat was reset: what is left of its answers is not sent any more, and nobody is told that it was lost (DL-14)."""
    connection.execute(_CANCEL, {"of": address, "now": now})


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What earlier runs left: chats with unfinished parts, with the time before which nothing may be sent there; chats that lost an answer and
    were not told, how many parts expired meanwhile, and the newest row of all."""

    addresses: Mapping[str, datetime | None]
    losses: tuple[str, ...]
    expired: int
    newest: int


def recover(connection: sa.Connection, now: datetime) -> Left:
    """At a start: what was being sent is unknown now, what waited too long expires (CH-82, CH-101)."""
    connection.execute(_RECOVER, {"now": now})
    expired = connection.execute(_EXPIRE, {"now": now}).rowcount
    return Left(
        addresses={row.address: row.not_before for row in connection.execute(_ADDRESSES)},
        losses=tuple(untold_losses(connection)),
        expired=expired,
        newest=connection.execute(_NEWEST_ROW).scalar() or 0,
    )


def untold_losses(connection: sa.Connection) -> list[str]:
    """Chats in which an answer was lost and nobody has been told yet (CH-82)."""
    return list(connection.execute(_UNTOLD).scalars())


def has_untold_loss(connection: sa.Connection, address: str) -> bool:
    return connection.execute(_UNTOLD.where(outbox.c.address == address)).first() is not None


def mark_told(connection: sa.Connection, address: str) -> None:
    connection.execute(_TOLD, {"of": address})


def newest_answer(connection: sa.Connection, address: str) -> list[OutboundPart]:
    """The parts of the newest answer of a chat, for `/last`."""
    turn_id = connection.execute(_NEWEST, {"of": address}).scalar()
    if not turn_id:
        return []
    return [from_json(OutboundPart, row.part) for row in connection.execute(_OF_TURN, {"of": address, "turn": turn_id})]


def state_of(connection: sa.Connection, turn_id: str) -> str | None:
    """The state of a turn's answer as a whole: that of its last part; None when it had none."""
    query = sa.select(outbox.c.state).where(outbox.c.turn_id == turn_id, outbox.c.kind == "answer").order_by(outbox.c.id.desc()).limit(1)
    return connection.execute(query).scalar()

"""The rows of the inbox: stored before anything is acknowledged, and the state each is in until it is done (CH-50 to CH-54).

`new → running → done`, or `ignored(rule)`, or `dead(reason)`. Rows that are `early` hold an edit for a message that is yet to come (`early_edits`).
Plain functions on a `Connection`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from channels.message import EventKind, InboundEvent, from_json, to_json
from channels.port import Accepted, Arrival, Cursor
from memory.schema import cursors, inbox, message_refs, messages

ATTEMPTS_MAX = 3  # unless configured; after that a row is dead: whatever kills us three times is not tried a fourth (CH-54)
UNFINISHED = ("new", "running")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A stored event that a lane will answer. `address` names the lane; `action` is empty for a message, else what to do with the turn."""

    row_id: int
    delivery_id: str
    address: str
    conversation_id: str
    person_id: str
    message_id: str
    turn_id: str
    received_at: datetime
    action: str = ""
    text_length: int = 0  # in the platform's own unit: a piece near the limit is waited for longer (CH-65)
    attachments: int = 0
    attempts: int = 0
    text: str = ""  # for steering a running turn; a turn of its own reads the log
    platform_message_id: str = ""
    scope: str = ""  # whose memory its words belong to, as it was settled when they came
    busy: str = ""  # the conversation's own choice, steer or queue; empty = the configuration's
    written_at: datetime | None = None  # by the platform's clock

    @property
    def since(self) -> datetime:
        """From when on it waits: order is by arrival, this decides only how late it is (CH-1, CH-55)."""
        return min(self.written_at or self.received_at, self.received_at)


_KNOWN = sa.select(inbox.c.delivery_id, inbox.c.state, inbox.c.message_id, inbox.c.turn_id, inbox.c.rule, inbox.c.conversation_id).where(
    inbox.c.channel == sa.bindparam("channel"), inbox.c.account == sa.bindparam("account"), inbox.c.event_key == sa.bindparam("event_key")
)
_KNOWN_MESSAGE = (
    sa.select(
        sa.func.coalesce(inbox.c.delivery_id, "").label("delivery_id"),
        sa.func.coalesce(inbox.c.state, "done").label("state"),
        sa.func.coalesce(inbox.c.rule, "").label("rule"),
        messages.c.id.label("message_id"),
        messages.c.turn_id,
        messages.c.conversation_id,
    )
    .select_from(message_refs.join(messages, messages.c.id == message_refs.c.message_id).outerjoin(inbox, inbox.c.message_id == messages.c.id))
    .where(
        message_refs.c.channel == sa.bindparam("channel"),
        message_refs.c.account == sa.bindparam("account"),
        message_refs.c.chat_id == sa.bindparam("chat"),
        message_refs.c.platform_message_id == sa.bindparam("message"),
    )
)
_STORE = sa.insert(inbox).returning(inbox.c.id)
_START = (
    sa.update(inbox)
    .where(inbox.c.id.in_(sa.bindparam("rows", expanding=True)), inbox.c.state.in_(UNFINISHED))
    .values(state="running", attempts=inbox.c.attempts + 1, turn_id=sa.bindparam("turn"))
    .returning(inbox.c.attempts)
)
_FINISH = (
    sa.update(inbox)
    .where(inbox.c.id.in_(sa.bindparam("rows", expanding=True)))
    .values(state=sa.bindparam("to"), rule=sa.bindparam("why"), finished_at=sa.bindparam("now"))
)
_JOIN = sa.update(inbox).where(inbox.c.id.in_(sa.bindparam("rows", expanding=True))).values(turn_id=sa.bindparam("turn"))
_CHECKPOINT = (
    sa.update(inbox)
    .where(inbox.c.id.in_(sa.bindparam("rows", expanding=True)), inbox.c.state == "running")
    .values(state="new", attempts=inbox.c.attempts - 1)
)
_END_OPEN = (
    sa.update(inbox)
    .where(inbox.c.conversation_id == sa.bindparam("of"), inbox.c.id < sa.bindparam("before"), inbox.c.state.in_(UNFINISHED), inbox.c.turn_id != "")
    .values(state="ignored", rule="reset", finished_at=sa.bindparam("now"))
)
_OPEN = (
    sa.select(inbox, messages.c.scope)
    .outerjoin(messages, messages.c.id == inbox.c.message_id)
    .where(inbox.c.state.in_(UNFINISHED))
    .order_by(inbox.c.id)
)
_OF_MESSAGE = sa.select(inbox.c.id).where(inbox.c.message_id == sa.bindparam("message"), inbox.c.state == "new")
_ROW_OF = sa.select(inbox.c.id, inbox.c.event).where(inbox.c.message_id == sa.bindparam("message"), inbox.c.kind == EventKind.MESSAGE.value)
_REWORD = sa.update(inbox).where(inbox.c.id == sa.bindparam("row")).values(event=sa.bindparam("words", type_=inbox.c.event.type))
_FORGET_WORDS = sa.update(inbox).where(inbox.c.message_id == sa.bindparam("message")).values(event=None)
_LAST = (
    sa.select(inbox)
    .where(inbox.c.address == sa.bindparam("of"), inbox.c.id < sa.bindparam("before"), inbox.c.kind != "unknown", inbox.c.rule != "self")
    .order_by(inbox.c.id.desc())
    .limit(1)
)


def find_duplicate(connection: sa.Connection, event: InboundEvent) -> tuple[Accepted, str] | None:
    """The first delivery of this event, and its conversation; None when this is the first.

    A message is known by its own id too: a platform may number its events anew, and then deliver an old one again (CH-51).
    """
    of = {"channel": event.account.channel, "account": event.account.name}
    row = connection.execute(_KNOWN, of | {"event_key": event.platform_event_id}).one_or_none()
    if row is None and event.kind is EventKind.MESSAGE and event.platform_message_id:
        row = connection.execute(_KNOWN_MESSAGE, of | {"chat": event.chat_id, "message": event.platform_message_id}).first()
    if row is None:
        return None
    first = {name: getattr(row, name) for name in ("delivery_id", "state", "message_id", "turn_id", "rule")}
    return Accepted(arrival=Arrival.DUPLICATE, **first), row.conversation_id


def deletion_key(event: InboundEvent) -> str:
    """How the deletion of a message is known, whatever its platform calls it: it outlives a message that comes after it, for as long as rows do."""
    return f"{event.chat_id}:{event.platform_message_id}:deleted"


def is_deleted(connection: sa.Connection, event: InboundEvent) -> bool:
    """Whether the deletion of this message arrived before it."""
    of = {"channel": event.account.channel, "account": event.account.name, "event_key": deletion_key(event)}
    return bool(event.platform_message_id) and connection.execute(_KNOWN, of).first() is not None


def reword(connection: sa.Connection, message_id: str, text: str, at: datetime) -> bool:
    """The words of a message are `text` since `at`, by the platform's clock; False when later ones came before these."""
    row = connection.execute(_ROW_OF, {"message": message_id}).first()
    if row is None or row.event is None:
        return True
    since = row.event.get("edited_ts")
    if since and at < datetime.fromisoformat(since):
        return False
    connection.execute(_REWORD, {"row": row.id, "words": row.event | {"text": text, "edited_ts": at.isoformat()}})
    return True


def store(
    connection: sa.Connection,
    event: InboundEvent,
    *,
    state: str,
    rule: str = "",
    conversation_id: str = "",
    person_id: str = "",
    message_id: str = "",
    turn_id: str = "",
    now: datetime,
) -> int:
    """Insert the row of a new event and return its number. A refused event keeps ids, time and rule, never its words (CH-117)."""
    keeps_words = state == "new" or rule == "unknown"
    return connection.execute(_STORE, {
        "delivery_id": event.delivery_id, "channel": event.account.channel, "account": event.account.name, "event_key": event.platform_event_id,
        "address": str(event.address), "kind": event.kind.value, "state": state, "rule": rule, "conversation_id": conversation_id,
        "person_id": person_id, "message_id": message_id, "turn_id": turn_id, "event": to_json(event) if keeps_words else None,
        "received_at": event.received_at, "finished_at": None if state == "new" else now,
    }).scalar_one()  # fmt: skip


def start(connection: sa.Connection, rows: Sequence[int], turn_id: str) -> int:
    """Mark rows as running in `turn_id`; returns how often the most tried of them has been started, 0 when none is open any more."""
    return max(connection.execute(_START, {"rows": list(rows), "turn": turn_id}).scalars(), default=0)


def finish(connection: sa.Connection, rows: Sequence[int], *, now: datetime, state: str = "done", rule: str = "") -> None:
    if rows:
        connection.execute(_FINISH, {"rows": list(rows), "to": state, "why": rule, "now": now})


def hints(connection: sa.Connection, rows: Sequence[int]) -> set[str]:
    """What the adapters noted about these messages."""
    events = connection.execute(sa.select(inbox.c.event).where(inbox.c.id.in_(list(rows)))).scalars()
    return {str(event.get("hint", "")) for event in events if event}


def join(connection: sa.Connection, rows: Sequence[int], turn_id: str) -> None:
    """Rows taken into another row's turn."""
    connection.execute(_JOIN, {"rows": list(rows), "turn": turn_id})


def end_open(connection: sa.Connection, conversation_id: str, before: int, *, now: datetime) -> None:
    """The talk was reset: end what waits or runs in a conversation and arrived before row `before`, for it will not be answered any more."""
    connection.execute(_END_OPEN, {"of": conversation_id, "before": before, "now": now})


def waiting_of_message(connection: sa.Connection, message_id: str) -> list[int]:
    """The rows of a message whose turn has not begun."""
    return list(connection.execute(_OF_MESSAGE, {"message": message_id}).scalars())


def forget_words(connection: sa.Connection, message_id: str) -> None:
    connection.execute(_FORGET_WORDS, {"message": message_id})


def unfinished(connection: sa.Connection) -> list[tuple[Waiting, InboundEvent]]:
    """Everything that was stored and not answered, in the order of arrival: what a start resumes (CH-101)."""
    return [(_waiting(row), from_json(InboundEvent, row.event)) for row in connection.execute(_OPEN) if row.event is not None]


def _waiting(row: sa.Row[Any]) -> Waiting:
    event = row.event
    return Waiting(
        row_id=row.id,
        delivery_id=row.delivery_id,
        address=row.address,
        conversation_id=row.conversation_id,
        person_id=row.person_id,
        message_id=row.message_id,
        turn_id=row.turn_id,
        action=event["hint"] if row.kind == "action" else "",
        received_at=row.received_at,
        written_at=datetime.fromisoformat(event["platform_ts"]) if event["platform_ts"] else None,
        attachments=len(event["attachments"]),
        attempts=row.attempts,
        text=event["text"],
        platform_message_id=event["platform_message_id"],
        scope=row.scope or "",
    )


def checkpoint(connection: sa.Connection, rows: Sequence[int]) -> None:
    """Running rows that a drain cut short: they are taken up again, and this try does not count (CH-100)."""
    connection.execute(_CHECKPOINT, {"rows": list(rows)})


def last_at(connection: sa.Connection, address: str, before: int) -> sa.Row[Any] | None:
    """The newest row of a chat before row `before` that is not our own, for some platforms tell us of what we said: what `/why` explains."""
    return connection.execute(_LAST, {"of": address, "before": before}).one_or_none()


def save_cursor(connection: sa.Connection, *, channel: str, account: str, cursor: Cursor, now: datetime) -> None:
    """Where the account goes on receiving, in the transaction of the events before it."""
    at = {"channel": channel, "account": account, "name": cursor.name}
    changed = connection.execute(
        sa.update(cursors)
        .where(cursors.c.channel == channel, cursors.c.account == account, cursors.c.name == cursor.name)
        .values(value=cursor.value, updated_at=now)
    )
    if changed.rowcount == 0:
        connection.execute(sa.insert(cursors), at | {"value": cursor.value, "updated_at": now})


def load_cursor(connection: sa.Connection, *, channel: str, account: str, name: str) -> str:
    """The stored cursor; empty when there is none."""
    query = sa.select(cursors.c.value).where(cursors.c.channel == channel, cursors.c.account == account, cursors.c.name == name)
    return connection.execute(query).scalar() or ""


def prune(connection: sa.Connection, before: datetime) -> int:
    """Remove finished rows older than `before` (7 days: CH-51) and return how many went."""
    old = (inbox.c.finished_at < before) & inbox.c.state.in_(("done", "ignored", "dead", "early"))
    return connection.execute(sa.delete(inbox).where(old)).rowcount

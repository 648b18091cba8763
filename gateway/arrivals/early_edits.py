"""An edit that came before its message: its words wait for it, and are what the message says when it comes (CH-2).

Only of who would be heard with them, for what is not answered is not stored as text (CH-116, CH-117); of each message the newest, for a day, and
of an account no more than so many. Plain functions on a `Connection`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from channels.message import InboundEvent, from_json, to_json
from memory.ids import new_delivery
from memory.schema import identities, inbox

STATE = "early"  # of the row that holds the words: no lane takes it up
KEPT = timedelta(hours=24)
KEPT_MAX = 200  # of one account


def keep(connection: sa.Connection, event: InboundEvent, now: datetime) -> None:
    """The words of `event`, unless newer ones wait already. What waited for too long goes, and the oldest of too many."""
    sweep(connection, now)
    row = connection.execute(_FIND, _key(event)).one_or_none()
    if row is not None and _written(from_json(InboundEvent, row.event)) > _written(event):
        return
    connection.execute(_DROP, _key(event))
    connection.execute(sa.insert(inbox), {
        **_key(event), "delivery_id": new_delivery(), "address": str(event.address), "kind": event.kind.value, "state": STATE,
        "event": to_json(event), "received_at": event.received_at, "finished_at": now,
    })  # fmt: skip
    connection.execute(_SURPLUS, _key(event))


def applied(connection: sa.Connection, event: InboundEvent) -> InboundEvent:
    """A message with the words that its sender gave it since. They wait no more, whatever becomes of it."""
    if not event.platform_message_id:
        return event
    row = connection.execute(_FIND, _key(event)).one_or_none()
    if row is None:
        return event
    drop(connection, event)
    edit = from_json(InboundEvent, row.event)
    if edit.sender_id != event.sender_id or (event.edited_ts is not None and event.edited_ts > _written(edit)):
        return event
    return replace(event, text=edit.text, edited_ts=_written(edit))


def drop(connection: sa.Connection, event: InboundEvent) -> None:
    """What waits for the message that `event` is about."""
    connection.execute(_DROP, _key(event))


def forget(connection: sa.Connection, person_id: str) -> None:
    """What waits of a person who is to be forgotten, while it is known who they are."""
    for row in connection.execute(_OF_PERSON, {"person": person_id}).all():
        if row.event["sender_id"] == row.platform_user_id:
            connection.execute(sa.delete(inbox).where(inbox.c.id == row.id))


def sweep(connection: sa.Connection, now: datetime) -> None:
    """What waited for too long."""
    connection.execute(_SWEEP, {"before": now - KEPT})


def _written(edit: InboundEvent) -> datetime:
    return edit.platform_ts or edit.received_at


def _key(event: InboundEvent) -> dict[str, str]:
    key = f"{event.chat_id}:{event.platform_message_id}:early"
    return {"channel": event.account.channel, "account": event.account.name, "event_key": key}


_OF_ACCOUNT = (inbox.c.state == STATE, inbox.c.channel == sa.bindparam("channel"), inbox.c.account == sa.bindparam("account"))
_OF_MESSAGE = (*_OF_ACCOUNT, inbox.c.event_key == sa.bindparam("event_key"))
_FIND = sa.select(inbox.c.event).where(*_OF_MESSAGE)
_DROP = sa.delete(inbox).where(*_OF_MESSAGE)
_SWEEP = sa.delete(inbox).where(inbox.c.state == STATE, inbox.c.finished_at < sa.bindparam("before", type_=inbox.c.finished_at.type))
_OF_PERSON = (
    sa.select(inbox.c.id, inbox.c.event, identities.c.platform_user_id)
    .join(identities, (identities.c.channel == inbox.c.channel) & (identities.c.account == inbox.c.account))
    .where(inbox.c.state == STATE, identities.c.person_id == sa.bindparam("person"))
)
_SURPLUS = sa.delete(inbox).where(
    *_OF_ACCOUNT,
    inbox.c.id <= sa.select(inbox.c.id).where(*_OF_ACCOUNT).order_by(inbox.c.id.desc()).offset(KEPT_MAX).limit(1).scalar_subquery(),
)

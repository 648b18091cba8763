"""Durable in: one transaction stores what a platform delivered, its cursor, and what is to become of each event (CH-10, CH-50 to CH-53).

Plain functions on a `Connection`. An event that cannot be taken is rolled back to its savepoint and stored as `dead`, so that it never
stops the ones behind it (CH-4). Nothing here talks to anybody: the dispatcher acts on what comes back, after the commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy import exc

from channels.message import Account, ChatType, EventKind, InboundEvent
from channels.port import Arrival, Cursor
from gateway import vault
from gateway.arrivals import inbox, moved_chats, senders
from gateway.arrivals.admission import admits_group
from gateway.arrivals.corrections import take_deletion, take_edit
from gateway.arrivals.hygiene import ID_MAX, cleaned, over_long, shortened
from gateway.arrivals.received import CommandCall, Received, Setting, noted, refused
from gateway.arrivals.taking import take_action, take_message
from gateway.delivery import held_parts
from gateway.language import language_for
from memory.ids import new_delivery

__all__ = ["CommandCall", "Received", "Setting", "receive"]

log = logging.getLogger(__name__)


def receive(connection: sa.Connection, account: Account, events: Sequence[InboundEvent], cursor: Cursor | None, setting: Setting) -> list[Received]:
    """Store what `account` delivered, and its `cursor`; one `Received` per event, in order."""
    received = [_guarded(connection, event, setting) for event in events]
    if cursor is not None:
        inbox.save_cursor(connection, channel=account.channel, account=account.name, cursor=cursor, now=setting.now)
        vault.keep(connection, account, cursor.vault, setting.now)
    if setting.capabilities.send_budget is not None:
        for event in _written(received):
            _release(connection, event, setting, setting.capabilities.send_budget)
    return received


def _written(received: Sequence[Received]) -> list[InboundEvent]:
    """What people have newly written: each opens a new budget there (WX-41)."""
    new = [each.event for each in received if each.accepted.arrival is Arrival.NEW]
    return [event for event in new if event.kind is EventKind.MESSAGE and not event.is_us and event.chat_type is ChatType.DM]


def _release(connection: sa.Connection, event: InboundEvent, setting: Setting, budget: int) -> None:
    """What waited for this person goes out before the answer to what they wrote (WX-44)."""
    can, sender = setting.capabilities, senders.find(connection, event, are_people=setting.capabilities.senders_are_people)
    language = language_for(event.language, event.text, chosen=sender.language if sender else "")
    held_parts.release(connection, str(event.address), setting.now, language=language, limit=can.text_max, unit=can.text_unit, most=budget - 1)


def _guarded(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    event = replace(cleaned(event), delivery_id=new_delivery())
    long = over_long(event)
    event = shortened(event)
    if event.kind is EventKind.DELETED and event.platform_message_id:
        event = replace(event, platform_event_id=inbox.deletion_key(event))
    for last_try in (False, True):
        if (known := inbox.find_duplicate(connection, event)) is not None:
            return Received(accepted=known[0], event=event, conversation_id=known[1])
        if long and event.kind is not EventKind.UNKNOWN:
            named = ", ".join(f"{name} has {length:,} characters" for name, length in long.items())
            log.warning("%s: delivery %s is not taken in: %s, and an id may have %d", event.account, event.delivery_id, named, ID_MAX)
            return refused(connection, event, setting, "id-too-long", state="dead")
        try:
            with connection.begin_nested():
                return _TAKES[event.kind](connection, event, setting)
        except exc.IntegrityError:  # another writer stored this event, or made its person or chat, a moment ago: look again
            if last_try:
                log.exception("delivery %s could not be taken in", event.delivery_id)
        except (ValueError, TypeError, LookupError, exc.DataError):
            log.exception("delivery %s could not be taken in", event.delivery_id)
            break
    return refused(connection, event, setting, "unreadable", state="dead")


def _take_migration(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    if not event.target:
        raise ValueError("a chat that moved must say where to")
    moved_chats.follow(connection, old=event.address, new_chat_id=event.target, rules=setting.rules, now=setting.now)
    return noted(connection, event, setting, None)


def _report(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    place = senders.place_of(connection, event)
    if event.kind is EventKind.MEMBERSHIP and event.chat_type is not ChatType.DM and not admits_group(event, setting, place):
        log.warning("%s: %s in a group that is not allowed (chat %s)", event.account, event.hint or "membership changed", event.chat_id)
    return refused(connection, event, setting, event.kind.value)


_TAKES: dict[EventKind, Callable[[sa.Connection, InboundEvent, Setting], Received]] = {
    EventKind.MESSAGE: take_message,
    EventKind.ACTION: take_action,
    EventKind.EDITED: take_edit,
    EventKind.DELETED: take_deletion,
    EventKind.MIGRATED: _take_migration,
    EventKind.MEMBERSHIP: _report,
    EventKind.UNKNOWN: _report,
}

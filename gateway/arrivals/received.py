"""What becomes of one event that a platform delivered, and what must be known for that (CH-10, CH-50)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from channels.message import InboundEvent
from channels.port import Accepted, Arrival, Capabilities
from gateway.access import Rules
from gateway.arrivals import inbox
from gateway.arrivals.inbox import Waiting
from gateway.arrivals.senders import Sender
from gateway.command_line import CommandLine
from memory.conversations import Message
from memory.saved.undo import JOURNAL_DAYS
from memory.saved.writing import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """An admitted command, to be carried out at once beside whatever runs."""

    row_id: int
    conversation_id: str
    sender: Sender
    line: CommandLine
    event: InboundEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What became of one event. At most one of `waiting` and `command` is set."""

    accepted: Accepted
    event: InboundEvent
    conversation_id: str = ""
    message: Message | None = None
    waiting: Waiting | None = None
    command: CommandCall | None = None
    touched: str = ""  # the message that an edit or a deletion was about


_LIMITS = Limits()


def _never(*_: str) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the gateway knows beside the database when events arrive."""

    now: datetime
    capabilities: Capabilities
    rules: Rules
    prefixes: tuple[str, ...]
    needed_role: Callable[[str], str]  # of a command's name; empty for an unknown one
    opens_groups: Callable[[str], bool] = _never  # whether an admin may give this command in a group that is not allowed yet (CH-115)
    queue_full: Callable[[str], bool] = _never  # of an address
    over_rate: Callable[[str, str], bool] = _never  # of a person or sender, and an address; asked once, for what no other rule refuses
    drop_before: datetime | None = None  # what was written before then is kept and not answered (CH-55)
    bot_over_rate: Callable[[str], bool] = _never  # of an address, for listed bots (CH-120)
    length: Callable[[str], int] = len  # in the platform's own unit
    limits: Limits = _LIMITS  # of lists of saved memories
    journal_days: int = JOURNAL_DAYS  # for which what a model did to them can be taken back


def refused(
    connection: sa.Connection, event: InboundEvent, setting: Setting, rule: str, *, state: str = "ignored", conversation_id: str = ""
) -> Received:
    """It goes no further; `rule` says why."""
    if setting.capabilities.senders_are_people and rule in ("rate", "full"):  # they may send it again under the same key, and be heard then
        event = replace(event, platform_event_id=f"{event.platform_event_id}+{event.delivery_id}")
    inbox.store(connection, event, state=state, rule=rule, conversation_id=conversation_id, now=setting.now)
    accepted = Accepted(arrival=Arrival.NEW, delivery_id=event.delivery_id, state=state, rule=rule)
    return Received(accepted=accepted, event=event, conversation_id=conversation_id)


def noted(connection: sa.Connection, event: InboundEvent, setting: Setting, about: Message | None) -> Received:
    """It is done with. `about`: the message that it was about."""
    conversation_id = about.conversation_id if about else ""
    inbox.store(connection, event, state="done", conversation_id=conversation_id, now=setting.now)
    accepted = Accepted(arrival=Arrival.NEW, delivery_id=event.delivery_id, state="done")
    return Received(accepted=accepted, event=event, conversation_id=conversation_id, touched=about.id if about else "")

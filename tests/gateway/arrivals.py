"""Events as adapters deliver them, for tests of what becomes of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from channels.loopback import CAPABILITIES
from channels.message import Account, ChatType, EventKind, InboundEvent
from channels.port import Accepted, Cursor
from gateway.access import Rules
from gateway.arrivals.intake import Received, Setting, receive
from gateway.commands import needed_role
from memory.columns import metadata
from memory.conversations import Message
from memory.database import Database
from tests.conftest import FakeClock

ACCOUNT = Account(channel="loopback")
EVERYBODY = Rules(allow=frozenset({"*"}), groups=frozenset({"*"}))
_numbers = itertools.count(1)


def event(text: str = "hello", *, chat: str = "c1", sender: str = "ann", **more: Any) -> InboundEvent:
    """A direct message of `ann`; `more` replaces any field."""
    number = next(_numbers)
    base = InboundEvent(
        account=ACCOUNT, kind=EventKind.MESSAGE, platform_event_id=f"e{number}", platform_message_id=f"m{number}", chat_id=chat,
        sender_id=sender, sender_name=sender.title(), mentioned=True, text=text,
    )  # fmt: skip
    return replace(base, **more)


def in_group(text: str = "hello", *, mentioned: bool = True, **more: Any) -> InboundEvent:
    where: dict[str, Any] = {"chat": "g1", "chat_type": ChatType.GROUP, "mentioned": mentioned}
    return event(text, **(where | more))


class Door:
    """What `deliver` does to the database, without a gateway around it."""

    def __init__(self, db: Database, clock: FakeClock) -> None:
        self.db = db
        self.clock = clock
        self.setting = Setting(now=clock(), capabilities=CAPABILITIES, rules=EVERYBODY, prefixes=("/",), needed_role=needed_role)

    def set(self, **changes: Any) -> None:
        self.setting = replace(self.setting, **changes)

    async def receive(self, *events: InboundEvent, cursor: str = "") -> list[Received]:
        at = Cursor(name="updates", value=cursor) if cursor else None
        setting = replace(self.setting, now=self.clock())
        arrived = [replace(each, received_at=self.clock()) for each in events]
        return await self.db.write(lambda connection: receive(connection, ACCOUNT, arrived, at, setting))

    async def accepted(self, *events: InboundEvent) -> list[Accepted]:
        return [each.accepted for each in await self.receive(*events)]

    async def one(self, event: InboundEvent) -> Received:
        (received,) = await self.receive(event)
        return received

    async def rows(self, table: str, *columns: str) -> list[Any]:
        """The rows of a table in the order they were made; one column's values, tuples for several."""
        source = metadata.tables[table]
        query = sa.select(*(source.c[name] for name in columns)).order_by(source.c["seq" if table == "messages" else "id"])
        found = await self.db.read(lambda connection: connection.execute(query).all())
        return [row[0] if len(columns) == 1 else tuple(row) for row in found]

    async def do(self, work: Callable[[sa.Connection], Any]) -> Any:
        return await self.db.write(work)


def words(received: Received) -> str:
    message: Message | None = received.message
    return message.text if message else ""

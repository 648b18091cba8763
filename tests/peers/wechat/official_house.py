"""A small gateway around one channel that is called, for tests: the real store, intake, outbox and webhook listener, and answers by a script.

It can be killed and started again over the same database.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from channels.message import Account, Address, Attachment, InboundEvent
from channels.port import Accepted, Arrival, Channel, Cursor, OutboundPart, Webhook
from gateway.access import Rules
from gateway.arrivals import inbox, intake
from gateway.arrivals.inbox import Waiting
from gateway.config import Webhooks
from gateway.delivery import outbox_store
from gateway.delivery.gate import Gates
from gateway.delivery.held_parts import WAITING
from gateway.delivery.outbox import Outbox
from gateway.delivery.outbox_store import NewPart, OpenPart
from gateway.delivery.pulling import Pulling
from gateway.language import guess, say
from gateway.webhooks import WebhookListener
from memory.database import Database
from memory.schema import inbox as inbox_table
from memory.schema import outbox as outbox_table
from tests.patience import patience
from tests.ports import free_port

Script = Callable[[str], tuple[float, Sequence[str]]]  # of a question: how many of the vendor's seconds it takes, and the parts of the answer
EVERYBODY = Rules(allow=frozenset({"*"}), groups=frozenset({"*"}))


def speak(like: str, key: str, **values: object) -> str:
    """Our sentences, as the gateway hands them to a channel."""
    return say(guess(like), key, **values)


def marked(part: OpenPart) -> str:
    return f"{part.part.text}\n{say(guess(part.part.text), 'sent_again')}"


def _open() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate


@dataclass
class House:
    db: Database
    account: Account
    make: Callable[[], Any]
    script: Script
    clock: Callable[[], datetime]
    second: float
    rules: Rules = EVERYBODY
    port: int = field(default_factory=free_port)  # of all its lives
    settle_s: float = 30.0
    files: tuple[Attachment, ...] = ()  # with the last part of each answer
    questions: list[str] = field(default_factory=list[str])
    accepted: list[Accepted] = field(default_factory=list[Accepted])
    fails: Callable[[], None] = lambda: None
    goes_on: asyncio.Event = field(default_factory=_open)  # no turn ends before

    @asynccontextmanager
    async def running(self, before: Callable[[str], None] = lambda _url: None) -> AsyncGenerator[Any]:
        """One life. `before` is told the address at which the vendor may call."""
        channel = self.make()
        can = channel.capabilities
        stopped = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                pulling = Pulling(db=self.db, clock=self.clock, find_channel=lambda _account: channel, marked_text=marked, settle_s=self.settle_s)
                self.outbox = Outbox(
                    db=self.db, clock=self.clock, gates=Gates(), find_channel=pulling.find, group=group, marked_text=marked
                )
                pulling.wake = self.outbox.wake
                pulling.connect(channel)
                self._setting = intake.Setting(
                    now=self.clock(), capabilities=can, rules=self.rules, prefixes=("/",), needed_role=lambda _name: ""
                )
                listener = WebhookListener(lambda: [channel] if isinstance(channel, Webhook) else [], self._settings, shutdown_s=0.02)
                async with listener:
                    before(f"http://127.0.0.1:{listener.port}{getattr(channel, 'path', '/')}")
                    group.create_task(self._life(channel))
                    await self.outbox.recover(parked=False)
                    for waiting, _ in await self.db.read(inbox.unfinished):
                        group.create_task(self._turn(waiting))
                    yield channel
                    self.outbox.close()
                    stopped.set()
                raise _Over
        except* _Over:
            pass

    async def _life(self, channel: Channel) -> None:
        await channel.run(self.deliver)

    def _settings(self) -> Webhooks:
        return Webhooks(host="127.0.0.1", port=self.port)

    async def deliver(self, events: Sequence[InboundEvent], cursor: Cursor | None = None) -> list[Accepted]:
        self.fails()
        setting = replace(self._setting, now=self.clock())
        received = await self.db.write(lambda connection: intake.receive(connection, self.account, events, cursor, setting))
        for each in received:
            self.accepted.append(each.accepted)
            if each.accepted.arrival is Arrival.NEW and each.waiting is not None:
                self._group.create_task(self._turn(each.waiting))
        return [each.accepted for each in received]

    async def _turn(self, waiting: Waiting) -> None:
        self.questions.append(waiting.text)
        takes_s, texts = self.script(waiting.text)
        await asyncio.sleep(takes_s * self.second)
        await self.goes_on.wait()
        await self.say(texts, waiting)

    async def say(self, texts: Sequence[str], asked: Waiting, *, kind: str = "answer") -> None:
        """The end of a turn: its parts and the end of its row in one transaction."""
        now = self.clock()
        parts = [
            NewPart(
                part=OutboundPart(
                    part_id=f"{asked.turn_id}.1.{number}", address=Address.parse(asked.address), text=text,
                    reply_to=asked.platform_message_id if number == 1 else "", attachments=self.files if number == len(texts) else (),
                ),
                kind=kind, expires_at=now + timedelta(hours=24), turn_id=asked.turn_id, delivery_id=asked.delivery_id,
            )
            for number, text in enumerate(texts, 1)
        ]  # fmt: skip

        def work(connection: sa.Connection) -> None:
            inbox.finish(connection, [asked.row_id], now=now)
            outbox_store.put(connection, parts, now)

        await self.db.write(work)
        self.outbox.wake(asked.address)

    async def remind(self, chat: str, text: str, *, number: int = 1) -> None:
        """A part that no message asked for."""
        now, address = self.clock(), Address(account=self.account, chat_id=chat)
        part = NewPart(
            part=OutboundPart(part_id=f"reminder.{number}", address=address, text=text, aside=True), kind="reminder",
            expires_at=now + timedelta(hours=24),
        )  # fmt: skip
        await self.db.write(lambda connection: outbox_store.put(connection, [part], now))
        self.outbox.wake(str(address))

    async def parts(self) -> list[tuple[str, str]]:
        """Text and state of everything in the outbox, in order."""
        query = sa.select(outbox_table.c.part, outbox_table.c.state).order_by(outbox_table.c.id)
        rows = await self.db.read(lambda connection: connection.execute(query).all())
        return [(row.part["text"], row.state) for row in rows]

    async def states(self) -> list[str]:
        return [state for _, state in await self.parts()]

    async def settled(self, *states: str, within_s: float = 60.0) -> None:
        """Until the outbox stands like this. `waiting`: the channel was asked to send it, and it needs the person's next message."""
        query = sa.select(outbox_table.c.state, outbox_table.c.reason).order_by(outbox_table.c.id)
        async with asyncio.timeout(patience(within_s)):
            while True:
                rows = await self.db.read(lambda connection: connection.execute(query).all())
                if ["waiting" if row.reason == WAITING else row.state for row in rows] == list(states):
                    return
                await asyncio.sleep(0.1 * self.second)  # the store tells nobody

    async def rows(self) -> int:
        query = sa.select(sa.func.count()).select_from(inbox_table)
        return (await self.db.read(lambda connection: connection.execute(query))).scalar_one()


class _Over(Exception):
    pass


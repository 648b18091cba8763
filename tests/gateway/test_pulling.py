"""Parts that an adapter takes and settles itself, beside the outbox that sends (CH-12)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa

from channels.message import Account, Address
from channels.port import Capabilities, Deliver, OutboundPart, Refused, SendOutcome, Sent, SettlePart, TakePart, TextUnit, TryLater
from gateway.delivery import outbox_store
from gateway.delivery.gate import Gates
from gateway.delivery.outbox import Outbox
from gateway.delivery.outbox_store import NewPart, OpenPart
from gateway.delivery.pulling import HandedOver, Pulling
from gateway.delivery.rules import PartState
from memory.database import Database
from memory.schema import outbox as table
from tests.conftest import FakeClock
from tests.contracts.channel_contract import until
from tests.patience import patience

ACCOUNT = Account(channel="puller")
T = TypeVar("T")
HERE = Address(account=ACCOUNT, chat_id="c1")


class Puller:
    """A channel that pulls; what nobody takes it sends itself, with `outcome`."""

    def __init__(self) -> None:
        self.account = ACCOUNT
        self.capabilities = Capabilities(text_unit=TextUnit.UTF16, text_max=4096)
        self.proven_at: datetime | None = None
        self.sent: list[str] = []
        self.outcome: SendOutcome = TryLater()
        self.take: TakePart
        self.settle: SettlePart

    def connect_outbox(self, take: TakePart, settle: SettlePart) -> None:
        self.take, self.settle = take, settle

    async def run(self, deliver: Deliver) -> None:
        await asyncio.Event().wait()

    async def send(self, part: OutboundPart) -> SendOutcome:
        self.sent.append(part.text)
        return self.outcome


class Watched(Database):
    """Counts the times that somebody has looked and gone on."""

    looks = 0

    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        try:
            return await super().read(work)
        finally:
            self.looks += 1

    async def write(self, work: Callable[[sa.Connection], T]) -> T:
        try:
            return await super().write(work)
        finally:
            self.looks += 1


@dataclass
class Desk:
    db: Watched
    clock: FakeClock
    group: asyncio.TaskGroup
    settle_s: float = 30.0
    revoked: bool = False
    gates: Gates = field(default_factory=Gates)
    channel: Puller = field(default_factory=Puller)
    outcomes: list[PartState] = field(default_factory=list[PartState])

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        """A process begins."""
        shared: dict[str, Any] = {
            "db": self.db, "clock": self.clock, "marked_text": _marked, "on_outcome": lambda _part, state: self.outcomes.append(state),
            "revoked": lambda _connection, _address: self.revoked,
        }  # fmt: skip
        self.pulling = Pulling(find_channel=lambda _account: self.channel, settle_s=self.settle_s, **shared)
        self.outbox = Outbox(gates=self.gates, find_channel=self.pulling.find, group=self.group, **shared)
        self.pulling.wake = self.outbox.wake
        assert self.pulling.connect(self.channel) is self.channel

    async def put(self, *texts: str, wake: bool = True) -> None:
        now = self.clock()
        parts = [
            NewPart(part=OutboundPart(part_id=text, address=HERE, text=text), kind="answer", expires_at=now + timedelta(hours=1)) for text in texts
        ]
        await self.db.write(lambda connection: outbox_store.put(connection, parts, now))
        if wake:
            self.outbox.wake(str(HERE))

    async def states(self) -> list[str]:
        query = sa.select(table.c.state).order_by(table.c.id)
        return [row.state for row in await self.db.read(lambda connection: connection.execute(query).all())]

    async def settled(self, *states: str) -> None:
        async with asyncio.timeout(patience(5)):
            while await self.states() != list(states):  # noqa: ASYNC110  # the store tells nobody
                await asyncio.sleep(0.01)


def _marked(part: OpenPart) -> str:
    return f"{part.part.text} (sent again)"


MakeDesk = Callable[..., Any]


@pytest.fixture
def office(database: Database, clock: FakeClock) -> MakeDesk:
    @asynccontextmanager
    async def make(**more: Any) -> AsyncGenerator[Desk]:
        watched = Watched(database.url.render_as_string(hide_password=False))
        try:
            async with asyncio.TaskGroup() as group:
                desk = Desk(watched, clock, group, **more)
                yield desk
                desk.outbox.close()
                raise _Over
        except* _Over:
            pass
        await watched.close()

    return make


class _Over(Exception):
    pass


@pytest.mark.rule("CH-12", "CH-80", "CH-81")
async def test_who_waits_is_handed_what_comes_and_the_store_knows(office: MakeDesk) -> None:
    async with office() as desk:
        taking = asyncio.ensure_future(desk.channel.take(HERE, 5))
        await asyncio.sleep(0.05)
        await desk.put("one", "two")
        part = await asyncio.wait_for(taking, patience(3))
        assert part is not None
        assert part.text == "one"
        assert (await desk.states())[0] == "sending"
        following = await desk.channel.take(HERE, 1)
        assert following is not None
        assert following.text == "two", "a taker goes on to the parts behind"
        assert await desk.channel.take(HERE, 0) is None
        await desk.channel.settle(following, Sent(("b",)))
        await desk.channel.settle(part, Sent(("a",)))
        await desk.settled("sent", "sent")
    assert desk.channel.sent == []
    assert sorted(desk.outcomes) == ["sent", "sent"]


@pytest.mark.rule("CH-12")
async def test_what_nobody_takes_the_channel_is_asked_to_send(office: MakeDesk) -> None:
    async with office() as desk:
        desk.channel.outcome = Sent(("x",))
        await desk.put("one")
        await desk.settled("sent")
        assert desk.channel.sent == ["one"]
        assert await desk.channel.take(HERE, 0) is None
        desk.channel.outcome = Refused("no")
        await desk.put("two")
        await desk.settled("sent", "failed")


@pytest.mark.rule("CH-12", "WX-72")
async def test_what_waits_for_a_time_or_a_gate_is_taken_all_the_same(office: MakeDesk) -> None:
    async with office() as desk:
        desk.channel.outcome = TryLater(3600)
        await desk.put("parked")
        await until(lambda: desk.channel.sent == ["parked"])
        await desk.settled("queued")
        part = await desk.channel.take(HERE, 2)
        assert part is not None
        await desk.channel.settle(part, Sent(("a",)))
        await desk.settled("sent")
    assert desk.channel.sent == ["parked"]


@pytest.mark.rule("CH-12", "CH-11")
async def test_what_is_given_back_is_sent_later(office: MakeDesk) -> None:
    async with office() as desk:
        await desk.put("one", "two", wake=False)
        one, two = await desk.channel.take(HERE, 1), await desk.channel.take(HERE, 1)
        assert one is not None
        assert two is not None
        desk.channel.outcome = Sent(("x",))
        await desk.channel.settle(two, TryLater())
        await desk.channel.settle(one, Sent(("a",)))
        await desk.settled("sent", "queued")
        desk.clock.advance(minutes=2)
        desk.outbox.wake(str(HERE))
        await desk.settled("sent", "sent")
    assert desk.channel.sent == ["two"]


@pytest.mark.rule("CH-12", "CH-80")
@pytest.mark.parametrize("handed", [True, False], ids=["handed over", "taken from the store"])
async def test_taken_and_not_settled_is_unknown_and_goes_out_once_more_marked(office: MakeDesk, handed: bool) -> None:
    async with office(settle_s=0.2) as desk:
        if handed:
            taking = asyncio.ensure_future(desk.channel.take(HERE, 5))
            await until(lambda: desk.db.looks > 0)  # there is nothing yet
            await desk.put("one")
            part = await taking
        else:
            await desk.put("one", wake=False)
            part = await desk.channel.take(HERE, 1)
        assert part is not None
        desk.channel.outcome = Sent(("x",))
        await asyncio.sleep(0.3)
        await desk.settled("unknown" if handed else "sending")  # what is in the store is looked at when its time is over
        desk.clock.advance(seconds=5)
        desk.outbox.wake(str(HERE))
        await desk.settled("sent")
        assert desk.channel.sent == ["one (sent again)"]
        await desk.channel.settle(part, Refused("too late to say so"))
        assert await desk.states() == ["sent"]


@pytest.mark.rule("CH-12", "CH-101")
async def test_taken_when_the_process_is_killed_it_is_unknown(office: MakeDesk) -> None:
    async with office() as desk:
        await desk.put("one", wake=False)
        assert await desk.channel.take(HERE, 1) is not None
        desk.outbox.close()
        desk.open()
        await desk.outbox.recover(parked=False)
        assert await desk.states() == ["unknown"]
        part = await desk.channel.take(HERE, 1)
        assert part is not None
        assert (part.text, part.sent_again) == ("one (sent again)", True)
        await desk.channel.settle(part, Sent(("a",)))
        await desk.settled("sent")


@pytest.mark.rule("CH-82", "CH-83", "CH-12")
async def test_nobody_takes_what_is_too_old_or_whose_reader_lost_access(office: MakeDesk) -> None:
    async with office() as desk:
        await desk.put("old", wake=False)
        desk.clock.advance(hours=2)
        assert await desk.channel.take(HERE, 0.1) is None
        await desk.settled("expired")
        desk.revoked = True
        await desk.put("secret", wake=False)
        assert await desk.channel.take(HERE, 0.1) is None
        await desk.settled("expired", "failed")
    assert desk.channel.sent == []


@pytest.mark.rule("CH-12", "CH-81")
async def test_while_the_channel_itself_sends_a_part_nobody_takes_it(office: MakeDesk) -> None:
    async with office() as desk:
        going = asyncio.Event()

        async def slow(part: OutboundPart) -> SendOutcome:
            desk.channel.sent.append(part.text)
            await going.wait()
            return Sent(("x",))

        desk.channel.send = slow  # type: ignore[method-assign]
        await desk.put("one", "two")
        await until(lambda: desk.channel.sent == ["one"])
        assert await desk.channel.take(HERE, 0.1) is None
        taking = asyncio.ensure_future(desk.channel.take(HERE, 3))
        await asyncio.sleep(0.05)
        going.set()
        part = await taking
        assert part is not None
        assert part.text == "two"
        await desk.channel.settle(part, Sent(("y",)))
        await desk.settled("sent", "sent")


@pytest.mark.rule("CH-8", "CH-12")
async def test_a_channel_that_does_not_pull_stays_as_it_is(office: MakeDesk) -> None:
    async with office() as desk:
        found = desk.pulling.find(ACCOUNT)
        assert isinstance(found, HandedOver)
        assert found.capabilities is desk.channel.capabilities
        assert found.proven_at is None
        plain = without_pull(desk.channel)
        desk.channel = plain
        assert desk.pulling.find(ACCOUNT) is plain
        assert desk.pulling.connect(plain) is plain


def without_pull(channel: Puller) -> Any:
    class Plain:
        account, capabilities, proven_at = channel.account, channel.capabilities, channel.proven_at
        run, send = channel.run, channel.send

    return Plain()


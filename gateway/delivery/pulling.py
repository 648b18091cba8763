"""For platforms whose answer travels in the reply to their own request: the adapter takes parts and settles them (CH-12).

The outbox stays the one that sends. It sees such a channel through `find`, and what it would send is handed to whoever waits for it; only when
nobody does, the channel's own `send` is asked. Beside that, a taker may go on to the parts behind: several of them travel in one reply. A part that
was taken is `sending` in the store, so that after a crash it is unknown, as with any other send.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from channels.message import Account, Address
from channels.port import Channel, Deliver, OutboundPart, Pull, SendOutcome, Unknown
from gateway.delivery import outbox_store
from gateway.delivery.outbox_store import OpenPart
from gateway.delivery.rules import PartState, settle
from gateway.patience import write_at_last
from memory.database import Database
from memory.schema import outbox

SETTLE_S = 30.0  # CH-12: not settled by then, a part is unknown
LOOK_AGAIN_S = 0.5  # when the outbox itself is kept from looking: a closed gate, another part on its way

Clock = Callable[[], datetime]
log = logging.getLogger(__name__)

_HOLD = (
    sa.update(outbox)
    .where(
        outbox.c.id == sa.bindparam("row"),
        outbox.c.state == sa.bindparam("seen_state"),
        outbox.c.attempts == sa.bindparam("seen_attempts"),
    )
    .values(
        state=PartState.SENDING.value,
        reason="",
        attempts=outbox.c.attempts + 1,
        attempted_at=sa.bindparam("new_attempted", type_=outbox.c.attempted_at.type),
        not_before=sa.bindparam("until", type_=outbox.c.not_before.type),
        updated_at=sa.bindparam("now", type_=outbox.c.updated_at.type),
    )
)


@dataclass(slots=True)
class Taken:
    """A part in an adapter's hands. `opened` as it was before, None when it came from the outbox, which waits for `outcome`."""

    part: OutboundPart
    outcome: asyncio.Future[SendOutcome]
    opened: OpenPart | None = None
    until: float = 0.0  # of the loop's clock


@dataclass(slots=True)
class Desk:
    """One chat: what the outbox holds out, and what was taken and is not settled."""

    takers: int = 0
    offered: list[Taken] = field(default_factory=list[Taken])
    taken: dict[str, Taken] = field(default_factory=dict[str, Taken])
    news: asyncio.Event = field(default_factory=asyncio.Event)


class Pulling:
    """Every channel that pulls. `wake` is the outbox's, to be set before anything runs."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        find_channel: Callable[[Account], Channel | None],
        marked_text: Callable[[OpenPart], str],
        on_outcome: Callable[[OpenPart, PartState], None] = lambda _part, _state: None,
        revoked: Callable[[sa.Connection, Address], bool] = lambda _connection, _address: False,
        settle_s: float = SETTLE_S,
    ) -> None:
        """The callables are those of the outbox."""
        self.wake: Callable[[str], None] = lambda _address: None
        self._db = db
        self._clock = clock
        self._find_channel = find_channel
        self._marked_text = marked_text
        self._on_outcome = on_outcome
        self._revoked = revoked
        self._settle_s = settle_s
        self._desks: defaultdict[str, Desk] = defaultdict(Desk)

    def connect(self, channel: Channel) -> Channel:
        """Give a channel that pulls its `take` and `settle`; any other stays as it is."""
        if isinstance(channel, Pull):
            channel.connect_outbox(self.take, self.settle)
        return channel

    def find(self, account: Account) -> Channel | None:
        """The live channel as the outbox is to see it."""
        channel = self._find_channel(account)
        return HandedOver(channel, self) if channel is not None and isinstance(channel, Pull) else channel

    async def take(self, address: Address, within_s: float) -> OutboundPart | None:
        """The next part of a chat, `sending` from now on; None when there is none within the time.

        What waits for the person to write, or for a gate of other calls, is taken too: a reply to the platform's own request is always open.
        """
        name = str(address)
        desk = self._desks[name]
        loop = asyncio.get_running_loop()
        until = loop.time() + within_s
        desk.takers += 1
        try:
            while True:
                desk.news.clear()
                if desk.offered:
                    return self._keep(desk, desk.offered.pop(0)).part
                if found := await self._from_store(name, desk):
                    return found.part
                left = until - loop.time()
                if left <= 0:
                    return None
                try:
                    async with asyncio.timeout(min(left, LOOK_AGAIN_S)):
                        await desk.news.wait()
                except TimeoutError:
                    pass
        finally:
            desk.takers -= 1
            self._leave(name, desk)

    async def settle(self, part: OutboundPart, outcome: SendOutcome) -> None:
        """What became of a taken part. Later than 30 s, or a second time, it is ignored: the part is unknown by then."""
        name = str(part.address)
        desk = self._desks[name]
        taken = desk.taken.pop(part.part_id, None)
        self._leave(name, desk)
        if taken is None or taken.outcome.done():
            log.info("part %s was settled too late", part.part_id)
            return
        taken.outcome.set_result(outcome)
        if taken.opened is not None:
            await self._store(taken, taken.opened, outcome)
            self.wake(name)

    async def offer(self, part: OutboundPart, channel: Channel) -> SendOutcome:
        """What the outbox is about to send: handed over where somebody waits for it, else sent by the channel itself."""
        name = str(part.address)
        desk = self._desks[name]
        _drop_late(desk)
        taken = desk.taken.get(part.part_id)  # while the outbox was about to send it, it was taken from the store
        if taken is None and desk.takers == 0:
            self._leave(name, desk)
            return await channel.send(part)
        if taken is None:
            taken = Taken(part=part, outcome=asyncio.get_running_loop().create_future())
            desk.offered.append(taken)
            desk.news.set()
        try:
            async with asyncio.timeout(self._settle_s):
                return await self._outcome(name, desk, taken, channel)
        except TimeoutError:
            return Unknown("it was taken, and nobody said what became of it")
        finally:
            if taken in desk.offered:
                desk.offered.remove(taken)
            desk.taken.pop(part.part_id, None)
            self._leave(name, desk)

    async def _outcome(self, name: str, desk: Desk, taken: Taken, channel: Channel) -> SendOutcome:
        """Once it is settled; or, when those who waited have left without it, what the channel's own `send` comes to."""
        while not taken.outcome.done():
            if taken in desk.offered and desk.takers == 0:
                desk.offered.remove(taken)
                return await channel.send(taken.part)
            await asyncio.wait([taken.outcome], timeout=LOOK_AGAIN_S)
        return taken.outcome.result()

    def _keep(self, desk: Desk, taken: Taken) -> Taken:
        taken.until = asyncio.get_running_loop().time() + self._settle_s
        desk.taken[taken.part.part_id] = taken
        return taken

    def _leave(self, name: str, desk: Desk) -> None:
        """Nothing is kept for chats in which nothing goes on."""
        if not desk.takers and not desk.offered and not desk.taken:
            self._desks.pop(name, None)

    async def _from_store(self, address: str, desk: Desk) -> Taken | None:
        """The oldest open part behind those that were taken, when nobody has it in hand."""
        now = self._clock()
        _drop_late(desk)
        taken = set(desk.taken)

        def work(connection: sa.Connection) -> OpenPart | None:
            after = 0
            while (found := outbox_store.next_open(connection, address, after=after)) is not None and found.part.part_id in taken:
                after = found.row_id
            if found is None or found.view.state is PartState.SENDING or found.view.expires_at <= now:
                return None  # the outbox has it, or will see to it
            if found.view.state is PartState.UNKNOWN and found.view.sent_again:
                return None
            if found.kind != "notice" and self._revoked(connection, found.part.address):
                return None
            held = {
                "row": found.row_id,
                "seen_state": found.view.state.value,
                "seen_attempts": found.view.attempts,
                "new_attempted": found.view.attempted_at if found.view.unknowns else now,
                "until": now + timedelta(seconds=self._settle_s),
                "now": now,
            }
            return found if connection.execute(_HOLD, held).rowcount == 1 else None

        if await self._db.read(lambda connection: outbox_store.next_open(connection, address)) is None:
            return None
        found = await self._db.write(work)
        if found is None:
            self.wake(address)
            return None
        part = found.part
        if found.view.state is PartState.UNKNOWN:
            part = replace(part, text=self._marked_text(found), sent_again=True)
        return self._keep(desk, Taken(part=part, outcome=asyncio.get_running_loop().create_future(), opened=found))

    async def _store(self, taken: Taken, opened: OpenPart, outcome: SendOutcome) -> None:
        now = self._clock()
        change = settle(replace(opened.view, sent_again=taken.part.sent_again), outcome, now, jitter=0.0)
        await write_at_last(
            self._db,
            lambda connection: outbox_store.apply(connection, opened, change, now, part=taken.part),
            f"the outcome of part {taken.part.part_id}",
        )
        self._on_outcome(opened, change.state)


def _drop_late(desk: Desk) -> None:
    """What was not settled in time is in nobody's hands any more."""
    now = asyncio.get_running_loop().time()
    desk.taken = {part_id: held for part_id, held in desk.taken.items() if held.until > now}


class HandedOver:
    """A channel that pulls, as the outbox sees it: what it sends is offered first."""

    def __init__(self, channel: Channel, pulling: Pulling) -> None:
        self.account = channel.account
        self.capabilities = channel.capabilities
        self._channel = channel
        self._pulling = pulling

    @property
    def proven_at(self) -> datetime | None:
        return self._channel.proven_at

    async def run(self, deliver: Deliver) -> None:
        await self._channel.run(deliver)

    async def send(self, part: OutboundPart) -> SendOutcome:
        return await self._pulling.offer(part, self._channel)

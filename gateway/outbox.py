"""Durable out: sends what is stored, in order, one chat at a time, and never lets one chat or platform delay another (CH-80 to CH-92).

A pump per address runs while that chat has unfinished parts. What to do is decided in `outbox_rules`; here it is only carried out.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from channels.message import Account, Address
from channels.port import Channel, Editing, OutboundPart, Reconcile, SendOutcome, Sent, Unknown
from gateway import intake, outbox_store
from gateway.gate import Gates
from gateway.outbox_rules import Change, Next, PartState, Step, next_step, settle
from gateway.outbox_store import OpenPart
from memory.database import Database
from memory.errors import StoreUnavailable

log = logging.getLogger(__name__)

SEND_LIMIT_S = 60.0  # a send that has not answered by then is unknown
STORE_RETRY_S = 1.0
Clock = Callable[[], datetime]
FindChannel = Callable[[Account], Channel | None]
MarkSentAgain = Callable[[OpenPart], str]


class Outbox:
    """All pumps of this process."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        gates: Gates,
        find_channel: FindChannel,
        group: asyncio.TaskGroup,
        marked_text: MarkSentAgain,
        on_outcome: Callable[[OpenPart, PartState], None] = lambda _part, _state: None,
        on_account_stopped: Callable[[Account, str], None] = lambda _account, _reason: None,
    ) -> None:
        """`marked_text`: the words of a part that may be a second copy, in the reader's language."""
        self._db = db
        self._clock = clock
        self._gates = gates
        self._find_channel = find_channel
        self._group = group
        self._marked_text = marked_text
        self._on_outcome = on_outcome
        self._on_account_stopped = on_account_stopped
        self._pumps: dict[str, asyncio.Event] = {}
        self._moving: set[str] = set()  # chats with something that can leave now, not waiting for a gate
        self._still = asyncio.Event()
        self._still.set()
        self._losses: set[str] = set()
        self._open = True

    async def recover(self) -> None:
        """Take up what an earlier run left (CH-101)."""
        now = self._clock()

        def work(connection: sa.Connection) -> tuple[list[str], list[str]]:
            return outbox_store.recover(connection, now), outbox_store.untold_losses(connection)

        addresses, losses = await self._db.write(work)
        self._losses.update(losses)
        for address in addresses:
            self.wake(address)

    def wake(self, address: str) -> None:
        """Something may be sent in this chat: parts were stored, or what held them back is over."""
        if not self._open:
            return
        woken = self._pumps.get(address)
        if woken is None:
            woken = self._pumps[address] = asyncio.Event()
            self._group.create_task(self._pump(address, woken), name=f"outbox {address}")
        woken.set()

    def wake_account(self, account: Account) -> None:
        prefix = f"{account}:"
        for address in list(self._pumps):
            if address.startswith(prefix):
                self.wake(address)

    def busy_at(self, address: str) -> bool:
        """Whether a chat has unfinished parts."""
        return address in self._pumps

    def losses(self, address: str) -> bool:
        """Was an answer lost here, and nobody told yet?"""
        return address in self._losses

    def told(self, address: str) -> None:
        self._losses.discard(address)

    async def drained(self) -> None:
        """Returns when nothing is left that could leave now; what waits for a gate stays stored. The caller bounds the wait."""
        await self._still.wait()

    def close(self) -> None:
        """Send nothing more; the rest is stored and goes out after the next start."""
        self._open = False
        for woken in self._pumps.values():
            woken.set()

    async def _pump(self, address: str, woken: asyncio.Event) -> None:
        try:
            while self._open:
                woken.clear()
                self._move(address, True)
                try:
                    until = await self._one(address)
                except StoreUnavailable:
                    log.warning("outbox of %s: the database cannot be used now", address)
                    until = self._clock() + timedelta(seconds=STORE_RETRY_S)
                if until is None:
                    return
                wait = (until - self._clock()).total_seconds()
                if wait > 0:
                    self._move(address, False)
                    try:
                        async with asyncio.timeout(wait):
                            await woken.wait()
                    except TimeoutError:
                        pass
        finally:
            self._move(address, False)
            del self._pumps[address]
            if woken.is_set():
                self.wake(address)  # something was stored while this pump was ending

    def _move(self, address: str, moving: bool) -> None:
        (self._moving.add if moving else self._moving.discard)(address)
        (self._still.clear if self._moving else self._still.set)()

    async def _one(self, address: str) -> datetime | None:
        """Move the oldest open part one step. None when nothing is open; else when to look again (now, or a later time)."""
        opened = await self._db.read(lambda connection: outbox_store.next_open(connection, address))
        if opened is None:
            return None
        now = self._clock()
        account = opened.part.address.account
        channel = self._find_channel(account)
        if channel is None or self._gates.stopped(account):
            # Nothing can be sent; expiry still holds, so that a chat is not surprised by old answers.
            if opened.view.expires_at > now:
                return opened.view.expires_at
            await self._finish(opened, Change(state=PartState.EXPIRED, reason="expired", unknowns=opened.view.unknowns))
            return now
        step = next_step(opened.view, now, channel.capabilities, self._gates.closed_until(opened.part.address, now))
        return await self._carry_out(opened, step, channel)

    async def _carry_out(self, opened: OpenPart, following: Next, channel: Channel) -> datetime:
        now = self._clock()
        unknowns = opened.view.unknowns
        match following.step:
            case Step.WAIT:
                return following.until or now
            case Step.EXPIRE:
                await self._finish(opened, Change(state=PartState.EXPIRED, reason="expired", unknowns=unknowns))
            case Step.GIVE_UP:
                reason = "nobody can tell whether it arrived"
                await self._finish(opened, Change(state=PartState.FAILED, reason=reason, unknowns=unknowns))
            case Step.LOOK_UP:
                await self._look_up(opened, channel)
            case Step.SEND:
                await self._send(opened, opened.part, channel)
            case Step.SEND_MARKED:
                await self._send(opened, replace(opened.part, text=self._marked_text(opened)), channel)
        return now

    async def _look_up(self, opened: OpenPart, channel: Channel) -> None:
        assert isinstance(channel, Reconcile), "capabilities declare reconcile, so the channel has it (a contract test holds this)"
        async with asyncio.timeout(SEND_LIMIT_S):
            found = await channel.find(opened.part, opened.view.attempted_at or opened.view.expires_at)
        if found is None:
            await self._finish(opened, Change(state=PartState.QUEUED, unknowns=opened.view.unknowns))
        else:
            await self._finish(opened, Change(state=PartState.SENT, platform_ids=found, unknowns=opened.view.unknowns))

    async def _send(self, opened: OpenPart, part: OutboundPart, channel: Channel) -> None:
        now = self._clock()
        if not await self._db.write(lambda connection: outbox_store.mark_sending(connection, opened.row_id, now)):
            return
        outcome = await self._outcome(part, channel)
        change = settle(opened.view, outcome, self._clock(), jitter=random.random())
        if change.gate_s:
            self._gates.close(part.address, self._clock(), change.gate_s)
        if change.stop_account:
            self._gates.stop_account(part.address.account, change.stop_account)
            self._on_account_stopped(part.address.account, change.stop_account)
        await self._finish(opened, change, part=part)

    async def _outcome(self, part: OutboundPart, channel: Channel) -> SendOutcome:
        try:
            async with asyncio.timeout(SEND_LIMIT_S):
                if part.edit_of and isinstance(channel, Editing):
                    outcome = await channel.edit(part.address, part.edit_of, part)
                    return Sent((part.edit_of,)) if outcome == Sent() else outcome
                return await channel.send(part)
        except TimeoutError:
            return Unknown(f"no answer within {SEND_LIMIT_S:g} s")
        except Exception as error:  # a home of its own (STYLE: lane worker): one faulty adapter must not end every other chat's sending
            log.exception("sending part %s raised", part.part_id)
            return Unknown(f"the adapter failed: {type(error).__name__}")

    async def _finish(self, opened: OpenPart, change: Change, part: OutboundPart | None = None) -> None:
        now = self._clock()

        def work(connection: sa.Connection) -> None:
            outbox_store.apply(connection, opened, change, now, part=part)
            if change.new_chat_id:
                old = opened.part.address
                intake.move_chat(connection, old=old, new=Address(account=old.account, chat_id=change.new_chat_id, thread_id=old.thread_id))

        await self._written(work)
        if change.new_chat_id:
            self.wake(str(replace(opened.part.address, chat_id=change.new_chat_id)))
        if change.state in (PartState.FAILED, PartState.EXPIRED):
            log.warning("part %s of delivery %s: %s (%s)", opened.part.part_id, opened.delivery_id, change.state.value, change.reason)
            if opened.kind == "answer":
                self._losses.add(str(opened.part.address))
        self._on_outcome(opened, change.state)

    async def _written(self, work: Callable[[sa.Connection], None]) -> None:
        """What a platform answered is known only here: keep trying until the database takes it (RL-4)."""
        while True:
            try:
                await self._db.write(work)
                return
            except StoreUnavailable:
                log.warning("the outcome of a send cannot be stored now; trying again")
                await asyncio.sleep(STORE_RETRY_S)

"""Durable out: sends what is stored, in order, one chat at a time, and never lets one chat or platform delay another (CH-80 to CH-92).

A pump per address runs while that chat has unfinished parts. What to do is decided in `outbox_rules`; here it is only carried out.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

import sqlalchemy as sa

from channels.errors import ChannelError
from channels.message import Account, Address
from channels.port import Channel, Editing, OutboundPart, Reactions, Reconcile, SendOutcome, Sent, TryLater, Unknown
from channels.units import measure
from gateway.access import Rules
from gateway.arrivals import moved_chats
from gateway.delivery import outbox_store
from gateway.delivery.gate import Gates
from gateway.delivery.outbox_store import PREVIEW, OpenPart
from gateway.delivery.rules import MARGIN_S, OPEN, Change, Next, PartState, Step, next_step, settle, settle_look_up
from gateway.patience import write_at_last
from memory.database import Database
from memory.errors import StoreUnavailable

log = logging.getLogger(__name__)

SEND_LIMIT_S = 60.0  # a send that has not answered by then is unknown
SIGN_LIMIT_S = 15.0  # typing, reactions, previews
STORE_RETRY_S = 1.0
FAULT_RETRY_S = 60.0  # after a fault of ours with a part
T = TypeVar("T")
Clock = Callable[[], datetime]
FindChannel = Callable[[Account], Channel | None]
MarkSentAgain = Callable[[OpenPart], str]


async def asked(call: Awaitable[T], limit_s: float, what: str) -> T | Unknown:
    """What a call to an adapter came to. When it raises, or does not come back, nobody can tell what arrived."""
    try:
        async with asyncio.timeout(limit_s):
            return await call
    except TimeoutError:
        return Unknown(f"no answer within {limit_s:g} s")
    except (ChannelError, OSError) as error:
        log.info("%s failed: %s", what, error)
        return Unknown(str(error))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return Unknown("it was given up on the way")  # nobody cancelled us: a client whose connections are closed ends so what waits for one
    except Exception as error:  # a home of its own (STYLE: lane worker): one faulty adapter must not end every other chat's sending
        log.exception("%s raised", what)
        return Unknown(f"the adapter failed: {type(error).__name__}")


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
        rules: Callable[[Account], Rules | None] = lambda _account: None,
        on_outcome: Callable[[OpenPart, PartState], None] = lambda _part, _state: None,
        on_given_up: Callable[[OpenPart, str], None] = lambda _part, _reason: None,
        on_account_stopped: Callable[[Account, str, str], None] = lambda _account, _reason, _code: None,
        revoked: Callable[[sa.Connection, Address], bool] = lambda _connection, _address: False,
    ) -> None:
        """`marked_text`: the words of a part that may be a second copy, in the reader's language. `revoked`: whether a chat lost its access."""
        self._db = db
        self._clock = clock
        self._gates = gates
        self._find_channel = find_channel
        self._group = group
        self._marked_text = marked_text
        self._on_outcome = on_outcome
        self._rules = rules
        self._on_given_up = on_given_up
        self._on_account_stopped = on_account_stopped
        self._revoked = revoked
        self._pumps: dict[str, asyncio.Event] = {}
        self._moving: set[str] = set()  # chats with something that can leave now, not waiting for a gate
        self._still = asyncio.Event()
        self._still.set()
        self._losses: set[str] = set()
        self._tellings = 0  # how often somebody was told
        self._left: tuple[str, ...] = ()  # chats with parts of earlier runs, while those are parked (CH-102)
        self._parked_to = 0  # parts up to this row are parked
        self._open = True

    async def recover(self, *, parked: bool) -> None:
        """Look at what earlier runs left and send what may still be sent (CH-101). `parked`: it waits for `release` (CH-102)."""
        now = self._clock()
        left = await self._db.write(lambda connection: outbox_store.recover(connection, now))
        self._losses.update(left.losses)
        self._left = tuple(left.addresses)
        for address, until in left.addresses.items():
            if until is not None and until > now:  # a platform's order to wait outlives the process (CH-91)
                self._gates.close(Address.parse(address), now, (until - now).total_seconds())
        if left.expired:
            log.warning("%d parts had waited longer than they may and are not sent; who lost an answer is told with the next one", left.expired)
        if parked:
            self._parked_to = left.newest
        else:
            self.release()

    def release(self) -> None:
        """Send what earlier runs left."""
        self._parked_to = 0
        addresses, self._left = self._left, ()
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
        self._move(address, True)
        woken.set()

    def wake_account(self, account: Account) -> None:
        prefix = str(Address(account=account, chat_id=""))
        for address in list(self._pumps):
            if address.startswith(prefix):
                self.wake(address)

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """Put a reaction to a message, where the platform has them. Skipped while the gate is closed (CH-91)."""
        channel = self._find_channel(address.account)
        if not isinstance(channel, Reactions) or not self._gates.is_open(address, self._clock()):
            return
        outcome = await asked(channel.react(address, message_id, emoji), SIGN_LIMIT_S, f"a reaction in {address}")
        if isinstance(outcome, TryLater) and outcome.after_s:
            self._gates.close(address, self._clock(), outcome.after_s + MARGIN_S, whole_account=outcome.whole_account)

    def busy_at(self, address: str) -> bool:
        """Whether a chat has unfinished parts."""
        return address in self._pumps

    def losses(self, address: str) -> bool:
        """Was an answer lost here, and nobody told yet?"""
        return address in self._losses

    def told(self, address: str) -> None:
        self._losses.discard(address)
        self._tellings += 1

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
                except Exception:  # a home of its own (STYLE: lane worker): a fault with one chat's part must not end every other chat's sending
                    log.exception("the oldest part for %s cannot be moved", address)
                    until = self._clock() + timedelta(seconds=FAULT_RETRY_S)
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

        def look(connection: sa.Connection) -> tuple[OpenPart | None, bool, bool]:
            found = outbox_store.next_open(connection, address, after=self._parked_to)
            idle = found is None or found.view.not_before is not None
            lost = idle and outbox_store.has_untold_loss(connection, address)  # what waited for its person may have found no room (WX-44)
            return found, found is not None and found.kind != "notice" and self._revoked(connection, found.part.address), lost

        tellings = self._tellings
        opened, revoked, lost = await self._db.read(look)
        if lost and tellings == self._tellings:
            self._losses.add(address)
        if opened is None:
            return None
        now = self._clock()
        if revoked:
            await self._finish(opened, Change(state=PartState.FAILED, reason="revoked", unknowns=opened.view.unknowns))
            return now
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
                again = replace(opened.part, text=self._marked_text(opened), sent_again=True)
                if measure(again.text, channel.capabilities.text_unit) <= channel.capabilities.text_max:
                    await self._send(opened, again, channel)
                else:
                    reason = "it may have arrived, and a second copy has no room to say so"
                    await self._finish(opened, Change(state=PartState.FAILED, reason=reason, unknowns=unknowns))
        return now

    async def _look_up(self, opened: OpenPart, channel: Channel) -> None:
        assert isinstance(channel, Reconcile), "capabilities declare reconcile, so the channel has it (a contract test holds this)"
        since = opened.view.attempted_at or self._clock()
        found = await asked(channel.find(opened.part, since), SEND_LIMIT_S, f"looking for part {opened.part.part_id}")
        await self._finish(opened, settle_look_up(opened.view, found, self._clock()))

    async def _send(self, opened: OpenPart, part: OutboundPart, channel: Channel) -> None:
        now = self._clock()
        if not await self._db.write(lambda connection: outbox_store.mark_sending(connection, opened.row_id, part, now)):
            return
        outcome = await self._outcome(part, channel)
        tried = replace(opened.view, sent_again=part.sent_again)
        change = settle(tried, outcome, self._clock(), jitter=random.random())
        if change.gate_s:
            self._gates.close(part.address, self._clock(), change.gate_s, whole_account=change.whole_account)
        if change.stop_account:
            self._gates.stop_account(part.address.account, change.stop_account)
            self._on_account_stopped(part.address.account, change.stop_account, change.stop_code)
        await self._finish(opened, change, part=part)

    async def _outcome(self, part: OutboundPart, channel: Channel) -> SendOutcome:
        what = f"sending part {part.part_id}"
        if part.edit_of and isinstance(channel, Editing):
            outcome = await asked(channel.edit(part.address, part.edit_of, part), SEND_LIMIT_S, what)
            return Sent((part.edit_of,)) if outcome == Sent() else outcome
        outcome = await asked(channel.send(part), SEND_LIMIT_S, what)
        return Unknown("the channel named no message") if isinstance(outcome, Sent) and not outcome.platform_ids else outcome

    async def _finish(self, opened: OpenPart, change: Change, part: OutboundPart | None = None) -> None:
        now = self._clock()
        settled = opened.kind == PREVIEW and change.state not in OPEN

        def work(connection: sa.Connection) -> None:
            if settled:
                self._take_place(connection, opened, change)
                outbox_store.remove(connection, opened.row_id)
                return
            outbox_store.apply(connection, opened, change, now, part=part)
            if change.new_chat_id:
                old = opened.part.address
                moved_chats.follow(connection, old=old, new_chat_id=change.new_chat_id, rules=self._rules(old.account), now=now)
            if change.thread_gone:
                moved_chats.leave_topic(connection, opened.part.address, now)

        # What a platform answered is known only here.
        await write_at_last(self._db, work, f"the outcome of part {opened.part.part_id}")
        if change.new_chat_id:
            self.wake(str(replace(opened.part.address, chat_id=change.new_chat_id)))
        if change.thread_gone:
            log.warning("the topic %s is gone: what waits for it goes to its chat", opened.part.address)
            self.wake(str(replace(opened.part.address, thread_id="")))
        if opened.kind == PREVIEW:
            return  # the answer behind it is what counts
        if change.state in (PartState.FAILED, PartState.EXPIRED):
            log.warning("part %s of delivery %s: %s (%s)", opened.part.part_id, opened.delivery_id, change.state.value, change.reason)
            self._on_given_up(opened, change.reason)
            if opened.kind == "answer":
                self._losses.add(str(opened.part.address))
        self._on_outcome(opened, change.state)

    def _take_place(self, connection: sa.Connection, opened: OpenPart, change: Change) -> None:
        """A preview of which nobody knew is settled: the answer is its last edit, or stands alone, or says that it may be a second copy (CH-97)."""
        answer = outbox_store.answer_behind(connection, opened)
        if answer is None or change.not_there:
            return
        part = answer.part
        if change.state is PartState.SENT:
            outbox_store.reword(connection, answer.row_id, replace(part, edit_of=change.platform_ids[0]))
            return
        channel, marked = self._find_channel(part.address.account), self._marked_text(answer)
        if channel is not None and measure(marked, channel.capabilities.text_unit) <= channel.capabilities.text_max:
            outbox_store.reword(connection, answer.row_id, replace(part, text=marked))

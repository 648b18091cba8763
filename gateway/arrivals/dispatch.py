"""The one place where a platform's event becomes a turn or a command, and where people hear what became of it.

`deliver` stores first (intake), then acts: nothing is acknowledged to a platform before its commit (CH-50). What was stored and not finished by an
earlier run is taken up by `begin` in the order of arrival, silently (CH-101), before anything new is taken in.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from channels.errors import ChannelError
from channels.message import Account, Address, EventKind, InboundEvent
from channels.port import Accepted, Arrival, Capabilities, Cursor, Deliver
from channels.units import measure
from gateway.access import Rules
from gateway.arrivals import inbox
from gateway.arrivals.command_order import CommandOrder, Stand, moved_on, ready
from gateway.arrivals.inbox import Waiting
from gateway.arrivals.intake import CommandCall, Received, Setting, receive
from gateway.command_line import parse
from gateway.command_runs import CommandRuns
from gateway.commands import Commands, needed_role, opens_groups
from gateway.config import Config
from gateway.delivery import outbox_store
from gateway.delivery.replies import Replies, Reply
from gateway.lanes import Holding, Lanes
from gateway.language import language_for, say
from gateway.rates import Rates
from gateway.saved.turn import limits_of
from gateway.shapes import message_json
from gateway.streams import Streams
from gateway.throttle import Throttle
from memory.database import Database
from memory.errors import StoreUnavailable

log = logging.getLogger(__name__)

TOLD = {"rate": "rate", "full": "busy_full", "role": "not_allowed"}  # refusals that the person hears of, and in which words
TAKEN_IN, QUEUED = "👀", "⏳"  # what became of a message sent meanwhile, where there are reactions (CH-73)


class Draining(ChannelError):
    """The gateway is about to stop: nothing more is taken in, cursors stay, the platform delivers again (CH-100)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """What intake must know of one account."""

    account: Account
    capabilities: Capabilities
    rules: Callable[[], Rules]


class Dispatcher:
    """Takes events in for every channel."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        lanes: Lanes,
        commands: Commands,
        replies: Replies,
        streams: Streams,
        group: asyncio.TaskGroup,
        rates: Rates,
        on_event: Callable[[Account, Received], None],
        greet: Callable[[InboundEvent], Awaitable[None]],
    ) -> None:
        """`greet`: answers the private message of somebody unknown (CH-113)."""
        self._db = db
        self._clock = clock
        self._config = config
        self._lanes = lanes
        self._command_runs = CommandRuns(
            db=db, clock=clock, config=config, commands=commands, replies=replies, streams=streams, group=group, desk=self
        )
        self._replies = replies
        self._streams = streams
        self._group = group
        self._rates = rates
        self._on_event = on_event
        self._greet = greet
        self._order = CommandOrder()
        self._doors: dict[str, Door] = {}
        self._unknown = Throttle(1, timedelta(hours=1))
        self._earlier: list[tuple[Waiting, InboundEvent]] = []  # what earlier runs left, while it is parked (CH-102)
        self._taking = asyncio.Event()
        self._open = True

    def add_door(self, door: Door) -> Deliver:
        """What a channel calls with its events."""
        self._doors[str(door.account)] = door

        async def deliver(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> list[Accepted]:
            return await self.deliver(door, events, cursor)

        return deliver

    async def deliver(self, door: Door, events: Sequence[InboundEvent], cursor: Cursor | None = None) -> list[Accepted]:
        """Store and act; one result per event. Raises Draining or StoreUnavailable, and then the cursor did not move.

        Cancelling the caller undoes nothing: what was stored is acted on. While draining, a channel that polls (it has a cursor) waits here until it
        is stopped, so that its connection stays open for the answers that still go out.
        """
        await self._taking.wait()
        if not self._open:
            if cursor is not None:
                await asyncio.Event().wait()
            raise Draining("the gateway is stopping")
        stands = self._order.line_up(events, self._config().command_prefixes)
        taking = self._group.create_task(self._take_in_order(door, events, cursor, stands), name="intake")
        taken = await asyncio.shield(taking)
        if isinstance(taken, Draining) and cursor is not None:
            await asyncio.Event().wait()
        if isinstance(taken, Exception):
            raise taken
        return taken

    async def _take_in_order(
        self, door: Door, events: Sequence[InboundEvent], cursor: Cursor | None, stands: Sequence[Stand]
    ) -> list[Accepted] | Exception:
        """What stands behind a command of its chat is taken in when that is carried out; the cursor moves with the last of them."""
        accepted: dict[int, Accepted] = {}
        left = list(range(len(events)))
        try:
            while True:
                together = ready(stands, left)
                if left and not together:
                    await moved_on(stands, left)
                    if not self._open:  # it comes again after the start, behind what was stored
                        return Draining("the gateway is stopping")
                    continue
                left = [at for at in left if at not in together]
                taken = await self._take(door, [events[at] for at in together], None if left else cursor, [stands[at] for at in together])
                if isinstance(taken, Exception):
                    return taken
                accepted |= zip(together, taken, strict=True)
                if not left:
                    return [accepted[at] for at in range(len(events))]
        finally:
            for at, stand in enumerate(stands):
                if at not in accepted:
                    self._order.leave(stand)

    async def _take(
        self, door: Door, events: Sequence[InboundEvent], cursor: Cursor | None, stands: Sequence[Stand], *, by_command: bool = False
    ) -> list[Accepted] | Exception:
        setting = self._setting(door)
        try:
            received = await self._db.write(lambda connection: receive(connection, door.account, events, cursor, setting))
        except Exception as error:  # nothing moved; handed to the channel that delivered, which has its supervisor
            return error
        for each, stand in zip(received, stands, strict=True):
            if each.accepted.arrival is Arrival.NEW:
                self._act_safely(door, each, stand, by_command=by_command)
                if door.capabilities.send_budget is not None:
                    self._replies.wake(str(each.event.address))  # what waited for this person may go out (WX-44)
            else:
                self._order.leave(stand)
        if old := sum(1 for each in received if each.accepted.rule == "old"):
            log.warning("%s: %d messages are older than the limit and are kept unanswered", door.account, old)
        return [each.accepted for each in received]

    async def begin(self, *, parked: bool) -> None:
        """Once, at the start: what earlier runs stored and did not finish goes first. `parked`: it waits for `resume` (CH-102)."""
        self._earlier = await self._db.read(inbox.unfinished)
        if not parked:
            await self.resume()
        self._taking.set()

    async def resume(self) -> int:
        """Take up what earlier runs left; returns how many rows that were."""
        rows, self._earlier = self._earlier, []
        now = self._clock()
        drop_before = now - timedelta(seconds=self._config().delivery.drop_s)
        old = [waiting for waiting, _ in rows if waiting.since < drop_before]
        if old:
            log.warning("%d messages waited longer than the limit and are kept unanswered", len(old))
            await self.end_rows(old, "old")
        for waiting, event in rows:
            door = self._doors.get(str(event.account))
            if waiting.since < drop_before or door is None:
                continue
            if waiting.turn_id:
                self._lanes.put(replace(waiting, text_length=0), self._holding(door))
            else:
                await self._again(waiting, event, door)
        return len(rows)

    async def _again(self, waiting: Waiting, event: InboundEvent, door: Door) -> None:
        """A command of an earlier run: what the platform delivers now stands behind it, as it did then."""
        (stand,) = self._order.line_up([event], self._config().command_prefixes)
        command = None
        try:
            command = await self._command_runs.again(waiting, event, door.rules(), stand.ahead)
        finally:
            if command is None:
                self._order.leave(stand)
        if command is not None:
            self._order.holds(stand, command)

    async def end_rows(self, items: Sequence[Waiting], rule: str) -> None:
        """Waiting messages that will not be answered; their words stay in the log."""
        now = self._clock()
        rows = [item.row_id for item in items]
        await self._db.write(lambda connection: inbox.finish(connection, rows, now=now, state="ignored", rule=rule))

    async def hand_on(self, call: CommandCall, text: str) -> None:
        """Take `text` as a plain message of the person who gave the command (`/steer`)."""
        door = self._doors[str(call.event.account)]
        event = replace(call.event, text=text, platform_event_id=f"{call.event.platform_event_id}+text", platform_message_id="", platform_ts=None)
        stand = self._order.apart(event)
        taken = await self._take(door, [event], None, [stand], by_command=True)
        if isinstance(taken, Exception):
            raise taken
        await stand.over  # it may be a command itself

    def close(self) -> None:
        self._open = False
        self._taking.set()

    async def quiet(self) -> None:
        """Returns when no command is being carried out; the caller bounds the wait."""
        await self._command_runs.quiet()

    def _setting(self, door: Door) -> Setting:
        config = self._config()
        return Setting(
            now=self._clock(),
            capabilities=door.capabilities,
            rules=door.rules(),
            prefixes=tuple(config.command_prefixes),
            needed_role=needed_role,
            opens_groups=opens_groups,
            queue_full=lambda address: self._lanes.waiting(address) >= config.busy.waiting_max,
            over_rate=self._rates.over,
            bot_over_rate=self._rates.bot_over,
            drop_before=self._clock() - timedelta(seconds=config.delivery.drop_s),
            length=lambda text: measure(text, door.capabilities.text_unit),
            limits=limits_of(config),
            journal_days=config.saved.journal_days,
        )

    def _holding(self, door: Door) -> Holding:
        stale = timedelta(seconds=self._config().delivery.stale_s)
        return Holding(
            quiet_s=door.capabilities.hold_s,
            text_max=door.capabilities.text_max,
            is_late=lambda item: self._clock() - item.since > stale,
        )

    def _act_safely(self, door: Door, received: Received, stand: Stand, *, by_command: bool) -> None:
        command = None
        try:
            self._act(door, received, by_command=by_command)
            command = received.command and self._command_runs.begin(received.command)
        except Exception:  # the lane worker's home (STYLE): one event must not end every channel; its row is stored and resumes
            log.exception("delivery %s was stored, but not acted on", received.accepted.delivery_id)
        if command is None:
            self._order.leave(stand)
        else:
            self._order.holds(stand, command)

    def _act(self, door: Door, received: Received, *, by_command: bool) -> None:
        """After the commit. Everything here may be lost with the process: the rows are stored and resume."""
        self._on_event(door.account, received)
        if received.message is not None:
            self._streams.publish(received.conversation_id, "message", message_json(received.message, waiting=True))
        running = self._lanes.running(str(received.event.address))
        if received.event.target and running is not None and any(item.message_id == received.event.target for item in running.items):
            running.interrupt()  # edited and sent again while it was answered
        if received.waiting is not None:
            self._queue(door, received, received.waiting, by_command=by_command)
        elif received.command is not None:
            self._lanes.flush(str(received.event.address))
        elif received.accepted.rule in TOLD and not received.event.is_bot:
            self._refuse(received)
        elif received.accepted.rule == "dm-unpaired" and received.event.kind is EventKind.MESSAGE and not received.event.is_bot:
            self._group.create_task(self._greet_safely(received.event), name="greeting")
        elif received.event.kind is EventKind.UNKNOWN:
            self._note_unknown(received.event)
        elif received.event.kind is EventKind.EDITED:
            self._lanes.correct(received.touched, received.event.text)
        elif received.event.kind is EventKind.DELETED:
            self._lanes.forget(received.touched)

    def _queue(self, door: Door, received: Received, waiting: Waiting, *, by_command: bool) -> None:
        """To its lane, with a sign of what became of it. The person who said `/steer` is told by that command."""
        mode = waiting.busy or self._config().busy.mode
        ahead = self._lanes.waiting(waiting.address)
        became = self._lanes.put(waiting, self._holding(door), may_steer=by_command or mode == "steer")
        running = self._lanes.running(waiting.address)
        if became == "started" or by_command or running is None or door.capabilities.send_budget is not None:
            return
        if door.capabilities.reactions and waiting.platform_message_id:
            emoji = TAKEN_IN if became == "steered" else QUEUED
            self._group.create_task(self._replies.react(received.event.address, waiting.platform_message_id, emoji))
            return
        if running.told_busy:
            return
        running.told_busy = True  # at most one line per turn (CH-73)
        language = language_for(received.event.language, received.event.text)
        text = say(language, "busy_steered") if became == "steered" else say(language, "busy_queued", ahead=ahead + 1)
        self._notice(received, text, part_id=f"{waiting.delivery_id}.busy")

    def _refuse(self, received: Received) -> None:
        """Too much at once, or a command above the role: one friendly line a minute (CH-63, RL-36, WD-115)."""
        if not self._rates.may_tell(str(received.event.address)):
            return
        language = language_for(received.event.language, received.event.text)
        line = parse(received.event.text, self._config().command_prefixes)
        role = needed_role(line.name) if line else ""
        text = say(language, TOLD[received.accepted.rule], count=self._config().busy.waiting_max, role=role)
        self._notice(received, text, part_id=f"{received.accepted.delivery_id}.refused")

    async def _greet_safely(self, event: InboundEvent) -> None:
        try:
            await self._greet(event)
        except StoreUnavailable as error:
            log.warning("%s: a stranger was not answered: %s", event.account, error)

    def _note_unknown(self, event: InboundEvent) -> None:
        """One line per kind and hour (CH-4); each is counted with the others that came in."""
        if self._unknown.take(f"{event.account}:{event.hint}", self._clock()) == 0:
            log.warning("%s: an event of kind %r cannot be read; it is stored as it came", event.account, event.hint)

    def _notice(self, received: Received, text: str, *, part_id: str) -> None:
        """A sign that may be lost: shown to live viewers, or sent and expired soon."""
        address = received.event.address
        if received.conversation_id:
            self._streams.publish(received.conversation_id, "notice", {"text": text, "level": "info"})
        reply = self._replies.notice(
            address, text, part_id=part_id, now=self._clock(), delivery_id=received.accepted.delivery_id, conversation_id=received.conversation_id
        )
        if reply.parts:
            self._group.create_task(self._send_notice(address, reply))

    async def _send_notice(self, address: Address, reply: Reply) -> None:
        try:
            await self._db.write(lambda connection: outbox_store.put(connection, reply.parts, self._clock()))
        except StoreUnavailable as error:
            log.warning("a notice for %s was dropped: %s", address, error)
            return
        self._replies.stored(str(address), reply)

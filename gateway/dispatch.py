"""The one place where a platform's event becomes a turn or a command, and where people hear what became of it.

`deliver` stores first (intake), then acts: nothing is acknowledged to a platform before its commit (CH-50). What was stored and not finished by an
earlier run is taken up by `resume` in the order of arrival, silently (CH-101).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from channels.errors import ChannelError
from channels.message import Account, Address, InboundEvent
from channels.port import Accepted, Capabilities, Cursor, Deliver
from channels.units import measure
from gateway import inbox, outbox_store, senders
from gateway.access import Rules
from gateway.command_line import parse
from gateway.commands import Answer, Asked, Commands, needed_role
from gateway.config import Config
from gateway.inbox import Waiting
from gateway.intake import CommandCall, Received, Setting, receive
from gateway.lanes import Holding, Lanes
from gateway.language import from_tag, guess, say
from gateway.logs import delivery
from gateway.rates import Rates
from gateway.replies import Replies, Reply
from gateway.shapes import message_json
from gateway.streams import Streams
from memory import conversations
from memory.conversations import Message
from memory.database import Database
from memory.errors import StoreUnavailable

log = logging.getLogger(__name__)


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
        on_event: Callable[[Account, Received], None] = lambda _account, _received: None,
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._lanes = lanes
        self._commands = commands
        self._replies = replies
        self._streams = streams
        self._group = group
        self._rates = rates
        self._on_event = on_event
        self._doors: dict[str, Door] = {}
        self._open = True

    def add_door(self, door: Door) -> Deliver:
        """What a channel calls with its events."""
        self._doors[str(door.account)] = door

        async def deliver(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> list[Accepted]:
            return await self.deliver(door, events, cursor)

        return deliver

    async def deliver(self, door: Door, events: Sequence[InboundEvent], cursor: Cursor | None = None) -> list[Accepted]:
        """Store and act; one result per event. Raises Draining or StoreUnavailable, and then nothing moved."""
        if not self._open:
            raise Draining("the gateway is stopping")
        setting = self._setting(door)
        received = await self._db.write(lambda connection: receive(connection, events, cursor, setting))
        for each in received:
            self._act(door, each)
        return [each.accepted for each in received]

    async def resume(self) -> int:
        """Take up what was stored and not finished; returns how many rows that were."""
        rows = await self._db.read(inbox.unfinished)
        now = self._clock()
        drop_before = now - timedelta(seconds=self._config().delivery.drop_s)
        old = [waiting for waiting, _ in rows if waiting.received_at < drop_before]
        if old:
            log.warning("%d messages waited longer than the limit and are kept unanswered", len(old))
            await self.end_rows(old, "old")
        for waiting, event in rows:
            door = self._doors.get(str(event.account))
            if waiting.received_at < drop_before or door is None:
                continue
            if waiting.turn_id:
                self._lanes.put(replace(waiting, text_length=0), self._holding(door))
            else:
                await self._command_again(waiting, event)
        return len(rows)

    async def end_rows(self, items: Sequence[Waiting], rule: str) -> None:
        """Waiting messages that will not be answered; their words stay in the log."""
        now = self._clock()
        rows = [item.row_id for item in items]
        await self._db.write(lambda connection: inbox.finish(connection, rows, now=now, state="ignored", rule=rule))

    async def hand_on(self, call: CommandCall, text: str) -> None:
        """Take `text` as a plain message of the person who gave the command (`/steer`)."""
        door = self._doors[str(call.event.account)]
        event = replace(call.event, text=text, platform_event_id=f"{call.event.platform_event_id}+text", platform_message_id="")
        await self.deliver(door, [event])

    def close(self) -> None:
        self._open = False

    def _setting(self, door: Door) -> Setting:
        config = self._config()
        return Setting(
            now=self._clock(),
            capabilities=door.capabilities,
            rules=door.rules(),
            prefixes=tuple(config.command_prefixes),
            needed_role=needed_role,
            queue_full=lambda address: self._lanes.waiting(address) >= config.busy.waiting_max,
            over_rate=self._rates.over,
            length=lambda text: measure(text, door.capabilities.text_unit),
        )

    def _holding(self, door: Door) -> Holding:
        stale = timedelta(seconds=self._config().delivery.stale_s)
        return Holding(
            quiet_s=door.capabilities.hold_s,
            text_max=door.capabilities.text_max,
            is_late=lambda item: self._clock() - item.received_at > stale,
        )

    def _act(self, door: Door, received: Received) -> None:
        """After the commit. Everything here may be lost with the process: the rows are stored and resume."""
        self._on_event(door.account, received)
        if received.message is not None:
            self._streams.publish(received.conversation_id, "message", message_json(received.message, waiting=True))
        if received.waiting is not None:
            self._queue(door, received, received.waiting)
        elif received.command is not None:
            self._lanes.flush(str(received.event.address))
            self._group.create_task(self._carry_out(received.command), name=f"command {received.accepted.delivery_id}")
        elif received.accepted.rule in ("rate", "full") and received.conversation_id:
            self._refuse(received)

    def _queue(self, door: Door, received: Received, waiting: Waiting) -> None:
        mode = waiting.busy or self._config().busy.mode
        ahead = self._lanes.waiting(waiting.address)
        became = self._lanes.put(waiting, self._holding(door), may_steer=mode == "steer")
        running = self._lanes.running(waiting.address)
        if became == "started" or running is None or door.capabilities.send_budget is not None or running.told_busy:
            return
        running.told_busy = True  # at most one line per turn (CH-73)
        language = _language(received.event, "")
        text = say(language, "busy_steered") if became == "steered" else say(language, "busy_queued", ahead=ahead + 1)
        self._notice(received, text, part_id=f"{waiting.delivery_id}.busy")

    def _refuse(self, received: Received) -> None:
        """Too much at once: one friendly line a minute (CH-63, RL-36)."""
        if not self._rates.may_tell(str(received.event.address)):
            return
        language = _language(received.event, "")
        key = {"rate": "rate", "full": "busy_full"}[received.accepted.rule]
        text = say(language, key, count=self._config().busy.waiting_max)
        self._notice(received, text, part_id=f"{received.accepted.delivery_id}.refused")

    def _notice(self, received: Received, text: str, *, part_id: str) -> None:
        """A sign that may be lost: shown to live viewers, or sent and expired soon."""
        address = received.event.address
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

    async def _command_again(self, waiting: Waiting, event: InboundEvent) -> None:
        """A command that an earlier run stored and did not answer."""
        sender = await self._db.read(lambda connection: senders.by_id(connection, waiting.person_id))
        line = parse(event.text, self._config().command_prefixes)
        if sender is None or line is None:
            await self.end_rows([waiting], "unreadable")
            return
        call = CommandCall(row_id=waiting.row_id, conversation_id=waiting.conversation_id, sender=sender, line=line, event=event)
        self._group.create_task(self._carry_out(call), name=f"command {waiting.delivery_id}")

    async def _carry_out(self, call: CommandCall) -> None:
        with delivery(call.event.delivery_id):
            try:
                await self._run_command(call)
            except StoreUnavailable as error:
                log.warning("command %s waits for the next start: %s", call.line.name, error)
            except Exception:  # the lane worker's home (STYLE): commands run beside the lane, and one must not end the gateway
                log.exception("command %s failed", call.line.name)
                await self._finish_command(call, Answer(text=say(_language(call.event, call.sender.language), "failed")))

    async def _run_command(self, call: CommandCall) -> None:
        chat = await self._db.read(lambda connection: conversations.conversation(connection, call.conversation_id))
        if chat is None:
            return
        asked = Asked(call=call, chat=chat, language=_language(call.event, call.sender.language), now=self._clock(), desk=self)
        await self._finish_command(call, await self._commands.run(asked))

    async def _finish_command(self, call: CommandCall, answer: Answer) -> None:
        now = self._clock()
        address = call.event.address
        reply = self._replies.notice(
            address, answer.text, part_id=f"{call.event.delivery_id}.answer", now=now, delivery_id=call.event.delivery_id,
            conversation_id=call.conversation_id,
        )  # fmt: skip
        reply = Reply(parts=(*reply.parts, *answer.parts))

        def work(connection: sa.Connection) -> Message | None:
            inbox.finish(connection, [call.row_id], now=now)
            outbox_store.put(connection, reply.parts, now)
            if not answer.text:
                return None
            return conversations.add_message(
                connection, now=now, conversation_id=call.conversation_id, role="notice", origin="command", text=answer.text
            )

        added = await self._db.write(work)
        if added is not None:
            self._streams.publish(call.conversation_id, "message", message_json(added))
        self._replies.stored(str(address), reply)


def _language(event: InboundEvent, set_by_person: str) -> str:
    return set_by_person or guess(event.text, otherwise=from_tag(event.language) or "en")

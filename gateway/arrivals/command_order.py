"""What is said after a command is taken in once that is carried out: `/memory off` holds for the very next words, `/new` for the next question.

Taking in decides what is kept of a message and which conversation it belongs to: it would not be enough that its turn waits. Each chat has a line of
its own, in which everything stands that was delivered for it and not taken in yet, in the order in which `line_up` was called.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from channels.message import Address, EventKind, InboundEvent
from gateway.buttons import BUTTON
from gateway.command_line import parse

PATIENCE_S = 5.0  # so long may the commands of a chat hold what stands behind them, all together: the next poll of their platform waits with it
LEAST_S = 0.1  # for each when that is used up, so that one that does not hang is not overtaken either
AT_ONCE_S = 0.05  # what a command takes that does not hang counts for nothing
RENEWED_S = 60.0  # after so long without a slow command the patience is whole again


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Stand:
    """Where an event stands in the line of its chat. `ahead`: done when those directly before it are over; `over`: its own, done when it was taken
    in, or carried out if it is a command."""

    over: asyncio.Future[None]
    chats: tuple[str, ...]
    ahead: tuple[asyncio.Future[None], ...] = ()
    may_be_command: bool = False


class CommandOrder:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._last: dict[str, dict[str, asyncio.Future[None]]] = {}  # of each chat: who stands last in each of its topics
        self._spent: dict[str, tuple[float, float]] = {}  # of each chat: how long its commands held others, and when that was added up

    @property
    def is_empty(self) -> bool:
        return not self._last

    def line_up(self, events: Sequence[InboundEvent], prefixes: Sequence[str]) -> list[Stand]:
        """A stand for each event; every one of them has to `leave`."""
        return [self._stand(event, may_be_command(event, prefixes)) for event in events]

    def apart(self, event: InboundEvent) -> Stand:
        """A stand in no line: for what a command hands on, as that itself stands before all others."""
        return Stand(over=asyncio.get_running_loop().create_future(), chats=(_chat(event.address),))

    def leave(self, stand: Stand) -> None:
        """It was taken in and is no command, or it is over, or it will never be taken in."""
        if stand.over.done():
            return
        stand.over.set_result(None)
        for chat in stand.chats:
            lines = self._last.get(chat, {})
            for topic in [topic for topic, last in lines.items() if last is stand.over]:
                del lines[topic]
            if not lines:
                self._last.pop(chat, None)

    def holds(self, stand: Stand, command: asyncio.Task[None]) -> None:
        """Its command has begun: it leaves when that is carried out, or when it has taken longer than others should wait for it."""
        chat, began = stand.chats[0], self._now()
        timer = asyncio.get_running_loop().call_later(max(self._left(chat) / 2, LEAST_S), self.leave, stand)

        def carried_out(_: object) -> None:
            timer.cancel()
            self.leave(stand)

        def spent(_: object) -> None:
            if self._now() - began > AT_ONCE_S:
                self._spend(chat, self._now() - began)

        stand.over.add_done_callback(spent)
        command.add_done_callback(carried_out)

    def _left(self, chat: str) -> float:
        spent, at = self._spent.get(chat, (0.0, 0.0))
        return PATIENCE_S - max(0.0, spent - (self._now() - at) * PATIENCE_S / RENEWED_S)

    def _spend(self, chat: str, seconds: float) -> None:
        self._spent = {each: self._spent[each] for each in self._spent if self._left(each) < PATIENCE_S}
        self._spent[chat] = (min(PATIENCE_S, PATIENCE_S - self._left(chat) + seconds), self._now())

    def _stand(self, event: InboundEvent, command: bool) -> Stand:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        address = event.address
        chats = [_chat(address)]
        whole = event.kind is EventKind.MIGRATED  # with all its topics, and what is said in the new one comes after it
        if whole and event.target and event.target != address.chat_id:
            chats.append(_chat(replace(address, chat_id=event.target)))
        ahead: list[asyncio.Future[None]] = []
        for chat in chats:
            lines = self._last.setdefault(chat, {})
            if whole:
                ahead += lines.values()
                lines.clear()
                lines[_WHOLE] = over
            else:
                last = lines.get(address.thread_id) or lines.get(_WHOLE)
                ahead += [last] if last else []
                lines[address.thread_id] = over
        return Stand(over=over, ahead=tuple(ahead), chats=tuple(chats), may_be_command=command)


_WHOLE = "\0"  # no topic is called so: of a chat as a whole


def _chat(address: Address) -> str:
    return str(replace(address, thread_id=""))


def may_be_command(event: InboundEvent, prefixes: Sequence[str]) -> bool:
    if event.kind is EventKind.ACTION:
        return event.hint == BUTTON
    return event.kind is EventKind.MESSAGE and parse(event.text, prefixes) is not None


def ready(stands: Sequence[Stand], left: Sequence[int]) -> list[int]:
    """Which of those that are `left` can be taken in now, all together: behind a message that is taken in with it, nothing waits."""
    found: list[int] = []
    together: set[asyncio.Future[None]] = set()
    for at in left:
        stand = stands[at]
        if all(each.done() or each in together for each in stand.ahead):
            found.append(at)
            if not stand.may_be_command:
                together.add(stand.over)
    return found


async def moved_on(stands: Sequence[Stand], left: Sequence[int]) -> None:
    """Returns when one of those is over that stand ahead of what is `left`, of which nothing is ready."""
    await asyncio.wait({each for at in left for each in stands[at].ahead if not each.done()}, return_when=asyncio.FIRST_COMPLETED)

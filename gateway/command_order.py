"""What is said after a command is taken in once that is carried out: `/memory off` holds for the very next words, `/new` for the next question.

Taking in decides what is kept of a message and which conversation it belongs to: it would not be enough that its turn waits. Each chat has an order
of its own: that in which `line_up` was called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from channels.message import EventKind, InboundEvent
from gateway.buttons import BUTTON
from gateway.command_line import parse

PATIENCE_S = 5.0  # a command that hangs holds no delivery longer; the other chats of a poll wait with it


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Stand:
    """Where an event stands in its chat. `ahead`: set when the commands before it are over, oldest first; `over`: its own, if it may be a command."""

    place: str = ""
    ahead: tuple[asyncio.Event, ...] = ()
    over: asyncio.Event | None = None


class CommandOrder:
    def __init__(self) -> None:
        self._open: dict[str, list[asyncio.Event]] = {}

    def line_up(self, events: Sequence[InboundEvent], prefixes: Sequence[str]) -> list[Stand]:
        """A stand for each event; every one of them has to `leave`."""
        return [self._stand(str(event.address), may_be_command(event, prefixes)) for event in events]

    def leave(self, stand: Stand) -> None:
        """It was no command, or it is over."""
        if stand.over is None or stand.over.is_set():
            return
        stand.over.set()
        self._open[stand.place].remove(stand.over)
        if not self._open[stand.place]:
            del self._open[stand.place]

    def _stand(self, place: str, command: bool) -> Stand:
        stand = Stand(place=place, ahead=tuple(self._open.get(place, ())), over=asyncio.Event() if command else None)
        if stand.over is not None:
            self._open.setdefault(place, []).append(stand.over)
        return stand


def may_be_command(event: InboundEvent, prefixes: Sequence[str]) -> bool:
    if event.kind is EventKind.ACTION:
        return event.hint == BUTTON
    return event.kind is EventKind.MESSAGE and parse(event.text, prefixes) is not None


def pieces(stands: Sequence[Stand]) -> Iterator[slice]:
    """The runs of events that can be taken in together: none of them waits for another of its run."""
    began = 0
    own: set[asyncio.Event] = set()
    for at, stand in enumerate(stands):
        if own.intersection(stand.ahead):
            yield slice(began, at)
            began = at
            own.clear()
        if stand.over is not None:
            own.add(stand.over)
    yield slice(began, len(stands))


async def reached(stands: Sequence[Stand]) -> None:
    """Returns when all that stands ahead is over, or has taken longer than anybody should wait for it."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            for stand in stands:
                for each in stand.ahead:
                    await each.wait()
    except TimeoutError:
        return

"""The live side of a chat: numbered events that any number of viewers follow, and follow again after a reload (WO-11, WP-01).

A run goes on without a viewer. Events of the running turn and the one before stay in memory, so a viewer that lost its connection takes up where it
was; who comes without a last id gets the running turn from its first event, and who just began the chat everything since then. The stored log is the
truth, this is only its moving edge.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

EVENTS_MAX = 20_000  # of one chat: more than any answer has; a chat of commands alone begins no turn that would drop the old ones
GATHER_S = 0.01  # events this close together leave in one write, which costs more than the wait; the end of a turn waits for nothing
CHATS_KEPT = 1_000  # quiet chats whose last turn stays replayable
BEGINNING = "begin"  # the last event id of who has seen nothing of a chat and wants all of it


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """`id` grows by one per event of a chat; `data` is JSON text."""

    id: int
    name: str
    data: str


@dataclass(slots=True)
class _Chat:
    events: list[StreamEvent] = field(default_factory=list[StreamEvent])
    next_id: int = 1
    previous_turn: int = 1  # first event id of the turn before
    this_turn: int = 1
    running: bool = False
    gone: bool = False
    watchers: set[asyncio.Event] = field(default_factory=set[asyncio.Event])


class Streams:
    """All live chats of this process. Everything runs on the event loop."""

    def __init__(self) -> None:
        self._chats: OrderedDict[str, _Chat] = OrderedDict()
        self._boot = secrets.token_hex(4)  # ids of another run of the program are not ours
        self._closed = False

    def watched(self, chat_id: str) -> bool:
        chat = self._chats.get(chat_id)
        return chat is not None and bool(chat.watchers)

    def begin(self, chat_id: str, turn_id: str, attempt: int) -> None:
        """A turn starts: its events replace those of the turn before last."""
        chat = self._chat(chat_id)
        chat.previous_turn, chat.this_turn, chat.running = chat.this_turn, chat.next_id, True
        chat.events = [event for event in chat.events if event.id >= chat.previous_turn]
        self.publish(chat_id, "turn", {"turn_id": turn_id, "attempt": attempt})

    def end(self, chat_id: str, turn_id: str, outcome: str) -> None:
        self.publish(chat_id, "done", {"turn_id": turn_id, "outcome": outcome})
        self._chat(chat_id).running = False
        self._forget_quiet()

    def publish(self, chat_id: str, name: str, data: Mapping[str, Any]) -> None:
        chat = self._chat(chat_id)
        chat.events.append(StreamEvent(chat.next_id, name, json.dumps(data, ensure_ascii=False)))
        chat.next_id += 1
        if len(chat.events) > EVENTS_MAX:
            del chat.events[: EVENTS_MAX // 2]
        for watcher in chat.watchers:
            watcher.set()

    def drop(self, chat_id: str) -> None:
        """The chat is deleted: its events go and every stream of it ends."""
        chat = self._chats.pop(chat_id, None)
        if chat is None:
            return
        chat.gone = True
        for watcher in chat.watchers:
            watcher.set()

    def here(self, chat_id: str) -> str:
        """The id to `follow` from so that nothing from now on is missed, nor anything of the turn that runs."""
        return f"{self._boot}-{self._start(self._chat(chat_id), '') - 1}"

    @property
    def closed(self) -> bool:
        return self._closed

    async def follow(self, chat_id: str, last_event_id: str = "", *, heartbeat_s: float = 15.0) -> AsyncGenerator[list[StreamEvent]]:
        """Batches of new events, oldest first, for ever; an empty batch every `heartbeat_s` of silence. Ends when the program stops,
        when the chat is dropped, or when the viewer fell so far behind that events it never saw are gone: it then reads the log again."""
        chat = self._chat(chat_id)
        position = self._start(chat, last_event_id)
        changed = asyncio.Event()
        chat.watchers.add(changed)
        try:
            while not self._closed and not chat.gone:
                changed.clear()
                if chat.events and position < chat.events[0].id:
                    return
                batch = chat.events[position - chat.events[0].id :] if chat.events else []
                if batch:
                    position = batch[-1].id + 1
                    yield batch
                    continue
                try:
                    async with asyncio.timeout(heartbeat_s):
                        await changed.wait()
                    await _gather(chat, changed)
                except TimeoutError:
                    yield []
        finally:
            chat.watchers.discard(changed)
            self._forget_quiet()

    def event_id(self, event: StreamEvent) -> str:
        return f"{self._boot}-{event.id}"

    def close(self) -> None:
        """End every stream, for a stop of the program."""
        self._closed = True
        for chat in self._chats.values():
            for watcher in chat.watchers:
                watcher.set()

    def _chat(self, chat_id: str) -> _Chat:
        chat = self._chats.setdefault(chat_id, _Chat())
        self._chats.move_to_end(chat_id)
        return chat

    def _start(self, chat: _Chat, last_event_id: str) -> int:
        boot, _, number = last_event_id.partition("-")
        if boot == self._boot and number.isascii() and number.isdigit() and len(number) < 16:
            position = int(number) + 1
            oldest = chat.events[0].id if chat.events else chat.next_id
            if oldest <= position <= chat.next_id:
                return position
        if last_event_id == BEGINNING and chat.events and chat.events[0].id == 1:
            return 1  # of a chat that is older the log has what is gone here
        return chat.this_turn if chat.running else chat.next_id

    def _forget_quiet(self) -> None:
        for chat_id in list(self._chats)[: max(0, len(self._chats) - CHATS_KEPT)]:
            chat = self._chats[chat_id]
            if not chat.running and not chat.watchers:
                del self._chats[chat_id]


async def _gather(chat: _Chat, changed: asyncio.Event) -> None:
    """Wait a moment for what follows the newest event at once."""
    try:
        async with asyncio.timeout(GATHER_S):
            while chat.events and chat.events[-1].name != "done":
                changed.clear()
                await changed.wait()
    except TimeoutError:
        return

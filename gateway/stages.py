"""Where a running turn is shown: to live viewers of the page, or by the signs of a chat app; the channel's data decides which (CH-8)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime

from agent.turn import Sink
from channels.html import snapshot_html
from channels.message import Address
from channels.partial import closed
from channels.port import Capabilities, Channel
from channels.render import render
from gateway.delivery.gate import Gates
from gateway.delivery.previews import NO_PREVIEW, Preview
from gateway.delivery.signs import Draft, Signs
from gateway.lanes import RunningTurn
from gateway.streams import Streams
from gateway.turn_store import TurnStart

SNAPSHOT_EVERY_S = 0.25
SNAPSHOT_SHARE = 20  # a snapshot that took 10 ms to render is followed by the next after 200 ms at the earliest

NotePreview = Callable[[str, Preview], Awaitable[None]]


class Stages:
    """Makes the stage of each turn."""

    def __init__(
        self,
        *,
        streams: Streams,
        gates: Gates,
        clock: Callable[[], datetime],
        note_preview: NotePreview,
        older_parts: Callable[[str], bool],
    ) -> None:
        """`older_parts`: whether a chat still has unsent parts; then no preview may overtake them (CH-81)."""
        self._streams = streams
        self._gates = gates
        self._clock = clock
        self._note_preview = note_preview
        self._older_parts = older_parts

    def __call__(self, start: TurnStart, turn: RunningTurn, channel: Channel | None) -> PageStage | AppStage:
        if channel is None or channel.capabilities.streams:
            return PageStage(self._streams, start, turn)
        address = Address.parse(start.conversation.key.removesuffix(f"#{start.conversation.id}"))

        async def note(preview: Preview) -> None:
            await self._note_preview(turn.turn_id, preview)

        signs = Signs(
            channel=channel,
            address=address,
            in_group=start.conversation.space_id is not None,
            gates=self._gates,
            clock=self._clock,
            shorten=shorten,
            note_preview=note,
            part_id=f"{turn.turn_id}.{start.attempt}.preview",
            reply_to=turn.items[0].platform_message_id,
            preview=start.preview,
            may_preview=not self._older_parts(str(address)),
        )
        return AppStage(self._streams, signs, start, turn)


def shorten(text: str, can: Capabilities) -> str:
    """What of a growing text may be shown as one message: as its first piece will look, whole graphemes, open marks closed (CH-98)."""
    pieces = render(closed(text), can)
    return pieces[0].text if pieces else ""


class PageStage:
    """Numbered events for whoever watches; snapshots are rendered only while somebody does."""

    def __init__(self, streams: Streams, start: TurnStart, turn: RunningTurn) -> None:
        self._streams = streams
        self._chat = start.conversation.id
        self._turn = turn
        self._attempt = start.attempt
        self._draft = Draft()
        self._next_snapshot = time.monotonic() + SNAPSHOT_EVERY_S

    async def __aenter__(self) -> Sink:
        self._streams.begin(self._chat, self._turn.turn_id, self._attempt)
        return self

    async def __aexit__(self, *error: object) -> None:
        return None

    async def settle(self) -> Preview:
        return NO_PREVIEW

    def delta(self, text: str) -> None:
        self._turn.progress = time.monotonic()
        self._draft.say(text)
        self._streams.publish(self._chat, "delta", {"turn_id": self._turn.turn_id, "text": text})
        if self._turn.progress >= self._next_snapshot and self._streams.watched(self._chat):
            html = snapshot_html(self._draft.text)
            self._streams.publish(self._chat, "snapshot", {"turn_id": self._turn.turn_id, "html": html})
            took = time.monotonic() - self._turn.progress
            self._next_snapshot = time.monotonic() + max(SNAPSHOT_EVERY_S, SNAPSHOT_SHARE * took)

    def reset(self) -> None:
        self._draft.reset()
        self._streams.publish(self._chat, "reset", {"turn_id": self._turn.turn_id})

    def tool(self, name: str, state: str) -> None:
        self._turn.progress = time.monotonic()
        self._streams.publish(self._chat, "tool", {"turn_id": self._turn.turn_id, "name": name, "state": state})


class AppStage:
    """Typing and previews beside the turn."""

    def __init__(self, streams: Streams, signs: Signs, start: TurnStart, turn: RunningTurn) -> None:
        self._streams = streams
        self._signs = signs
        self._start = start
        self._turn = turn
        self._group = asyncio.TaskGroup()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Sink:
        self._streams.begin(self._start.conversation.id, self._turn.turn_id, self._start.attempt)
        await self._group.__aenter__()
        self._task = self._group.create_task(self._signs.run(), name=f"signs {self._turn.turn_id}")
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._task is not None:
            self._task.cancel()
        await self._group.__aexit__(None, None, None)

    async def settle(self) -> Preview:
        return await self._signs.settle()

    def delta(self, text: str) -> None:
        self._turn.progress = time.monotonic()
        self._signs.draft.say(text)

    def reset(self) -> None:
        self._signs.draft.reset()

    def tool(self, name: str, state: str) -> None:
        self._turn.progress = time.monotonic()

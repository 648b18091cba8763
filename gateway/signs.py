"""What a chat app shows while a turn runs: the typing sign, then a preview that grows by edits (CH-95 to CH-98).

All of it may be skipped: a closed gate, an older unsent part or a failed call never delays, doubles or drops the answer itself (CH-92).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from channels.message import Address, is_blank
from channels.port import Capabilities, Channel, Editing, OutboundPart, Refused, Sent, TryLater, Typing, Unknown
from channels.render import SILENT
from gateway.gate import Gates
from gateway.outbox import SIGN_LIMIT_S, asked
from gateway.outbox_rules import MARGIN_S
from memory.errors import StoreUnavailable

log = logging.getLogger(__name__)

FIRST_CHARACTERS = 40  # visible ones, at which the first preview appears
FIRST_AFTER_S = 1.5  # or this long after the first of them
TYPING_OFF_LIMIT_S = 1.0
TICK_S = 0.2
STORE_AGAIN_S = 1.0


@dataclass(slots=True)
class Draft:
    """The words so far, as the model sends them."""

    text: str = ""
    version: int = 0

    def say(self, text: str) -> None:
        self.text += text
        self.version += 1

    def reset(self) -> None:
        self.text = ""
        self.version += 1


def first_preview_due(text: str, seconds_since_first: float) -> bool:
    """CH-95: 40 visible characters exist, or 1.5 s have passed with at least one."""
    shown = len(text.strip())
    return shown >= FIRST_CHARACTERS or (shown > 0 and not is_blank(text) and seconds_since_first >= FIRST_AFTER_S)


class Signs:
    """The signs of one turn in one chat. Run beside the turn; cancel it when the words are final."""

    def __init__(
        self,
        *,
        channel: Channel,
        address: Address,
        in_group: bool,
        gates: Gates,
        clock: Callable[[], datetime],
        shorten: Callable[[str, Capabilities], str],
        store_preview: Callable[[tuple[str, ...]], Awaitable[None]],
        part_id: str,
        reply_to: str = "",
        preview_id: str = "",
        may_preview: bool = True,
    ) -> None:
        """`shorten`: the words as they may be shown now (complete graphemes, one message long). `store_preview` commits the preview's id before
        its next edit. `preview_id`: a preview that an earlier run left on show."""
        self.draft = Draft()
        self.preview_id = preview_id
        self._channel = channel
        self._can = channel.capabilities
        self._address = address
        self._interval = self._can.group_edit_interval_s if in_group and self._can.group_edit_interval_s else self._can.edit_interval_s
        self._gates = gates
        self._clock = clock
        self._shorten = shorten
        self._store_preview = store_preview
        self._part_id = part_id
        self._reply_to = reply_to
        self._calling = asyncio.Lock()
        self._may_preview = may_preview and self._interval is not None and isinstance(channel, Editing)

    async def run(self) -> None:
        """Until cancelled. Raises nothing but cancellation."""
        try:
            async with asyncio.TaskGroup() as group:
                if self._can.typing_refresh_s is not None and isinstance(self._channel, Typing):
                    group.create_task(self._typing(self._channel, self._can.typing_refresh_s))
                if self._may_preview:
                    group.create_task(self._previews())
        finally:
            await self._typing_off()

    async def settle(self) -> str:
        """The words are final: no further preview. Waits for one that is on its way, so that its id is known, and returns the id on show."""
        self._may_preview = False
        async with self._calling:
            return self.preview_id

    async def _typing(self, channel: Typing, refresh_s: float) -> None:
        while not self.preview_id:
            if self._gates.is_open(self._address, self._clock()):
                await asked(channel.typing(self._address, True), SIGN_LIMIT_S, f"typing in {self._address}")
            await asyncio.sleep(refresh_s)

    async def _typing_off(self) -> None:
        if isinstance(self._channel, Typing) and self._can.typing_refresh_s is not None and self._gates.is_open(self._address, self._clock()):
            await asked(self._channel.typing(self._address, False), TYPING_OFF_LIMIT_S, f"the end of typing in {self._address}")

    async def _previews(self) -> None:
        loop = asyncio.get_running_loop()
        first_word: float | None = None
        shown = ""
        while self._may_preview:
            await asyncio.sleep(TICK_S)
            text = self.draft.text
            if SILENT.startswith(text.strip()):
                continue  # nothing yet, or perhaps the word that says nothing (CH-144)
            first_word = first_word or loop.time()
            if not self.preview_id and not first_preview_due(text, loop.time() - first_word):
                continue
            visible = self._shorten(text, self._can)
            if visible == shown or is_blank(visible) or not self._gates.is_open(self._address, self._clock()):
                continue
            async with self._calling:
                if self._may_preview and await self._show(visible):
                    shown = visible
            await asyncio.sleep(self._interval or TICK_S)

    async def _keep(self, ids: tuple[str, ...]) -> None:
        """No further edit before the id is stored: after a kill the answer must find what is on show (CH-97)."""
        while True:
            try:
                return await self._store_preview(ids)
            except StoreUnavailable as error:
                log.warning("the preview of %s cannot be stored now: %s", self._part_id, error)
                await asyncio.sleep(STORE_AGAIN_S)

    async def _show(self, text: str) -> bool:
        """Send the first preview or edit it; False when it was not shown."""
        part = OutboundPart(part_id=self._part_id, address=self._address, text=text, markup=self._can.markup, reply_to=self._reply_to)
        if self.preview_id:
            assert isinstance(self._channel, Editing), "previews are made only for channels that edit"
            call = self._channel.edit(self._address, self.preview_id, part)
        else:
            call = self._channel.send(part)
        match await asked(call, SIGN_LIMIT_S, f"a preview in {self._address}"):
            case Sent(platform_ids=ids):
                if not self.preview_id and ids:
                    self.preview_id = ids[0]
                    await self._keep(ids)
                return True
            case TryLater(after_s=after):
                if after:
                    self._gates.close(self._address, self._clock(), after + MARGIN_S)
            case Refused(gone=True):
                self.preview_id, self._may_preview = "", False
            case Unknown() if self._can.resend_key_s is not None:
                pass  # the next try shows the same message, or finds it shown
            case _:
                self._may_preview = bool(self.preview_id)  # a first preview of which nothing is known is not tried again
        return False

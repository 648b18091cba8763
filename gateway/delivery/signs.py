"""What a chat app shows while a turn runs: the typing sign, then a preview that grows by edits (CH-95 to CH-98).

All of it may be skipped: a closed gate, an older unsent part or a failed call never delays, doubles or drops the answer itself (CH-92).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from channels.message import Address, is_blank
from channels.port import Capabilities, Channel, Editing, OutboundPart, Refused, SendOutcome, Sent, TryLater, Typing, Unknown
from channels.render import SILENT
from gateway.delivery.gate import Gates
from gateway.delivery.outbox import SIGN_LIMIT_S, asked
from gateway.delivery.previews import NO_PREVIEW, Preview, Tried
from gateway.delivery.rules import MARGIN_S, preview_key_s
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
        note_preview: Callable[[Preview], Awaitable[None]],
        part_id: str,
        reply_to: str = "",
        preview: Preview = NO_PREVIEW,
        may_preview: bool = True,
    ) -> None:
        """`shorten`: the words as they may be shown now (complete graphemes, one message long). `note_preview` commits that a first preview leaves,
        and its id before its next edit. `preview`: what an earlier run left on show."""
        self.draft = Draft()
        self.preview = preview
        self._channel = channel
        self._can = channel.capabilities
        self._address = address
        self._interval = self._can.group_edit_interval_s if in_group and self._can.group_edit_interval_s else self._can.edit_interval_s
        self._gates = gates
        self._clock = clock
        self._shorten = shorten
        self._note_preview = note_preview
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

    async def settle(self) -> Preview:
        """The words are final: no further preview. Waits for one that is on its way, so that its id is known, and returns what is on show."""
        self._may_preview = False
        async with self._calling:
            return self.preview

    async def _typing(self, channel: Typing, refresh_s: float) -> None:
        while not self.preview.id:
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
            if not self.preview.id and not first_preview_due(text, loop.time() - first_word):
                continue
            visible = self._shorten(text, self._can)
            if visible == shown or is_blank(visible) or not self._gates.is_open(self._address, self._clock()):
                continue
            async with self._calling:
                if self._may_preview and await self._show(visible):
                    shown = visible
            await asyncio.sleep(self._interval or TICK_S)

    async def _keep(self, preview: Preview) -> None:
        """No further call before it is noted: after a kill the answer must find what is on show (CH-97)."""
        self.preview = preview
        while True:
            try:
                return await self._note_preview(preview)
            except StoreUnavailable as error:
                log.warning("the preview of %s cannot be noted now: %s", self._part_id, error)
                await asyncio.sleep(STORE_AGAIN_S)

    async def _show(self, text: str) -> bool:
        """Send the first preview or edit it; False when it was not shown."""
        part = OutboundPart(part_id=self._part_id, address=self._address, text=text, markup=self._can.markup, reply_to=self._reply_to, preview=True)
        if self.preview.id:
            return await self._edit(part)
        if self.preview.tried is None:
            await self._keep(Preview(tried=Tried(part=part, at=self._clock())))
        elif not self._shown_once(self.preview.tried):
            self._may_preview = False  # nobody knows of it: no other is sent (CH-92), and the answer's part settles it
            return False
        match await self._asked(self._channel.send(part)):
            case Sent(platform_ids=(first, *_)):
                await self._keep(Preview(id=first))
                return True
            case Unknown() | Sent():
                pass
            case TryLater():
                await self._untried(part)
            case _:
                self._may_preview = False
                await self._untried(part)
        return False

    async def _edit(self, part: OutboundPart) -> bool:
        assert isinstance(self._channel, Editing), "previews are made only for channels that edit"
        match await self._asked(self._channel.edit(self._address, self.preview.id, part)):
            case Sent():
                return True
            case Refused(gone=True):
                self.preview, self._may_preview = NO_PREVIEW, False
            case _:
                pass
        return False

    def _shown_once(self, tried: Tried) -> bool:
        """Whether the platform still shows a first preview once, however often it is sent."""
        key_s = preview_key_s(self._can)
        return key_s is not None and self._clock() - tried.at < timedelta(seconds=key_s)

    async def _untried(self, part: OutboundPart) -> None:
        """It provably did not leave; what an earlier try may have shown stays in doubt."""
        if self.preview.tried is not None and self.preview.tried.part == part:
            await self._keep(NO_PREVIEW)

    async def _asked(self, call: Awaitable[SendOutcome]) -> SendOutcome:
        outcome = await asked(call, SIGN_LIMIT_S, f"a preview in {self._address}")
        if isinstance(outcome, TryLater) and outcome.after_s:
            self._gates.close(self._address, self._clock(), outcome.after_s + MARGIN_S, whole_account=outcome.whole_account)
        return outcome

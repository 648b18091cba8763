"""The web page as a channel: what a signed-in person posts becomes an event like any other; what is answered they read from the stored log.

Sender ids are person ids, proven by the session or token of the request; the HTTP side checks that before it calls `post`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from channels.errors import ConnectionLost
from channels.message import Account, Attachment, EventKind, InboundEvent
from channels.port import Accepted, Capabilities, Deliver, Markup, OutboundPart, SendOutcome, Sent, TextUnit

TEXT_MAX = 100_000  # code points of one message
PROBE_EVERY_S = 10.0

BY_PROGRAM = "program"  # hint of a message that came by the API for programs
CAPABILITIES = Capabilities(
    text_unit=TextUnit.CODEPOINTS,
    text_max=TEXT_MAX,
    markup=Markup.HTML,
    streams=True,
    log_is_delivery=True,
    senders_are_people=True,
    resend_key_s=float("inf"),
    hold_s=0.0,
    liveness_s=30.0,
)

Probe = Callable[[], Awaitable[bool]]


class WebChannel:
    """One page. `probe` asks the HTTP server whether it answers itself (CH-210)."""

    def __init__(self, probe: Probe, *, account: Account | None = None, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.account = account or Account(channel="web")
        self.capabilities = CAPABILITIES
        self._probe = probe
        self._clock = clock
        self._proven_at: datetime | None = None
        self._deliver: Deliver | None = None

    @property
    def proven_at(self) -> datetime | None:
        return self._proven_at

    async def run(self, deliver: Deliver) -> None:
        """Until cancelled. A probe that fails only leaves the channel unproven: posts that still arrive are taken all the same."""
        self._deliver = deliver
        while True:
            if await self._probe():
                self._proven_at = self._clock()
            await asyncio.sleep(PROBE_EVERY_S)

    async def send(self, part: OutboundPart) -> SendOutcome:
        """Storing was sending: readers see the log."""
        return Sent((part.part_id,))

    async def post(
        self,
        *,
        chat_id: str,
        person_id: str,
        client_id: str,
        text: str,
        attachments: tuple[Attachment, ...] = (),
        replaces: str = "",
        language: str = "",
        by_program: bool = False,
    ) -> Accepted:
        """A message of a signed-in person. `client_id` makes it idempotent; `replaces` is the message that it takes the place of (WO-10, WO-11);
        `by_program`: it came by the API for programs, not from the page."""
        return await self._take(
            InboundEvent(
                account=self.account,
                kind=EventKind.MESSAGE,
                platform_event_id=f"{chat_id}:{client_id}",
                chat_id=chat_id,
                sender_id=person_id,
                mentioned=True,
                text=text,
                attachments=attachments,
                hint=BY_PROGRAM if by_program else "",
                target=replaces,
                language=language,
                received_at=self._clock(),
            )
        )

    async def regenerate(self, *, chat_id: str, person_id: str, client_id: str, turn_id: str) -> Accepted:
        """Ask for another answer of a turn."""
        return await self._take(
            InboundEvent(
                account=self.account,
                kind=EventKind.ACTION,
                hint="regenerate",
                platform_event_id=f"{chat_id}:{client_id}",
                chat_id=chat_id,
                sender_id=person_id,
                mentioned=True,
                target=turn_id,
                received_at=self._clock(),
            )
        )

    async def _take(self, event: InboundEvent) -> Accepted:
        if self._deliver is None:
            raise ConnectionLost("the page is not being served")
        (accepted,) = await self._deliver([event])
        return accepted

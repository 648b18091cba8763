"""One Official Account: the vendor's calls in, and the answers in the replies to them (3.1, 3.2); what finds no call goes by the API (3.3).

Every try of a delivery is a call of its own. The first is stored before anything else; the later ones join it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from channels.errors import ChannelError, ConnectionLost, CredentialRefused
from channels.given import ReadFile, no_file
from channels.message import Account, Address, Attachment, EventKind, InboundEvent, clean
from channels.port import (
    Accepted,
    Arrival,
    Deliver,
    NeedsOperator,
    OutboundPart,
    Refused,
    SendOutcome,
    SettlePart,
    TakePart,
    TryLater,
    Vault,
    WebhookRequest,
    WebhookResponse,
)
from channels.units import measure
from channels.wechat.calls import Calls
from channels.wechat.crypto import Unverified
from channels.wechat.official import convert, passive
from channels.wechat.official.answering import SILENCE, Answering
from channels.wechat.official.api import AskedToWait, Declined, OfficialApi, connected
from channels.wechat.official.envelope import Envelope
from channels.wechat.official.passive import Window
from channels.wechat.official.people import People
from channels.wechat.official.sending import PACE_S, UNTIL_WRITTEN, Sender
from channels.wechat.official.settings import OfficialSettings
from channels.wechat.words import Say, by_key

log = logging.getLogger(__name__)

REFUSAL = WebhookResponse(status=403)
LOOK_S = 0.3  # what waits may be in the outbox's hands for a moment, when the time to try it again has come


class OfficialChannel:
    """Has `Webhook`, `Apologising`, `Pull`, `Typing` (used where the settings say so) and `Fetching`."""

    def __init__(
        self,
        settings: OfficialSettings,
        *,
        vault: Vault,
        account: Account | None = None,
        say: Say = by_key,
        read_file: ReadFile = no_file,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        second: float = 1.0,
        pace_s: float = PACE_S,
    ) -> None:
        """`second` and `pace_s` are for tests: how long a second of the vendor's takes."""
        self.account = account or Account(channel="wechat_official")
        self.capabilities = settings.capabilities
        self.path = settings.path
        self._settings = settings
        self._vault = vault
        self._say = say
        self._read_file = read_file
        self._clock = clock
        self._pace_s = pace_s
        self._second = second
        self._proven_at: datetime | None = None
        self._people = People(vault)
        self._api: OfficialApi | None = None
        self._sender: Sender | None = None
        self._envelope = Envelope(settings, clock=clock, account=str(self.account))
        self._answering = Answering(settings, self._envelope, say=say, clock=clock, second=second, by_api=self._uses_api)
        self._calls = Calls()

    @property
    def proven_at(self) -> datetime | None:
        return self._proven_at

    def connect_outbox(self, take: TakePart, settle: SettlePart) -> None:
        self._answering.take, self._answering.settle = take, settle

    async def run(self, deliver: Deliver) -> None:
        self._envelope.check_key()
        async with connected(self._settings, self._vault, clock=self._clock) as api:
            sender = Sender(
                api, self._people, account=str(self.account), clock=self._clock, read_file=self._read_file, pace_s=self._pace_s
            )
            if self._settings.customer_service:
                try:
                    await api.token()
                except CredentialRefused as error:
                    sender.refused = NeedsOperator(str(error), error.code)
                    self._sender = sender
                    raise
                except ChannelError as error:
                    log.warning("%s: the API cannot be used now: %s", self.account, error)
            self._api, self._sender = api, sender
            try:
                async with asyncio.TaskGroup() as group:
                    self._answering.group, self._answering.deliver = group, deliver
                    await asyncio.Event().wait()
            finally:
                self._answering.deliver = self._answering.group = self._api = self._sender = None
                await self._calls.end()

    # In

    async def handle(self, request: WebhookRequest) -> WebhookResponse:
        with self._calls.one():
            return await self._handled(request)

    async def _handled(self, request: WebhookRequest) -> WebhookResponse:
        began = asyncio.get_running_loop().time()
        try:
            if request.method == "GET":
                echo = self._envelope.echoed(request.query)
                self._proven_at = self._clock()
                return WebhookResponse(body=echo)
            fields = self._envelope.opened(request)
            known = self._answering.windows.get(convert.event_id(fields))
            self._envelope.check_time(request.query.get("timestamp", ""), known.stored_at if known else None)
        except Unverified as error:
            log.warning("%s: a call is refused: %s", self.account, error.step)
            return REFUSAL
        self._proven_at = self._clock()
        deliver = self._answering.deliver
        if deliver is None:
            return SILENCE  # it comes again, and then somebody is there
        window = self._answering.window(fields, began)
        if window.document is not None:
            window.again.set()
            return self._answering.given(window)
        event = convert.convert(fields, self.account, self._settings.menu, self._clock())
        try:
            return await self._delivered(deliver, window, event)
        except ChannelError as error:  # the gateway stops, or cannot be reached
            log.info("%s: a delivery waits for its next try: %s", self.account, error)
            await self._answering.rest(window)
            return SILENCE

    def apology(self, request: WebhookRequest) -> WebhookResponse:
        """After a fault of ours: silence, so that the vendor tries again, and at the last try a sentence (WX-65)."""
        try:
            fields = self._envelope.opened(request)
        except Unverified:
            return REFUSAL
        window = self._answering.windows.get(convert.event_id(fields))
        if window is None or window.tries < 3:
            return SILENCE
        return self._answering.answer(self._answering.text(window, self._say(window.question, "failed")))

    async def _delivered(self, deliver: Deliver, window: Window, event: InboundEvent) -> WebhookResponse:
        take = self._answering.take
        if event.kind is EventKind.MESSAGE and take is not None and passive.is_continue(event.text):
            waiting = await take(event.address, LOOK_S * self._second)
            if waiting is not None or window.person in self._answering.owed:
                return await self._continued(deliver, window, event, waiting)
        accepted = await self._stored(deliver, window, event)
        if event.kind is not EventKind.MESSAGE:
            return await self._noted(window, event)
        await self._acted(window.person)
        return await self._answering.answered(window, event, accepted)

    async def _stored(self, deliver: Deliver, window: Window, event: InboundEvent) -> Accepted:
        (accepted,) = await deliver([event])
        if accepted.arrival is Arrival.DUPLICATE and window.tries == 1:
            window.tries = passive.tries_by_age(event.platform_ts, self._clock())
        return accepted

    async def _continued(self, deliver: Deliver, window: Window, event: InboundEvent, waiting: OutboundPart | None) -> WebhookResponse:
        """The person asks for what waits, and for nothing else: recorded, not a question (WX-72)."""
        try:
            accepted = await self._stored(deliver, window, replace(event, kind=EventKind.MEMBERSHIP, hint="continue"))
        except BaseException:
            if waiting is not None and self._answering.settle is not None:
                await self._answering.settle(waiting, TryLater())
            raise
        await self._acted(window.person)
        return await self._answering.answered(window, event, accepted, waiting=waiting, fetch=True)

    async def _noted(self, window: Window, event: InboundEvent) -> WebhookResponse:
        """Everything that is no talk; a new follower is welcomed (WX-62)."""
        standing = await self._people.of(window.person)
        if event.hint == convert.UNSUBSCRIBE:
            await self._people.keep(window.person, replace(standing, gone=True))
        elif event.kind is EventKind.MEMBERSHIP:
            await self._acted(window.person)
        if event.hint == convert.SUBSCRIBE and event.kind is EventKind.MEMBERSHIP:
            window.document = self._answering.text(window, self._settings.welcome or self._say("", "wechat_welcome"))
            return self._answering.given(window)
        return self._answering.over(window)

    async def _acted(self, person: str) -> None:
        """The person's act opens the window of the API anew (WX-80)."""
        standing = await self._people.of(person)
        if self._settings.customer_service or standing.gone:
            await self._people.keep(person, replace(standing, acted_at=self._clock(), sent=0, gone=False))

    # Out

    async def send(self, part: OutboundPart) -> SendOutcome:
        """What no call of the vendor's is there to carry."""
        sender, person = self._sender, part.address.chat_id
        if sender is not None and sender.refused is not None:
            return sender.refused
        if not part.attachments and not clean(part.text).strip():
            return Refused("there is nothing to show")
        if measure(clean(part.text), self.capabilities.text_unit) > self.capabilities.text_max:
            return Refused("message is too long")
        if sender is None or self._answering.expects_a_try(person):
            return TryLater()
        return await sender.send(part) if self._uses_api() else UNTIL_WRITTEN

    def _uses_api(self) -> bool:
        return self._settings.customer_service and self._sender is not None and not self._sender.off

    async def typing(self, address: Address, on: bool) -> None:
        """Only where it is switched on (WX-82)."""
        if self._api is None:
            raise ConnectionLost("the account is not running")
        try:
            await self._api.typing(address.chat_id, on=on)
        except (Declined, AskedToWait) as error:
            raise ConnectionLost(f"typing was not shown: {error}") from None

    async def fetch(self, attachment: Attachment, max_bytes: int) -> bytes:
        if self._api is None:
            raise ConnectionLost("the account is not running")
        return await self._api.download(*convert.file_of(attachment.fetch_ref), max_bytes)

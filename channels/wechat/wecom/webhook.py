"""One WeCom AI bot that is called (4.2): each message opens a stream, the platform asks for it about once a second, and its reply carries the answer.

What is ready after the asking stopped goes to the message's one-time address, once; else it waits for the person's next message.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import aiohttp

from channels.errors import ChannelError, ConnectionLost, CredentialRefused
from channels.given import ReadFile, no_file
from channels.message import Account, Address, Attachment, EventKind, clean, is_blank
from channels.port import (
    Arrival,
    Deliver,
    OutboundPart,
    Refused,
    SendOutcome,
    Sent,
    SettlePart,
    TakePart,
    TryLater,
    WebhookRequest,
    WebhookResponse,
)
from channels.units import measure
from channels.wechat import crypto
from channels.wechat.calls import Calls
from channels.wechat.crypto import Unverified
from channels.wechat.wecom import convert, files, one_time
from channels.wechat.wecom.askings import Asking, Askings, told_by
from channels.wechat.wecom.envelope import Envelope
from channels.wechat.wecom.one_time import UNTIL_WRITTEN
from channels.wechat.wecom.settings import ITEM_MAX, RESPONSE_URL_S, TEXT_MAX, WeComSettings
from channels.wechat.wecom.streams import req_id_of, shown_as
from channels.wechat.words import Say, by_key

PARTS_MAX = 20
OVER = frozenset({"done", "dead"})
TAKE_S = 0.3  # a poll waits so long for an answer: the next one comes soon
REFUSAL = WebhookResponse(status=403)
SILENCE = WebhookResponse(silent=True)

log = logging.getLogger(__name__)


class WeComWebhook:
    """Has `Webhook`, `Pull`, `Editing` (of what the polls are shown) and `Fetching`."""

    def __init__(
        self,
        settings: WeComSettings,
        *,
        account: Account | None = None,
        say: Say = by_key,
        admits: Callable[[str], bool] = lambda _sender: True,
        read_file: ReadFile = no_file,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        second: float = 1.0,
    ) -> None:
        """`admits`: whether a person may write, for the welcome. `second` is for tests: how long a second of the platform's takes."""
        self.account = account or Account(channel="wecom")
        self.capabilities = settings.capabilities
        self.path = settings.path
        self._settings = settings
        self._say = say
        self._admits = admits
        self._read_file = read_file
        self._clock = clock
        self._second = second
        self._proven_at: datetime | None = None
        self._take: TakePart | None = None
        self._settle: SettlePart | None = None
        self._deliver: Deliver | None = None
        self._session: aiohttp.ClientSession | None = None
        self._group: asyncio.TaskGroup | None = None
        self._envelope = Envelope(settings, clock)
        self._askings = Askings(second)
        self._calls = Calls()

    @property
    def proven_at(self) -> datetime | None:
        return self._proven_at

    def connect_outbox(self, take: TakePart, settle: SettlePart) -> None:
        self._take, self._settle = take, settle

    async def run(self, deliver: Deliver) -> None:
        try:
            crypto.key_of(self._settings.aes_key)
        except ValueError as error:
            raise CredentialRefused(f"channels.wecom.aes_key: {error}", code="bad_key") from None
        async with aiohttp.ClientSession(trust_env=False, cookie_jar=aiohttp.DummyCookieJar()) as session:
            try:
                async with asyncio.TaskGroup() as group:
                    self._session, self._group, self._deliver = session, group, deliver
                    await asyncio.Event().wait()
            finally:
                self._deliver = self._session = self._group = None
                await self._calls.end()

    # In

    async def handle(self, request: WebhookRequest) -> WebhookResponse:
        with self._calls.one():
            return await self._handled(request)

    async def _handled(self, request: WebhookRequest) -> WebhookResponse:
        try:
            if request.method == "GET":
                echo = self._envelope.echoed(request)
                self._proven_at = self._clock()
                return WebhookResponse(body=echo)
            body = self._envelope.opened(request)
        except Unverified as error:
            log.warning("%s: a call is refused: %s", self.account, error.step)
            return REFUSAL
        self._proven_at = self._clock()
        if self._deliver is None:
            return SILENCE
        if body.get("msgtype") == "stream":
            return await self._polled(body)
        try:
            return await self._asked(self._deliver, body)
        except ChannelError as error:  # the gateway stops
            log.info("%s: a message waits for its next try: %s", self.account, error)
            return SILENCE

    async def _asked(self, deliver: Deliver, body: Mapping[str, Any]) -> WebhookResponse:
        """A message or an event: stored, then its stream is opened (WX-121)."""
        event = convert.convert({"body": body}, self.account, self._clock())
        msgid = event.platform_event_id
        event = replace(event, platform_message_id=msgid if event.platform_message_id else "")
        (accepted,) = await deliver([event])
        if event.kind is not EventKind.MESSAGE:
            if event.hint == convert.ENTER_CHAT and self._admits(event.sender_id):
                return self._envelope.sealed({"msgtype": "text", "text": {"content": self._settings.welcome or self._say("", "wechat_welcome")}})
            return WebhookResponse()
        url = body.get("response_url")
        known = self._askings.of_question(msgid)
        asking = known or self._askings.open(event.address, msgid, url=url if isinstance(url, str) else "")
        self._askings.hear(asking)
        if asking.last is not None:
            return self._stream(asking.last)
        is_over = accepted.arrival is not Arrival.NEW and accepted.state in OVER and known is None  # an earlier life has dealt with it
        if (accepted.state == "ignored" or is_over) and not asking.ready:
            await self._gather(asking, self._second)  # a sentence of ours may come, soon
            if not asking.ready:
                asking.ended = True
                return WebhookResponse()
        return await self._shown(asking)

    async def _polled(self, body: Mapping[str, Any]) -> WebhookResponse:
        stream = body.get("stream")
        stream_id = str(cast("dict[str, Any]", stream).get("id", "")) if isinstance(stream, dict) else ""
        asking = self._askings.of_stream(stream_id)
        if asking is None:
            return await self._forgotten(stream_id)
        self._askings.hear(asking)
        if asking.last is not None:
            return self._stream(asking.last)
        if not asking.ended:
            await self._gather(asking, TAKE_S * self._second)
        return await self._shown(asking)

    async def _forgotten(self, stream_id: str) -> WebhookResponse:
        """A stream of an earlier life: its stored text if there is one, and the end in any case (WX-123)."""
        known = told_by(stream_id, self.account)
        if known is None:
            return self._stream({"id": stream_id, "finish": True, "content": ""})
        address, question = known
        asking = self._askings.open(address, question, stream_id=stream_id)
        await self._gather(asking, TAKE_S * self._second)
        return await self._finished(asking)

    async def _gather(self, asking: Asking, within_s: float) -> None:
        """Take what waits in the chat; what answers another question that is still asked for is left to that one, and what answers none, such as
        what a command says, to the newest: it was said to that."""
        if self._take is None:
            return
        left = within_s
        while len(asking.ready) < PARTS_MAX and (part := await self._take(asking.address, left)) is not None:
            left = 0.0
            of = self._askings.in_chat(asking.address) if part.aside else filter(None, [self._askings.of_question(part.reply_to)])
            next(filter(self._askings.is_asked_for, of), asking).ready.append(part)

    async def _shown(self, asking: Asking) -> WebhookResponse:
        """The snapshot so far, or the end."""
        if asking.ready:
            return await self._finished(asking)
        if self._askings.is_over(asking):
            asking.ended, asking.kept = True, asking.snapshot
            note = self._say(asking.snapshot, "wecom_continued") if asking.snapshot else ""
            asking.last = {"id": asking.id, "finish": True, "content": f"{asking.snapshot}\n\n{note}".strip()}
            return self._stream(asking.last)
        return self._stream({"id": asking.id, "finish": False, "content": asking.snapshot})

    async def _finished(self, asking: Asking) -> WebhookResponse:
        """The end of a stream with everything that is ready; what has no room waits for the one-time address, or the next message."""
        settle, taken, asking.ready = self._settle, asking.ready, []
        kept: list[OutboundPart] = []
        size = 0
        for part in taken:
            length = measure(clean(part.text), self.capabilities.text_unit) + (2 if kept else 0)
            if settle is not None and kept and size + length > TEXT_MAX:
                await settle(part, TryLater())
                continue
            kept.append(part)
            size += length
        items, notes = await self._pictures(kept)
        words = [clean(part.text) for part in kept if not is_blank(part.text)] + notes
        asking.ended = True
        asking.last = {"id": asking.id, "finish": True, "content": "\n\n".join(words)} | ({"msg_item": items} if items else {})
        response = self._stream(asking.last)
        if settle is None or self._group is None or not kept:
            return response
        group = self._group

        def written(took: bool) -> None:
            if not took:
                asking.ended, asking.last = False, None  # it is asked for again
            for number, part in enumerate(kept):
                outcome = Sent((f"{shown_as(asking.question)}:{number}",)) if took else TryLater()
                group.create_task(_settled(settle, part, outcome))

        return replace(response, written=written)

    async def _pictures(self, parts: list[OutboundPart]) -> tuple[list[dict[str, Any]], list[str]]:
        """Pictures travel in the finishing answer; any other file is a sentence (WX-123)."""
        items: list[dict[str, Any]] = []
        notes: list[str] = []
        for part in parts:
            for file in part.attachments:
                try:
                    data = await self._read_file(file) if file.mime in ("image/jpeg", "image/png") else b""
                except OSError:
                    data = b""
                if data and len(data) <= ITEM_MAX:
                    told = {"base64": base64.b64encode(data).decode(), "md5": hashlib.md5(data, usedforsecurity=False).hexdigest()}
                    items.append({"msgtype": "image", "image": told})
                else:
                    notes.append(part.file_note or f"[{file.name}]")
        return items, notes

    def _stream(self, told: Mapping[str, Any]) -> WebhookResponse:
        return self._envelope.sealed({"msgtype": "stream", "stream": told})

    # Out

    async def send(self, part: OutboundPart) -> SendOutcome:
        """A snapshot for the polls; or an answer that no poll came for."""
        asking = self._askings.of_question(part.reply_to)
        if part.preview:
            if asking is None or asking.ended:
                return TryLater()
            asking.snapshot = clean(part.text)
            return Sent((shown_as(asking.question),))
        if is_blank(part.text) and not part.attachments:
            return Refused("there is nothing to show")
        if measure(clean(part.text), self.capabilities.text_unit) > self.capabilities.text_max:
            return Refused("message is too long")
        if self._session is None or any(map(self._askings.is_asked_for, self._askings.in_chat(part.address))):
            return TryLater()
        asking = asking or next((each for each in self._askings.in_chat(part.address) if each.url), None)
        if asking is None or not asking.url or asking.age_s > RESPONSE_URL_S * self._second:
            return UNTIL_WRITTEN
        if not self._settings.trusts(asking.url):
            asking.url = ""
            return UNTIL_WRITTEN
        return await one_time.post(self._session, asking, clean(part.text))

    async def edit(self, address: Address, message_id: str, part: OutboundPart) -> SendOutcome:
        """The next snapshot. The end is no edit: a poll takes it from the outbox."""
        asking = self._askings.of_question(req_id_of(message_id))
        if asking is None:
            return Refused("the message cannot be changed any more", gone=True)
        if not asking.ended:
            asking.snapshot = clean(part.text)
        return Sent((message_id,))

    async def fetch(self, attachment: Attachment, max_bytes: int) -> bytes:
        if self._session is None:
            raise ConnectionLost("the account is not running")
        url, key = convert.file_of(attachment.fetch_ref)  # without a key of its own it is sealed with the bot's (WX-110 [unverified])
        return await files.download(self._session, self._settings, url, key or self._settings.aes_key, max_bytes)


async def _settled(settle: SettlePart, part: OutboundPart, outcome: SendOutcome) -> None:
    await settle(part, outcome)

"""One WeCom AI bot that is called (4.2): each message opens a stream, the platform asks for it about once a second, and its reply carries the answer.

What is ready after the asking stopped goes to the message's one-time address, once; else it waits for the person's next message.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast

import aiohttp

from channels.errors import ChannelError, ConnectionLost, CredentialRefused
from channels.message import Account, Address, Attachment, EventKind, clean, is_blank
from channels.port import (
    Deliver,
    OutboundPart,
    Refused,
    SendOutcome,
    Sent,
    SettlePart,
    TakePart,
    TryLater,
    Unknown,
    WebhookRequest,
    WebhookResponse,
)
from channels.units import measure
from channels.wechat import crypto
from channels.wechat.calls import Calls
from channels.wechat.crypto import Step, Unverified
from channels.wechat.wecom import convert, files
from channels.wechat.wecom.settings import ITEM_MAX, POLLED_S, RESPONSE_URL_S, STREAM_S, TEXT_MAX, WeComSettings
from channels.wechat.wecom.streams import KEPT_MAX, req_id_of, rest, shown_as
from channels.wechat.words import Say, by_key

SKEW_S = 300.0  # WX-9
LATE_TRY_S = 60.0
PARTS_MAX = 20
TAKE_S = 0.3  # a poll waits so long for an answer: the next one comes soon
FINAL_STATES = frozenset({"done", "ignored", "dead"})
UNTIL_WRITTEN = TryLater(until_written=True)
REFUSAL = WebhookResponse(status=403)
SILENCE = WebhookResponse(silent=True)
CALL_LIMITS = aiohttp.ClientTimeout(total=15, connect=5)

ReadFile: TypeAlias = Callable[[Attachment], Awaitable[bytes]]
log = logging.getLogger(__name__)


async def no_file(attachment: Attachment) -> bytes:
    raise FileNotFoundError(attachment.name)


@dataclass(slots=True, eq=False)
class Asking:
    """One message and the stream that answers it. `asked`: when the platform last asked, on the loop's clock. `ready`: parts that were taken for it.
    `kept`: the text it was ended with before the answer was whole. `url`: the one-time address, empty when it is used."""

    id: str
    question: str
    address: Address
    opened: float
    asked: float
    url: str = ""
    snapshot: str = ""
    kept: str | None = None
    ended: bool = False
    last: dict[str, Any] | None = None  # the finishing answer, given again when it is asked for again
    ready: list[OutboundPart] = field(default_factory=list[OutboundPart])


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
        self._known: dict[str, Asking] = {}  # by stream
        self._of: dict[str, Asking] = {}  # by question
        self._stored: dict[str, datetime] = {}  # when a message was first seen
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
                echo = self._opened(request.query, request.query.get("echostr", ""))
                self._proven_at = self._clock()
                return WebhookResponse(body=echo.encode())
            body = self._read(request)
            self._in_time(request.query.get("timestamp", ""), body)
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

    def _opened(self, query: Mapping[str, str], sealed: str) -> str:
        crypto.check(query.get("msg_signature", ""), [self._settings.token, query.get("timestamp", ""), query.get("nonce", ""), sealed])
        return crypto.decrypt(sealed, crypto.key_of(self._settings.aes_key), "")

    def _read(self, request: WebhookRequest) -> dict[str, Any]:
        """The body that the platform signed and sealed (WX-120)."""
        outer = _json(request.body)
        sealed = outer.get("encrypt")
        return _json(self._opened(request.query, sealed if isinstance(sealed, str) else "").encode())

    def _in_time(self, stamp: str, body: Mapping[str, Any]) -> None:
        now, msgid = self._clock(), str(body.get("msgid", ""))
        off = abs(now.timestamp() - int(stamp)) if stamp.isascii() and stamp.isdigit() and len(stamp) < 12 else SKEW_S + 1
        seen = self._stored.get(msgid)
        if off > SKEW_S and (seen is None or (now - seen).total_seconds() > LATE_TRY_S):
            raise Unverified(Step.TIME)
        if msgid:
            self._stored.setdefault(msgid, now)
            _shorten(self._stored)

    async def _asked(self, deliver: Deliver, body: Mapping[str, Any]) -> WebhookResponse:
        """A message or an event: stored, then its stream is opened (WX-121)."""
        event = convert.convert({"body": body}, self.account, self._clock())
        msgid = event.platform_event_id
        event = replace(event, platform_message_id=msgid if event.platform_message_id else "")
        (accepted,) = await deliver([event])
        if event.kind is not EventKind.MESSAGE:
            if event.hint == convert.ENTER_CHAT and self._admits(event.sender_id):
                return self._sealed({"msgtype": "text", "text": {"content": self._settings.welcome or self._say("", "wechat_welcome")}})
            return WebhookResponse()
        now = asyncio.get_running_loop().time()
        asking = self._of.get(msgid)
        if asking is None:
            url = body.get("response_url")
            asking = Asking(
                id=_stream_id(event.address, msgid), question=msgid, address=event.address, opened=now, asked=now,
                url=url if isinstance(url, str) else "",
            )  # fmt: skip
            self._known[asking.id] = self._of[msgid] = asking
            _shorten(self._known)
            _shorten(self._of)
        asking.asked = now
        if accepted.state == "ignored" and not asking.ready:
            await self._gather(asking, self._second)  # a sentence of ours may come, soon
            if not asking.ready:
                asking.ended = True
                return WebhookResponse()
        return await self._shown(asking)

    async def _polled(self, body: Mapping[str, Any]) -> WebhookResponse:
        stream = body.get("stream")
        stream_id = str(cast("dict[str, Any]", stream).get("id", "")) if isinstance(stream, dict) else ""
        asking = self._known.get(stream_id)
        if asking is None:
            return await self._forgotten(stream_id)
        asking.asked = asyncio.get_running_loop().time()
        if asking.last is not None:
            return self._sealed({"msgtype": "stream", "stream": asking.last})
        if not asking.ended:
            await self._gather(asking, TAKE_S * self._second)
        return await self._shown(asking)

    async def _forgotten(self, stream_id: str) -> WebhookResponse:
        """A stream of an earlier life: its stored text if there is one, and the end in any case (WX-123)."""
        known = _of_stream(stream_id, self.account)
        if known is None:
            return self._sealed({"msgtype": "stream", "stream": {"id": stream_id, "finish": True, "content": ""}})
        now = asyncio.get_running_loop().time()
        asking = Asking(id=stream_id, question=known[1], address=known[0], opened=now, asked=now)
        self._known[stream_id] = self._of[known[1]] = asking
        await self._gather(asking, TAKE_S * self._second)
        return await self._finished(asking)

    async def _gather(self, asking: Asking, within_s: float) -> None:
        """Take what waits in the chat; what answers another question that is still asked for is left to that one."""
        if self._take is None:
            return
        left = within_s
        while len(asking.ready) < PARTS_MAX and (part := await self._take(asking.address, left)) is not None:
            left = 0.0
            other = self._of.get(part.reply_to)
            mine = other is None or other is asking or not self._is_asked(other)
            (asking if mine else cast("Asking", other)).ready.append(part)

    async def _shown(self, asking: Asking) -> WebhookResponse:
        """The snapshot so far, or the end."""
        now = asyncio.get_running_loop().time()
        if asking.ready:
            return await self._finished(asking)
        if asking.ended or now - asking.opened >= STREAM_S * self._second:
            asking.ended, asking.kept = True, asking.snapshot
            note = self._say(asking.snapshot, "wecom_continued") if asking.snapshot else ""
            asking.last = {"id": asking.id, "finish": True, "content": f"{asking.snapshot}\n\n{note}".strip()}
            return self._sealed({"msgtype": "stream", "stream": asking.last})
        return self._sealed({"msgtype": "stream", "stream": {"id": asking.id, "finish": False, "content": asking.snapshot}})

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
        response = self._sealed({"msgtype": "stream", "stream": asking.last})
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

    def _sealed(self, body: Mapping[str, Any]) -> WebhookResponse:
        text = json.dumps(body, ensure_ascii=False)
        sealed = crypto.encrypt(text, crypto.key_of(self._settings.aes_key), "", secrets.token_bytes(crypto.RANDOM_BYTES))
        stamp, nonce = str(int(self._clock().timestamp())), secrets.token_hex(8)
        signature = crypto.sign([self._settings.token, stamp, nonce, sealed])
        told = {"encrypt": sealed, "msgsignature": signature, "timestamp": int(stamp), "nonce": nonce}
        return WebhookResponse(body=json.dumps(told).encode(), content_type="application/json")

    # Out

    async def send(self, part: OutboundPart) -> SendOutcome:
        """A snapshot for the polls; or an answer that no poll came for."""
        asking = self._of.get(part.reply_to)
        if part.preview:
            if asking is None or asking.ended:
                return TryLater()
            asking.snapshot = clean(part.text)
            return Sent((shown_as(asking.question),))
        if is_blank(part.text) and not part.attachments:
            return Refused("there is nothing to show")
        if measure(clean(part.text), self.capabilities.text_unit) > self.capabilities.text_max:
            return Refused("message is too long")
        if self._session is None or any(self._is_asked(each) for each in self._of.values() if each.address == part.address):
            return TryLater()
        asking = asking or next((each for each in list(self._of.values())[::-1] if each.address == part.address and each.url), None)
        if asking is None or not asking.url or self._clock_age(asking) > RESPONSE_URL_S * self._second:
            return UNTIL_WRITTEN
        return await self._by_url(self._session, asking, part)

    async def edit(self, address: Address, message_id: str, part: OutboundPart) -> SendOutcome:
        """The next snapshot. The end is no edit: a poll takes it from the outbox."""
        asking = self._of.get(req_id_of(message_id))
        if asking is None:
            return Refused("the message cannot be changed any more", gone=True)
        if not asking.ended:
            asking.snapshot = clean(part.text)
        return Sent((message_id,))

    def _is_asked(self, asking: Asking) -> bool:
        return not asking.ended and asyncio.get_running_loop().time() - asking.asked < POLLED_S * self._second

    def _clock_age(self, asking: Asking) -> float:
        return asyncio.get_running_loop().time() - asking.opened

    async def _by_url(self, session: aiohttp.ClientSession, asking: Asking, part: OutboundPart) -> SendOutcome:
        """The one-time address, once (WX-122)."""
        if not self._settings.trusts(asking.url):
            asking.url = ""
            return UNTIL_WRITTEN
        text = rest(clean(part.text), asking.kept) if asking.kept else clean(part.text)
        data = json.dumps({"msgtype": "markdown", "markdown": {"content": text or clean(part.text)}}, ensure_ascii=False).encode()
        url, asking.url = asking.url, ""
        try:
            async with session.post(
                url, data=data, headers={"Content-Type": "application/json; charset=utf-8"}, timeout=CALL_LIMITS, allow_redirects=False
            ) as response:
                told = _answer(response.status, await response.content.read(100_000))
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            asking.url = url
            return TryLater()
        except (aiohttp.ClientError, OSError) as error:
            return Unknown(f"the answer did not arrive ({type(error).__name__})")
        if told is None:
            return Unknown("what came back cannot be read")
        if told:
            log.info("%s: the one-time address is not taken (%d): the answer waits for the person", self.account, told)
            return UNTIL_WRITTEN
        return Sent((f"{asking.question}:url",))

    async def fetch(self, attachment: Attachment, max_bytes: int) -> bytes:
        if self._session is None:
            raise ConnectionLost("the account is not running")
        url, key = convert.file_of(attachment.fetch_ref)  # without a key of its own it is sealed with the bot's (WX-110 [unverified])
        return await files.download(self._session, self._settings, url, key or self._settings.aes_key, max_bytes)


async def _settled(settle: SettlePart, part: OutboundPart, outcome: SendOutcome) -> None:
    await settle(part, outcome)


def _stream_id(address: Address, msgid: str) -> str:
    """Names its chat and question, so that a later life knows what it is about."""
    return base64.urlsafe_b64encode(json.dumps([address.chat_id, msgid]).encode()).decode().rstrip("=")


def _of_stream(stream_id: str, account: Account) -> tuple[Address, str] | None:
    try:
        chat, msgid = json.loads(base64.urlsafe_b64decode(stream_id + "=" * (-len(stream_id) % 4)))
        return Address(account=account, chat_id=str(chat)), str(msgid)
    except (ValueError, TypeError):
        return None


def _json(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):  # the latter: nested without end
        raise Unverified(Step.DOCUMENT) from None
    if not isinstance(told, dict):
        raise Unverified(Step.DOCUMENT)
    return cast("dict[str, Any]", told)


def _answer(status: int, body: bytes) -> int | None:
    """The code of an answer, 0 for good; None when nobody can tell (WX-13)."""
    if status != 200:
        return None
    try:
        code = json.loads(body).get("errcode", 0)
    except (ValueError, AttributeError):
        return None
    return code if isinstance(code, int) else None


def _shorten(kept: dict[str, Any]) -> None:
    while len(kept) > KEPT_MAX:
        del kept[next(iter(kept))]

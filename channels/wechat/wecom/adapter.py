"""One WeCom AI bot on the long connection (4.1): frames in, answers as streams on the frame of their question, everything else as messages.

Lost, refused and taken-over connections end `run`; the supervisor decides when the next begins.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, cast

import aiohttp

from channels.errors import ConnectionLost, CredentialRefused
from channels.given import ReadFile, no_file
from channels.message import Account, Address, Attachment, EventKind, InboundEvent
from channels.port import Deliver, NeedsOperator, OutboundPart, SendOutcome, Vault
from channels.wechat.wecom import convert, files
from channels.wechat.wecom.connection import FRAME_MAX, Connection, NoAck, new_req_id
from channels.wechat.wecom.sending import OK, Sender
from channels.wechat.wecom.settings import (
    ACK_S,
    MISSED_MAX,
    PING_S,
    PONG_S,
    SUBSCRIBE_S,
    TAKEN_OVER_S,
    WeComSettings,
)
from channels.wechat.words import Say, by_key

WRONG_SECRET = 40013  # [unverified]
TAKEN_OVER_KEY = "taken_over_at"
BATCH_MAX = 50

Json: TypeAlias = Mapping[str, Any]
log = logging.getLogger(__name__)


class WeComChannel:
    """Has `Editing` (of answers that grow) and `Fetching`."""

    def __init__(
        self,
        settings: WeComSettings,
        *,
        vault: Vault,
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
        self._settings = settings
        self._vault = vault
        self._say = say
        self._admits = admits
        self._clock = clock
        self._second = second
        self._proven_at: datetime | None = None
        self._session: aiohttp.ClientSession | None = None
        self._frames: asyncio.Queue[Json | ConnectionLost] = asyncio.Queue()
        self._sender = Sender(
            account=str(self.account), capabilities=self.capabilities, vault=vault, say=say, read_file=read_file, second=second
        )

    @property
    def proven_at(self) -> datetime | None:
        return self._proven_at

    # In

    async def run(self, deliver: Deliver) -> None:
        await self._leave_to_the_other()
        async with aiohttp.ClientSession(trust_env=False, cookie_jar=aiohttp.DummyCookieJar()) as session, await self._connected(session) as socket:
            connection = Connection(socket, self._frames.put_nowait)
            self._session = session
            try:
                await self._talk(connection, deliver)
            finally:
                self._sender.connection = self._sender.group = self._session = None  # before they are closed: what is sent from now on never left
                connection.end()

    async def _connected(self, session: aiohttp.ClientSession) -> aiohttp.ClientWebSocketResponse:
        try:
            async with asyncio.timeout(SUBSCRIBE_S):
                return await session.ws_connect(self._settings.url, timeout=_CLOSING, max_msg_size=FRAME_MAX)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ConnectionLost(f"WeCom cannot be reached ({type(error).__name__})", code="unreachable") from None

    async def _talk(self, connection: Connection, deliver: Deliver) -> None:
        """Until the connection ends; raises why, and nothing wrapped around it."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._receive(connection))
                await self._subscribe(connection)
                self._proven_at = self._clock()
                self._sender.connection, self._sender.group = connection, group
                log.info("%s is connected", self.account)
                group.create_task(self._pings(connection))
                group.create_task(self._deliveries(connection, deliver))
        except BaseExceptionGroup as faults:
            raise _first(faults) from None

    async def _receive(self, connection: Connection) -> None:
        """Frames wait in their order for `_deliveries`; so does the end, for what came before it is not told a second time."""
        try:
            await connection.receive()
        except ConnectionLost as error:
            connection.end()
            self._frames.put_nowait(error)

    async def _subscribe(self, connection: Connection) -> None:
        body = {"bot_id": self._settings.bot_id, "secret": self._settings.secret}
        ack = await connection.call("aibot_subscribe", body, req_id=new_req_id("aibot_subscribe"), within_s=SUBSCRIBE_S * self._second)
        if ack.code == WRONG_SECRET:
            refused = self._sender.refused = NeedsOperator(f"WeCom refuses the bot ({ack}): check bot_id and secret", "bad_bot")
            raise CredentialRefused(refused.reason, code=refused.code)
        if ack.code != OK:
            raise ConnectionLost(f"WeCom refuses the connection ({ack})", code="unreachable")

    async def _pings(self, connection: Connection) -> None:
        """Two missed pongs in a row, and the connection is dead (WX-102)."""
        missed = 0
        while True:
            await asyncio.sleep((PING_S - (PONG_S if missed else 0)) * self._second)
            req_id = new_req_id("ping")
            try:
                ack = await connection.call("ping", None, req_id=req_id, within_s=PONG_S * self._second)
            except NoAck:
                connection.give_up(req_id)
                missed += 1
                if missed >= MISSED_MAX:
                    raise ConnectionLost("two pings were not answered", code="broken") from None
                continue
            if ack.code == OK:
                missed = 0
                self._proven_at = self._clock()

    async def _deliveries(self, connection: Connection, deliver: Deliver) -> None:
        """Frames in their order, each stored before anything is made of it (CH-50)."""
        while True:
            waiting = [await self._frames.get()]
            while len(waiting) < BATCH_MAX and not self._frames.empty():
                waiting.append(self._frames.get_nowait())
            frames = [frame for frame in waiting if not isinstance(frame, ConnectionLost)]
            events = [convert.convert(frame, self.account, self._clock()) for frame in frames]
            await self._sender.know_groups(events)
            if events:
                await deliver(events)
            for frame, event in zip(frames, events, strict=True):
                await self._acted_on(connection, frame, event)
            for ended in waiting:
                if isinstance(ended, ConnectionLost):
                    raise ended

    async def _acted_on(self, connection: Connection, frame: Json, event: InboundEvent) -> None:
        name = convert.event_of(frame)
        if name == convert.TAKEN_OVER:
            await self._vault.put({TAKEN_OVER_KEY: self._clock().isoformat().encode()})
            raise ConnectionLost(_TAKEN_OVER, code="other_program")
        may = event.kind is EventKind.MEMBERSHIP and self._admits(event.sender_id)
        group = self._sender.group
        if name == convert.ENTER_CHAT and may and group is not None:
            group.create_task(self._welcome(connection, convert.frame_id(frame)))

    async def _welcome(self, connection: Connection, req_id: str) -> None:
        body = {"msgtype": "text", "text": {"content": self._settings.welcome or self._say("", "wechat_welcome")}}
        try:
            await connection.call("aibot_respond_welcome_msg", body, req_id=req_id, within_s=ACK_S * self._second)
        except ConnectionLost as error:
            log.info("%s: the welcome was not acknowledged: %s", self.account, error)

    async def _leave_to_the_other(self) -> None:
        """Another program took the connection over: it is not fought for (WX-103)."""
        kept = await self._vault.get(TAKEN_OVER_KEY)
        if kept is None:
            return
        try:
            at = datetime.fromisoformat(kept.decode())
        except ValueError:
            return
        if self._clock() - at < timedelta(seconds=TAKEN_OVER_S * self._second):
            raise ConnectionLost(_TAKEN_OVER, code="other_program")

    # Out

    async def send(self, part: OutboundPart) -> SendOutcome:
        return await self._sender.send(part)

    async def edit(self, address: Address, message_id: str, part: OutboundPart) -> SendOutcome:
        """The next snapshot of a growing answer, or its end: that is the part which takes its place (`edit_of`)."""
        return await self._sender.edit(address, message_id, part)

    async def fetch(self, attachment: Attachment, max_bytes: int) -> bytes:
        if self._session is None:
            raise ConnectionLost("not connected to WeCom")
        return await files.download(self._session, self._settings, *convert.file_of(attachment.fetch_ref), max_bytes)


_CLOSING = aiohttp.ClientWSTimeout(ws_close=0.5)  # pyright: ignore[reportCallIssue]  # an attrs class, which pyright does not see through
_TAKEN_OVER = "taken over: another program connected as this bot; the next try is five minutes later"


def _first(faults: BaseExceptionGroup[BaseException]) -> BaseException:
    """Why a connection ended: of what went wrong at once, that which a person or the operator must know."""
    flat: list[BaseException] = []
    for error in faults.exceptions:
        flat.append(_first(cast("BaseExceptionGroup[BaseException]", error)) if isinstance(error, BaseExceptionGroup) else error)
    return next((error for error in flat if not isinstance(error, ConnectionLost)), flat[0])


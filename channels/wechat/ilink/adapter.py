"""One bot of personal WeChat: the long poll in, and what the gateway may ask of it (WX-29 to WX-35, WX-40 to WX-53).

Without a login, or after the session was lost, it raises `CredentialRefused` and asks nothing: scanning a code is a person's business (WX-21).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from channels.errors import ConnectionLost, CredentialRefused
from channels.given import LoadCursor, ReadFile, no_cursor, no_file
from channels.message import Account, Address, Attachment, ChatType, InboundEvent
from channels.port import Cursor, Deliver, NeedsOperator, OutboundPart, SendOutcome, Sent, TryLater, Vault
from channels.wechat.ilink import credentials, files
from channels.wechat.ilink.api import GONE, Api, Declined, NoAnswer, connected
from channels.wechat.ilink.contexts import Contexts
from channels.wechat.ilink.convert import events_of, tokens_of
from channels.wechat.ilink.credentials import Credentials
from channels.wechat.ilink.frames import Updates
from channels.wechat.ilink.media import Reference
from channels.wechat.ilink.sending import Sender
from channels.wechat.ilink.settings import HOLD_S, PACE_S, IlinkSettings

log = logging.getLogger(__name__)

CURSOR = "updates"
HOLD_MARGIN_S = 5.0  # our limit beyond the server's hold
HOLD_LEAST_S, HOLD_MOST_S = 0.05, 300.0
PAUSE_S, BROKEN_MAX = 2.0, 3  # after the third broken poll in a row the supervisor's longer pauses begin
AGAIN_S = 10.0  # -14 is believed at the second time
STOP_NOTICE_S = 0.5
QUICK_S = 1.0  # an empty answer that came sooner did not wait for news
GROUPS_MAX = 200

SCAN = NeedsOperator("scan: nobody has logged in; show a login code on the operator page or in the terminal and scan it with the phone", "scan")
SCAN_AGAIN = NeedsOperator("scan again: WeChat has ended the session, or another program took it over", "scan_again")
HEADERS = NeedsOperator(
    "the first call after the login was refused (-14): the request's headers or version are the cause, not the scan; update Yumegate", "outdated"
)
ODD_HOST = NeedsOperator("scan again: the server that the login named is not the vendor's", "odd_host")


class IlinkChannel:
    """Has `Typing` and `Fetching`."""

    def __init__(
        self,
        settings: IlinkSettings,
        *,
        vault: Vault,
        account: Account | None = None,
        load_cursor: LoadCursor = no_cursor,
        read_file: ReadFile = no_file,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        pause_s: float = PAUSE_S,
        again_s: float = AGAIN_S,
        pace_s: float = PACE_S,
        hold_s: float = HOLD_S,
        margin_s: float = HOLD_MARGIN_S,
    ) -> None:
        """`load_cursor`: what was stored last as the cursor `updates` of this account, empty for nothing. `read_file`: the bytes of a stored
        attachment; may raise OSError. The seconds are for tests."""
        self.account = account or Account(channel="wechat_ilink")
        self.capabilities = settings.capabilities
        self._settings = settings
        self._vault = vault
        self._load_cursor = load_cursor
        self._read_file = read_file
        self._clock = clock
        self._pause_s = pause_s
        self._again_s = again_s
        self._pace_s = pace_s
        self._hold_s = hold_s
        self._margin_s = margin_s
        self._contexts = Contexts(vault)
        self._proven_at: datetime | None = None
        self._api: Api | None = None
        self._sender: Sender | None = None
        self._login: Credentials | None = None
        self._refused: NeedsOperator | None = None  # why the account cannot be used
        self._doubted = False  # a send was answered with -14, and nothing has worked since
        self._groups: set[str] = set()

    @property
    def proven_at(self) -> datetime | None:
        return self._proven_at

    # In

    async def run(self, deliver: Deliver) -> None:
        self._login = login = await credentials.load(self._vault)
        if login is None:
            raise self._refuse(SCAN)
        if not self._settings.trusts(login.base_url):
            raise self._refuse(ODD_HOST)
        async with connected(self._settings, login.base_url, login.token) as api:
            self._sender = Sender(
                api, self._contexts, capabilities=self.capabilities, clock=self._clock, read_file=self._read_file, lost=self._send_lost,
                pace_s=self._pace_s,
            )  # fmt: skip
            self._api = api
            try:
                if not login.lost:  # else this is the slow probe: one question (section 2.8)
                    await self._notify(api, "start")
                await self._receive(api, deliver)
            except asyncio.CancelledError:
                await self._notify(api, "stop", limit_s=STOP_NOTICE_S)
                raise
            finally:
                self._api = self._sender = None

    async def _receive(self, api: Api, deliver: Deliver) -> None:
        """Until cancelled, or until it cannot go on."""
        cursor = await self._load_cursor()
        hold_s, broken, lost = self._hold_s, 0, bool(self._login and self._login.lost)
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                batch = await api.updates(cursor, limit_s=hold_s + self._margin_s)
            except (ConnectionLost, Declined) as error:
                if isinstance(error, NoAnswer) and error.timed_out:
                    continue  # an empty batch (WX-30), and no proof
                if isinstance(error, Declined) and error.code == GONE:
                    if lost:
                        await self._lose()
                        raise self._refuse(self._lost_reason()) from error
                    lost = True
                    await asyncio.sleep(self._again_s)
                    continue
                broken += 1
                if broken >= BROKEN_MAX:
                    raise ConnectionLost(f"WeChat cannot be heard: {error}", code="unreachable") from error
                await asyncio.sleep(self._pause_s)
                continue
            broken, lost = 0, False
            await self._heard()
            hold_s = self._held(batch, hold_s)
            moved = batch.get_updates_buf or cursor
            if batch.msgs or moved != cursor:
                await self._deliver(batch, moved, deliver)
            if moved == cursor and loop.time() - began < min(QUICK_S, hold_s / 2):
                await asyncio.sleep(min(QUICK_S, hold_s))
            cursor = moved

    async def _deliver(self, batch: Updates, cursor: str, deliver: Deliver) -> None:
        """Events, cursor and context tokens in one transaction (WX-31)."""
        now = self._clock()
        events = events_of(batch.msgs, self.account, self._login.bot_id if self._login else "", now)
        self._tell_groups(events)
        async with self._contexts.arriving(tokens_of(batch.msgs), now) as entries:
            await deliver(events, Cursor(name=CURSOR, value=cursor, vault=entries))

    async def _heard(self) -> None:
        """A poll was answered: that proves the session, and that the channel hears (CH-210)."""
        self._proven_at = self._clock()
        if self._login is not None and (self._login.lost or not self._login.proven):
            self._login = await credentials.keep(self._vault, replace(self._login, proven=True, lost=False))

    def _held(self, batch: Updates, hold_s: float) -> float:
        """How long the next poll is held (WX-30); a longer hold means a later alarm (CH-210)."""
        if batch.longpolling_timeout_ms > 0:
            hold_s = min(max(batch.longpolling_timeout_ms / 1000, HOLD_LEAST_S), HOLD_MOST_S)
            liveness_s = 2 * max(hold_s, HOLD_S) + 15
            if liveness_s != self.capabilities.liveness_s:
                self.capabilities = replace(self.capabilities, liveness_s=liveness_s)
        return hold_s

    def _tell_groups(self, events: Sequence[InboundEvent]) -> None:
        for event in events:
            if event.chat_type is ChatType.GROUP and event.chat_id not in self._groups and len(self._groups) < GROUPS_MAX:
                self._groups.add(event.chat_id)
                log.warning("%s: a message of the group %s is ignored: this bot answers direct chats only", self.account, event.chat_id)

    async def _notify(self, api: Api, what: str, *, limit_s: float = 10.0) -> None:
        """A failure is a log line (WX-29)."""
        try:
            await api.notify(what, limit_s=limit_s)
        except (ConnectionLost, Declined) as error:
            log.info("%s: the notice of our %s was not taken: %s", self.account, what, error)

    # Out

    async def send(self, part: OutboundPart) -> SendOutcome:
        if self._refused is not None:
            return self._refused
        if self._sender is None:
            return TryLater()
        outcome = await self._sender.send(part)
        self._doubted = self._doubted and not isinstance(outcome, Sent)
        return outcome

    async def typing(self, address: Address, on: bool) -> None:
        """Once on and once off for a turn, unless it is kept alive (WX-46)."""
        if self._sender is None:
            raise ConnectionLost("not connected to WeChat")
        await self._sender.typing(address.chat_id, on=on)

    async def fetch(self, attachment: Attachment, max_bytes: int) -> bytes:
        if self._api is None:
            raise ConnectionLost("not connected to WeChat")
        return await files.download(self._api.files, self._settings, Reference.parse(attachment.fetch_ref), max_bytes)

    # The session

    async def _lose(self) -> None:
        """Remember that the session is gone: it is probed with one question from now on."""
        if self._login is not None and not self._login.lost:
            self._login = await credentials.keep(self._vault, replace(self._login, lost=True))

    def _send_lost(self) -> SendOutcome:
        """A send was answered with -14: once more after a pause, then it is the operator's business (section 2.8)."""
        if not self._doubted:
            self._doubted = True
            return TryLater(self._again_s)
        self._refused = self._lost_reason()
        return self._refused

    def _lost_reason(self) -> NeedsOperator:
        return SCAN_AGAIN if self._login is not None and self._login.proven else HEADERS

    def _refuse(self, why: NeedsOperator) -> CredentialRefused:
        self._refused = why
        return CredentialRefused(why.reason, code=why.code)

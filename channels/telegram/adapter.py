"""One bot that polls: our own loop confirms an update only after it is stored (CH-150), and every call ends in one outcome (CH-11)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from telegram import ReactionTypeEmoji
from telegram.error import BadRequest, Conflict, NetworkError, RetryAfter, TelegramError

from channels.errors import ConnectionLost, CredentialRefused
from channels.given import LoadCursor, ReadFile, no_cursor, no_file
from channels.message import Account, Address, Attachment, InboundEvent
from channels.port import Cursor, Deliver, NeedsOperator, OutboundPart, Refused, SendOutcome, Sent, TryLater
from channels.telegram.api import HOLD_S, Api, connected
from channels.telegram.convert import GENERAL, Setting, convert, forum, update_id
from channels.telegram.outcomes import WEBHOOK_SET, fault_of, outcome_of, says, wait_of
from channels.telegram.outgoing import REACTIONS
from channels.telegram.position import Position
from channels.telegram.sending import Sender
from channels.telegram.settings import TelegramSettings
from channels.telegram.side_calls import answer_presses, register_menus
from channels.telegram.updates import User

log = logging.getLogger(__name__)

CURSOR = "updates"
PAUSE_MAX_S = 60.0
EMPTY_PAUSE_S = 0.02  # after a poll without news: a server that does not hold polls, or repeats itself, is not asked without pause
MANAGING = ("creator", "administrator")


class TelegramChannel:
    """Has `Editing`, `Typing`, `Reactions`, `Managers` and `Fetching`. In webhook mode use `webhook.TelegramWebhook`."""

    def __init__(
        self,
        settings: TelegramSettings,
        *,
        account: Account | None = None,
        load_cursor: LoadCursor = no_cursor,
        read_file: ReadFile = no_file,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        hold_s: int = HOLD_S,
    ) -> None:
        """`load_cursor`: of the cursor `updates`."""
        self.account = account or Account(channel="telegram")
        self.capabilities = settings.capabilities
        self.settings = settings
        self._load_cursor = load_cursor
        self._clock = clock
        self._hold_s = hold_s
        self._proven_at: datetime | None = None
        self._setting: Setting | None = None
        self._forums: set[str] = set()
        self._sender = Sender(capabilities=self.capabilities, clock=clock, read_file=read_file)

    @property
    def proven_at(self) -> datetime | None:
        return self._proven_at

    @property
    def api(self) -> Api | None:
        """Of the present connection."""
        return self._sender.api

    def prove(self) -> None:
        """Telegram has been heard."""
        self._proven_at = self._clock()

    # In

    async def run(self, deliver: Deliver) -> None:
        try:
            async with connected(self.settings) as api:
                me = await _who(api)
                self._setting = Setting(account=self.account, me=me, channel_posts=self.settings.channel_posts)
                log.info("%s is connected as @%s", self.account, me.username)
                self._sender.api = api
                try:
                    await self.receive(api, deliver)
                finally:
                    self._sender.api = None  # before its connections are closed: what is sent from now on never left
        except TelegramError as error:
            fault = fault_of(error)
            if isinstance(fault, CredentialRefused):
                self._sender.refused = NeedsOperator(str(fault), fault.code)
            raise fault from error

    async def receive(self, api: Api, deliver: Deliver) -> None:
        """Until cancelled, or until it cannot go on. A poll that broke is tried once more: long ones are cut all the time."""
        position = Position.parse(await self._load_cursor())
        broken = unhooked = greeted = False
        hold_s = 0  # the first answer proves that we hear
        while True:
            try:
                raws = await api.updates(position.offset(self._clock()), self.settings.update_kinds, hold_s=hold_s)
            except RetryAfter as error:
                await asyncio.sleep(min(wait_of(error), PAUSE_MAX_S))
                continue
            except Conflict as error:
                if unhooked or not says(error, WEBHOOK_SET):
                    raise
                unhooked = await api.bot.delete_webhook()  # what waits there is kept
                continue
            except NetworkError as error:
                if broken or isinstance(error, BadRequest):
                    raise
                broken = True
                continue
            broken, hold_s = False, self._hold_s
            self.prove()
            before = position.number
            if raws:
                position = position.after([number for raw in raws if (number := update_id(raw)) is not None], self._clock())
                events = self.events(raws)
                accepted = await deliver(events, Cursor(name=CURSOR, value=str(position)))
                await answer_presses(api, self.account, raws, events, accepted)
            if position.number == before:
                await asyncio.sleep(EMPTY_PAUSE_S)
            if not greeted:
                greeted = True
                await register_menus(api, self.account, self.settings.menus)

    def events(self, raws: Sequence[object]) -> list[InboundEvent]:
        assert self._setting is not None, "run has connected"
        now = self._clock()
        self._forums.update(chat_id for raw in raws if (chat_id := forum(raw)))
        return [event for raw in raws if (event := convert(raw, self._setting, now)) is not None]

    # Out

    async def send(self, part: OutboundPart) -> SendOutcome:
        return await self._sender.send(part)

    async def edit(self, address: Address, message_id: str, part: OutboundPart) -> SendOutcome:
        """A preview (no `edit_of`) is left out when the chat has heard much of late; an answer is not (CH-92, CH-93)."""
        return await self._sender.edit(address, message_id, part)

    # Signs

    async def typing(self, address: Address, on: bool) -> None:
        """The sign fades by itself. General is named here, and only here (CH-155)."""
        if not on:
            return
        thread_id = address.thread_id or (GENERAL if address.chat_id in self._forums else "")
        try:
            await self._live().bot.send_chat_action(address.chat_id, "typing", message_thread_id=int(thread_id) if thread_id else None)
        except TelegramError as error:
            raise ConnectionLost(f"typing was not shown: {error}") from error

    async def react(self, address: Address, message_id: str, emoji: str) -> SendOutcome:
        if self.api is None:
            return TryLater()
        try:
            await self.api.bot.set_message_reaction(address.chat_id, int(message_id), ReactionTypeEmoji(REACTIONS.get(emoji, emoji)))
        except TelegramError as error:
            outcome = outcome_of(error)
            return Refused("this server knows no reactions") if isinstance(outcome, NeedsOperator) else outcome
        return Sent()

    # Questions

    async def manages(self, address: Address, sender_id: str) -> bool:
        """In a private chat nobody is an administrator. An anonymous admin writes as the group itself (CH-153)."""
        if not address.chat_id.startswith("-"):
            return False
        if sender_id == address.chat_id:
            return True
        if not sender_id.isdigit():
            return False  # a channel that a person writes as
        try:
            member = await self._live().bot.get_chat_member(address.chat_id, int(sender_id))
        except TelegramError as error:
            raise ConnectionLost(f"Telegram does not say who manages the group: {error}") from error
        return member.status in MANAGING

    async def fetch(self, attachment: Attachment, max_bytes: int) -> bytes:
        try:
            return await self._live().download(attachment.fetch_ref, max_bytes)
        except TelegramError as error:
            raise ConnectionLost(f"the file did not arrive: {error}") from error

    def _live(self) -> Api:
        if self.api is None:
            raise ConnectionLost("not connected to Telegram")
        return self.api


async def _who(api: Api) -> User:
    try:
        return await api.me()
    except ValueError as error:
        raise ConnectionLost("Telegram does not say who we are: is the address really that of a Bot API?", code="no_api") from error

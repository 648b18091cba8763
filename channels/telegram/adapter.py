"""One bot that polls: our own loop confirms an update only after it is stored (CH-150), and every call ends in one outcome (CH-11)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeAlias

from telegram import BotCommand, ReactionTypeEmoji
from telegram.error import BadRequest, Conflict, NetworkError, RetryAfter, TelegramError

from channels.errors import ConnectionLost, CredentialRefused
from channels.message import Account, Address, Attachment, InboundEvent
from channels.port import Accepted, Cursor, Deliver, NeedsOperator, OutboundPart, Refused, SendOutcome, Sent, TryLater
from channels.telegram.api import HOLD_S, Api, connected
from channels.telegram.buttons import ASIDE_MAX, Press, keyboard, press
from channels.telegram.convert import GENERAL, Setting, convert, forum, update_id
from channels.telegram.menu import checked
from channels.telegram.outcomes import NOT_MODIFIED, WEBHOOK_SET, fault_of, outcome_of, says, wait_of
from channels.telegram.outgoing import REACTIONS, Step, remedies, steps
from channels.telegram.pace import Pace
from channels.telegram.position import Position
from channels.telegram.settings import TelegramSettings
from channels.telegram.updates import User
from channels.units import measure

log = logging.getLogger(__name__)

CURSOR = "updates"
SIDE_CALL_S = 5.0  # for what only accompanies: the answer to a press, the menu
PAUSE_MAX_S = 60.0
EMPTY_PAUSE_S = 0.02  # after a poll without news: a server that does not hold polls, or repeats itself, is not asked without pause
BEGUN_MAX = 100
MANAGING = ("creator", "administrator")

LoadCursor: TypeAlias = Callable[[], Awaitable[str]]
ReadFile: TypeAlias = Callable[[Attachment], Awaitable[bytes]]


async def _no_cursor() -> str:
    return ""


async def no_file(attachment: Attachment) -> bytes:
    raise FileNotFoundError(attachment.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A part of several calls that was stopped between two: what is on show, and the calls that are left."""

    text: str
    done: tuple[tuple[str, ...], ...]
    rest: tuple[Step, ...]

    def left(self, part: OutboundPart, todo: Sequence[Step]) -> list[Step]:
        """The calls that are left of `part`. Its words are new when they say that they may be a second copy."""
        again = todo[len(self.done) :] if part.text != self.text else ()
        return list(again or self.rest)


class TelegramChannel:
    """Has `Editing`, `Typing`, `Reactions`, `Managers` and `Fetching`. In webhook mode use `webhook.TelegramWebhook`."""

    def __init__(
        self,
        settings: TelegramSettings,
        *,
        account: Account | None = None,
        load_cursor: LoadCursor = _no_cursor,
        read_file: ReadFile = no_file,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        hold_s: int = HOLD_S,
    ) -> None:
        """`load_cursor`: what was stored last as the cursor `updates` of this account, empty for nothing; asked at every connect.
        `read_file`: the bytes of a stored attachment; may raise OSError."""
        self.account = account or Account(channel="telegram")
        self.capabilities = settings.capabilities
        self.settings = settings
        self._load_cursor = load_cursor
        self._read_file = read_file
        self._clock = clock
        self._hold_s = hold_s
        self._pace = Pace(clock)
        self._proven_at: datetime | None = None
        self.api: Api | None = None
        self._setting: Setting | None = None
        self._refused: NeedsOperator | None = None  # why the token is no good
        self._forums: set[str] = set()
        self._begun: dict[str, Begun] = {}  # by part

    @property
    def proven_at(self) -> datetime | None:
        return self._proven_at

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
                self.api = api
                try:
                    await self.receive(api, deliver)
                finally:
                    self.api = None  # before its connections are closed: what is sent from now on never left
        except TelegramError as error:
            fault = fault_of(error)
            if isinstance(fault, CredentialRefused):
                self._refused = NeedsOperator(str(fault), fault.code)
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
                await self.answer_presses(api, raws, events, accepted)
            if position.number == before:
                await asyncio.sleep(EMPTY_PAUSE_S)
            if not greeted:
                greeted = True
                await self.register_menus(api)

    def events(self, raws: Sequence[object]) -> list[InboundEvent]:
        assert self._setting is not None, "run has connected"
        now = self._clock()
        self._forums.update(chat_id for raw in raws if (chat_id := forum(raw)))
        return [event for raw in raws if (event := convert(raw, self._setting, now)) is not None]

    # Out

    async def send(self, part: OutboundPart) -> SendOutcome:
        return await self._carry_out(part, steps(part))

    async def edit(self, address: Address, message_id: str, part: OutboundPart) -> SendOutcome:
        """A preview (no `edit_of`) is left out when the chat has heard much of late; an answer is not (CH-92, CH-93)."""
        if not part.edit_of and not self._pace.allows(address.chat_id):
            return TryLater()
        return await self._carry_out(part, steps(replace(part, address=address), edit_of=message_id))

    async def _carry_out(self, part: OutboundPart, todo: list[Step]) -> SendOutcome:
        if self._refused is not None:
            return self._refused
        if reason := self._unsendable(part, todo):
            return Refused(reason)
        done: list[tuple[str, ...]] = []
        if begun := self._begun.pop(part.part_id, None):
            done, todo = list(begun.done), begun.left(part, todo)
        thread_gone = False
        while todo:
            step = todo.pop(0)
            tried = await self._one(step)
            match tried:
                case tuple():
                    done.append(tried)
                case list():
                    thread_gone = thread_gone or (bool(step.thread_id) and not tried[0].thread_id)
                    if thread_gone:
                        todo = [replace(each, thread_id="") for each in todo]
                    todo[:0] = tried
                case _:
                    if done:
                        self._keep(part.part_id, Begun(text=part.text, done=tuple(done), rest=(step, *todo)))
                    return tried
        return Sent(tuple(shown for ids in done for shown in ids), thread_gone=thread_gone)

    async def _one(self, step: Step) -> tuple[str, ...] | list[Step] | SendOutcome:
        """One call: the ids on show, or what to call instead, or how it failed."""
        try:
            data = [await self._read_file(file) for file in step.files]
        except OSError as error:
            return Refused(f"a file cannot be read: {error.strerror or type(error).__name__}")
        api = self.api
        if api is None:
            return TryLater()
        try:
            self._pace.note(step.chat_id)
            return await api.perform(step, data)
        except TelegramError as error:
            if isinstance(error, BadRequest):
                if step.edit_of and says(error, NOT_MODIFIED):
                    return (step.edit_of,)
                if instead := remedies(step, error):
                    return list(instead)
            return self._told(error)

    def _unsendable(self, part: OutboundPart, todo: list[Step]) -> str:
        """Why not even to try; empty when there is no reason."""
        if not todo:
            return "there is nothing to show"
        if measure(part.text, self.capabilities.text_unit) > self.capabilities.text_max:
            return "message is too long"
        large = [file.name for file in part.attachments if file.size > self.capabilities.media_max_bytes]
        return f"{large[0]} is larger than Telegram takes" if large else ""

    def _keep(self, part_id: str, begun: Begun) -> None:
        self._begun[part_id] = begun
        while len(self._begun) > BEGUN_MAX:
            del self._begun[next(iter(self._begun))]

    def _told(self, error: TelegramError) -> SendOutcome:
        outcome = outcome_of(error)
        if isinstance(outcome, NeedsOperator):
            self._refused = outcome
        return outcome

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

    # What only accompanies

    async def answer_presses(self, api: Api, raws: Sequence[object], events: Sequence[InboundEvent], accepted: Sequence[Accepted]) -> None:
        """Every press is answered at once, or the button goes on turning; buttons that are good for nothing any more go (CH-159)."""
        became = {event.platform_event_id: each for event, each in zip(events, accepted, strict=False)}
        pressed = [found for raw in raws if (found := press(raw)) is not None]
        async with asyncio.TaskGroup() as group:
            for each in pressed:
                group.create_task(_answer(api, each, became.get(each.update_id)), name=f"{self.account} button")

    async def register_menus(self, api: Api) -> None:
        """A bad entry is left out with a line; failure to register stops nothing (CH-158)."""
        for menu in self.settings.menus:
            kept, lines = checked(menu.entries)
            for line in lines:
                log.warning("%s: menu of commands: %s", self.account, line)
            commands = [BotCommand(entry.name, entry.description) for entry in kept]
            await _aside(api.bot.set_my_commands(commands, language_code=menu.language or None), "registering the commands")


async def _who(api: Api) -> User:
    try:
        return await api.me()
    except ValueError as error:
        raise ConnectionLost("Telegram does not say who we are: is the address really that of a Bot API?", code="no_api") from error


async def _answer(api: Api, pressed: Press, became: Accepted | None) -> None:
    said = became.aside[:ASIDE_MAX] if became is not None else ""
    await _aside(api.bot.answer_callback_query(pressed.id, text=said or None), "answering a button")
    if became is not None and became.spent and pressed.message_id.isdigit():
        rest = keyboard(pressed.left)
        taking = api.bot.edit_message_reply_markup(chat_id=pressed.chat_id, message_id=int(pressed.message_id), reply_markup=rest)
        await _aside(taking, "taking a button away")


async def _aside(call: Awaitable[object], what: str) -> None:
    try:
        async with asyncio.timeout(SIDE_CALL_S):
            await call
    except (TelegramError, TimeoutError) as error:
        log.warning("%s failed: %s", what, error)

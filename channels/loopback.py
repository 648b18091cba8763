"""The shipped fake: a whole chat platform in memory, with people, groups, edits, redelivery and faults, behind the same port as the real ones.

`LoopbackPlatform` is the other side: it outlives an adapter that is killed, delivers again what was not acknowledged, keeps what it was sent,
and fails as its fault plan says. `LoopbackChannel` is the adapter. The contract suite runs on it; so can a test of anything above the port.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from channels.errors import AttachmentRefused, ConnectionLost, CredentialRefused, UnreadableEvent
from channels.message import Account, Action, Address, Attachment, ChatType, EventKind, InboundEvent, ReplyTo, clean, is_blank
from channels.port import (
    Accepted,
    Capabilities,
    ChatMoved,
    Cursor,
    Deliver,
    Markup,
    NeedsOperator,
    OutboundPart,
    Refused,
    SendOutcome,
    Sent,
    TextUnit,
    TryLater,
    Unknown,
)
from channels.units import measure

CAPABILITIES = Capabilities(
    text_unit=TextUnit.UTF16,
    text_max=4096,
    markup=Markup.MARKDOWN,
    edit_interval_s=0.05,
    group_edit_interval_s=0.1,
    typing_refresh_s=4.0,
    threads=True,
    reactions=True,
    buttons=True,
    media_max_bytes=10_000_000,
    resend_key_s=120.0,
    reconcile=True,
    hold_s=0.05,
)


@dataclass(slots=True, kw_only=True)
class Shown:
    """A message that people on the platform can see."""

    id: str
    address: Address
    text: str
    reply_to: str = ""
    part_id: str = ""
    markup: Markup = Markup.PLAIN
    files: tuple[str, ...] = ()
    at: datetime
    edits: int = 0
    actions: tuple[tuple[Action, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One request of an adapter: send, edit, typing, react or find."""

    name: str
    chat_id: str
    at: datetime


@dataclass(slots=True)
class LoopbackPlatform:
    """The platform's side. `updates` are raw records as the platform would send them; `acknowledged` is the cursor the adapter moved.

    `calls` holds every call that reached it, in order. It refuses what a real one refuses: a text above its limit
    or without words, characters that no message may hold, a wrong token.
    """

    token: str = "loopback-secret"
    me: str = "yume"
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    shown: list[Shown] = field(default_factory=list[Shown])
    text_max: int = CAPABILITIES.text_max
    typing: dict[str, bool] = field(default_factory=dict[str, bool])
    typed: dict[str, list[bool]] = field(default_factory=dict[str, list[bool]])
    typing_fails: bool = False
    reactions: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    asides: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])  # what one alone was told: who pressed a button, and the words
    faults: deque[Mapping[str, Any]] = field(default_factory=deque[Mapping[str, Any]])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    updates: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    acknowledged: int = 0
    hold_s: float = 0.5  # how long a poll without news is held
    down: bool = False
    deaf: bool = False
    calls: list[Call] = field(default_factory=list[Call])
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def says(self, chat: str, text: str, *, sender: str = "u1", **more: Any) -> dict[str, Any]:
        """A person writes; returns the raw update. `more` adds or replaces fields of it (kind, thread, reply_to, files, bot …)."""
        number = next(self._ids)
        update = {"n": number, "kind": "message", "chat": chat, "message": f"m{number}", "sender": sender, "name": sender, "text": text} | more
        return self.deliver(update)

    def deliver(self, update: dict[str, Any]) -> dict[str, Any]:
        """Put a raw update before the adapter, as it is."""
        self.updates.append(update)
        self._news.set()
        return update

    def edits(self, update: Mapping[str, Any], text: str) -> dict[str, Any]:
        return self.says(update["chat"], text, sender=update["sender"], kind="edited", message=update["message"])

    def deletes(self, update: Mapping[str, Any]) -> dict[str, Any]:
        return self.says(update["chat"], "", sender=update["sender"], kind="deleted", message=update["message"])

    def presses(self, shown: Shown, label: str, *, sender: str = "u1", **more: Any) -> dict[str, Any]:
        """A person presses the button that is called so; returns the raw update."""
        data = next(action.data for row in shown.actions for action in row if action.label == label)
        where = {"thread": shown.address.thread_id} if shown.address.thread_id else {}
        said = {"kind": "action", "hint": "button", "message": shown.id, "target": data}
        return self.says(shown.address.chat_id, "", sender=sender, **where, **said, **more)

    def repeats(self, update: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """The same event once more, at a later place in the feed."""
        return self.deliver({**update, "event": update.get("event", update["n"]), **more, "n": next(self._ids)})

    def redeliver(self) -> None:
        """The adapter was killed before it acknowledged: everything after its cursor comes again."""
        self._news.set()

    def fail_next(self, *plan: Mapping[str, Any]) -> None:
        """What happens to the next sends and edits, one each: {"later": s}, with "whole_account" for all its chats, {"unreachable": True},
        {"unknown": "before" or "after"}, {"refuse": reason}, {"gone": True}, {"operator": reason}, {"moved": chat}, {"markup": "refused"},
        {"hang": True}, {"raise": error}, {"thread_gone": True}: the topic exists no longer, {"nameless": True}: taken, and no message is named."""
        self.faults.extend(plan)

    def next_fault(self) -> Mapping[str, Any]:
        return self.faults.popleft() if self.faults else dict[str, Any]()

    def texts(self, chat: str | None = None) -> list[str]:
        return [message.text for message in self.shown if chat is None or message.address.chat_id == chat]

    def fault_in(self, text: str, *, has_files: bool = False) -> str:
        """Why the platform does not take a text; empty when it does."""
        if measure(text, TextUnit.UTF16) > self.text_max:
            return "message is too long"
        if is_blank(text) and not has_files:
            return "message text is empty"
        return "message text is not valid" if "\x00" in text or re.search("[\ud800-\udfff]", text) else ""

    def show(self, part: OutboundPart, *, key_s: float | None = None) -> Shown:
        """A message that people see from now on. `key_s`: for so long a second copy under the same part id stays the first one."""
        known = self.shown_as(part)
        if known is None or key_s is None or self.clock() - known.at >= timedelta(seconds=key_s):
            known = Shown(
                id=f"b{len(self.shown) + 1}",
                address=part.address,
                text=part.text,
                reply_to=part.reply_to,
                part_id=part.part_id,
                markup=part.markup,
                files=tuple(attachment.name for attachment in part.attachments),
                at=self.clock(),
                actions=part.actions,
            )
            self.shown.append(known)
        return known

    def shown_as(self, part: OutboundPart) -> Shown | None:
        return next((message for message in self.shown if part.part_id and message.part_id == part.part_id), None)

    async def pending(self, after: int) -> list[dict[str, Any]]:
        """Updates after a number, waiting for the first."""
        while True:
            if self.down:
                raise ConnectionLost("the platform is not reachable")
            found = [update for update in self.updates if update["n"] > after]
            if found and not self.deaf:
                return found
            self._news.clear()
            try:
                async with asyncio.timeout(self.hold_s):
                    await self._news.wait()
            except TimeoutError:
                if not self.deaf:
                    return []


class LoopbackChannel:
    """The adapter. Has every optional port that `capabilities` declares."""

    def __init__(
        self,
        platform: LoopbackPlatform,
        *,
        token: str = "loopback-secret",
        account: Account | None = None,
        capabilities: Capabilities = CAPABILITIES,
        start_after: int = 0,
    ) -> None:
        """`start_after`: the stored cursor."""
        self.account = account or Account(channel="loopback")
        self.capabilities = capabilities
        self._platform = platform
        self._token = token
        self._position = start_after
        self._proven_at: datetime | None = None

    @property
    def proven_at(self) -> datetime | None:
        return self._proven_at

    async def run(self, deliver: Deliver) -> None:
        if self._token != self._platform.token:
            raise CredentialRefused("loopback: the token is wrong; set the right one")
        while True:
            updates = await self._platform.pending(self._position)
            self._proven_at = self._platform.clock()
            if updates:
                newest = max(update["n"] for update in updates)
                events = [convert(update, self.account, self._platform.me, self._platform.clock()) for update in updates]
                accepted = await deliver(events, Cursor(name="updates", value=str(newest)))
                self._position = self._platform.acknowledged = newest
                for event, each in zip(events, accepted, strict=False):
                    self._settle(event, each)

    def _settle(self, event: InboundEvent, became: Accepted) -> None:
        """What a press came to: a word for who pressed, and a row that is good for nothing any more goes."""
        if became.aside:
            self._platform.asides.append((event.sender_id, became.aside))
        if became.spent:
            for shown in self._platform.shown:
                if shown.id == event.platform_message_id:
                    shown.actions = tuple(row for row in shown.actions if all(action.data != event.target for action in row))

    async def send(self, part: OutboundPart) -> SendOutcome:
        part = replace(part, text=clean(part.text))
        self._call("send", part.address)
        fault = await self._fault()
        if outcome := self._outcome_of(fault, part):
            return outcome
        gone = bool(fault.get("thread_gone")) and bool(part.address.thread_id)
        if gone:
            part = replace(part, address=replace(part.address, thread_id=""))  # once more without the topic, as real adapters do
        if fault.get("markup") == "refused":
            part = replace(part, markup=Markup.PLAIN)  # the platform does not take the marks: the person gets the words (CH-39)
        message = self._platform.show(part, key_s=self.capabilities.resend_key_s)
        if fault.get("unknown") == "after":
            return Unknown("the connection broke after sending")
        return Sent(() if "nameless" in fault else (message.id,), thread_gone=gone)

    async def edit(self, address: Address, message_id: str, part: OutboundPart) -> SendOutcome:
        part = replace(part, text=clean(part.text))
        self._call("edit", address)
        fault = await self._fault()
        if outcome := self._outcome_of(fault, part):
            return outcome
        message = next((message for message in self._platform.shown if message.id == message_id), None)
        if message is None:
            return Refused("message to edit not found", gone=True)
        if message.text != part.text:
            message.text, message.part_id, message.markup = part.text, part.part_id, part.markup
            message.edits += 1
        return Unknown("the connection broke after sending") if fault.get("unknown") == "after" else Sent((message_id,))

    async def typing(self, address: Address, on: bool) -> None:
        self._call("typing", address)
        if self._platform.typing_fails or self._platform.down:
            raise ConnectionLost("the platform is not reachable")
        self._platform.typing[str(address)] = on
        self._platform.typed.setdefault(str(address), []).append(on)

    async def react(self, address: Address, message_id: str, emoji: str) -> SendOutcome:
        self._call("react", address)
        if self._platform.down:
            return TryLater()
        self._platform.reactions.append((message_id, emoji))
        return Sent()

    async def find(self, part: OutboundPart, since: datetime) -> tuple[str, ...] | None:
        self._call("find", part.address)
        if self._platform.down:
            raise ConnectionLost("the platform is not reachable")
        known = self._platform.shown_as(part)
        return (known.id,) if known else None

    async def manages(self, address: Address, sender_id: str) -> bool:
        return sender_id.startswith("admin")

    async def fetch(self, attachment: Attachment, max_bytes: int) -> bytes:
        data = self._platform.files.get(attachment.fetch_ref)
        if data is None:
            raise AttachmentRefused(f"{attachment.name} is not there")
        if len(data) > max_bytes:
            raise AttachmentRefused(f"{attachment.name} is larger than {max_bytes} bytes")
        return data

    def _call(self, name: str, address: Address) -> None:
        self._platform.calls.append(Call(name, address.chat_id, self._platform.clock()))

    async def _fault(self) -> Mapping[str, Any]:
        """What the fault plan says about the call that has just reached the platform."""
        fault = self._platform.next_fault()
        if "hang" in fault:
            await asyncio.Event().wait()
        if "raise" in fault:
            raise fault["raise"]
        return fault

    def _outcome_of(self, fault: Mapping[str, Any], part: OutboundPart) -> SendOutcome | None:
        """What is answered instead of showing anything; None when the platform takes it."""
        if self._token != self._platform.token:
            return NeedsOperator("loopback: the token is wrong; set the right one")
        if self._platform.down or "unreachable" in fault:
            return TryLater()
        match fault:
            case {"later": after}:
                return TryLater(float(after), whole_account=bool(fault.get("whole_account")))
            case {"unknown": "before"}:
                return Unknown("the connection broke")
            case {"refuse": reason}:
                return Refused(str(reason))
            case {"gone": True}:
                return Refused("message to edit not found", gone=True)
            case {"operator": reason}:
                return NeedsOperator(str(reason))
            case {"moved": chat}:
                return ChatMoved(str(chat))
            case _:
                reason = self._platform.fault_in(part.text, has_files=bool(part.attachments))
                return Refused(reason) if reason else None


def convert(update: Mapping[str, Any], account: Account, me: str, now: datetime) -> InboundEvent:
    """One raw update as an event; an update that cannot be read becomes `unknown`, with the raw record as its text (CH-4)."""
    try:
        return _convert(update, account, me, now)
    except (KeyError, TypeError, ValueError, UnreadableEvent):
        return InboundEvent(
            account=account,
            kind=EventKind.UNKNOWN,
            platform_event_id=str(update.get("event", update.get("n"))),
            chat_id=str(update.get("chat", "?")),
            hint=str(update.get("kind", "?")),
            text=json.dumps(update, default=str),
            received_at=now,
        )


def _convert(update: Mapping[str, Any], account: Account, me: str, now: datetime) -> InboundEvent:
    """`n` is the place in the feed; `event` the platform's own id of the event, when a record says it apart."""
    kind = EventKind(update["kind"])
    text = update["text"]
    if not isinstance(text, str):
        raise UnreadableEvent("text is no text")
    group = update.get("group", False)
    reply = update.get("reply_to")
    mention = re.compile(rf"@{re.escape(me)}(?!\w)")
    mentioned = mention.search(text) is not None
    return InboundEvent(
        account=account,
        kind=kind,
        platform_event_id=str(update.get("event", update["n"])),
        platform_message_id=str(update["message"]),
        chat_id=str(update["chat"]),
        chat_type=(ChatType.THREAD if update.get("thread") else ChatType.GROUP) if group else ChatType.DM,
        parent_chat_id=str(update.get("parent", "")),
        thread_id=str(update.get("thread", "")),
        sender_id=str(update["sender"]),
        sender_name=update["name"],
        is_bot=bool(update.get("bot")) or update["sender"] == me,
        is_us=update["sender"] == me,
        mentioned=not group or mentioned or bool(reply and reply.get("ours")),
        reply_to=_reply(reply) if reply else None,
        text=mention.sub("", text).strip() if mentioned else text,
        attachments=tuple(
            Attachment(
                kind=item["kind"], name=item["name"], mime=item.get("mime", ""), size=item.get("size", 0), fetch_ref=item["ref"],
                transcript=item.get("transcript", ""), transcript_origin=item.get("transcript_origin", ""),
            )
            for item in update.get("files", ())
        ),
        platform_ts=update.get("at"),
        received_at=now,
        target=str(update.get("target", "")),
        hint=str(update.get("hint", update["kind"])),
    )


def _reply(record: Mapping[str, Any]) -> ReplyTo:
    return ReplyTo(
        message_id=str(record["id"]),
        author_is_us=bool(record.get("ours")),
        excerpt=record.get("text", "")[:500],
        quote=record.get("quote", ""),
    )

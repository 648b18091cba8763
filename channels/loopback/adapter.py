"""The adapter: the port over `LoopbackPlatform`, without a wire between them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from channels.errors import AttachmentRefused, ConnectionLost, CredentialRefused
from channels.loopback.chat_platform import Call, LoopbackPlatform
from channels.loopback.convert import convert
from channels.loopback.settings import CAPABILITIES
from channels.message import Account, Address, Attachment, InboundEvent, clean
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
    TryLater,
    Unknown,
)


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

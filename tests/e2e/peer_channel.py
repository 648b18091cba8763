"""The adapter for `tests.e2e.peer`: one connection for updates and one for calls, both open as long as it runs, as real clients have them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from channels.errors import ConnectionLost
from channels.message import Account, Address, EventKind, InboundEvent
from channels.port import Capabilities, Cursor, Deliver, Markup, OutboundPart, Refused, SendOutcome, Sent, TextUnit, TryLater, Unknown

ACCOUNT = Account(channel="peer")
EDITS, TYPING, RESEND_KEY, RECONCILE = "edits", "typing", "resend_key", "reconcile"


def capabilities(abilities: Sequence[str], hold_s: float) -> Capabilities:
    return Capabilities(
        text_unit=TextUnit.UTF16,
        text_max=4096,
        markup=Markup.PLAIN,
        edit_interval_s=0.05 if EDITS in abilities else None,
        typing_refresh_s=0.5 if TYPING in abilities else None,
        resend_key_s=120.0 if RESEND_KEY in abilities else None,
        reconcile=RECONCILE in abilities,
        hold_s=hold_s,
    )


class PeerChannel:
    def __init__(self, port: int, can: Capabilities) -> None:
        self.account = ACCOUNT
        self.capabilities = can
        self._port = port
        self._proven_at: datetime | None = None
        self._calls: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._calling = asyncio.Lock()

    @property
    def proven_at(self) -> datetime | None:
        return self._proven_at

    async def run(self, deliver: Deliver) -> None:
        try:
            async with AsyncExitStack() as stack:
                self._calls = await stack.enter_async_context(self._connected())
                reader, writer = await stack.enter_async_context(self._connected())
                writer.write(b'{"op": "updates"}\n')
                self._proven_at = datetime.now(UTC)
                while line := await reader.readline():
                    update = json.loads(line)
                    await deliver([_event(update)], Cursor(name="updates", value=str(update["n"])))
                    writer.write(json.dumps({"ack": update["n"]}).encode() + b"\n")
        except OSError as error:
            raise ConnectionLost(f"the peer is not reachable: {error}") from error
        finally:
            self._calls = None
        raise ConnectionLost("the peer has closed the connection")

    async def send(self, part: OutboundPart) -> SendOutcome:
        # A platform without such a key gets none: it cannot tell a second copy from a new message.
        knows = self.capabilities.resend_key_s is not None or self.capabilities.reconcile
        return await self._call(op="send", chat=part.address.chat_id, text=part.text, key=part.part_id if knows else "")

    async def edit(self, address: Address, message_id: str, part: OutboundPart) -> SendOutcome:
        return await self._call(op="edit", chat=address.chat_id, id=message_id, text=part.text, key=part.part_id)

    async def find(self, part: OutboundPart, since: datetime) -> tuple[str, ...] | None:
        found = await self._call(op="find", key=part.part_id)
        if not isinstance(found, Sent):
            raise ConnectionLost("the peer does not say what it was sent")
        return found.platform_ids if found.platform_ids != ("",) else None

    async def typing(self, address: Address, on: bool) -> None:
        await self._call(op="typing", chat=address.chat_id, on=on)

    @asynccontextmanager
    async def _connected(self) -> Any:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            yield reader, writer
        finally:
            writer.close()

    async def _call(self, **call: Any) -> SendOutcome:
        async with self._calling:
            if self._calls is None:
                return TryLater()
            reader, writer = self._calls
            try:
                writer.write(json.dumps(call).encode() + b"\n")
                await writer.drain()
                line = await reader.readline()
            except OSError as error:
                return Unknown(str(error))
        if not line:
            return Unknown("the connection broke")
        return _outcome(json.loads(line))


def _outcome(answer: dict[str, Any]) -> SendOutcome:
    match answer:
        case {"later": after_s}:
            return TryLater(after_s)
        case {"gone": True}:
            return Refused("message to edit not found", gone=True)
        case {"id": message_id}:
            return Sent((message_id,))
        case _:
            return Sent()


def _event(update: dict[str, Any]) -> InboundEvent:
    return InboundEvent(
        account=ACCOUNT,
        kind=EventKind.MESSAGE,
        platform_event_id=str(update["n"]),
        platform_message_id=f"m{update['n']}",
        chat_id=update["chat"],
        sender_id=update["sender"],
        sender_name=update["sender"],
        mentioned=True,
        text=update["text"],
    )

"""From the end of a turn, or a sentence of ours, to the parts that go out: cut and rendered for the platform, with the time each expires.

Rules CH-80, CH-82, CH-96.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from channels.message import Account, Address
from channels.port import Capabilities, OutboundPart
from channels.render import render
from gateway import outbox_store
from gateway.config import Delivery
from gateway.inbox import Waiting
from gateway.language import say
from gateway.outbox import Outbox
from gateway.outbox_store import NewPart
from gateway.turn_store import TurnEnd

FindCapabilities = Callable[[Account], Capabilities | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Parts in the order they go out. `tells_losses`: one of them says that an earlier answer was lost."""

    parts: tuple[NewPart, ...]
    tells_losses: bool = False


class Replies:
    """Composes replies and hands them to the outbox once they are stored."""

    def __init__(self, outbox: Outbox, *, can: Callable[[Account], Capabilities | None], limits: Callable[[], Delivery]) -> None:
        self._outbox = outbox
        self._can = can
        self._limits = limits

    def compose(self, address: Address, ending: TurnEnd, asked: Waiting, *, language: str, now: datetime, preview_id: str) -> Reply:
        """The parts of a turn's end. A preview on show becomes the first of them by its last edit (CH-96)."""
        can = self._can(address.account)
        text = ending.answer or ending.notice
        if can is None or not text:
            return Reply(parts=())
        if can.log_is_delivery:
            return Reply(parts=(self._part(address, text, can, ending, asked, number=1, now=now),))
        parts = [
            self._part(
                address, piece.text, can, ending, asked, number=number, now=now,
                reply_to=asked.platform_message_id if number == 1 else "", edit_of=preview_id if number == 1 else "",
            )
            for number, piece in enumerate(render(text, can), 1)
        ]  # fmt: skip
        lost = self._outbox.losses(str(address))
        if lost:
            parts.insert(0, self._part(address, say(language, "lost_answer"), can, ending, asked, number=0, now=now))
        return Reply(parts=tuple(parts), tells_losses=lost)

    def notice(self, address: Address, text: str, *, part_id: str, now: datetime, delivery_id: str = "", conversation_id: str = "") -> Reply:
        """A sentence of ours outside any turn: a command's answer, a busy sign. It expires soon (CH-82)."""
        can = self._can(address.account)
        if can is None or can.log_is_delivery or not text:
            return Reply(parts=())
        expires = now + timedelta(seconds=self._limits().notice_expires_s)
        parts = tuple(
            NewPart(
                part=OutboundPart(part_id=f"{part_id}.{number}", address=address, text=piece.text, markup=can.markup),
                kind="notice", expires_at=expires, delivery_id=delivery_id, conversation_id=conversation_id,
            )
            for number, piece in enumerate(render(text, can), 1)
        )  # fmt: skip
        return Reply(parts=parts)

    def again(self, parts: list[OutboundPart], *, part_id: str, now: datetime, conversation_id: str) -> Reply:
        """The newest answer once more (`/last`)."""
        expires = now + timedelta(seconds=self._limits().answer_expires_s)
        return Reply(
            parts=tuple(
                NewPart(
                    part=OutboundPart(part_id=f"{part_id}.{number}", address=part.address, text=part.text, markup=part.markup),
                    kind="answer", expires_at=expires, conversation_id=conversation_id,
                )
                for number, part in enumerate(parts, 1)
            )
        )  # fmt: skip

    def mark_told(self, connection: sa.Connection, address: str) -> None:
        outbox_store.mark_told(connection, address)

    def stored(self, address: str, reply: Reply) -> None:
        """The parts are committed: send them."""
        if reply.tells_losses:
            self._outbox.told(address)
        if any(not part.delivered for part in reply.parts):
            self._outbox.wake(address)

    def _part(
        self,
        address: Address,
        text: str,
        can: Capabilities,
        ending: TurnEnd,
        asked: Waiting,
        *,
        number: int,
        now: datetime,
        reply_to: str = "",
        edit_of: str = "",
    ) -> NewPart:
        part_id = f"{ending.turn_id}.{ending.attempt}.{number}"
        return NewPart(
            part=OutboundPart(part_id=part_id, address=address, text=text, markup=can.markup, reply_to=reply_to, edit_of=edit_of),
            kind="answer",
            expires_at=now + timedelta(seconds=self._limits().answer_expires_s),
            conversation_id=ending.conversation_id,
            turn_id=ending.turn_id,
            delivery_id=asked.delivery_id,
            delivered=can.log_is_delivery,
        )

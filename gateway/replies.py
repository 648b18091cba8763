"""From the end of a turn, or a sentence of ours, to the parts that go out: cut and rendered for the platform, with the time each expires.

Rules CH-80, CH-82, CH-96.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from channels.message import Account, Address
from channels.port import Capabilities, OutboundPart
from channels.render import Piece, render
from gateway import outbox_store
from gateway.config import Delivery
from gateway.inbox import Waiting
from gateway.language import say
from gateway.outbox import Outbox
from gateway.outbox_store import NewPart
from gateway.turn_store import TurnEnd

log = logging.getLogger(__name__)

FindCapabilities = Callable[[Account], Capabilities | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Parts in the order they go out. `tells_losses`: one of them says that an earlier answer was lost."""

    parts: tuple[NewPart, ...] = ()
    tells_losses: bool = False


class Replies:
    """Composes replies and hands them to the outbox once they are stored."""

    def __init__(self, outbox: Outbox, *, can: FindCapabilities, limits: Callable[[], Delivery]) -> None:
        self._outbox = outbox
        self._can = can
        self._limits = limits

    def compose(self, address: Address, ending: TurnEnd, asked: Waiting, *, language: str, now: datetime, preview_id: str) -> Reply:
        """The parts of a turn's end. A preview on show becomes the first of them by its last edit (CH-96)."""
        can, text = self._can(address.account), "\n\n".join(part for part in (ending.answer, ending.notice) if part)
        if not text:
            return Reply()
        if can is None:
            log.error("the answer of turn %s cannot leave: there is no channel %s", ending.turn_id, address.account)
            return Reply()
        blank = NewPart(
            part=OutboundPart(part_id=f"{ending.turn_id}.{ending.attempt}", address=address, text="", markup=can.markup),
            kind="answer",
            expires_at=now + timedelta(seconds=self._limits().answer_expires_s),
            conversation_id=ending.conversation_id,
            turn_id=ending.turn_id,
            delivery_id=asked.delivery_id,
        )
        if can.log_is_delivery:
            return Reply(parts=(replace(blank, delivered=True, part=replace(blank.part, text=text)),))
        parts = _parts(blank, render(text, can) or render(say(language, "empty"), can))  # marks around nothing leave nothing (CH-141)
        parts[0] = replace(parts[0], part=replace(parts[0].part, reply_to=asked.platform_message_id, edit_of=preview_id))
        lost = self._outbox.losses(str(address))
        if lost:
            parts[:0] = _parts(replace(blank, kind="notice"), [Piece(say(language, "lost_answer"))], first=0)
        return Reply(parts=tuple(parts), tells_losses=lost)

    def notice(self, address: Address, text: str, *, part_id: str, now: datetime, delivery_id: str = "", conversation_id: str = "") -> Reply:
        """A sentence of ours outside any turn: a command's answer, a busy sign. It expires soon (CH-82)."""
        can = self._can(address.account)
        if can is None or can.log_is_delivery:
            return Reply()
        blank = NewPart(
            part=OutboundPart(part_id=part_id, address=address, text="", markup=can.markup),
            kind="notice",
            expires_at=now + timedelta(seconds=self._limits().notice_expires_s),
            delivery_id=delivery_id,
            conversation_id=conversation_id,
        )
        return Reply(parts=tuple(_parts(blank, render(text, can))))

    def again(self, parts: list[OutboundPart], *, part_id: str, now: datetime, conversation_id: str) -> Reply:
        """The newest answer once more (`/last`)."""
        expires = now + timedelta(seconds=self._limits().answer_expires_s)
        return Reply(
            parts=tuple(
                NewPart(
                    part=replace(part, part_id=f"{part_id}.{number}", reply_to="", edit_of=""),
                    kind="answer",
                    expires_at=expires,
                    conversation_id=conversation_id,
                )
                for number, part in enumerate(parts, 1)
            )
        )

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        await self._outbox.react(address, message_id, emoji)

    def mark_told(self, connection: sa.Connection, address: str) -> None:
        outbox_store.mark_told(connection, address)

    def stored(self, address: str, reply: Reply) -> None:
        """The parts are committed: send them."""
        if reply.tells_losses:
            self._outbox.told(address)
        if any(not part.delivered for part in reply.parts):
            self._outbox.wake(address)


def _parts(blank: NewPart, pieces: list[Piece], *, first: int = 1) -> list[NewPart]:
    """One part for each piece, numbered in their order; ids are the same when the transaction is tried again."""
    return [
        replace(blank, part=replace(blank.part, part_id=f"{blank.part.part_id}.{number}", text=piece.text, entities=piece.entities))
        for number, piece in enumerate(pieces, first)
    ]

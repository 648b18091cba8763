"""From the end of a turn, or a sentence of ours, to the parts that go out: cut and rendered for the platform, with the time each expires.

Rules CH-80, CH-82, CH-96.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from channels.message import Account, Action, Address, Attachment
from channels.port import Capabilities, OutboundPart
from channels.render import Piece, render
from gateway.arrivals.inbox import Waiting
from gateway.config import Delivery
from gateway.delivery import outbox_store
from gateway.delivery.answer_files import answer_file
from gateway.delivery.outbox import Outbox
from gateway.delivery.outbox_store import NewPart
from gateway.delivery.previews import NO_PREVIEW, Preview
from gateway.language import say
from gateway.turn_store import TurnEnd
from memory.conversations import Message

log = logging.getLogger(__name__)

PIECES_MAX = 8  # CH-143: a longer answer is sent as a file, where files can be sent

FindCapabilities = Callable[[Account], Capabilities | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Parts in the order they go out. `tells_losses`: one of them says that an earlier answer was lost."""

    parts: tuple[NewPart, ...] = ()
    tells_losses: bool = False

    @property
    def has_buttons(self) -> bool:
        return any(new.part.actions for new in self.parts)


class Replies:
    """Composes replies and hands them to the outbox once they are stored."""

    def __init__(self, outbox: Outbox, *, can: FindCapabilities, limits: Callable[[], Delivery]) -> None:
        self._outbox = outbox
        self._can = can
        self._limits = limits

    def compose(self, address: Address, ending: TurnEnd, asked: Waiting, *, language: str, now: datetime, preview: Preview = NO_PREVIEW) -> Reply:
        """The parts of a turn's end. A preview on show becomes the first of them by its last edit (CH-96); one of which nobody knows is settled
        before them (CH-97)."""
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
        if ending.answer and ending.speaks_as:
            text = f"{ending.speaks_as}:\n\n{text}"
        pieces = render(text, can) or render(say(language, "empty"), can)  # marks around nothing leave nothing (CH-141)
        if file := _as_file(ending, pieces, can, language):
            parts = _with_file(blank, file, pieces[0], render(ending.notice, can), language)
        else:
            parts = _parts(blank, render(text, can, part_marks=True) if self._limits().part_marks and len(pieces) > 1 else pieces)
        if Address.parse(asked.address).chat_id == address.chat_id:  # else the chat has moved, where these numbers are other messages' (CH-166)
            parts[0] = replace(parts[0], part=replace(parts[0].part, reply_to=asked.platform_message_id, edit_of=preview.id))
        if can.send_budget is not None:  # where the budget may end with any of them, it says that more follows (WX-41)
            parts[:-1] = [replace(new, part=replace(new.part, more_note=say(language, "more_follows"))) for new in parts[:-1]]
        lost = self._outbox.losses(str(address))
        if lost:
            notice = replace(blank, kind="notice", part=replace(blank.part, aside=True))
            parts[:0] = _parts(notice, [Piece(say(language, "lost_answer"))], first=0)
        if preview.tried is not None:
            parts.insert(0, replace(blank, kind="preview", part=preview.tried.part, tried_at=preview.tried.at))
        return Reply(parts=tuple(parts), tells_losses=lost)

    def notice(
        self,
        address: Address,
        text: str,
        *,
        part_id: str,
        now: datetime,
        delivery_id: str = "",
        conversation_id: str = "",
        actions: tuple[tuple[Action, ...], ...] = (),
    ) -> Reply:
        """A sentence of ours outside any turn: a command's answer, a busy sign. It expires soon (CH-82). `actions`: rows of buttons below its end,
        left out where there are none."""
        can = self._can(address.account)
        if can is None or can.log_is_delivery:
            return Reply()
        blank = NewPart(
            part=OutboundPart(part_id=part_id, address=address, text="", markup=can.markup, aside=True),
            kind="notice",
            expires_at=now + timedelta(seconds=self._limits().notice_expires_s),
            delivery_id=delivery_id,
            conversation_id=conversation_id,
        )
        parts = _parts(blank, render(text, can))
        if parts and can.buttons:
            parts[-1] = replace(parts[-1], part=replace(parts[-1].part, actions=actions))
        return Reply(parts=tuple(parts))

    def reminder(
        self, address: Address, text: str, *, part_id: str, expires_at: datetime, turn_id: str, message: Message
    ) -> Reply | None:
        """What a scheduled task says, in a chat where perhaps nothing arrives (CH-82, CH-84). None when there is no such channel now."""
        can = self._can(address.account)
        if can is None:
            return None
        blank = NewPart(
            part=OutboundPart(part_id=part_id, address=address, text="", markup=can.markup, aside=True),
            kind="reminder",
            expires_at=expires_at,
            conversation_id=message.conversation_id,
            turn_id=turn_id,
            message_id=message.id,
        )
        if can.log_is_delivery:
            return Reply(parts=(replace(blank, delivered=True, part=replace(blank.part, text=text)),))
        return Reply(parts=tuple(_parts(blank, render(text, can))))

    def again(self, parts: list[OutboundPart], *, part_id: str, now: datetime, conversation_id: str) -> Reply:
        """The newest answer once more (`/last`)."""
        expires = now + timedelta(seconds=self._limits().answer_expires_s)
        return Reply(
            parts=tuple(
                NewPart(
                    part=replace(part, part_id=f"{part_id}.{number}", reply_to="", edit_of="", aside=False, earlier_note=""),
                    kind="answer",
                    expires_at=expires,
                    conversation_id=conversation_id,
                )
                for number, part in enumerate(parts, 1)
            )
        )

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        await self._outbox.react(address, message_id, emoji)

    def wake(self, address: str) -> None:
        """What held the parts of a chat back is over."""
        self._outbox.wake(address)

    def mark_told(self, connection: sa.Connection, address: str) -> None:
        outbox_store.mark_told(connection, address)

    def stored(self, address: str, reply: Reply) -> None:
        """The parts are committed: send them."""
        if reply.tells_losses:
            self._outbox.told(address)
        if any(not part.delivered for part in reply.parts):
            self._outbox.wake(address)


def _as_file(ending: TurnEnd, pieces: list[Piece], can: Capabilities, language: str) -> Attachment | None:
    """The whole answer, where it would take more than 8 messages and a file of it can be sent (CH-143)."""
    if len(pieces) <= PIECES_MAX or not can.documents:
        return None
    file = answer_file(ending.turn_id, ending.attempt, ending.answer, name=say(language, "answer_file"))
    return file if ending.answer and file.size <= can.media_max_bytes else None


def _with_file(blank: NewPart, file: Attachment, begin: Piece, notice: list[Piece], language: str) -> list[NewPart]:
    """Its first piece, the file, and what we say of the turn, which stands in no file."""
    caption, *others = _parts(blank, [Piece(say(language, "answer_in_file")), *notice], first=2)
    carried = replace(caption.part, attachments=(file,), file_note=say(language, "answer_file_refused"))
    return [*_parts(blank, [begin]), replace(caption, part=carried), *others]


def _parts(blank: NewPart, pieces: list[Piece], *, first: int = 1) -> list[NewPart]:
    """One part for each piece, numbered in their order; ids are the same when the transaction is tried again."""
    return [
        replace(blank, part=replace(blank.part, part_id=f"{blank.part.part_id}.{number}", text=piece.text, entities=piece.entities))
        for number, piece in enumerate(pieces, first)
    ]

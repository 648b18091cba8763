"""Out: one part as the calls that it takes, each ending in one outcome (CH-11); what is refused as it is goes out in another form (CH-39)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from telegram.error import BadRequest, TelegramError

from channels.given import ReadFile
from channels.message import Address
from channels.newest import keep_newest
from channels.port import Capabilities, NeedsOperator, OutboundPart, Refused, SendOutcome, Sent, TryLater
from channels.telegram.api import Api
from channels.telegram.outcomes import NOT_MODIFIED, outcome_of, says
from channels.telegram.outgoing import Step, remedies, steps
from channels.telegram.pace import Pace
from channels.units import measure

BEGUN_MAX = 100


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


class Sender:
    """Sends for one bot. `api` is that of the present connection, None while there is none; `refused`: why the token is no good."""

    def __init__(self, *, capabilities: Capabilities, clock: Callable[[], datetime], read_file: ReadFile) -> None:
        self.api: Api | None = None
        self.refused: NeedsOperator | None = None
        self._can = capabilities
        self._read_file = read_file
        self._pace = Pace(clock)
        self._begun: dict[str, Begun] = {}  # by part

    async def send(self, part: OutboundPart) -> SendOutcome:
        return await self._carry_out(part, steps(part))

    async def edit(self, address: Address, message_id: str, part: OutboundPart) -> SendOutcome:
        """A preview (no `edit_of`) is left out when the chat has heard much of late; an answer is not (CH-92, CH-93)."""
        if not part.edit_of and not self._pace.allows(address.chat_id):
            return TryLater()
        return await self._carry_out(part, steps(replace(part, address=address), edit_of=message_id))

    async def _carry_out(self, part: OutboundPart, todo: list[Step]) -> SendOutcome:
        if self.refused is not None:
            return self.refused
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
                        self._begun[part.part_id] = Begun(text=part.text, done=tuple(done), rest=(step, *todo))
                        keep_newest(self._begun, BEGUN_MAX)
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
            outcome = outcome_of(error)
            if isinstance(outcome, NeedsOperator):
                self.refused = outcome
            return outcome

    def _unsendable(self, part: OutboundPart, todo: list[Step]) -> str:
        """Why not even to try; empty when there is no reason."""
        if not todo:
            return "there is nothing to show"
        if measure(part.text, self._can.text_unit) > self._can.text_max:
            return "message is too long"
        large = [file.name for file in part.attachments if file.size > self._can.media_max_bytes]
        return f"{large[0]} is larger than Telegram takes" if large else ""

"""One command being carried out: what was asked, what a handler may use, what it hands back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from channels.message import Address
from gateway.access import includes
from gateway.arrivals import inbox
from gateway.arrivals.intake import CommandCall
from gateway.buttons import ASKED_FOR, Choice, Question
from gateway.chat_scope import access_in
from gateway.commands.desks import Desks
from gateway.config import Config
from gateway.delivery.outbox_store import NewPart
from gateway.delivery.replies import Replies
from gateway.jobs.table import JobRow
from gateway.lanes import Lanes
from gateway.language import say
from gateway.supervise import ChannelStatus
from memory.conversations import Conversation
from memory.database import Database
from memory.scopes import Access


class House(Protocol):
    """What commands may ask of the running gateway."""

    version: str
    started_at: datetime

    def config(self) -> Config: ...

    def channel_states(self) -> list[ChannelStatus]: ...

    def model_name(self) -> str: ...

    async def job_rows(self, limit: int) -> list[JobRow]: ...

    async def job_counts(self) -> dict[str, int]: ...

    async def reload(self) -> tuple[list[str], list[str]]:
        """Read the configuration again: what changed, and the faults (then nothing changed)."""
        ...


class Desk(Protocol):
    """Where a command hands messages on."""

    async def end_rows(self, items: Sequence[inbox.Waiting], rule: str) -> None:
        """End waiting rows with a rule; their words stay in the log."""
        ...

    async def hand_on(self, call: CommandCall, text: str) -> None:
        """Take `text` as a plain message of the caller."""
        ...


Manages: TypeAlias = Callable[[Address, str], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`path`: the words that named it, as in the table; `rest`: what stands behind them. `manages`: the asker may say how this place is run; known
    where the command's role asks for it, else False."""

    call: CommandCall
    chat: Conversation
    language: str
    now: datetime
    desk: Desk
    path: tuple[str, ...] = ()
    rest: str = ""
    manages: bool = False

    @property
    def address(self) -> str:
        return self.chat.key

    @property
    def in_group(self) -> bool:
        return self.chat.kind == "group"

    @property
    def words(self) -> list[str]:
        return self.rest.split()

    @property
    def line(self) -> str:
        """The command as people write it."""
        return self.call.line.prefix + " ".join(self.path or (self.call.line.name,))

    def say(self, key: str, **values: object) -> str:
        return say(self.language, key, **values)

    def command(self, *words: str) -> str:
        """Another command, as people write it here."""
        return self.call.line.prefix + " ".join(words)

    def confirming(self, text: str, *lines: tuple[str, str], open_for: timedelta = ASKED_FOR) -> Answer:
        """A question that is answered by typing a command, as its text says, or by a button: a label's key and the command for each, and a no."""
        choices = [Choice(self.say(key), line) for key, line in lines]
        question = Question(choices=(*choices, Choice(self.say("button_no"))), language=self.language, open_for=open_for)
        return Answer(text=text, questions=(question,))

    def access(self) -> Access:
        """What this chat may read and write of memory: the same rule as for a turn here (WD-9, WD-10)."""
        sender = self.call.sender
        return access_in(self.chat, sender.scope, known=includes(sender.role, "user"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command says; `parts` are sent beside it (an old answer once more). `questions`: what can be answered to it by a button."""

    text: str = ""
    parts: tuple[NewPart, ...] = ()
    questions: tuple[Question, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Everything that handlers read or change."""

    db: Database
    clock: Callable[[], datetime]
    lanes: Lanes
    replies: Replies
    house: House
    manages: Manages
    desks: Desks

    async def may_stop(self, asked: Asked) -> bool:
        """Only whose message is being answered, and a manager of the place (CH-72, CH-118)."""
        running, sender = self.lanes.running(asked.address), asked.call.sender
        if running is None or running.person_id == sender.id or includes(sender.role, "admin"):
            return True
        return await self.manages(Address.parse(asked.address), asked.call.event.sender_id)


Handler: TypeAlias = Callable[[Around, Asked], Awaitable[str | Answer]]

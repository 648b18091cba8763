"""What goes into one turn of thought and what comes out: plain values, no platform and no database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from agent.characters import Character
from agent.llm.port import Finish, Image, ModelRequest, Usage
from memory.saved.shown import NOTHING_SHOWN, Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message of the earlier talk. `by_us`: an answer of ours; `speaker`: shown before the words in talks of several people; `attached`:
    stretches of `text`, in order, that are not its own words but whole texts of files that came with it."""

    text: str
    by_us: bool
    speaker: str = ""
    images: tuple[Image, ...] = ()
    attached: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One question with everything needed to answer it.

    `history` is the live window, oldest first, whole turns, without the newest message. `head_notes` are standing texts after the character (files),
    `saved` the saved memories of head and tail, `standing_notes` the end of the head (summaries). `recalled` begins the tail (documents), and
    `tail_notes` is what else is made anew for this reply. `now` is aware; `zone` an IANA name shown beside it.
    Without a clock (`clock=False`, challenge chats) two attempts send identical bytes (SM-88). `temperature` and `max_output_tokens` (of one
    request) are wishes of whoever asks; None leaves them to the model's account.
    """

    character: Character
    newest: Said
    now: datetime
    zone: str
    history: tuple[Said, ...] = ()
    persona: str = ""
    system_text: str = ""
    head_notes: tuple[str, ...] = ()
    saved: Shown = NOTHING_SHOWN
    standing_notes: tuple[str, ...] = ()
    recalled: tuple[str, ...] = ()
    tail_notes: tuple[str, ...] = ()
    clock: bool = True
    purpose: str = "reply"
    temperature: float | None = None
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of one turn (RL-23): model calls, tokens in and out over all of them, wall time, seconds for each tool."""

    steps: int = 16
    tokens: int = 200_000
    seconds: float = 600.0
    tool_seconds: float = 60.0


class Sink(Protocol):
    """Where the words go while they are made. Called on the event loop, in order; it must not block and must not raise."""

    def delta(self, text: str) -> None: ...

    def reset(self) -> None:
        """The draft starts again from nothing: the model was called anew (CH-98)."""
        ...

    def tool(self, name: str, state: str) -> None: ...


Steering = Callable[[], tuple[Said, ...]]
"""Takes what people added since the last look; called at tool boundaries only (CH-70)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One request to a provider, for usage and receipts. `outcome`: ok, or the code of the error."""

    model: str
    provider: str
    outcome: str
    usage: Usage
    milliseconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request as it went to a model, word for word (RS-78)."""

    model: str
    provider: str
    request: ModelRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """`foreign`: what it returned was written by others: a page of the web, a file (WD-67)."""

    name: str
    ok: bool
    milliseconds: int
    foreign: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """A piece of memory that the model was given. `how`: head, lore, search or get; lines count from 1, 0 for a whole file; `date` of a daily
    line."""

    how: str
    path: str
    first: int = 0
    last: int = 0
    date: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """A turn's first prompt with nothing left out: estimated tokens, those of the earlier talk in it, and the effective ceiling (RS-63)."""

    tokens: int
    talk: int
    ceiling: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the prompt and its estimated tokens."""

    name: str
    tokens: int


@dataclass(slots=True, kw_only=True)
class Record:
    """What happened so far in a turn; filled while it runs, so that a stopped or failed turn still has its receipt."""

    text: str = ""
    model: str = ""
    provider: str = ""
    sections: tuple[Section, ...] = ()
    left_out: int = 0  # messages of the window that did not fit the model
    refused: int = 0  # of them, those left out because the model refused the turn's first prompt (WD-94, RS-69)
    shortened: bool = False  # the newest message alone was too long for the model (WD-95)
    rows_left_out: tuple[int, ...] = ()  # ids of saved memories that gave way (SM-28)
    standing_cut: bool = False  # of the standing text only an excerpt was sent (RS-70)
    talk_room: int | None = None  # tokens that the first model has for the talk, the newest message included (WD-38)
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    sent: list[Sent] = field(default_factory=list[Sent])
    tools: list[ToolUse] = field(default_factory=list[ToolUse])
    used: list[Used] = field(default_factory=list[Used])
    steered: int = 0
    first_token_ms: int | None = None
    finish: Finish | None = None

    @property
    def read_foreign(self) -> bool:
        return any(use.foreign for use in self.tools)

"""What goes into one turn of thought and what comes out: plain values, no platform and no database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from agent.characters import Character
from agent.llm.port import Finish, Image, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message of the earlier talk. `by_us`: an answer of ours; `speaker`: shown before the words in talks of several people."""

    text: str
    by_us: bool
    speaker: str = ""
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One question with everything needed to answer it.

    `history` is the live window, oldest first, whole turns, without the newest message. `head_notes` are standing texts for the end of the head
    (summaries, memory; empty until they exist), `tail_notes` what is made anew for this reply. `now` is aware; `zone` an IANA name shown beside it.
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
class ToolUse:
    name: str
    ok: bool
    milliseconds: int


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
    shortened: bool = False  # the newest message alone was too long for the model (WD-95)
    talk_room: int | None = None  # tokens that the first model has for the talk, the newest message included (WD-38)
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    tools: list[ToolUse] = field(default_factory=list[ToolUse])
    steered: int = 0
    first_token_ms: int | None = None
    finish: Finish | None = None

"""What a turn can end in, split by what the caller should do. Texts are for operators; people get a sentence of ours, chosen by `code` (CH-85).

AgentError
├── ModelError(code, excerpt)     the provider failed
│   ├── ModelBusy(retry_after_s)    try again: rate limit, overload, time-out before the first byte, a cut connection
│   ├── ModelBroken                 the answer is unusable: no choices, broken JSON, a stream without an end; one more try, then give up
│   ├── ContextOverflow(limit, sent) shorten and try again (RL-22); `limit` in tokens when the provider named it
│   ├── NoRoom                      thinking used up the whole answer (MD-06)
│   └── ModelMisconfigured(misfit)  ask the operator: key, address, model name, quota
├── BudgetExceeded(what)          the turn spent its steps, tokens or wall time (RL-23)
├── TooLarge(needed, room)        what never gives way in a prompt does not fit: nothing is sent, a person changes something (RS-70)
│   ├── InstructionsTooLarge        character, files, notes and descriptions of tools
│   ├── PinsTooLarge                pinned memories beside them (SM-28)
│   ├── AttachmentsTooLarge         files and pictures of the newest message beside them
│   └── AnswerTooLarge(answer, window)  all of it would fit, were the longest answer that the model's account allows shorter
└── TranscriptionFailed           a voice note could not be written down; the turn goes on without its words
"""

from __future__ import annotations

from enum import StrEnum


class AgentError(Exception):
    code = "failed"
    foreseen = True  # for background work: its text says all, no stack helps


class ModelError(AgentError):
    """`excerpt`: at most 300 characters of what the provider said, secrets masked."""

    def __init__(self, message: str, *, excerpt: str = "") -> None:
        super().__init__(message)
        self.excerpt = excerpt[:300]


class ModelBusy(ModelError):
    code = "model_busy"

    def __init__(self, message: str, *, retry_after_s: float | None = None, excerpt: str = "") -> None:
        super().__init__(message, excerpt=excerpt)
        self.retry_after_s = retry_after_s


class ModelBroken(ModelError):
    code = "model_broken"


class ContextOverflow(ModelError):
    code = "too_long"

    def __init__(self, message: str, *, limit: int | None = None, sent: int | None = None, excerpt: str = "") -> None:
        super().__init__(message, excerpt=excerpt)
        self.limit = limit
        self.sent = sent


class NoRoom(ModelError):
    code = "no_room"


class Misfit(StrEnum):
    """What of a model's account is wrong, where that is known."""

    KEY = "key"
    ADDRESS = "address"  # a server answers, with nothing at this address
    FORM = "form"  # no http address at all
    REDIRECT = "redirect"
    MODEL = "model"
    CREDIT = "credit"


class ModelMisconfigured(ModelError):
    code = "model_setup"
    permanent = True  # for background work: trying again cannot help

    def __init__(self, message: str, *, excerpt: str = "", misfit: Misfit | None = None) -> None:
        super().__init__(message, excerpt=excerpt)
        self.misfit = misfit


class BudgetExceeded(AgentError):
    code = "budget"

    def __init__(self, what: str) -> None:
        super().__init__(f"the turn spent its {what}")
        self.what = what


class TooLarge(AgentError):
    """`needed`: estimated tokens of what never gives way and the shortest talk; `room`: that a prompt may take; `by_setting`: a setting says so, and
    the model could hold more."""

    what = "prompt"

    def __init__(self, *, needed: int, room: int, by_setting: bool = False) -> None:
        super().__init__(f"the {self.what} alone leave no room to talk: the prompt needs {needed} tokens and has {room}")
        self.needed = needed
        self.room = room
        self.by_setting = by_setting


class InstructionsTooLarge(TooLarge):
    code, what = "instructions_room", "instructions"


class PinsTooLarge(TooLarge):
    code, what = "pins_room", "pinned memories"


class AttachmentsTooLarge(TooLarge):
    code, what = "attachments_room", "attachments"


class AnswerTooLarge(TooLarge):
    """`answer`: tokens that are kept free for it; `window`: of the model."""

    code, what = "answer_room", "tokens kept free for the answer"

    def __init__(self, *, needed: int, room: int, answer: int, window: int) -> None:
        super().__init__(needed=needed, room=room)
        self.answer = answer
        self.window = window


class TranscriptionFailed(AgentError):
    code = "transcription"

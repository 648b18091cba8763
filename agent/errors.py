"""What a turn can end in, split by what the caller should do. Texts are for operators; people get a sentence of ours, chosen by `code` (CH-85).

    AgentError
    ├── ModelError(code, excerpt)     the provider failed
    │   ├── ModelBusy(retry_after_s)    try again: rate limit, overload, time-out before the first byte, a cut connection
    │   ├── ModelBroken                 the answer is unusable: no choices, broken JSON, a stream without an end; one more try, then give up
    │   ├── ContextOverflow(limit, sent) shorten and try again (RL-22); `limit` in tokens when the provider named it
    │   ├── NoRoom                      thinking used up the whole answer (MD-06)
    │   └── ModelMisconfigured          ask the operator: key, address, model name, quota
    ├── BudgetExceeded(what)          the turn spent its steps, tokens or wall time (RL-23)
    ├── PinsTooLarge(needed, room)    pinned memories alone leave no room to talk; a person unpins some or takes a larger model (SM-28)
    └── TranscriptionFailed           a voice note could not be written down; the turn goes on without its words
"""

from __future__ import annotations


class AgentError(Exception):
    code = "failed"


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


class ModelMisconfigured(ModelError):
    code = "model_setup"
    permanent = True  # for background work: trying again cannot help


class BudgetExceeded(AgentError):
    code = "budget"

    def __init__(self, what: str) -> None:
        super().__init__(f"the turn spent its {what}")
        self.what = what


class PinsTooLarge(AgentError):
    """`needed`: tokens that the prompt takes with every pin and the shortest talk; `room`: that it has."""

    code = "pins_room"

    def __init__(self, *, needed: int, room: int) -> None:
        super().__init__(f"the pinned memories do not fit: the prompt needs {needed} tokens and has {room}")
        self.needed = needed
        self.room = room


class TranscriptionFailed(AgentError):
    code = "transcription"

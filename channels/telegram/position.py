"""Where in the feed we are, as it is stored with the events (CH-151)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

# After a quiet week the platform may begin to number anew, anywhere: then everything that nobody confirmed is asked for, and dedupe decides.
TRUSTED = timedelta(days=6)


@dataclass(frozen=True, slots=True)
class Position:
    """The newest stored update and when it came; -1 before the first. As text: `number@time`."""

    number: int = -1
    at: datetime | None = None

    def __str__(self) -> str:
        return f"{self.number}@{self.at.isoformat()}" if self.at else ""

    @classmethod
    def parse(cls, text: str) -> Position:
        """The inverse of `str`. What cannot be read is no position: everything is asked for, and dedupe decides."""
        number, _, at = text.partition("@")
        try:
            return cls(int(number), datetime.fromisoformat(at))
        except ValueError:
            return cls()

    def offset(self, now: datetime) -> int | None:
        """What to ask from; None for everything that nobody confirmed."""
        return self.number + 1 if self._is_trusted(now) else None

    def after(self, numbers: list[int], now: datetime) -> Position:
        """Past these updates. A number from before an old position begins a new count; else the position only grows."""
        if not numbers:
            return self
        newest = max(numbers)
        return Position(max(newest, self.number) if self._is_trusted(now) else newest, now)

    def _is_trusted(self, now: datetime) -> bool:
        return self.at is not None and now - self.at < TRUSTED

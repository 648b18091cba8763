"""How a platform asks a client to slow down, and keeps to it: until its wait is over, whatever would show something is refused with what is left."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Pace:
    """`seconds` is the wait that the next call begins, 0 for none. `refused`: what each refused call was told, in whole seconds."""

    seconds: float = 0.0
    until: float = 0.0
    refused: list[int] = field(default_factory=list[int])

    def left(self) -> int:
        """Seconds that a call which shows something has to wait; 0 when it is taken."""
        now = time.monotonic()
        if self.seconds:
            self.until, self.seconds = now + self.seconds, 0.0
        if now >= self.until:
            return 0
        self.refused.append(math.ceil(self.until - now))
        return self.refused[-1]

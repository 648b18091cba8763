"""Tickets for the typing sign (WX-46): one per person, kept for up to a day, and asked for less and less often while there is none."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from channels.newest import keep_newest

KEPT_S = 24 * 3600.0
FIRST_WAIT_S, WAIT_MAX_S = 2.0, 3600.0
PEOPLE_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Ticket:
    """`text` is empty while there is none; `until`: when to ask again."""

    text: str
    until: datetime
    wait_s: float = FIRST_WAIT_S


@dataclass(slots=True)
class Tickets:
    """`chance`: 0 to 1, for the point at which a ticket is asked for anew."""

    clock: Callable[[], datetime]
    chance: Callable[[], float] = random.random
    _kept: dict[str, Ticket] = field(default_factory=dict[str, Ticket])

    def of(self, person: str) -> Ticket | None:
        """What is known; None when it is time to ask."""
        kept = self._kept.get(person)
        return kept if kept is not None and kept.until > self.clock() else None

    def got(self, person: str, text: str) -> None:
        self._keep(person, Ticket(text, self.clock() + timedelta(seconds=KEPT_S * self.chance())))

    def failed(self, person: str) -> None:
        kept = self._kept.get(person)
        wait_s = min(kept.wait_s * 2, WAIT_MAX_S) if kept is not None and not kept.text else FIRST_WAIT_S
        self._keep(person, Ticket("", self.clock() + timedelta(seconds=wait_s), wait_s))

    def _keep(self, person: str, ticket: Ticket) -> None:
        self._kept.pop(person, None)
        self._kept[person] = ticket
        keep_newest(self._kept, PEOPLE_MAX)

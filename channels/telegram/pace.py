"""How much we say: what Telegram advises, kept by leaving previews out (CH-93). An answer is never held back by it (CH-92).

That a chat hears one message a second is kept by the interval of previews; here is counted what those of many chats, and of a busy group, add up to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from channels.newest import keep_newest

GROUP = (20, timedelta(minutes=1))  # edits counted: field reports say so, nothing else depends on it
ACCOUNT = (30, timedelta(seconds=1))
CHATS_MAX = 2_000


@dataclass(slots=True)
class Pace:
    """Times of the messages and edits that were sent, on the event loop."""

    clock: Callable[[], datetime]
    _said: dict[str, deque[datetime]] = field(default_factory=dict[str, deque[datetime]])

    def note(self, chat_id: str) -> None:
        """Something was said there."""
        for key in ("", chat_id):
            said = self._said.pop(key, None) or deque(maxlen=max(GROUP[0], ACCOUNT[0]))
            said.append(self.clock())
            self._said[key] = said  # at the end: the chats that were silent longest are forgotten first
        keep_newest(self._said, CHATS_MAX)

    def allows(self, chat_id: str) -> bool:
        """May something be said that can as well be left out? A group's id is negative."""
        free = self._recent("", ACCOUNT[1]) < ACCOUNT[0]
        return free and (not chat_id.startswith("-") or self._recent(chat_id, GROUP[1]) < GROUP[0])

    def _recent(self, key: str, within: timedelta) -> int:
        since = self.clock() - within
        return sum(at > since for at in self._said.get(key, ()))

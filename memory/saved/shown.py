"""The saved memories of one prompt: those of its head, those that a search brought into its tail, and which of them give way when it is too long
(SM-25, SM-28). Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from memory.saved.printing import RECENT_DAYS, Names, head_text, tail_text
from memory.saved.rows import Memory
from memory.saved.split import newness

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """No row stands in `head` and `tail`. `now`, `recent_days`: for the recent marks."""

    head: tuple[Memory, ...] = ()
    tail: tuple[Memory, ...] = ()
    names: Names = field(default_factory=Names)
    now: datetime = _NEVER
    recent_days: int = RECENT_DAYS

    @property
    def rows(self) -> tuple[Memory, ...]:
        return (*self.head, *self.tail)

    def giving(self) -> tuple[int, ...]:
        """Ids of the rows that may go, in the order in which they do: unpinned ones, oldest first."""
        return tuple(each.id for each in sorted(self.rows, key=newness) if not each.pinned)

    def texts(self, gone: frozenset[int] = frozenset(), *, pins: bool = True) -> tuple[str, str]:
        """Head and tail without the rows `gone`; each empty for no rows. Without `pins`: how it would be with none."""

        def kept(rows: tuple[Memory, ...]) -> tuple[Memory, ...]:
            return tuple(each for each in rows if each.id not in gone and (pins or not each.pinned))

        return (
            head_text(kept(self.head), self.names, self.now, recent_days=self.recent_days),
            tail_text(kept(self.tail), self.names, self.now, recent_days=self.recent_days),
        )


NOTHING_SHOWN = Shown()

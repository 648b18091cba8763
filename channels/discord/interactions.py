"""Slash commands that wait for their answer: which part answers which, and for how long it may (CH-188)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import discord

from channels.newest import keep_newest

ANSWERABLE = timedelta(minutes=14)  # the platform allows 15
NOTHING_FOLLOWS = timedelta(seconds=5)  # after a command that was refused: some refusals are told, most are not
WAITING_MAX = 500


@dataclass(slots=True)
class _Waiting:
    until: datetime
    interaction: discord.Interaction | None = None
    deferred: asyncio.Event = field(default_factory=asyncio.Event)  # or known to be impossible
    names: tuple[str, ...] = ()  # what the id of a part that answers it begins with
    part_id: str = ""


class Pending:
    """Interactions by their id. The first part that belongs to one is its answer; a second try of that part is too.

    What the platform told (`expect`, then `settle`) and what was stored (`link`) come in either order.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}

    def expect(self, interaction: discord.Interaction) -> None:
        self._of(str(interaction.id)).interaction = interaction

    def settle(self, interaction: discord.Interaction, *, deferred: bool) -> None:
        """`deferred`: the platform shows that we think about it; else the answer has to be a message of its own."""
        waiting = self._of(str(interaction.id))
        waiting.deferred.set()
        if not deferred:
            self.drop(interaction)

    def link(self, event_id: str, *names: str, refused: bool) -> None:
        """The event was stored. `names`: the ids that parts answering it begin with: of its delivery or of its turn."""
        waiting = self._of(event_id)
        waiting.names = tuple(name for name in names if name)
        if refused:
            waiting.until = min(waiting.until, self._clock() + NOTHING_FOLLOWS)

    async def take(self, part_id: str) -> discord.Interaction | None:
        """The interaction that this part answers, once it is deferred; None when there is none, or it is too late for it."""
        name = part_id.partition(".")[0]
        for key, waiting in list(self._waiting.items()):
            if waiting.part_id in ("", part_id) and name in waiting.names and self._clock() < waiting.until:
                waiting.part_id = part_id
                await waiting.deferred.wait()
                return waiting.interaction if key in self._waiting else None
        return None

    def drop(self, interaction: discord.Interaction) -> None:
        """It cannot be answered any more."""
        self._waiting.pop(str(interaction.id), None)

    def overdue(self) -> list[discord.Interaction]:
        """Those to which nothing came, forgotten here: the sign that we think should go."""
        over = [key for key, waiting in self._waiting.items() if waiting.until <= self._clock()]
        gone = [self._waiting.pop(key) for key in over]
        return [waiting.interaction for waiting in gone if waiting.interaction is not None and not waiting.part_id]

    def _of(self, event_id: str) -> _Waiting:
        waiting = self._waiting.setdefault(event_id, _Waiting(self._clock() + ANSWERABLE))
        keep_newest(self._waiting, WAITING_MAX)
        return waiting

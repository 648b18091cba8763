"""How many turns prepare their prompts at once. Of two hundred that come together all would else be ready at the same late moment, and their answers
too: one after the other, the first is asked while the last still waits, and no model is asked later than without it (RL-8).

What takes long, such as a search behind a network or a file that is fetched, gives its place away: no chat waits for another's (invariant 5).
"""

from __future__ import annotations

import asyncio

AT_ONCE = 8
GIVES_WAY_S = 0.25


class Place:
    """One turn's place. `leave` when the model is asked; it is left by itself after a while, so nothing is lost with a turn that ends early."""

    def __init__(self, places: asyncio.Semaphore, gives_way_s: float) -> None:
        self._places = places
        self._timer = asyncio.get_running_loop().call_later(gives_way_s, self._free)

    def leave(self) -> None:
        if not self._timer.cancelled():
            self._timer.cancel()
            self._free()

    def _free(self) -> None:
        self._timer.cancel()
        self._places.release()


class Turnstile:
    """In the order in which they came."""

    def __init__(self, *, at_once: int = AT_ONCE, gives_way_s: float = GIVES_WAY_S) -> None:
        self._places = asyncio.Semaphore(at_once)
        self._gives_way_s = gives_way_s

    async def enter(self) -> Place:
        await self._places.acquire()
        return Place(self._places, self._gives_way_s)

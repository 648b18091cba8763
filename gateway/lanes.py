"""One ordered lane per conversation: what waits, what runs, what joins (CH-60 to CH-73).

The lane alone knows whether its conversation is busy; no second flag exists to disagree. Lanes are made on demand and go after a minute of
silence. Everything here runs on the event loop; what is stored is the inbox's business, so a restart forms the same turns again.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from gateway.arrivals.inbox import Waiting

log = logging.getLogger(__name__)

IDLE_S = 60.0
HOLD_MEDIA_S = 1.2  # an album or a lone attachment waits for the rest
HOLD_NEAR_LIMIT_S = 2.5  # clients cut long pastes at the platform's limit
NEAR_LIMIT = 96  # units
HOLD_TOTAL_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """How long a lane waits for more before a turn begins. `quiet_s` 0 = every message is its own turn at once.

    Late messages (CH-55) are answered in one turn, without waiting for more.
    """

    quiet_s: float
    text_max: int
    is_late: Callable[[Waiting], bool] = lambda _item: False

    def wait_after(self, item: Waiting) -> float:
        """Seconds of quiet after `item` that end the gathering (CH-65)."""
        if self.quiet_s == 0 or item.action or self.is_late(item):
            return 0.0
        if item.text_length >= self.text_max - NEAR_LIMIT:
            return HOLD_NEAR_LIMIT_S
        return HOLD_MEDIA_S if item.attachments else self.quiet_s


@dataclass(slots=True, eq=False, kw_only=True)
class RunningTurn:
    """The turn that a lane runs now. `interrupt` ends it from outside; what came meanwhile and steers it stands in `steering`."""

    items: tuple[Waiting, ...]
    started: float = field(default_factory=time.monotonic)
    steering: list[Waiting] = field(default_factory=list[Waiting])
    taken: list[Waiting] = field(default_factory=list[Waiting])
    stopped: bool = False
    discarded: bool = False
    told_busy: bool = False
    progress: float = field(default_factory=time.monotonic)
    scope: asyncio.Timeout | None = None

    @property
    def turn_id(self) -> str:
        return self.items[0].turn_id

    @property
    def person_id(self) -> str:
        return self.items[0].person_id

    def may_take(self, item: Waiting) -> bool:
        """Whether `item` may steer it: of the same person, and of the same memory, for the answer is recorded in that of the turn."""
        return not self.stopped and item.person_id == self.person_id and all(item.scope == each.scope for each in self.items)

    @property
    def age(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.started

    @property
    def idle(self) -> float:
        """Seconds since it last made progress."""
        return time.monotonic() - self.progress

    def interrupt(self, *, discard: bool = False) -> None:
        """End the turn at its next await; it keeps what was already said (CH-72), unless its talk was reset (`discard`)."""
        self.stopped = True
        self.discarded = self.discarded or discard
        if self.scope is not None and not self.scope.expired():
            self.scope.reschedule(asyncio.get_running_loop().time())

    def take_steering(self) -> list[Waiting]:
        """What was added since the last look; from now on it belongs to this turn."""
        added, self.steering = self.steering, []
        self.taken += added
        return added


RunTurn = Callable[[RunningTurn], Awaitable[None]]


@dataclass(slots=True, eq=False)
class _Lane:
    address: str
    holding: Holding
    waiting: deque[Waiting] = field(default_factory=deque[Waiting])
    batch: list[Waiting] = field(default_factory=list[Waiting])  # taken from the queue, its turn not begun: held for more, or for a free place
    running: RunningTurn | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ends: set[int] = field(default_factory=set[int])  # rows behind which a command came: nothing joins them


class Lanes:
    """All lanes of this process."""

    def __init__(self, group: asyncio.TaskGroup, run_turn: RunTurn, *, concurrency: int = 256) -> None:
        self._group = group
        self._run_turn = run_turn
        self._slots = asyncio.Semaphore(concurrency)
        self._lanes: dict[str, _Lane] = {}
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._open = True

    def put(self, item: Waiting, holding: Holding, *, may_steer: bool = False) -> str:
        """Add an item to its lane. Says what became of it: "started" (nothing was in the way), "steered" or "queued"."""
        lane = self._lanes.get(item.address)
        if lane is None:
            lane = self._lanes[item.address] = _Lane(item.address, holding)
            self._group.create_task(self._work(lane), name=f"lane {item.address}")
        lane.holding = holding  # the present configuration's
        steers = may_steer and not item.action and not item.attachments
        if lane.running is not None and steers and lane.running.may_take(item) and not lane.waiting:
            lane.running.steering.append(item)
            return "steered"
        busy = lane.running is not None
        lane.waiting.append(item)
        lane.changed.set()
        return "queued" if busy else "started"

    def waiting(self, address: str) -> int:
        """How many messages wait or steer in a chat."""
        lane = self._lanes.get(address)
        return 0 if lane is None else len(lane.batch) + len(lane.waiting) + (len(lane.running.steering) if lane.running else 0)

    def running(self, address: str) -> RunningTurn | None:
        lane = self._lanes.get(address)
        return lane.running if lane else None

    def drop_waiting(self, address: str, *, before: int | None = None) -> list[Waiting]:
        """Empty a chat's queue (`/stop all`) and return what was in it. `before`: only what came before this row, for what waited too long for a
        command was taken in behind it."""
        lane = self._lanes.get(address)
        if lane is None:
            return []
        dropped: list[Waiting] = []

        def kept(items: Iterable[Waiting]) -> list[Waiting]:
            every = list(items)
            dropped.extend(item for item in every if before is None or item.row_id < before)
            return [item for item in every if before is not None and item.row_id >= before]

        lane.batch[:] = kept(lane.batch)
        lane.waiting = deque(kept(lane.waiting))
        if lane.running is not None:
            lane.running.steering = kept(lane.running.steering)
        lane.ends.difference_update(item.row_id for item in dropped)
        return dropped

    def discard(self, address: str, *, before: int) -> None:
        """End what runs in a chat and came before this row; nothing of it is said any more."""
        running = self.running(address)
        if running is not None and running.items[0].row_id < before:
            running.interrupt(discard=True)

    def flush(self, address: str) -> None:
        """A command came: what is held for more begins now, and what is said after it is another turn (CH-65)."""
        lane = self._lanes.get(address)
        steering = lane.running.steering if lane is not None and lane.running is not None else []
        if lane is not None and (held := [*lane.batch, *steering, *lane.waiting]):
            lane.ends.add(held[-1].row_id)
            lane.changed.set()

    def forget(self, message_id: str) -> None:
        """A message was deleted by its author: it is dropped where it waits; a turn that has taken it in goes on (CH-2)."""
        self._revise(message_id, lambda _item: None)

    def correct(self, message_id: str, text: str) -> None:
        """A message was edited by its author: where it still waits, the new words are used (CH-2)."""
        self._revise(message_id, lambda item: replace(item, text=text))

    def _revise(self, message_id: str, change: Callable[[Waiting], Waiting | None]) -> None:
        def revised(items: Iterable[Waiting]) -> list[Waiting]:
            changed = (change(item) if item.message_id == message_id else item for item in items)
            return [item for item in changed if item is not None]

        for lane in self._lanes.values() if message_id else ():
            lane.batch[:] = revised(lane.batch)
            lane.waiting = deque(revised(lane.waiting))
            if lane.running is not None:
                lane.running.steering = revised(lane.running.steering)

    @property
    def depth(self) -> int:
        return sum(len(lane.waiting) for lane in self._lanes.values())

    @property
    def turns(self) -> list[RunningTurn]:
        return [lane.running for lane in self._lanes.values() if lane.running is not None]

    async def quiet(self) -> None:
        """Returns when no turn runs; the caller bounds the wait."""
        await self._quiet.wait()

    def close(self) -> None:
        """Start no further turn; what waits is stored and resumes with the next start (CH-100)."""
        self._open = False
        for lane in self._lanes.values():
            lane.changed.set()

    async def _work(self, lane: _Lane) -> None:
        try:
            while self._open:
                if not await self._gather(lane):
                    return
                async with self._slots:
                    if not self._open:
                        return
                    lane.ends.difference_update(item.row_id for item in lane.batch)
                    batch, lane.batch = in_platform_order(lane.batch), []
                    if not batch:  # dropped or deleted while it was held
                        continue
                    lane.running = RunningTurn(items=batch)
                    self._quiet.clear()
                    try:
                        await self._run_turn(lane.running)
                    except Exception:  # one of the four homes (STYLE): a turn that failed unforeseen must not end its lane
                        log.exception("turn %s failed", lane.running.turn_id)
                    finally:
                        left = lane.running.steering  # came too late to be taken in: the next turn (CH-70)
                        lane.running = None
                        lane.waiting.extendleft(reversed(left))
                        if not self.turns:
                            self._quiet.set()
        finally:
            self._lanes.pop(lane.address, None)

    async def _gather(self, lane: _Lane) -> bool:
        """Fill `lane.batch` with the next turn's items: the first that waits, and what its sender adds within the quiet time.

        False when the lane went idle.
        """
        while not lane.waiting:
            lane.changed.clear()
            try:
                async with asyncio.timeout(IDLE_S):
                    await lane.changed.wait()
            except TimeoutError:
                if not lane.waiting:
                    return False
            if not self._open:
                return False
        batch = lane.batch = [lane.waiting.popleft()]
        clock = asyncio.get_running_loop()
        began = clock.time()
        while batch:
            if (joined := self._joinable(lane, batch)) is not None:
                batch.append(joined)
                continue
            wait = min(lane.holding.wait_after(batch[-1]), HOLD_TOTAL_S - (clock.time() - began))
            if wait <= 0 or lane.waiting or batch[-1].row_id in lane.ends:
                return True
            lane.changed.clear()
            try:
                async with asyncio.timeout(wait):
                    await lane.changed.wait()
            except TimeoutError:
                return True
        return True

    @staticmethod
    def _joinable(lane: _Lane, batch: list[Waiting]) -> Waiting | None:
        """What stands next in the queue, when it belongs to this batch: held together and of the same sender, or both late, and no action.

        What was begun before (a kill, a drain) is tried again with what it was begun with and nothing else: if it is poison, it dies alone.
        """
        if not lane.waiting or batch[0].action or lane.waiting[0].action or batch[-1].row_id in lane.ends:
            return None
        following = lane.waiting[0]
        late = lane.holding.is_late(batch[-1]) and lane.holding.is_late(following)  # of anybody: all that waited is one turn (CH-55)
        tried = batch[0].attempts or following.attempts
        held = lane.holding.quiet_s > 0 and following.person_id == batch[0].person_id
        together = following.turn_id == batch[0].turn_id if tried else held or late
        return lane.waiting.popleft() if together else None


_NUMBERED = re.compile(r"(\D*)(\d+)")


def in_platform_order(batch: Sequence[Waiting]) -> tuple[Waiting, ...]:
    """Joined messages in the order of the platform's numbers (an album arrives in any: CH-66); as they arrived where ids are no numbers."""
    ids = [_NUMBERED.fullmatch(item.platform_message_id) for item in batch]
    numbers = {item.row_id: int(found[2]) for item, found in zip(batch, ids, strict=True) if found}
    if len(numbers) < len(batch) or len({found[1] for found in ids if found}) > 1:
        return tuple(batch)
    return tuple(sorted(batch, key=lambda item: numbers[item.row_id]))

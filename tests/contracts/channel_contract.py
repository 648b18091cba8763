"""What the contract suite of adapters stands on: a platform's side as a test drives it, and an inbox to deliver to.

A platform joins the suite with a `Peer`: its server on loopback (or in this process) behind these few verbs. The suite never sees the protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Protocol, runtime_checkable

from channels.errors import ConnectionLost
from channels.message import Account, Address, ChatType, EventKind, InboundEvent
from channels.port import Accepted, Arrival, Capabilities, Channel, Cursor, OutboundPart
from tests.patience import patience

GOOD, BAD = "good", "bad"  # credentials, as the suite names them


def utc_now() -> datetime:
    return datetime.now(UTC)


async def until(look: Callable[[], bool], *, within_s: float = 10.0) -> None:
    async with asyncio.timeout(patience(within_s)):
        while not look():  # noqa: ASYNC110  # what is waited for has no event to wait for
            await asyncio.sleep(0.005)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A chat on the platform. `parent` is the group of a topic."""

    address: Address
    kind: ChatType
    parent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A message that a person wrote, to be edited, deleted, repeated or answered. `event_id` as an adapter should report it."""

    place: Place
    message_id: str
    event_id: str
    sender_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that a person sends; `broken`: the platform does not give it out."""

    name: str
    data: bytes
    kind: str = "file"
    broken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A message of ours as people see it."""

    id: str
    text: str
    chat_id: str
    thread_id: str = ""
    reply_to: str = ""
    files: tuple[str, ...] = ()


class Fault(Enum):
    """What the next call to the platform meets, one each."""

    UNREACHABLE = "the connection is refused"
    CUT = "the platform accepts, and the connection breaks before it answers"
    SERVER_ERROR = "the platform answers that it has failed, and shows nothing"
    BLOCKED = "the person has blocked us"
    REMOVED = "the group has thrown us out"
    BAD_MARKUP = "the platform does not take the formatting"
    BAD_CREDENTIAL = "the credential is no longer good"
    HANGS = "the platform accepts and never answers"


class Peer(Protocol):
    """One platform. Verbs return when the platform has it; what the adapter makes of it the test waits for."""

    account: Account
    capabilities: Capabilities
    kinds: frozenset[EventKind]  # which of edited, deleted and migrated exist there
    credentials: tuple[str, ...]  # secrets that must never be seen anywhere

    def adapter(self, *, cursor: str = "", credential: str = GOOD, clock: Callable[[], datetime] = utc_now) -> Channel:
        """A new process: no memory but the stored cursor."""
        ...

    def place(self, kind: ChatType) -> Place: ...

    async def writes(
        self,
        text: str,
        place: Place,
        *,
        sender: str = "ann",
        mentions_us: bool = False,
        answers_us: bool = False,
        answers: Post | None = None,
        files: Sequence[File] = (),
        bot: bool = False,
    ) -> Post:
        """A person, or a bot, writes. `sender` "us" is our own account."""
        ...

    async def edits(self, post: Post, text: str) -> None: ...

    async def deletes(self, post: Post) -> None: ...

    async def migrates(self, place: Place, new_chat_id: str) -> None: ...

    async def repeats(self, post: Post, *, as_number: bool = False) -> None:
        """The same event again; `as_number`: with its id as a number, where the platform could."""
        ...

    async def sends_strange(self, hint: str) -> None:
        """An event of a kind that nobody knows."""
        ...

    async def sends_broken(self) -> None:
        """A message with a field missing."""
        ...

    def seen(self, place: Place) -> list[Seen]: ...

    def typing(self, place: Place) -> list[bool]:
        """The calls that turned the typing sign on or off, in order."""
        ...

    async def removes(self, message_id: str, place: Place) -> None:
        """A message of ours vanishes."""
        ...

    def plan(self, *faults: Fault) -> None: ...

    def limits(self, wait_s: float) -> None:
        """The next call is told to wait so long."""
        ...

    def fail_typing(self) -> None: ...

    def network(self, up: bool) -> None: ...


@runtime_checkable
class Pressing(Protocol):
    """A peer whose platform has buttons."""

    def buttons(self, place: Place) -> list[list[str]]:
        """The labels of the buttons in a chat, row by row."""
        ...

    async def presses(self, place: Place, label: str, *, sender: str = "ann") -> None:
        """Somebody presses the button that is called so, below whichever message."""
        ...

    def asides(self) -> list[str]:
        """What those who pressed were told alone."""
        ...


def chats(peer: Peer) -> tuple[ChatType, ...]:
    """The kinds of chat that exist on the platform: all, unless the peer names its own in `chats`."""
    return tuple(kind for kind in ChatType if kind in getattr(peer, "chats", ChatType))


def lacks(peer: Peer, what: str) -> bool:
    """Whether a thing that most platforms have does not exist there: the peer names such in `lacking`."""
    return what in getattr(peer, "lacking", ())


MakePeer = Callable[[], AsyncGenerator[Peer, None]]


@dataclass
class Journal:
    """Delivers as the inbox does: events and cursor together or not at all, known events told as duplicates (CH-10).

    `before` and `after` the commit a test may step in: by raising, or by waiting to be killed.
    """

    events: list[InboundEvent] = field(default_factory=list[InboundEvent])
    cursor: str = ""
    arrivals: list[Arrival] = field(default_factory=list[Arrival])
    before: Callable[[], None] = lambda: None
    stuck_before: bool = False
    stuck_after: bool = False
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    verdict: Callable[[Accepted], Accepted] = lambda accepted: accepted  # what is told of an event, beside what became of it

    async def __call__(self, events: Sequence[InboundEvent], cursor: Cursor | None = None) -> list[Accepted]:
        self.entered.set()
        if self.stuck_before:
            await asyncio.Event().wait()
        self.before()
        accepted = [self._take(event) for event in events]
        if cursor is not None:
            self.cursor = cursor.value
        self.news.set()
        if self.stuck_after:
            await asyncio.Event().wait()
        return accepted

    def _take(self, event: InboundEvent) -> Accepted:
        known = next((each for each in self.events if each.platform_event_id == event.platform_event_id), None)
        arrival = Arrival.NEW if known is None else Arrival.DUPLICATE
        self.arrivals.append(arrival)
        if known is None:
            known = replace(event, delivery_id=f"d{len(self.events) + 1}")
            self.events.append(known)
        return self.verdict(Accepted(arrival=arrival, delivery_id=known.delivery_id, state="new"))

    async def until(self, count: int, *, within_s: float = 5.0) -> list[InboundEvent]:
        """The events, once there are so many; then a moment longer, to see that no more come."""
        async with asyncio.timeout(patience(within_s)):
            while len(self.events) < count:
                self.news.clear()
                await self.news.wait()
        await asyncio.sleep(0.02)
        return self.events

    async def until_arrived(self, count: int, *, within_s: float = 5.0) -> list[Arrival]:
        async with asyncio.timeout(patience(within_s)):
            while len(self.arrivals) < count:
                self.news.clear()
                await self.news.wait()
        return self.arrivals

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events]


@asynccontextmanager
async def running(channel: Channel, journal: Journal) -> AsyncGenerator[asyncio.Task[None]]:
    """The adapter's `run`, cancelled at the end; that must take less than a second (CH-9)."""
    task = asyncio.ensure_future(channel.run(journal))
    try:
        yield task
    finally:
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=patience(1.0))
        assert done, "the adapter did not end within a second"
        error = None if task.cancelled() else task.exception()
        breaks = bool(channel.capabilities.reconnect_s) and isinstance(error, ConnectionLost)  # its one connection: it is built anew
        if error is not None and not breaks:
            raise error


def part(place: Place, text: str, *, part_id: str = "p1", reply_to: str = "") -> OutboundPart:
    return OutboundPart(part_id=part_id, address=place.address, text=text, reply_to=reply_to)

"""From the client's queue to the inbox: in order, with the place we are at, and with what was missed while nobody listened (CH-10, CH-190)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import discord

from channels.discord import history
from channels.discord.buttons import Presses
from channels.discord.client import DISCONNECT, READ_BY_US, GatewayClient, Raw
from channels.discord.convert import Setting, convert, fields_of
from channels.discord.interactions import Pending
from channels.discord.payloads import Guild, Message, Ready
from channels.discord.places import Places
from channels.discord.position import Place, Position
from channels.errors import ConnectionLost
from channels.message import EventKind, InboundEvent
from channels.port import Arrival, Cursor, Deliver

log = logging.getLogger(__name__)

CURSOR = "seen"
BATCH_MAX = 100
DROPS_MAX = 5  # connections that break before one is proven; then the supervisor's back-off is better than another try
AT_START, ON_RETURN = timedelta(hours=1), timedelta(minutes=10)  # how old what was missed may be (CH-190)
CALLS_AT_ONCE = 4
REFUSED = ("ignored", "dead")
PLACED = (*READ_BY_US, "INTERACTION_CREATE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeted:
    """A session began. `setting`: who we are in it."""

    setting: Setting
    name: str


class Reader:
    """Reads until cancelled. Raises what `deliver` raises, the library's errors, and ConnectionLost."""

    def __init__(
        self,
        client: GatewayClient,
        deliver: Deliver,
        *,
        setting: Callable[[str], Setting],
        position: Position,
        places: Places,
        pending: Pending,
        presses: Presses,
        clock: Callable[[], datetime],
        on_greeting: Callable[[Greeted], None],
        on_heard: Callable[[], None],
    ) -> None:
        """`setting`: what we are under an id that the platform gave us.

        `on_greeting` is told when a session begins, `on_heard` when nothing is missing any more: after what was missed, and after a resume.
        """
        self._client = client
        self._deliver = deliver
        self._make_setting = setting
        self._position = position
        self._places = places
        self._pending = pending
        self._presses = presses
        self._clock = clock
        self._on_greeting = on_greeting
        self._on_heard = on_heard
        self._setting: Setting | None = None
        self._guilds: set[str] = set()
        self._drops = 0

    async def run(self) -> None:
        while True:
            batch = [await self._client.events.get()]
            while len(batch) < BATCH_MAX and not self._client.events.empty():
                batch.append(self._client.events.get_nowait())
            events: list[InboundEvent] = []
            for raw in batch:
                if raw.name == "READY":
                    await self._store(events)
                    events = []
                    await self._greet(raw)
                else:
                    events += await self._read(raw)
            await self._store(events)

    async def _read(self, raw: Raw) -> list[InboundEvent]:
        match raw.name:
            case "RESUMED":
                self._drops = 0
                self._on_heard()
                return []
            case name if name == DISCONNECT:
                self._drops += 1
                if self._drops > DROPS_MAX:
                    raise ConnectionLost(f"the connection to Discord broke {self._drops} times in a row", code="broken")
                return []
            case "GUILD_CREATE" | "GUILD_DELETE" if not self._is_news(raw):
                return []
            case _:
                return await self._converted(raw)

    def _is_news(self, raw: Raw) -> bool:
        """Were we added to a server, or taken out? Every server is announced at the start, and comes and goes with outages."""
        try:
            guild = Guild.model_validate(raw.data)
        except ValueError:
            return True
        if raw.name == "GUILD_CREATE":
            known = guild.id in self._guilds
            self._guilds.add(guild.id)
            return not known
        if not guild.unavailable:
            self._guilds.discard(guild.id)
        return not guild.unavailable

    async def _converted(self, raw: Raw) -> list[InboundEvent]:
        if self._setting is None:
            return []  # before the greeting nothing but the greeting counts
        place = await self._places.of(raw.data) if raw.name in PLACED else None
        events = convert(raw.name, raw.data, place, self._setting, raw.at)
        if place is None or raw.name not in ("MESSAGE_CREATE", "INTERACTION_CREATE"):
            return events
        if raw.name == "MESSAGE_CREATE" and self._opens_thread(events, place) and (starter := await self._starter(place)) is not None:
            events = convert(raw.name, raw.data, place, self._setting, raw.at, starter=starter)
        number = str(fields_of(raw.data).get("id"))
        if number.isdigit():
            self._position = self._position.after(place, number, speaks=any(event.mentioned or event.is_us for event in events))
        return events

    def _opens_thread(self, events: list[InboundEvent], place: Place) -> bool:
        """The first that we are told in a thread: what it hangs on is what it is about."""
        new = bool(place.parent_id) and self._position.place(place.channel_id) is None
        return new and any(event.kind is EventKind.MESSAGE and event.mentioned and event.reply_to is None for event in events)

    async def _starter(self, place: Place) -> Message | None:
        """The message that a thread was made of: asked for once; many threads have none, or none any more (CH-182)."""
        try:
            answer: Any = await self._client.http.get_message(int(place.parent_id), int(place.channel_id))
            return Message.model_validate(answer)
        except (discord.NotFound, discord.Forbidden, ValueError):
            return None

    async def _store(self, events: list[InboundEvent]) -> None:
        if not events:
            return
        accepted = await self._deliver(events, Cursor(name=CURSOR, value=str(self._position)))
        for event, each in zip(events, accepted, strict=True):
            if event.hint == "command":
                refused = each.state in REFUSED or each.arrival is Arrival.DUPLICATE
                self._pending.link(event.platform_event_id, each.delivery_id, each.turn_id, refused=refused)
            elif event.hint == "button":
                self._presses.settle(event.platform_event_id, each)

    # A session begins

    async def _greet(self, raw: Raw) -> None:
        try:
            ready = Ready.model_validate(raw.data)
        except ValueError as error:
            raise ConnectionLost("Discord's greeting cannot be read: is the address really that of its API?", code="no_api") from error
        first = self._setting is None
        setting = self._setting = self._make_setting(ready.user.id)
        self._guilds = {guild.id for guild in ready.guilds}
        self._drops = 0
        self._on_greeting(Greeted(setting=setting, name=ready.user.name))
        await self._catch_up(setting, since=raw.at - (AT_START if first else ON_RETURN))
        self._on_heard()

    async def _catch_up(self, setting: Setting, *, since: datetime) -> None:
        """What was written in known conversations after what we saw last. What is left out is one line with a count."""
        at_once = asyncio.Semaphore(CALLS_AT_ONCE)

        async def look(place: Place, newest: str) -> history.Missed | None:
            async with at_once:
                try:
                    return await history.missed(self._client.http, place.channel_id, after=newest, since=since, me=setting.me)
                except (discord.NotFound, discord.Forbidden):
                    return None

        seen = list(self._position.seen.values())
        async with asyncio.TaskGroup() as group:
            looks = [(place, group.create_task(look(place, newest))) for place, newest in seen]
        await self._client.told_of({place.guild_id for place, task in looks if place.guild_id and (found := task.result()) and found.messages})
        left, more, channels = 0, False, 0
        for place, task in looks:
            found = task.result()
            if found is None:
                self._position = self._position.without(place.channel_id)
                continue
            left, more, channels = left + found.left, more or found.more, channels + bool(found.left)
            await self._take_up(setting, place, found)
        if left:
            log.warning(
                "%s: %s%d messages in %d channels came while the connection was down and are left out: too old or too many",
                setting.account, "at least " if more else "", left, channels,
            )  # fmt: skip

    async def _take_up(self, setting: Setting, place: Place, found: history.Missed) -> None:
        events: list[InboundEvent] = []
        for raw in found.messages:
            # The history does not say which server it is of.
            told = {**raw, "channel_id": place.channel_id, "guild_id": place.guild_id}
            events += convert("MESSAGE_CREATE", told, self._places.as_it_is(place), setting, self._clock())
            self._position = self._position.after(place, str(raw["id"]), speaks=False)
        await self._store(events)

"""The library's client as we use it: it connects, keeps its cache and knows its limits; events go raw into one queue that our own task reads.

Its own reading of messages is left out: one that it cannot parse would end its connection (CH-4, CH-27).
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias, cast

import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from channels.discord.settings import API_BASE, DiscordSettings
from channels.errors import ConnectionLost

log = logging.getLogger(__name__)

WAIT_MAX_S = 30.0  # what the library may sleep when told to wait; more is ours to handle (CH-186)
HEARTBEAT_LIMIT_S = 60.0
IDENTIFY_PAUSE_S = 5.0  # between a session that ended and the next, as the platform asks
CLOSE_S = 0.5
TOLD_S = 10.0  # how long servers that we are in may take to be announced after the greeting
READ_BY_US = ("MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK")
READ_BY_BOTH = ("READY", "RESUMED", "GUILD_CREATE", "GUILD_DELETE", "INTERACTION_CREATE")
DISCONNECT = "DISCONNECT"  # ours: the connection broke, and the library is about to make a new one

_Parser: TypeAlias = Callable[[Any], None]
_DEFAULT_GATEWAY = DiscordWebSocket.DEFAULT_GATEWAY
_addresses: list[tuple[str, str]] = []  # of the clients that run

logging.getLogger("discord").setLevel(logging.WARNING)  # it logs events and addresses with tokens below that (CH-43)
_strict_json: Callable[[str], Any] = discord.utils._from_json  # pyright: ignore[reportPrivateUsage]  # no public name


def _lenient_json(text: str) -> Any:
    """orjson takes no lone surrogates: without this, one message with half an emoji ends the connection, and again with every look at history."""
    try:
        return _strict_json(text)
    except ValueError:
        return json.loads(text)


discord.utils._from_json = _lenient_json  # pyright: ignore[reportPrivateUsage]  # as above
discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # nobody wants to speak


@dataclass(frozen=True, slots=True)
class Raw:
    """One event as it came."""

    name: str
    data: object
    at: datetime


class _Parsers(dict[str, _Parser]):
    """The library's table of what to do with each event, ours put in front. An event that it does not know is ours as well."""

    def __init__(self, parsers: Mapping[str, _Parser], keep: Callable[[str, object], None]) -> None:
        super().__init__(parsers)
        self._keep = keep
        for name, parser in parsers.items():
            self[name] = self._guarded(name, parser)

    def __missing__(self, name: str) -> _Parser:
        return lambda data: self._keep(name, data)

    def _guarded(self, name: str, parser: _Parser) -> _Parser:
        def parse(data: object) -> None:
            if name not in READ_BY_US:
                try:
                    parser(data)
                except (LookupError, TypeError, ValueError, AttributeError) as error:
                    if name == "READY":
                        raise ConnectionLost("Discord's greeting cannot be read: is the address really that of its API?", code="no_api") from error
                    log.info("discord.py cannot read an event of kind %s: %s", name, type(error).__name__)
            if name in READ_BY_US or name in READ_BY_BOTH:
                self._keep(name, data)

        return parse


class GatewayClient(discord.Client):
    """`events`: what came, in order. `called`: interactions, at once and apart from it, for they are answered within a second (CH-188)."""

    def __init__(self, clock: Callable[[], datetime], *, identify_pause_s: float = IDENTIFY_PAUSE_S) -> None:
        intents = discord.Intents.none()
        intents.guilds = intents.guild_messages = intents.dm_messages = intents.message_content = True  # CH-180
        super().__init__(
            intents=intents,
            allowed_mentions=discord.AllowedMentions.none(),
            max_ratelimit_timeout=WAIT_MAX_S,
            max_messages=None,
            chunk_guilds_at_startup=False,
            member_cache_flags=discord.MemberCacheFlags.none(),
            heartbeat_timeout=HEARTBEAT_LIMIT_S,
            guild_ready_timeout=0.0,  # nobody waits for its `ready`
        )
        self.events: asyncio.Queue[Raw] = asyncio.Queue()
        self.called: asyncio.Queue[discord.Interaction] = asyncio.Queue()
        self._clock = clock
        self._identify_pause_s = identify_pause_s
        self._announced = asyncio.Event()
        state = self._connection
        state.parsers = _Parsers(cast("Mapping[str, _Parser]", state.parsers), self._keep)  # the one seam that shows events before they are parsed

    def _keep(self, name: str, data: object) -> None:
        self.events.put_nowait(Raw(name, data, self._clock()))
        if name == "GUILD_CREATE":
            self._announced.set()

    async def told_of(self, guild_ids: Collection[str]) -> None:
        """Wait a while until these servers were announced, and with them who reads their channels. Those that were not are unknown for now."""
        try:
            async with asyncio.timeout(TOLD_S):
                while not all(self._knows(guild_id) for guild_id in guild_ids):
                    self._announced.clear()
                    await self._announced.wait()
        except TimeoutError:
            log.info("some servers are not there yet")

    def _knows(self, guild_id: str) -> bool:
        guild = self.get_guild(int(guild_id)) if guild_id.isdigit() else None
        return guild is not None and not guild.unavailable

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        """What the library makes known. It would make a task of its own for each handler: ours are none, they only put into a queue."""
        if event == "interaction":
            self.called.put_nowait(args[0])
        elif event == "disconnect":
            self._keep(DISCONNECT, None)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        if not initial:
            await asyncio.sleep(self._identify_pause_s)

    def acknowledged_at(self) -> float | None:
        """When a heartbeat was last answered, in seconds of `time.perf_counter`; None without a connection that was ever proven.

        The library's `latency` stays at its last value when answers stop coming: their age tells (CH-210).
        """
        keep_alive = getattr(self.ws, "_keep_alive", None)  # no public name
        if keep_alive is None or not math.isfinite(self.latency) or self.latency >= HEARTBEAT_LIMIT_S:
            return None
        at = float(keep_alive._last_ack)
        return at if time.perf_counter() - at < HEARTBEAT_LIMIT_S else None

    async def live(self, settings: DiscordSettings) -> None:
        """Log in and stay connected; raises when that ends. Broken connections are resumed, a failed attempt is the supervisor's (CH-9).

        A cancellation that comes as a connection stands is lost: the library waits for it with `asyncio.wait_for`, which then returns (Python 3.11).
        So whoever cancels this calls `end` as well.
        """
        await self.login(settings.token)
        if settings.api_base != API_BASE and not settings.gateway_url:
            _, url, _ = await self.http.get_bot_gateway()
            DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(url)
        try:
            await self.connect(reconnect=False)
        except AttributeError as error:
            if getattr(self, "ws", None) is not None:
                raise
            raise ConnectionLost("the connection closed before it began", code="broken") from error  # it asks a session that is not there yet
        raise ConnectionLost("the connection was closed", code="broken")

    async def end(self) -> None:
        """Within a second, whatever the other side does: a peer that does not answer our goodbye is left (CH-9).

        The library may have begun to close by itself, and been cancelled in it: its sockets are closed here in any case.
        """
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.close()
        except TimeoutError:
            log.info("Discord does not answer our goodbye")
        finally:
            await self.http.close()


@contextmanager
def speaking_to(settings: DiscordSettings) -> Generator[None]:
    """Set the addresses of the API, which the library keeps for the whole process.

    Raises ConnectionLost while another account of this process speaks to a different API.
    """
    wanted = (settings.api_base.rstrip("/"), settings.gateway_url)
    if any(used != wanted for used in _addresses):
        raise ConnectionLost("another Discord account of this process has a different `api_base` or `gateway_url`: all must have the same")
    _addresses.append(wanted)
    Route.BASE = wanted[0]
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(wanted[1]) if wanted[1] else _DEFAULT_GATEWAY
    try:
        yield
    finally:
        _addresses.remove(wanted)

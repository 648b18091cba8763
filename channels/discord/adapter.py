"""One bot: discord.py keeps its connection, our own tasks read what comes and store it in order, and every call ends in one outcome (CH-11)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias, TypeVar, cast

import aiohttp
import discord
from discord.http import Route

from channels.discord import history
from channels.discord.buttons import Presses
from channels.discord.client import IDENTIFY_PAUSE_S, GatewayClient, speaking_to
from channels.discord.commands import checked, fingerprint, payload
from channels.discord.convert import Setting
from channels.discord.echoes import Echoes
from channels.discord.edge import Edge
from channels.discord.fetching import LIMIT_S, download
from channels.discord.intents import INTENT_MISSING
from channels.discord.interactions import Pending
from channels.discord.outcomes import ERRORS, RECEIVING, fault_of, is_edge_block, is_limit, outcome_of, said
from channels.discord.places import Places
from channels.discord.position import Position
from channels.discord.reading import CURSOR, Greeted, Reader
from channels.discord.sending import Courier, Note, channel_id, english_note, unsendable
from channels.discord.settings import DiscordSettings
from channels.errors import ConnectionLost, CredentialRefused
from channels.given import ReadFile, no_file
from channels.message import Account, Address, Attachment
from channels.port import Cursor, Deliver, NeedsOperator, OutboundPart, Refused, SendOutcome, Sent, TryLater

log = logging.getLogger(__name__)

COMMANDS = "commands"  # the cursor that says which commands are registered
PROBE_S, PROBE_LIMIT_S, PROBES_FAILED_MAX = 60.0, 10.0, 3
CHECK_S = 1.0
DEFER_S = 2.5  # the platform allows 3
SYNC_S = 30.0

LoadCursor: TypeAlias = Callable[[str], Awaitable[str]]
_T = TypeVar("_T")


async def _no_cursor(_name: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class _Live:
    """What calls need, from the first greeting to the end of the connection."""

    client: GatewayClient
    courier: Courier
    files: aiohttp.ClientSession
    me: str


class DiscordChannel:
    """Has `Editing`, `Typing`, `Reactions`, `Reconcile`, `Managers` and `Fetching`."""

    def __init__(
        self,
        settings: DiscordSettings,
        *,
        account: Account | None = None,
        load_cursor: LoadCursor = _no_cursor,
        read_file: ReadFile = no_file,
        note: Note = english_note,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        check_s: float = CHECK_S,
        probe_s: float = PROBE_S,
        identify_pause_s: float = IDENTIFY_PAUSE_S,
    ) -> None:
        """`load_cursor`: what was stored last under a cursor's name (`seen`, `commands`), empty for nothing; asked at every connect.

        `read_file`: the bytes of a stored attachment; may raise OSError. `note`: a sentence for the reader of a text, by its key.
        """
        self.account = account or Account(channel="discord")
        self.capabilities = settings.capabilities
        self._settings = settings
        self._load_cursor = load_cursor
        self._read_file = read_file
        self._note = note
        self._clock = clock
        self._check_s = check_s
        self._probe_s = probe_s
        self._identify_pause_s = identify_pause_s
        self._edge = Edge(clock)
        self._echoes = Echoes(clock)
        self._proven_at: datetime | None = None
        self._live: _Live | None = None
        self._refused: NeedsOperator | None = None  # why the token is no good

    @property
    def proven_at(self) -> datetime | None:
        return self._proven_at

    # In

    async def run(self, deliver: Deliver) -> None:
        client = self.new_client()
        try:
            with speaking_to(self._settings):
                async with asyncio.TaskGroup() as group:
                    group.create_task(self.receive(client, deliver), name=f"{self.account} events")
                    group.create_task(client.live(self._settings), name=f"{self.account} connection")
                    try:
                        await asyncio.Event().wait()  # until one of them ends
                    finally:
                        await client.end()  # not after the group: inside, a cancellation may be lost (see `live`), but a closed client ends
        except ExceptionGroup as errors:
            raise self._fault(errors) from errors

    def new_client(self) -> GatewayClient:
        return GatewayClient(self._clock, identify_pause_s=self._identify_pause_s)

    async def receive(self, client: GatewayClient, deliver: Deliver) -> None:
        """Take in what a client hears, until cancelled. Raises a group of what went wrong."""
        position = Position.parse(await self._load_cursor(CURSOR))
        pending, presses, places = Pending(self._clock), Presses(), Places(client)
        courier = Courier(client, pending, note=self._note)

        def setting(me: str) -> Setting:
            return Setting(
                account=self.account,
                me=me,
                application_id=str(client.application_id or ""),
                prefix=self._settings.prefix,
                names=places.names,
                role_of=places.role_of,
                echoed=self._echoes.heard,
            )

        try:
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=LIMIT_S)) as files, asyncio.TaskGroup() as group:

                def greeted(greeting: Greeted) -> None:
                    if self._live is None:
                        log.info("%s is connected as %s", self.account, greeting.name)
                        group.create_task(self._start(client, deliver), name=f"{self.account} commands")
                    self._live = _Live(client, courier, files, greeting.setting.me)

                reader = Reader(
                    client, deliver, setting=setting, position=position, places=places, pending=pending, presses=presses,
                    clock=self._clock, on_greeting=greeted, on_heard=self._heard,
                )  # fmt: skip
                group.create_task(reader.run(), name=f"{self.account} reader")
                group.create_task(self._defer_all(client, pending, presses, group), name=f"{self.account} interactions")
                group.create_task(self._watch(client, pending), name=f"{self.account} watch")
        finally:
            self._live = None

    def _heard(self) -> None:
        self._proven_at = self._clock()

    def _fault(self, errors: ExceptionGroup[Exception]) -> Exception:
        """What ended the connection: one error, with those of Discord in our words."""
        leaves = list(_leaves(errors))
        faults = [fault_of(leaf) if isinstance(leaf, RECEIVING) else leaf for leaf in leaves]
        refused = next((fault for fault in faults if isinstance(fault, CredentialRefused)), None)
        if refused is not None:
            self._refused = NeedsOperator(str(refused), refused.code)
        return refused or faults[0]

    # What goes on beside it

    async def _start(self, client: GatewayClient, deliver: Deliver) -> None:
        """Once in each life: say what is amiss, and register the commands when their list changed (CH-180, CH-189)."""
        flags = client.application_flags
        if not (flags.gateway_message_content or flags.gateway_message_content_limited):
            log.warning("%s: %s", self.account, INTENT_MISSING)
        if not self._settings.commands or client.application_id is None:
            return
        kept, lines = checked(self._settings.commands)
        for line in lines:
            log.warning("%s: slash commands: %s", self.account, line)
        body = payload(kept)
        print_of = fingerprint(body)
        if await self._load_cursor(COMMANDS) == print_of:
            return
        try:
            async with asyncio.timeout(SYNC_S):
                await client.http.bulk_upsert_global_commands(client.application_id, body)
        except ERRORS as error:
            log.warning("%s: the slash commands could not be registered, those that are stay: %s", self.account, said(error))
            return
        await deliver([], Cursor(name=COMMANDS, value=print_of))

    async def _defer_all(self, client: GatewayClient, pending: Pending, presses: Presses, group: asyncio.TaskGroup) -> None:
        while True:
            interaction = await client.called.get()
            pending.expect(interaction)
            group.create_task(self._defer(interaction, pending, presses), name=f"{self.account} interaction")

    async def _defer(self, interaction: discord.Interaction, pending: Pending, presses: Presses) -> None:
        """At once, whatever else is going on: the platform gives three seconds (CH-188)."""
        is_command = interaction.type is discord.InteractionType.application_command
        deferred = False
        try:
            async with asyncio.timeout(DEFER_S):
                await interaction.response.defer(thinking=is_command)
            deferred = is_command
        except ERRORS as error:
            log.info("an interaction could not be deferred, its answer will be a message: %s", said(error))
        finally:
            pending.settle(interaction, deferred=deferred)
        if interaction.type is discord.InteractionType.component:
            await presses.conclude(interaction)

    async def _watch(self, client: GatewayClient, pending: Pending) -> None:
        """Proof that it hears: heartbeats answered of late, and an API that answers (CH-210)."""
        loop = asyncio.get_running_loop()
        acknowledged: float | None = None
        probe_at, failed = loop.time() + self._probe_s, 0
        while True:
            await asyncio.sleep(self._check_s)
            newest = client.acknowledged_at()
            if newest is not None and newest != acknowledged and self._proven_at is not None:
                acknowledged = newest
                self._heard()
            for interaction in pending.overdue():
                await _aside(interaction.delete_original_response(), "taking back the sign that we think")
            if loop.time() >= probe_at:
                failed = 0 if await self._probe(client) else failed + 1
                if failed >= PROBES_FAILED_MAX:
                    raise ConnectionLost(f"Discord's API did not answer {failed} times in a row", code="unreachable")
                probe_at = loop.time() + self._probe_s

    async def _probe(self, client: GatewayClient) -> bool:
        try:
            async with asyncio.timeout(PROBE_LIMIT_S):
                await client.http.request(Route("GET", "/users/@me"))
        except discord.RateLimited:
            return True  # it answers
        except ERRORS as error:
            fault = fault_of(error)
            if isinstance(fault, CredentialRefused):
                raise fault from error
            log.info("%s: the API did not answer: %s", self.account, said(error))
            return is_limit(error)
        return True

    # Out

    async def send(self, part: OutboundPart) -> SendOutcome:
        if reason := unsendable(part):
            return self._stopped() or Refused(reason)

        try:
            data = [await self._read_file(file) for file in part.attachments]
        except OSError as error:
            return Refused(f"a file cannot be read: {error.strerror or type(error).__name__}")

        async def call(live: _Live) -> Sent:
            self._echoes.say(part.text)
            return Sent(await live.courier.send(part, data))

        return await self._called(call)

    async def edit(self, address: Address, message_id: str, part: OutboundPart) -> SendOutcome:
        if reason := unsendable(part):
            return self._stopped() or Refused(reason)
        if not message_id.isdigit():
            return Refused("that is no message", gone=True)

        async def call(live: _Live) -> Sent:
            await live.courier.edit(part, message_id)
            return Sent((message_id,))

        return await self._called(call)

    async def react(self, address: Address, message_id: str, emoji: str) -> SendOutcome:
        if not message_id.isdigit():
            return Refused("that is no message", gone=True)

        async def call(live: _Live) -> Sent:
            await live.client.http.add_reaction(int(_where(address)), int(message_id), emoji)
            return Sent()

        return await self._called(call)

    async def _called(self, call: Callable[[_Live], Awaitable[Sent]]) -> SendOutcome:
        """One call, to its one outcome."""
        if outcome := self._stopped():
            return outcome
        live = self._live
        if live is None:
            return TryLater()
        try:
            sent = await call(live)
        except ERRORS as error:
            if is_edge_block(error):
                wait_s = self._edge.close()
                log.error(
                    "%s: the network in front of Discord blocks us; nothing is sent for %g s. If it lasts, look at what else calls Discord from "
                    "this address",
                    self.account, wait_s,
                )  # fmt: skip
                return TryLater(wait_s, whole_account=True)
            outcome = outcome_of(error)
            if isinstance(outcome, NeedsOperator):
                self._refused = outcome
            return outcome
        except RuntimeError:
            if not live.client.is_closed():
                raise
            return TryLater()  # the connection was ended before the call could leave
        self._edge.open()
        return sent

    def _stopped(self) -> SendOutcome | None:
        if self._refused is not None:
            return self._refused
        wait_s = self._edge.wait_s()
        return TryLater(wait_s, whole_account=True) if wait_s else None

    # Signs and questions

    async def typing(self, address: Address, on: bool) -> None:
        """The sign fades by itself."""
        if on:
            await self._ask(lambda live: live.client.http.send_typing(int(_where(address))), "typing was not shown")

    async def find(self, part: OutboundPart, since: datetime) -> tuple[str, ...] | None:
        """Our own message with these words, sent since then. A text that Discord would not show as it is was cut anew, and is not found."""
        found = await self._ask(
            lambda live: history.sent(live.client.http, channel_id(part), part.text, since=since, me=live.me), "the history does not open"
        )
        return (found,) if found else None

    async def manages(self, address: Address, sender_id: str) -> bool:
        """In a direct chat nobody is an administrator. Who may manage the server is (CH-118)."""

        async def look(live: _Live) -> bool:
            place = live.client.get_channel(int(_where(address)))
            if place is None and any(guild.unavailable for guild in live.client.guilds):  # a moment after the start: a "no" would be kept
                raise ConnectionLost("Discord has not told all servers yet")
            guild = getattr(place, "guild", None)
            if not isinstance(guild, discord.Guild) or not sender_id.isdigit():
                return False
            try:
                member = await guild.fetch_member(int(sender_id))
            except discord.NotFound:
                return False
            may = member.guild_permissions
            return may.administrator or may.manage_guild

        return await self._ask(look, "Discord does not say who manages the server")

    async def fetch(self, attachment: Attachment, max_bytes: int) -> bytes:
        return await self._ask(lambda live: download(live.client, live.files, attachment, max_bytes), "the file did not arrive")

    async def _ask(self, call: Callable[[_Live], Awaitable[_T]], what: str) -> _T:
        """A question that may go unanswered; ConnectionLost then."""
        live = self._live
        if live is None:
            raise ConnectionLost("not connected to Discord")
        try:
            return await call(live)
        except ERRORS as error:
            raise ConnectionLost(f"{what}: {said(error)}") from error


def _where(address: Address) -> str:
    return address.thread_id or address.chat_id


def _leaves(errors: ExceptionGroup[Exception]) -> Iterator[Exception]:
    for error in errors.exceptions:
        if isinstance(error, ExceptionGroup):
            yield from _leaves(cast("ExceptionGroup[Exception]", error))
        else:
            yield error


async def _aside(call: Awaitable[object], what: str) -> None:
    try:
        async with asyncio.timeout(DEFER_S):
            await call
    except ERRORS as error:
        log.info("%s failed: %s", what, said(error))

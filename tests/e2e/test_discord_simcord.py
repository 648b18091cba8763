"""The Discord adapter against a Discord that we did not write: simcord, an in-process server with Discord's own permissions and error codes.

It drives the real discord.py below our client, and refuses calls and fields that it does not know.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from discord.gateway import DiscordWebSocket
from discord.http import Route

from channels.discord.adapter import DiscordChannel
from channels.discord.settings import DiscordSettings
from channels.message import Account, Address, ChatType, EventKind, InboundEvent
from channels.port import OutboundPart, Refused, Sent, TryLater
from tests.contracts.channel_contract import Journal, until

simcord = pytest.importorskip("simcord", reason="simcord is not installed: the adapter is not tried against a Discord that we did not write")

ACCOUNT = Account(channel="discord")


@pytest.fixture(autouse=True)
def addresses() -> Iterator[None]:
    """The library's addresses are the process's: other tests have set theirs."""
    before = (Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY)
    Route.BASE = "https://discord.com/api/v10"
    yield
    Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = before


@asynccontextmanager
async def attached(journal: Journal) -> AsyncGenerator[tuple[DiscordChannel, Any]]:
    """The adapter's own client in simcord's hands, and the adapter reading what it hears."""
    channel = DiscordChannel(DiscordSettings(token="simcord"), account=ACCOUNT, check_s=0.05)
    client = channel.new_client()
    async with simcord.run(client) as env:
        reading = asyncio.ensure_future(channel.receive(client, journal))  # in simcord's context, which holds its side of interactions
        try:
            await until(lambda: channel.proven_at is not None or reading.done())
            yield channel, env
        finally:
            reading.cancel()
            await asyncio.wait([reading])
    if not reading.cancelled() and (error := reading.exception()) is not None:
        raise error


def part(text: str, address: Address, *, part_id: str = "p1", **more: Any) -> OutboundPart:
    return OutboundPart(part_id=part_id, address=address, text=text, **more)


async def heard(journal: Journal, count: int) -> InboundEvent:
    """The newest event, once people did so many things; that we came into a server, or think, is told besides."""

    def said() -> list[InboundEvent]:
        return [event for event in journal.events if event.kind is not EventKind.MEMBERSHIP and (event.text or not event.is_us)]

    await until(lambda: len(said()) >= count)
    return said()[-1]


@pytest.mark.rule("CH-20", "CH-36", "CH-37", "CH-187")
async def test_a_direct_chat_goes_both_ways() -> None:
    journal = Journal()
    async with attached(journal) as (channel, env):
        env.create_guild()
        ann = env.create_user("ann")
        asked = await ann.send_dm("good morning")
        event = await heard(journal, 1)
        assert (event.chat_type, event.text, event.mentioned, event.sender_id) == (ChatType.DM, "good morning", True, str(ann.id))
        sent = await channel.send(part("hello", event.address, reply_to=event.platform_message_id))
        assert isinstance(sent, Sent)
        shown = ann.dm_channel.last_message
        assert (shown.content, str(shown.id), shown.reference.message_id) == ("hello", sent.platform_ids[0], asked.id)
        await channel.typing(event.address, True)
        assert isinstance(await channel.edit(event.address, sent.platform_ids[0], part("hello again", event.address)), Sent)
        assert ann.dm_channel.last_message.content == "hello again"
        assert isinstance(await channel.react(event.address, event.platform_message_id, "👀"), Sent)


@pytest.mark.rule("CH-28", "CH-26", "CH-120", "CH-183")
async def test_a_server_with_mentions_threads_edits_and_our_own_words() -> None:
    journal = Journal()
    async with attached(journal) as (channel, env):
        guild = env.create_guild()
        general = guild.create_text_channel("general")
        ann = guild.add_member(env.create_user("ann"))
        me = env.bot.user.id
        spoken = await ann.send(general, f"<@{me}> tea?")
        event = await heard(journal, 1)
        assert (event.chat_type, event.text, event.mentioned, event.chat_id) == (ChatType.GROUP, "tea?", True, str(general.id))
        assert event.space_id == str(guild.id)
        await ann.edit(spoken, f"<@{me}> coffee?")
        edited = await heard(journal, 2)
        assert (edited.kind, edited.text) == (EventKind.EDITED, "coffee?")
        await ann.delete(spoken)
        assert (await heard(journal, 3)).kind is EventKind.DELETED
        assert isinstance(await channel.send(part("@everyone tea", event.address)), Sent)
        ours = await heard(journal, 4)
        assert (ours.is_us, ours.is_bot) == (True, True)
        assert not general.last_message.mention_everyone


@pytest.mark.case("DC-01")
@pytest.mark.rule("CH-32", "CH-38", "CH-33", "CH-34")
async def test_discords_own_errors_have_their_outcomes() -> None:
    journal = Journal()
    async with attached(journal) as (channel, env):
        guild = env.create_guild()
        general = guild.create_text_channel("general")
        here = Address(account=ACCOUNT, chat_id=str(general.id))
        assert isinstance(await channel.send(part("x" * 2000, here)), Sent)
        assert isinstance(await channel.send(part("x" * 2001, here, part_id="p2")), Refused)
        gone = await channel.edit(here, "1100000000000000777", part("x", here))
        assert isinstance(gone, Refused)
        assert gone.gone
        nowhere = await channel.send(part("x", Address(account=ACCOUNT, chat_id="1100000000000000778"), part_id="p3"))
        assert isinstance(nowhere, Refused)
        env.inject_error("POST", f"/channels/{general.id}/messages", status=403, code=50013, message="Missing Permissions")
        refused = await channel.send(part("x", here, part_id="p4"))
        assert isinstance(refused, Refused)
        assert "Send Messages" in refused.reason
        assert not isinstance(refused, TryLater)


@pytest.mark.case("DC-08")
@pytest.mark.rule("CH-188", "CH-189")
async def test_a_slash_command_is_registered_deferred_and_answered_by_edit() -> None:
    journal = Journal()
    async with attached(journal) as (channel, env):
        guild = env.create_guild()
        general = guild.create_text_channel("general")
        ann = guild.add_member(env.create_user("ann"))
        await env.bot.http.bulk_upsert_global_commands(env.bot.application_id, BODY)
        result = await ann.slash(general, "status", text="all")
        event = await heard(journal, 1)
        assert (event.text, event.chat_id, event.sender_id) == ("/status all", str(general.id), str(ann.id))
        outcome = await channel.send(part("all is well", event.address, part_id=f"{event.delivery_id}.answer.1"))
        assert isinstance(outcome, Sent)
        assert general.last_message.content == "all is well"
        assert result is not None


BODY: list[dict[str, Any]] = [
    {"name": "status", "type": 1, "description": "how it is", "options": [{"name": "text", "type": 3, "description": "…", "required": False}]}
]

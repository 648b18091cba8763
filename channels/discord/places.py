"""Where a channel is: a direct chat, a channel of a server, or a thread of one; and what things are called there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import discord

from channels.discord.client import GatewayClient
from channels.discord.content import Names
from channels.discord.convert import DIRECT, THREADS, channel_of, fields_of, guild_of
from channels.discord.payloads import Channel
from channels.discord.position import Place
from channels.discord.visibility import is_open
from channels.newest import keep_newest

KEPT_MAX = 2000
PRIVATE_THREAD = 12  # a place of its own: who reads its parent does not read it (WD-12)


class Places:
    """Asks the library's cache first, then the platform. `of` raises the library's errors when neither can be asked."""

    def __init__(self, client: GatewayClient) -> None:
        self._client = client
        self._known: dict[str, Place] = {}
        self.names = Names(channel=self._channel_name, role=self._role_name)

    async def of(self, raw: object) -> Place | None:
        """Where a raw event happened; None when it does not say."""
        channel_id, guild_id = channel_of(raw), guild_of(raw)
        if not channel_id.isdigit():
            return None
        return self.as_it_is(await self._found(raw, channel_id, guild_id) if guild_id else Place(channel_id=channel_id))

    def as_it_is(self, place: Place) -> Place:
        """The same place with who reads it now, and what it is called now."""
        return replace(
            place,
            is_open=is_open(self._client, place),
            guild_name=self._guild_name(place.guild_id),
            parent_name=self._channel_name(place.parent_id),
            name=(self._channel_name(place.channel_id) or place.name) if place.guild_id else "",
        )

    async def _found(self, raw: object, channel_id: str, guild_id: str) -> Place:
        if told := fields_of(fields_of(raw).get("channel")):  # an interaction brings its channel along
            return self._keep(_placed({**told, "id": channel_id, "guild_id": guild_id}) or Place(channel_id=channel_id, guild_id=guild_id))
        return self._known.get(channel_id) or self._cached(channel_id, guild_id) or await self._asked(channel_id, guild_id)

    def role_of(self, guild_id: str) -> str:
        """The role that is the bot itself."""
        guild = self._client.get_guild(int(guild_id)) if guild_id.isdigit() else None
        role = guild.self_role if guild else None
        return str(role.id) if role else ""

    def _cached(self, channel_id: str, guild_id: str) -> Place | None:
        cached = self._client.get_channel(int(channel_id))
        if cached is None:
            return None
        parent_id = str(cached.parent_id) if isinstance(cached, discord.Thread) and not cached.is_private() else ""
        return self._keep(Place(channel_id=channel_id, guild_id=guild_id, parent_id=parent_id))

    async def _asked(self, channel_id: str, guild_id: str) -> Place:
        """A thread that was made before we came is in no cache. What we may not see is taken for a plain channel."""
        try:
            answer: Any = await self._client.http.get_channel(int(channel_id))
        except (discord.Forbidden, discord.NotFound):
            answer = None
        return self._keep(_placed(answer) or Place(channel_id=channel_id, guild_id=guild_id))

    def _keep(self, place: Place) -> Place:
        self._known[place.channel_id] = place
        keep_newest(self._known, KEPT_MAX)
        return place

    def _channel_name(self, channel_id: str) -> str:
        return str(getattr(self._client.get_channel(int(channel_id)), "name", "")) if channel_id.isdigit() else ""

    def _guild_name(self, guild_id: str) -> str:
        guild = self._client.get_guild(int(guild_id)) if guild_id.isdigit() else None
        return guild.name if guild else ""

    def _role_name(self, guild_id: str, role_id: str) -> str:
        guild = self._client.get_guild(int(guild_id)) if guild_id.isdigit() else None
        role = guild.get_role(int(role_id)) if guild else None
        return role.name if role else ""


def _placed(raw: object) -> Place | None:
    try:
        channel = Channel.model_validate(raw)
    except ValueError:
        return None
    if channel.type in DIRECT:
        return Place(channel_id=channel.id)
    shared = channel.type in THREADS and channel.type != PRIVATE_THREAD
    return Place(channel_id=channel.id, guild_id=channel.guild_id, parent_id=channel.parent_id if shared else "", name=channel.name)

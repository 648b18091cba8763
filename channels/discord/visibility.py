"""Whether all members of a server can read a channel, now and what was written before (WD-12). What is unclear counts as restricted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import discord

from channels.discord.position import Place

READS = discord.Permissions(view_channel=True, read_message_history=True).value
ADMINISTRATOR = discord.Permissions(administrator=True).value
TALK_KINDS = (discord.ChannelType.text, discord.ChannelType.news, discord.ChannelType.forum, discord.ChannelType.media)


@dataclass(frozen=True, slots=True)
class Overwrite:
    """What a channel grants or takes away from a role or a member, as bits of permissions."""

    of: int
    allow: int = 0
    deny: int = 0


def all_read(everyone: int, granted: int, overwrites: Iterable[Overwrite]) -> bool:
    """Pure. `everyone`: the id of the role that all members have; `granted`: what it may on the whole server."""
    if granted & ADMINISTRATOR:
        return True
    for each in overwrites:
        if each.of == everyone:
            granted = granted & ~each.deny | each.allow
        elif each.deny & READS:
            return False  # some member does not read it
    return granted & READS == READS


def is_open(client: discord.Client, place: Place) -> bool:
    """As the library knows it now: roles and channels change while we run. A thread that is not private is read by whoever reads its channel."""
    number = place.parent_id or place.channel_id
    channel = client.get_channel(int(number)) if place.guild_id and number.isdigit() else None
    if not isinstance(channel, discord.TextChannel | discord.ForumChannel) or channel.type not in TALK_KINDS or channel.nsfw:
        return False  # a channel for adults is closed to some
    role = channel.guild.get_role(channel.guild.id)
    if role is None:
        return False
    pairs = ((target.id, overwrite.pair()) for target, overwrite in channel.overwrites.items())
    return all_read(role.id, role.permissions.value, (Overwrite(of, allow.value, deny.value) for of, (allow, deny) in pairs))

"""What a message holds: its words in readable form, its files, and a line of text for everything else (CH-5, CH-7, CH-182)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from channels.discord.payloads import Content, File, Message
from channels.message import Attachment

# Somebody, a role, a channel, an emoji of a server: written as numbers that only the client can read.
_NAMED = re.compile(r"<(?:@!?(?P<user>\d+)|@&(?P<role>\d+)|#(?P<channel>\d+)|a?:(?P<emoji>\w+):\d+)>")


def _nameless(*_: str) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """How what is mentioned is called; empty for what is not known. `role` takes the server's id and the role's."""

    channel: Callable[[str], str] = _nameless
    role: Callable[[str, str], str] = _nameless


def words(held: Content, *, names: Names, guild_id: str = "", ours: Iterable[str] = ()) -> str:
    """The words with readable names for everybody mentioned; what mentions us (`ours`: ids) is taken out wherever it stands (CH-3, CH-182)."""
    called = {user.id: user.name for user in held.mentions}
    us = frozenset(ours)

    def readable(found: re.Match[str]) -> str:
        if found["emoji"]:
            return f":{found['emoji']}:"
        if found["channel"]:
            return f"#{names.channel(found['channel']) or found['channel']}"
        if (found["user"] or found["role"]) in us:
            return ""
        name = called.get(found["user"]) if found["user"] else names.role(guild_id, found["role"])
        return f"@{name or found['user'] or found['role']}"

    text = _NAMED.sub(readable, held.content)
    return text.strip() if text != held.content and mentions(held, us) else text


def mentions(held: Content, ids: frozenset[str]) -> bool:
    """Does the text name one of these ids, or the client say that it does?"""
    return any((found["user"] or found["role"]) in ids for found in _NAMED.finditer(held.content)) or any(user.id in ids for user in held.mentions)


def stand_ins(held: Content) -> list[str]:
    """A line for each thing that is neither words nor a file."""
    lines = [f"[sticker {sticker.name}]" for sticker in held.sticker_items]
    if held.poll is not None:
        answers = " / ".join(answer.poll_media.text for answer in held.poll.answers)
        lines.append(f"[poll {held.poll.question.text}: {answers}]")
    if not held.content:  # what only decorates a link that stands in the text is not told again
        lines += [f"[embed {told}]" for embed in held.embeds if (told := ": ".join(filter(None, (embed.title, embed.description or embed.url))))]
    return lines


def whole(held: Content, *, names: Names, guild_id: str = "", ours: Iterable[str] = ()) -> str:
    """Stand-ins, then words."""
    return "\n".join(line for line in (*stand_ins(held), words(held, names=names, guild_id=guild_id, ours=ours)) if line)


def files(message: Message) -> tuple[Attachment, ...]:
    """Every file, forwarded ones too. The address of a file is signed and soon void: the reference is where to ask for a new one (CH-1)."""
    held = [*message.attachments, *(file for snapshot in message.message_snapshots for file in snapshot.message.attachments)]
    return tuple(_attachment(file, message) for file in held)


def _attachment(file: File, message: Message) -> Attachment:
    mime = file.content_type.partition(";")[0] or "application/octet-stream"
    main = mime.partition("/")[0]
    return Attachment(
        kind=main if main in ("image", "audio", "video", "text") else "file",
        name=file.filename,
        mime=mime,
        size=file.size,
        fetch_ref=f"{message.channel_id}/{message.id}/{file.id}",
    )

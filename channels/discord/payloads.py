"""The parts of an event that we read, as Discord sends them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from channels.frame import Frame, Id


class User(Frame):
    id: Id
    username: str = ""
    global_name: str = ""
    bot: bool = False

    @property
    def name(self) -> str:
        return self.global_name or self.username or self.id


class Member(Frame):
    nick: str = ""
    user: User | None = None


class File(Frame):
    id: Id
    filename: str = "file"
    content_type: str = ""
    size: int = 0
    url: str = ""


class Sticker(Frame):
    name: str = ""


class Embed(Frame):
    title: str = ""
    description: str = ""
    url: str = ""


class PollMedia(Frame):
    text: str = ""


class PollAnswer(Frame):
    poll_media: PollMedia = PollMedia()


class Poll(Frame):
    question: PollMedia = PollMedia()
    answers: tuple[PollAnswer, ...] = ()


class Content(Frame):
    """What a message holds; of a forwarded one nothing else is told."""

    content: str = ""
    attachments: tuple[File, ...] = ()
    embeds: tuple[Embed, ...] = ()
    mentions: tuple[User, ...] = ()
    sticker_items: tuple[Sticker, ...] = ()
    poll: Poll | None = None


class Snapshot(Frame):
    message: Content


class Reference(Frame):
    """`type`: 0 an answer to a message, 1 a forwarded one."""

    type: int = 0
    message_id: Id = ""
    channel_id: Id = ""


class Message(Content):
    id: Id
    channel_id: Id
    author: User
    type: int = 0
    guild_id: Id = ""
    member: Member | None = None
    webhook_id: Id = ""
    application_id: Id = ""
    timestamp: datetime | None = None
    edited_timestamp: datetime | None = None
    mention_roles: tuple[Id, ...] = ()
    message_reference: Reference | None = None
    referenced_message: Message | None = None
    message_snapshots: tuple[Snapshot, ...] = ()


class Deletion(Frame):
    """`id` of one message, or `ids` of many."""

    id: Id = ""
    ids: tuple[Id, ...] = ()
    channel_id: Id
    guild_id: Id = ""


class Channel(Frame):
    """`type` 10, 11 and 12 are threads, 1 and 3 direct chats."""

    id: Id
    type: int
    guild_id: Id = ""
    parent_id: Id = ""
    name: str = ""


class Option(Frame):
    """A word of a slash command: `value`, or the options of a subcommand."""

    name: str
    type: int
    value: str | int | float | bool = ""
    options: tuple[Option, ...] = ()


class CommandData(Frame):
    name: str = ""
    custom_id: str = ""
    options: tuple[Option, ...] = ()


class Interaction(Frame):
    id: Id
    type: Literal[2, 3]  # a slash command, a button
    data: CommandData
    channel_id: Id
    channel: Channel | None = None
    guild_id: Id = ""
    member: Member | None = None
    user: User | None = None
    message: Message | None = None
    locale: str = ""


class Guild(Frame):
    id: Id
    unavailable: bool = False


class Ready(Frame):
    user: User
    guilds: tuple[Guild, ...] = ()

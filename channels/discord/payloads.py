"""The parts of an event that we read, as Discord sends them. Unknown fields are left alone; a wrong type or a missing field raises.

Ids pass 2^53 and are texts (CH-1); a server that sends them as numbers is understood.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict


def _id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("an id is a text or a whole number")
    return str(value)


Id: TypeAlias = Annotated[str, BeforeValidator(_id)]
OptionalId: TypeAlias = Annotated[str, BeforeValidator(lambda value: "" if value is None else _id(value))]
OptionalText: TypeAlias = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]


class Frame(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class User(Frame):
    id: Id
    username: str = ""
    global_name: OptionalText = ""
    bot: bool = False

    @property
    def name(self) -> str:
        return self.global_name or self.username or self.id


class Member(Frame):
    nick: OptionalText = ""
    user: User | None = None


class File(Frame):
    id: Id
    filename: str = "file"
    content_type: OptionalText = ""
    size: int = 0
    url: str = ""


class Sticker(Frame):
    name: str = ""


class Embed(Frame):
    title: OptionalText = ""
    description: OptionalText = ""
    url: OptionalText = ""


class PollMedia(Frame):
    text: OptionalText = ""


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
    message_id: OptionalId = ""
    channel_id: OptionalId = ""


class Message(Content):
    id: Id
    channel_id: Id
    author: User
    type: int = 0
    guild_id: OptionalId = ""
    member: Member | None = None
    webhook_id: OptionalId = ""
    application_id: OptionalId = ""
    timestamp: datetime | None = None
    edited_timestamp: datetime | None = None
    mention_roles: tuple[Id, ...] = ()
    message_reference: Reference | None = None
    referenced_message: Message | None = None
    message_snapshots: tuple[Snapshot, ...] = ()


class Deletion(Frame):
    """`id` of one message, or `ids` of many."""

    id: OptionalId = ""
    ids: tuple[Id, ...] = ()
    channel_id: Id
    guild_id: OptionalId = ""


class Channel(Frame):
    """`type` 10, 11 and 12 are threads, 1 and 3 direct chats."""

    id: Id
    type: int
    guild_id: OptionalId = ""
    parent_id: OptionalId = ""
    name: OptionalText = ""


class Option(Frame):
    """A word of a slash command: `value`, or the options of a subcommand."""

    name: str
    type: int
    value: str | int | float | bool = ""
    options: tuple[Option, ...] = ()


class CommandData(Frame):
    name: OptionalText = ""
    custom_id: OptionalText = ""
    options: tuple[Option, ...] = ()


class Interaction(Frame):
    id: Id
    type: Literal[2, 3]  # a slash command, a button
    data: CommandData
    channel_id: Id
    channel: Channel | None = None
    guild_id: OptionalId = ""
    member: Member | None = None
    user: User | None = None
    message: Message | None = None
    locale: OptionalText = ""


class Guild(Frame):
    id: Id
    unavailable: bool = False


class Ready(Frame):
    user: User
    guilds: tuple[Guild, ...] = ()

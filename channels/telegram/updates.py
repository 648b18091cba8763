"""The parts of an update that we read, as the Bot API sends them. Unknown fields are left alone; a wrong type or a missing field raises.

Telegram leaves out what is not there; some compatible servers say null, which is the same.
"""

from __future__ import annotations

from pydantic import Field

from channels.frame import Frame, Id


class User(Frame):
    id: Id
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""
    language_code: str = ""

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}".strip() or self.username or self.id


class Chat(Frame):
    id: Id
    type: str
    title: str = ""
    username: str = ""
    is_forum: bool = False


class Entity(Frame):
    """Offset and length in UTF-16 units."""

    type: str
    offset: int
    length: int
    user: User | None = None


class File(Frame):
    """A file of any kind; which fields are set depends on the kind."""

    file_id: str = ""
    file_name: str = ""
    mime_type: str = ""
    file_size: int = 0
    duration: int = 0
    width: int = 0
    height: int = 0
    title: str = ""
    performer: str = ""
    emoji: str = ""


class Location(Frame):
    latitude: float
    longitude: float


class Venue(Frame):
    location: Location
    title: str = ""
    address: str = ""


class Contact(Frame):
    phone_number: str = ""
    first_name: str = ""
    last_name: str = ""


class PollOption(Frame):
    text: str = ""


class Poll(Frame):
    question: str = ""
    options: tuple[PollOption, ...] = ()


class Dice(Frame):
    emoji: str = ""
    value: int = 0


class Game(Frame):
    title: str = ""


class Quote(Frame):
    text: str = ""


class Topic(Frame):
    """A notice that a topic was made, or got another name or picture."""

    name: str = ""


class ExternalReply(Frame):
    """What was answered stands in another chat."""

    message_id: Id = ""


class Message(Frame):
    message_id: Id
    chat: Chat
    sender: User | None = Field(default=None, alias="from")
    sender_chat: Chat | None = None
    author_signature: str = ""
    date: int = 0
    edit_date: int = 0
    message_thread_id: Id = ""
    is_topic_message: bool = False
    is_automatic_forward: bool = False
    media_group_id: str = ""
    forward_origin: object = None
    reply_to_message: Message | None = None
    external_reply: ExternalReply | None = None
    quote: Quote | None = None
    text: str = ""
    entities: tuple[Entity, ...] = ()
    caption: str = ""
    caption_entities: tuple[Entity, ...] = ()
    photo: tuple[File, ...] = ()
    document: File | None = None
    audio: File | None = None
    voice: File | None = None
    video: File | None = None
    animation: File | None = None
    sticker: File | None = None
    video_note: File | None = None
    location: Location | None = None
    venue: Venue | None = None
    contact: Contact | None = None
    poll: Poll | None = None
    dice: Dice | None = None
    game: Game | None = None
    story: object = None
    migrate_to_chat_id: Id = ""
    migrate_from_chat_id: Id = ""
    forum_topic_created: Topic | None = None
    forum_topic_edited: Topic | None = None


class CallbackQuery(Frame):
    id: str
    sender: User = Field(alias="from")
    message: Message | None = None
    data: str = ""


class Member(Frame):
    status: str


class ChatMemberUpdated(Frame):
    chat: Chat
    sender: User = Field(alias="from")
    date: int = 0
    new_chat_member: Member


class Update(Frame):
    update_id: Id
    message: Message | None = None
    edited_message: Message | None = None
    channel_post: Message | None = None
    edited_channel_post: Message | None = None
    callback_query: CallbackQuery | None = None
    my_chat_member: ChatMemberUpdated | None = None

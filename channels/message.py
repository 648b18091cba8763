"""What comes in and what goes out, in words that belong to no platform (CH-1).

Every value here is frozen and survives a JSON round trip unchanged: no SDK object, no open file, no address that carries a token.
Ids are strings and compared as strings; times are aware UTC.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter

T = TypeVar("T")


class EventKind(StrEnum):
    """CH-2: only `message` asks for an answer; the others correct, move or report."""

    MESSAGE = "message"
    EDITED = "edited"
    DELETED = "deleted"
    MIGRATED = "migrated"
    MEMBERSHIP = "membership"
    ACTION = "action"
    UNKNOWN = "unknown"


class ChatType(StrEnum):
    DM = "dm"
    GROUP = "group"
    THREAD = "thread"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One configured bot of one platform: adapter name and the operator's name for it (`main` unless said)."""

    channel: str
    name: str = "main"

    def __str__(self) -> str:
        return f"{self.channel}:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a chat is; its text form is also the conversation key (CH-13): `channel:account:chat[:thread]`.

    Colons and percent signs inside a platform's own ids are escaped, so the text form reads back exactly (CF-14).
    """

    account: Account
    chat_id: str
    thread_id: str = ""

    def __str__(self) -> str:
        parts = [self.account.channel, self.account.name, self.chat_id] + ([self.thread_id] if self.thread_id else [])
        return ":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts)

    @classmethod
    def parse(cls, text: str) -> Address:
        """The inverse of `str`; ValueError for anything else."""
        parts = [part.replace("%3A", ":").replace("%25", "%") for part in text.split(":")]
        if len(parts) not in (3, 4) or not all(parts):
            raise ValueError(f"not an address: {text!r} (want channel:account:chat[:thread])")
        return cls(account=Account(channel=parts[0], name=parts[1]), chat_id=parts[2], thread_id=parts[3] if len(parts) == 4 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file of a message. Exactly one of `fetch_ref` (the adapter can fetch it) and `stored_path` (under the attachments folder) is set."""

    kind: str
    name: str
    mime: str = "application/octet-stream"
    size: int = 0
    fetch_ref: str = ""
    stored_path: str = ""
    transcript: str = ""
    transcript_origin: str = ""


@dataclass(frozen=True, slots=True)
class Entity:
    """One stretch of formatting beside a text (CH-138): `offset` and `length` in UTF-16 units, `type` in the Bot API's words."""

    type: str
    offset: int
    length: int
    url: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """A button below one of our messages: `label` for people, `data` the key that a press brings back, at most 64 bytes (CH-159)."""

    label: str
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyTo:
    """The message a person answered: `excerpt` at most 500 characters, `quote` the fragment they chose, if any; `author_name` is shown only."""

    message_id: str
    author_is_us: bool = False
    excerpt: str = ""
    quote: str = ""
    author_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundEvent:
    """One thing that happened on a platform (the field table of CH-1)."""

    account: Account
    kind: EventKind
    platform_event_id: str
    chat_id: str
    delivery_id: str = ""  # ours; given by the inbox when the event is stored
    platform_message_id: str = ""
    chat_type: ChatType = ChatType.DM
    parent_chat_id: str = ""
    thread_id: str = ""
    sender_id: str = ""
    sender_name: str = ""
    is_bot: bool = False
    is_us: bool = False  # a message of our own, seen again: never answered, whatever is listed (CH-120)
    mentioned: bool = False
    reply_to: ReplyTo | None = None
    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    platform_ts: datetime | None = None
    edited_ts: datetime | None = None  # of a message that was edited before it came here: when its words became these
    received_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    hint: str = ""  # the platform's own type word; for an action, its name
    target: str = ""  # migrated: the new chat id; action: what it is about
    language: str = ""  # the client's language tag, when the platform tells
    forwarded: bool = False  # the words are somebody else's, passed on
    space_id: str = ""  # the server that a channel or thread belongs to, where the platform has such: people are let in by it
    shared_id: str = ""  # the server too, when all its members read this chat; empty: who reads it is known of the chat alone (WD-12)
    space_title: str = ""  # what its people call the server; a title is empty where the platform does not tell it, and never decides (CH-111)
    chat_title: str = ""  # of the group, or of the channel
    thread_title: str = ""  # of the topic or thread, as it is called now
    thread_made_as: str = ""  # what the thread was called when it was made: all that is known until somebody renames it

    @property
    def address(self) -> Address:
        return Address(account=self.account, chat_id=self.chat_id, thread_id=self.thread_id)


def to_json(value: object) -> dict[str, Any]:
    """A frozen value of this module as plain JSON data."""
    return cast("dict[str, Any]", _adapter(type(value)).dump_python(value, mode="json"))


def from_json(kind: type[T], data: object) -> T:
    """The inverse of `to_json`; pydantic's ValidationError when `data` is not such a value."""
    return _adapter(kind).validate_python(data, strict=False)


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def _adapter(kind: type[T]) -> TypeAdapter[T]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return cast("TypeAdapter[T]", _ADAPTERS[kind])


_SURROGATES = re.compile("[\ud800-\udfff]")
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"))  # direction marks too: keyboards add them


def clean(text: str) -> str:
    """Text hygiene at every entrance (CH-6): NUL dropped, lone surrogates become U+FFFD, line ends become LF."""
    return _SURROGATES.sub("\ufffd", text.replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n"))


def visible(text: str) -> str:
    """`text` without zero-width characters: for matching commands, and to tell blank from not (CH-6, CH-141)."""
    return text.translate(_INVISIBLE)


def is_blank(text: str) -> bool:
    return not visible(text).strip()


def safe_name(name: str) -> str:
    """A file name reduced to one harmless base name (CH-7, WP-16, WP-17): no folders, no control or direction marks, at most 120 characters.

    `file` when nothing of it is left."""
    base = re.split(r"[\\/]", clean(name))[-1]
    base = "".join(c for c in base if unicodedata.category(c) not in ("Cc", "Cf", "Co", "Cn")).strip(" .")
    stem, dot, ending = base.rpartition(".")
    if len(base) > 120:
        base = f"{stem[: 119 - len(ending)]}{dot}{ending}" if dot and len(ending) < 20 else base[:120]
    return base or "file"

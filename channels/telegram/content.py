"""What a message holds beside its words: files that can be fetched, and a line of text for everything else (CH-5, CH-7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from channels.message import Attachment
from channels.telegram.updates import File, Message

DOWNLOAD_MAX = 20_000_000  # bytes: the Bot API gives out nothing larger (CH-160)

# Notices of the chat itself: nobody said anything.
SERVICE = frozenset({
    "new_chat_members", "left_chat_member", "new_chat_title", "new_chat_photo", "delete_chat_photo", "group_chat_created",
    "supergroup_chat_created", "channel_chat_created", "message_auto_delete_timer_changed", "migrate_to_chat_id", "migrate_from_chat_id",
    "pinned_message", "successful_payment", "refunded_payment", "users_shared", "chat_shared", "connected_website", "write_access_allowed",
    "passport_data", "proximity_alert_triggered", "boost_added", "chat_background_set", "checklist_tasks_done", "checklist_tasks_added",
    "direct_message_price_changed", "forum_topic_created", "forum_topic_edited", "forum_topic_closed", "forum_topic_reopened",
    "general_forum_topic_hidden", "general_forum_topic_unhidden", "giveaway_created", "giveaway_completed", "paid_message_price_changed",
    "video_chat_scheduled", "video_chat_started", "video_chat_ended", "video_chat_participants_invited", "web_app_data", "gift", "unique_gift",
})  # fmt: skip

# Fields that are no content: who, where, when, how.
_ABOUT = frozenset(Message.model_fields) | {
    "from", "sender_boost_count", "sender_business_bot", "sender_tag", "business_connection_id", "direct_messages_topic", "reply_to_story",
    "reply_to_checklist_task_id", "via_bot", "link_preview_options", "suggested_post_info", "effect_id", "reply_markup", "forward_from",
    "forward_from_chat", "forward_date",
}  # fmt: skip


def files(message: Message) -> tuple[Attachment, ...]:
    """Every file of a message that a turn can make use of, each once. What only moves or decorates is told by `stand_ins`."""
    found = [_photo(message)] if message.photo else []
    if message.animation is None:  # the same file comes once more as a document, for old clients
        found.append(_attachment(message.document, "file", "file"))
    found += [
        _attachment(message.audio, "audio", "audio.mp3"),
        _attachment(message.voice, "audio", "voice.ogg"),
        _attachment(message.video, "video", "video.mp4"),
    ]
    return tuple(file for file in found if file is not None)


def stand_ins(message: Message, raw: Mapping[str, object]) -> list[str]:
    """A line of text for each thing in the message that is neither words nor one of its `files`. `raw`: the message as it came."""
    lines = [line(message) for line in _LINES]
    unknown = [] if SERVICE & raw.keys() else [f"[{key}]" for key, value in raw.items() if key not in _ABOUT and isinstance(value, dict | list)]
    return [line for line in lines if line] + unknown


def _photo(message: Message) -> Attachment | None:
    fitting = [size for size in message.photo if size.file_size <= DOWNLOAD_MAX] or list(message.photo)
    largest = max(fitting, key=lambda size: (size.width * size.height, size.file_size))
    return _attachment(largest, "image", f"photo-{message.message_id}.jpg", "image/jpeg")


def _attachment(file: File | None, kind: str, name: str, mime: str = "") -> Attachment | None:
    if file is None or not file.file_id:
        return None
    mime = file.mime_type or mime or "application/octet-stream"
    main = mime.partition("/")[0]
    return Attachment(
        kind=main if main in ("image", "audio", "video", "text") else kind,
        name=file.file_name or name,
        mime=mime,
        size=file.file_size,
        fetch_ref=file.file_id,
    )


def _line(name: str, what: str, *more: str) -> str:
    """`[name what, more]`, without what is empty."""
    return f"[{', '.join(part for part in (f'{name} {what}'.rstrip(), *more) if part)}]"


def _timed(name: str, field: str, *, always: bool = False) -> Callable[[Message], str]:
    """The line of a file with a length; `always`: also when there is something to fetch."""

    def line(message: Message) -> str:
        file: File | None = getattr(message, field)
        if file is None or (file.file_id and not always):
            return ""
        title = ": ".join(part for part in (file.performer, file.title) if part)
        return _line(name, title, f"{file.duration} s" if file.duration else "")

    return line


def _place(message: Message) -> str:
    if message.venue:
        at = message.venue.location
        return _line("place", message.venue.title, message.venue.address, f"{at.latitude}, {at.longitude}")
    return _line("location", f"{message.location.latitude}, {message.location.longitude}") if message.location else ""


def _contact(message: Message) -> str:
    if message.contact is None:
        return ""
    return _line("contact", f"{message.contact.first_name} {message.contact.last_name}".strip(), message.contact.phone_number)


_LINES: tuple[Callable[[Message], str], ...] = (
    _timed("animation", "animation", always=True),
    _timed("video note", "video_note", always=True),
    _timed("audio", "audio"),
    _timed("voice message", "voice"),
    _timed("video", "video"),
    lambda message: _line("sticker", message.sticker.emoji) if message.sticker else "",
    _place,
    _contact,
    lambda message: _line("poll", message.poll.question, " / ".join(option.text for option in message.poll.options)) if message.poll else "",
    lambda message: _line("dice", message.dice.emoji, str(message.dice.value)) if message.dice else "",
    lambda message: _line("game", message.game.title) if message.game else "",
    lambda message: "[story]" if message.story is not None else "",
    lambda message: "[file]" if message.document and not message.document.file_id and message.animation is None else "",
)

"""From the vendor's messages to events (WX-32 to WX-35). Pure: values in, values out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from channels.message import Account, Attachment, ChatType, EventKind, InboundEvent, ReplyTo, clean
from channels.wechat.ilink import media
from channels.wechat.ilink.frames import FileItem, ImageItem, Item, Kind, Media, Message, PartialText, VideoItem, VoiceItem

USER, OURS = 1, 2
_SILENT = frozenset({Kind.NOTHING, Kind.TOOL_CALL, Kind.TOOL_RESULT})
_VOICES: Mapping[int, tuple[str, str]] = {  # ending and type by `encode_type`
    1: ("pcm", "audio/L16"),
    4: ("spx", "audio/x-speex"),
    5: ("amr", "audio/amr"),
    6: ("silk", "audio/silk"),
    7: ("mp3", "audio/mpeg"),
    8: ("ogg", "audio/ogg"),
}
_LABELS: Mapping[int, str] = {
    Kind.IMAGE: "[image]", Kind.VOICE: "[voice message]", Kind.FILE: "[file]", Kind.VIDEO: "[video]"
}
EXCERPT_MAX = 500
_TIME_MAX = 1 << 42  # milliseconds: the year 2109
_NOBODY = "None@None"  # a message of which not one key is known


def events_of(raws: Sequence[Mapping[str, Any]], account: Account, bot_id: str, now: datetime) -> list[InboundEvent]:
    """One batch in the order it was said: by `seq`, and what has none keeps its place behind the one before it (WX-32)."""
    return [convert(raw, account, bot_id, now) for raw in in_order(raws)]


def in_order(raws: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    keyed: list[tuple[int, int, Mapping[str, Any]]] = []
    last = -1
    for place, raw in enumerate(raws):
        seq = raw.get("seq")
        last = seq if isinstance(seq, int) else last
        keyed.append((last, place, raw))
    return [raw for _, _, raw in sorted(keyed, key=lambda entry: entry[:2])]


def convert(raw: Mapping[str, Any], account: Account, bot_id: str, now: datetime) -> InboundEvent:
    """One message as an event. What cannot be read becomes `unknown`, kept as it came but for its token (CH-4, WX-11)."""
    try:
        message = Message.model_validate(raw)
    except ValidationError:
        return _unknown(raw, account, now)
    if message.message_type not in (USER, OURS):
        return _unknown(raw, account, now)
    return _event(message, account, bot_id, now)


def tokens_of(raws: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The newest context token of each person in a batch (WX-31). Groups have none that we could use (WX-34)."""
    found: dict[str, str] = {}
    for raw in in_order(raws):
        person, token = raw.get("from_user_id"), raw.get("context_token")
        if isinstance(person, str) and isinstance(token, str) and person and token and raw.get("message_type", USER) == USER and not in_group(raw):
            found[person] = token
    return found


def in_group(raw: Mapping[str, Any]) -> bool:
    return bool(raw.get("group_id")) or any(str(raw.get(side, "")).endswith("@chatroom") for side in ("from_user_id", "to_user_id"))


def _event(message: Message, account: Account, bot_id: str, now: datetime) -> InboundEvent:
    ours = message.message_type == OURS or message.from_user_id == bot_id
    event_id = _event_id(message.message_id, message.seq, message.from_user_id, message.create_time_ms)
    event = InboundEvent(
        account=account,
        kind=EventKind.MESSAGE,
        platform_event_id=event_id,
        platform_message_id=event_id,
        chat_id=(message.to_user_id or bot_id) if ours else message.from_user_id,
        sender_id=message.from_user_id,
        sender_name=message.from_user_id.partition("@")[0],
        is_us=ours,
        is_bot=ours or message.from_user_id.endswith("@im.bot"),
        platform_ts=datetime.fromtimestamp(message.create_time_ms / 1000, UTC) if 0 < message.create_time_ms < _TIME_MAX else None,
        received_at=now,
        hint="message",
    )
    if message.delete_time_ms:
        return replace(event, kind=EventKind.DELETED, platform_event_id=f"{event_id}/deleted", hint="deleted")
    if in_group({"group_id": message.group_id, "from_user_id": message.from_user_id, "to_user_id": message.to_user_id}):
        # Never answered (WX-34), so its words are not kept either (CH-117).
        return replace(event, chat_type=ChatType.GROUP, chat_id=message.group_id or message.from_user_id, hint="group")
    return replace(
        event,
        mentioned=True,
        text=clean("\n".join(_words(message.item_list))),
        attachments=tuple(file for item in message.item_list if (file := _file(item, event_id)) is not None),
        reply_to=next((reply for item in message.item_list if (reply := _reply(item)) is not None), None),
    )


def _event_id(message_id: object, seq: object, sender: object, created_ms: object) -> str:
    """CH-51: the message id, else seq, else who and when."""
    return str(message_id or (f"seq:{seq}" if seq is not None else f"{sender}@{created_ms}"))


def _words(items: Sequence[Item]) -> list[str]:
    """The texts of a message, and a stand-in for what is neither words nor a file (CH-5)."""
    found: list[str] = []
    for item in items:
        if item.type == Kind.TEXT:
            found.append(item.text_item.text)
        elif item.type not in _LABELS and item.type not in _SILENT:
            found.append(f"[WeChat item {item.type}]")
        elif item.type in _LABELS and not _is_there(_media_of(item)):
            found.append(item.voice_item.text or _LABELS[item.type] if item.type == Kind.VOICE else _LABELS[item.type])
    return found


def _media_of(item: Item) -> Media:
    match item.type:
        case Kind.IMAGE:
            return item.image_item.media
        case Kind.VOICE:
            return item.voice_item.media
        case Kind.FILE:
            return item.file_item.media
        case Kind.VIDEO:
            return item.video_item.media
        case _:
            return Media()


def _is_there(found: Media) -> bool:
    return bool(found.encrypt_query_param or found.full_url)


def _file(item: Item, message_id: str) -> Attachment | None:
    match item.type:
        case Kind.IMAGE:
            return _image(item.image_item, message_id)
        case Kind.VOICE:
            return _voice(item.voice_item, message_id)
        case Kind.FILE:
            return _document(item.file_item)
        case Kind.VIDEO:
            return _video(item.video_item, message_id)
        case _:
            return None


def _image(item: ImageItem, message_id: str) -> Attachment | None:
    size = item.hd_size or item.mid_size
    return _attachment(item.media, "image", f"image-{message_id}.jpg", "image/jpeg", size, key=item.aeskey)


def _voice(item: VoiceItem, message_id: str) -> Attachment | None:
    """The vendor's words travel as a transcript: our own transcriber, when there is one, goes first (WX-35)."""
    ending, mime = _VOICES.get(item.encode_type, ("voice", "application/octet-stream"))
    return _attachment(item.media, "audio", f"voice-{message_id}.{ending}", mime, 0, transcript=clean(item.text))


def _document(item: FileItem) -> Attachment | None:
    size = int(item.len) if item.len.isascii() and item.len.isdigit() and len(item.len) < 16 else 0
    return _attachment(item.media, "file", item.file_name or "file", "application/octet-stream", size)


def _video(item: VideoItem, message_id: str) -> Attachment | None:
    return _attachment(item.media, "video", f"video-{message_id}.mp4", "video/mp4", item.video_size)


def _attachment(found: Media, kind: str, name: str, mime: str, size: int, *, key: str = "", transcript: str = "") -> Attachment | None:
    if not _is_there(found):
        return None
    told = key or found.aes_key
    known = media.key_of(key) or media.key_of(found.aes_key)
    reference = media.Reference(
        parameter=found.encrypt_query_param, key=known.hex() if known else "", url=found.full_url, unreadable=bool(told) and known is None
    )
    origin = "platform" if transcript else ""
    return Attachment(kind=kind, name=name, mime=mime, size=size, fetch_ref=str(reference), transcript=transcript, transcript_origin=origin)


def _reply(item: Item) -> ReplyTo | None:
    """What is quoted: its summary and its words, as far as the client sends them (WX-33)."""
    reference = item.ref_msg
    if reference is None:
        return None
    inner = reference.message_item
    said = "\n".join(_words([inner]) or [_LABELS.get(inner.type, "")]) if inner is not None else ""
    parts = dict.fromkeys(clean(part).strip() for part in (reference.title, said))
    return ReplyTo(
        message_id=reference.svr_id or (inner.msg_id if inner is not None else ""),
        excerpt=" | ".join(part for part in parts if part)[:EXCERPT_MAX],
        quote=_fragment(said, reference.partial_text),
    )


def _fragment(text: str, chosen: PartialText | None) -> str:
    """The stretch that the person marked, from the first of its first words to the end of its last; empty when it is not in `text`."""
    if chosen is None or not chosen.start or not chosen.end:
        return ""
    start = text.find(chosen.start)
    end = text.find(chosen.end, start) if start >= 0 else -1
    return clean(text[start : end + len(chosen.end)])[:EXCERPT_MAX] if end >= 0 else ""


def _unknown(raw: Mapping[str, Any], account: Account, now: datetime) -> InboundEvent:
    kept = {name: value for name, value in raw.items() if name != "context_token"}
    text = json.dumps(kept, ensure_ascii=False, default=str)
    event_id = _event_id(raw.get("message_id"), raw.get("seq"), raw.get("from_user_id"), raw.get("create_time_ms"))
    return InboundEvent(
        account=account,
        kind=EventKind.UNKNOWN,
        platform_event_id=event_id if event_id != _NOBODY else f"raw:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:32]}",
        chat_id=str(raw.get("from_user_id") or "?"),
        hint=str(raw.get("message_type", "?")),
        text=text,
        received_at=now,
    )

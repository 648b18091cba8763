"""The bot's messages and events as ours (4.1). Pure; the bodies are the same on the long connection and in the webhook."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from channels.errors import AttachmentRefused
from channels.message import Account, Attachment, ChatType, EventKind, InboundEvent, ReplyTo, clean

EXCERPT_MAX = 500
_SEPARATOR = "@"
_MIMES = {"image": "image/jpeg", "voice": "audio/amr", "video": "video/mp4", "file": "application/octet-stream"}
_KINDS = {"image": "image", "voice": "audio", "video": "video", "file": "file"}
_ENDINGS = {"image": "jpg", "voice": "amr", "video": "mp4", "file": "bin"}
ENTER_CHAT, TAKEN_OVER = "enter_chat", "disconnected_event"

Json = Mapping[str, Any]


def message_id(msgid: str, req_id: str) -> str:
    """The id of a question as the gateway keeps it: with the frame that a reply must name (WX-104)."""
    return f"{msgid}{_SEPARATOR}{req_id}" if req_id else msgid


def req_id_of(question: str) -> str:
    """The frame's id in a question's id; empty when there is none."""
    return question.partition(_SEPARATOR)[2]


def frame_id(frame: Json) -> str:
    """The id under which a frame is answered; empty when it has none."""
    return _text(_dict(frame.get("headers")).get("req_id"))


def convert(frame: Json, account: Account, now: datetime) -> InboundEvent:
    """One frame as an event. What cannot be read, or is of no kind we know, is `unknown` and is kept as it came (CH-4)."""
    body = _dict(frame.get("body"))
    msgid, req_id = _text(body.get("msgid")), frame_id(frame)
    sender = _text(_dict(body.get("from")).get("userid"))
    in_group = body.get("chattype") == "group"
    chat = _text(body.get("chatid")) if in_group else sender
    told = InboundEvent(
        account=account,
        kind=EventKind.MESSAGE,
        platform_event_id=msgid or _digest(frame),
        platform_message_id=message_id(msgid, req_id) if msgid else "",
        chat_id=chat or "?",
        chat_type=ChatType.GROUP if in_group else ChatType.DM,
        sender_id=sender,
        sender_name=sender,
        mentioned=True,  # the platform delivers only what is meant for the bot (WX-111)
        received_at=now,
        platform_ts=_time(body.get("create_time")),
        hint=_text(body.get("msgtype")) or _text(frame.get("cmd")) or "?",
    )
    if not sender or not chat or not msgid or body.get("chattype", "single") not in ("single", "group"):
        return _unknown(told, frame)
    kind = body.get("msgtype")
    if kind == "event":
        return replace(told, kind=EventKind.MEMBERSHIP, platform_message_id="", hint=event_of(frame))
    items = [(_text(each.get("msgtype")), _dict(each.get(_text(each.get("msgtype"))))) for each in _items(body)]
    if not items or any(not _readable(each, content) for each, content in items):
        return _unknown(told, frame)
    words = [_words(each, content) for each, content in items]
    files = [_file(each, content, f"{msgid}-{number}") for number, (each, content) in enumerate(items, 1) if each in _KINDS and content.get("url")]
    return replace(
        told,
        text=clean("\n".join(word for word in words if word)),
        attachments=tuple(files),
        reply_to=_quoted(_dict(body.get("quote"))),
        forwarded=kind == "link",
    )


def event_of(frame: Json) -> str:
    """The name of an event, empty for a message."""
    body = _dict(frame.get("body"))
    return (_text(_dict(body.get("event")).get("eventtype")) or "event") if body.get("msgtype") == "event" else ""


def _items(body: Json) -> list[Json]:
    if body.get("msgtype") == "mixed":
        found = _dict(body.get("mixed")).get("msg_item")
        return [_dict(each) for each in cast("list[Any]", found)] if isinstance(found, list) else []
    return [body]


def _readable(kind: str, content: Json) -> bool:
    match kind:
        case "text":
            return isinstance(content.get("content"), str)
        case "voice":
            return isinstance(content.get("content"), str) or isinstance(content.get("url"), str)
        case "image" | "file" | "video":
            return isinstance(content.get("url"), str) and bool(content["url"])
        case "link":
            return any(isinstance(content.get(name), str) for name in ("title", "url", "desc"))
        case _:
            return False


def _words(kind: str, content: Json) -> str:
    match kind:
        case "text":
            return content["content"]
        case "voice" if not content.get("url"):
            return _text(content.get("content"))  # the platform hands out its transcript, not the sound
        case "link":
            return "[link] " + "\n".join(part for part in (_text(content.get(name)) for name in ("title", "desc", "url")) if part)
        case _:
            return ""


def _file(kind: str, content: Json, number: str) -> Attachment:
    said = clean(_text(content.get("content"))) if kind == "voice" else ""
    return Attachment(
        kind=_KINDS[kind],
        name=_text(content.get("filename")) or f"{kind}-{number}.{_ENDINGS[kind]}",
        mime=_MIMES[kind],
        fetch_ref=json.dumps({"u": content["url"], "k": _text(content.get("aeskey"))}),
        transcript=said,
        transcript_origin="platform" if said else "",
    )


def file_of(reference: str) -> tuple[str, str]:
    """Address and key of a `fetch_ref`; AttachmentRefused for what is no file of the bot's."""
    try:
        told = json.loads(reference)
        return str(told["u"]), str(told["k"])
    except (ValueError, TypeError, KeyError):
        raise AttachmentRefused("this is no file of the bot's") from None


def _quoted(quote: Json) -> ReplyTo | None:
    if not quote:
        return None
    kind = _text(quote.get("msgtype"))
    said = _words(kind, _dict(quote.get(kind))) if _readable(kind, _dict(quote.get(kind))) else ""
    return ReplyTo(message_id=_text(quote.get("msgid")), excerpt=clean(said or f"[{kind or 'message'}]")[:EXCERPT_MAX])


def _unknown(told: InboundEvent, frame: Json) -> InboundEvent:
    kept = {name: value for name, value in frame.items() if name != "secret"}
    text = clean(json.dumps(kept, ensure_ascii=False, default=str))
    return replace(told, kind=EventKind.UNKNOWN, platform_message_id="", text=text, mentioned=False)


def _digest(frame: Json) -> str:
    told = json.dumps(frame, ensure_ascii=False, sort_keys=True, default=str)
    return f"raw:{hashlib.sha256(told.encode('utf-8', 'replace')).hexdigest()[:32]}"


def _text(value: object) -> str:
    """Ids are texts, also when they come as numbers."""
    return str(value) if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)) else ""


def _dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _time(value: object) -> datetime | None:
    return datetime.fromtimestamp(value, UTC) if isinstance(value, int) and 0 < value < 32503680000 else None

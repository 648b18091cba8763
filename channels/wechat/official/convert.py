"""The vendor's messages and events as ours (WX-62, WX-63). Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from channels.errors import AttachmentRefused
from channels.message import Account, Attachment, ChatType, EventKind, InboundEvent, clean

_TIME_MAX = 32503680000  # the year 3000
_VOICES = {"amr": "audio/amr", "speex": "audio/ogg", "mp3": "audio/mpeg", "silk": "audio/silk"}
CLICK, SUBSCRIBE, UNSUBSCRIBE = "CLICK", "subscribe", "unsubscribe"


def event_id(fields: Mapping[str, str]) -> str:
    """`MsgId` as text; of an event without one: who, when, what and which (WX-63). Of anything else, what it holds."""
    if found := fields.get("MsgId", ""):
        return found
    if fields.get("MsgType") == "event":
        return ":".join(fields.get(name, "") for name in ("FromUserName", "CreateTime", "Event", "EventKey"))
    told = json.dumps(fields, ensure_ascii=False, sort_keys=True)
    return f"raw:{hashlib.sha256(told.encode('utf-8', 'replace')).hexdigest()[:32]}"


def convert(fields: Mapping[str, str], account: Account, menu: Mapping[str, str], now: datetime) -> InboundEvent:
    """One delivery as an event. What cannot be read, or is of no kind we know, is `unknown` and keeps its fields (CH-4)."""
    kind, sender, created = fields.get("MsgType", ""), fields.get("FromUserName", ""), fields.get("CreateTime", "")
    told = InboundEvent(
        account=account,
        kind=EventKind.MESSAGE,
        platform_event_id=event_id(fields),
        platform_message_id=fields.get("MsgId", ""),
        chat_id=sender or "?",
        sender_id=sender,
        sender_name=sender,
        is_us=bool(sender) and sender == fields.get("ToUserName"),
        is_bot=bool(sender) and sender == fields.get("ToUserName"),
        mentioned=True,
        platform_ts=_time(created),
        received_at=now,
        chat_type=ChatType.DM,
        hint=kind or "?",
    )
    if not sender or not fields.get("ToUserName") or _time(created) is None:
        return _unknown(told, fields)
    match kind:
        case "text" if "Content" in fields:
            return replace(told, text=clean(fields["Content"]))
        case "location":
            return replace(told, text=clean(_place(fields)))
        case "link":
            parts = [fields.get(name, "").strip() for name in ("Title", "Description", "Url")]
            return replace(told, text=clean("[link] " + "\n".join(part for part in parts if part)), forwarded=True)
        case "image" | "voice" | "video" | "shortvideo" if fields.get("MediaId") or fields.get("PicUrl"):
            return replace(told, attachments=(_file(kind, fields),))
        case "event" if fields.get("Event"):
            return _event(told, fields, menu)
        case _:
            return _unknown(told, fields)


def _time(created: str) -> datetime | None:
    if not (created.isascii() and created.isdigit() and len(created) < 12 and int(created) < _TIME_MAX):
        return None
    return datetime.fromtimestamp(int(created), UTC)


def _unknown(told: InboundEvent, fields: Mapping[str, str]) -> InboundEvent:
    return replace(told, kind=EventKind.UNKNOWN, is_us=False, is_bot=False, text=clean(json.dumps(fields, ensure_ascii=False, sort_keys=True)))


def _event(told: InboundEvent, fields: Mapping[str, str], menu: Mapping[str, str]) -> InboundEvent:
    """A press of the menu is a command; whatever else happens is recorded and not answered as talk."""
    name, key = fields["Event"], fields.get("EventKey", "")
    if name == CLICK and (command := menu.get(key, key if key.startswith("/") else "")):
        return replace(told, text=clean(command), hint=CLICK)
    return replace(told, kind=EventKind.MEMBERSHIP, hint=name, target=key)


def _place(fields: Mapping[str, str]) -> str:
    label = fields.get("Label", "").strip()
    at = f"{fields.get('Location_X', '?')}, {fields.get('Location_Y', '?')}"
    return f"[location {label} ({at})]" if label else f"[location {at}]"


def _file(kind: str, fields: Mapping[str, str]) -> Attachment:
    number = fields.get("MsgId", "0")
    reference = json.dumps({"u": fields.get("PicUrl", ""), "m": fields.get("MediaId", "")})
    match kind:
        case "image":
            return Attachment(kind="image", name=f"image-{number}.jpg", mime="image/jpeg", fetch_ref=reference)
        case "voice":
            ending = fields.get("Format", "amr").lower() or "amr"
            said = clean(fields.get("Recognition", "")).strip()
            return Attachment(
                kind="audio", name=f"voice-{number}.{ending}", mime=_VOICES.get(ending, "application/octet-stream"), fetch_ref=reference,
                transcript=said, transcript_origin="platform" if said else "",
            )  # fmt: skip
        case _:
            return Attachment(kind="video", name=f"video-{number}.mp4", mime="video/mp4", fetch_ref=reference)


def file_of(reference: str) -> tuple[str, str]:
    """The address and the media id that a `fetch_ref` names, either may be empty; AttachmentRefused for what is no file of this vendor's."""
    try:
        told = json.loads(reference)
        return str(told["u"]), str(told["m"])
    except (ValueError, TypeError, KeyError):
        raise AttachmentRefused("this is no file of the Official Account's") from None

"""What one part takes on the wire (WX-36 to WX-39): one item a message, the text first, then each file. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from channels.message import Attachment, clean, is_blank
from channels.port import OutboundPart
from channels.wechat.ilink.frames import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One message. Its client id is the same on every try of the part: so a second copy is not shown (CH-35)."""

    client_id: str
    text: str = ""
    file: Attachment | None = None


def steps(part: OutboundPart) -> list[Step]:
    """The messages of a part, in order; none when there is nothing to show."""
    text = clean(part.text)
    found = [Step(client_id=client_id(part.part_id, 0), text=text)] if not is_blank(text) else []
    return found + [Step(client_id=client_id(part.part_id, number), file=file) for number, file in enumerate(part.attachments, 1)]


def client_id(part_id: str, number: int) -> str:
    return "yumegate-" + hashlib.sha256(f"{part_id}/{number}".encode("utf-8", "replace")).hexdigest()[:32]


def text_item(text: str) -> dict[str, Any]:
    return {"type": int(Kind.TEXT), "text_item": {"text": text}}


def message(to: str, item: Mapping[str, Any], *, client_id: str, context_token: str) -> dict[str, Any]:
    return {
        "from_user_id": "",
        "to_user_id": to,
        "client_id": client_id,
        "message_type": 2,
        "message_state": 2,
        "item_list": [item],
        "context_token": context_token,
    }

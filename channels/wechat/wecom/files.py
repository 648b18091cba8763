"""Files of the bot: fetched and opened, or brought to the vendor in pieces (WX-110, 4.1)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp

from channels.errors import AttachmentRefused
from channels.message import Attachment, safe_name
from channels.wechat import crypto, downloads
from channels.wechat.crypto import Unverified
from channels.wechat.wecom.settings import CHUNK, CHUNKS_MAX, FILE_MAX, IMAGE_MAX, VIDEO_MAX, VOICE_MAX, WeComSettings

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


_MEDIA = {
    "image/jpeg": ("image", IMAGE_MAX),
    "image/png": ("image", IMAGE_MAX),
    "audio/amr": ("voice", VOICE_MAX),
    "video/mp4": ("video", VIDEO_MAX),
}


class NotTaken(Exception):
    """The vendor does not take the file."""


def medium(file: Attachment, size: int) -> str:
    """How the vendor is to show a file; too large for its kind, or of another, it is a plain file. NotTaken above every limit."""
    kind, limit = _MEDIA.get(file.mime, ("file", FILE_MAX))
    if size <= limit:
        return kind
    if size > FILE_MAX:
        raise NotTaken(f"{size} bytes are more than the vendor takes")
    return "file"


async def upload(ask: Ask, kind: str, file: Attachment, data: bytes) -> str:
    """The media id of a file, in three steps. `ask` sends one frame and returns its answer."""
    chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)] or [b""]
    if len(chunks) > CHUNKS_MAX:
        raise NotTaken(f"{len(data)} bytes are more than the vendor takes")
    begun = await ask("aibot_upload_media_init", {
        "type": kind, "filename": safe_name(file.name), "total_size": len(data), "total_chunks": len(chunks),
        "md5": hashlib.md5(data, usedforsecurity=False).hexdigest(),
    })  # fmt: skip
    upload_id = _named(begun, "upload_id")
    for number, chunk in enumerate(chunks):
        piece = {"upload_id": upload_id, "chunk_index": number, "base64_data": base64.b64encode(chunk).decode()}
        await ask("aibot_upload_media_chunk", piece)
    return _named(await ask("aibot_upload_media_finish", {"upload_id": upload_id}), "media_id")


def _named(answer: Mapping[str, Any], name: str) -> str:
    if not (found := answer.get(name)):
        raise NotTaken(f"the vendor named no {name}")
    return str(found)


async def download(session: aiohttp.ClientSession, settings: WeComSettings, url: str, key: str, max_bytes: int) -> bytes:
    """The plain bytes of a received file. AttachmentRefused: never; ConnectionLost: not now."""
    limit = min(max_bytes, settings.attachment_bytes)
    try:
        opener = crypto.file_key(key) if key else b""
    except ValueError as error:
        raise AttachmentRefused(str(error)) from None
    data, _ = await downloads.download(session, url, trusts=settings.trusts, limit=limit + (crypto.PAD_BLOCK if key else 0))
    if opener:
        try:
            data = crypto.open_file(data, opener)
        except Unverified:
            raise AttachmentRefused("the file does not open with the key that came with it") from None
    if len(data) > limit:
        raise AttachmentRefused(f"the file is larger than {limit} bytes")
    return data

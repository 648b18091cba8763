"""Files on their way: AES-128-ECB and the many spellings of its key (WX-50, WX-52, WX-53). Pure.

ECB and MD5 are the vendor's choice; nothing of ours rests on them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from channels.errors import AttachmentRefused
from channels.message import Attachment
from channels.wechat.ilink.frames import Kind

BLOCK = 16
_HEX_KEY = re.compile(r"[0-9a-fA-F]{32}")


class MediaType(IntEnum):
    """How the vendor is to show an upload. A voice bubble (4) is unreliable: audio goes as a file (WX-52)."""

    IMAGE = 1
    VIDEO = 2
    FILE = 3



def sealed_size(plain_size: int) -> int:
    """Bytes of ciphertext: always at least one byte of padding (WX-50)."""
    return (plain_size // BLOCK + 1) * BLOCK


def seal(plain: bytes, key: bytes) -> bytes:
    padder = PKCS7(BLOCK * 8).padder()
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return encryptor.update(padder.update(plain) + padder.finalize()) + encryptor.finalize()


def open_sealed(data: bytes, key: bytes) -> bytes:
    """The plain bytes; AttachmentRefused when the key does not fit."""
    decryptor = Cipher(algorithms.AES(key), modes.ECB()).decryptor()
    unpadder = PKCS7(BLOCK * 8).unpadder()
    try:
        return unpadder.update(decryptor.update(data) + decryptor.finalize()) + unpadder.finalize()
    except ValueError as error:
        raise AttachmentRefused("the file does not decrypt with the key that came with it") from error


def key_of(spelled: str) -> bytes | None:
    """The key in any of its spellings: hex, base64 of 16 bytes, base64 of 32 hex characters. None when it is none of them."""
    spelled = spelled.strip()
    if _HEX_KEY.fullmatch(spelled):
        return bytes.fromhex(spelled)
    try:
        decoded = base64.b64decode(spelled, validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(decoded) == BLOCK:
        return decoded
    text = decoded.decode("ascii", "replace")
    return bytes.fromhex(text) if _HEX_KEY.fullmatch(text) else None


def spelled(key: bytes) -> str:
    """A key as it is sent: base64 of the hex text (WX-52)."""
    return base64.b64encode(key.hex().encode()).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Where a received file lies and how it is opened. Its text form is the `fetch_ref` of an attachment."""

    parameter: str = ""
    key: str = ""  # hex; empty: not encrypted
    url: str = ""
    unreadable: bool = False  # it has a key of a form we do not know

    def __str__(self) -> str:
        told = {"p": self.parameter, "k": self.key, "u": self.url, "x": self.unreadable}
        return json.dumps({name: value for name, value in told.items() if value}, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Reference:
        """The inverse of `str`; AttachmentRefused for anything else."""
        try:
            told = json.loads(text)
            return cls(parameter=told.get("p", ""), key=told.get("k", ""), url=told.get("u", ""), unreadable=told.get("x", False))
        except (ValueError, AttributeError) as error:
            raise AttachmentRefused("this is no file of WeChat's") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that is about to be stored at the vendor's, and the item that shows it afterwards."""

    name: str
    media_type: MediaType
    plain: bytes
    key: bytes
    filekey: str

    def asked(self, to: str) -> dict[str, Any]:
        """The body of `getuploadurl` (WX-50)."""
        return {
            "filekey": self.filekey,
            "media_type": int(self.media_type),
            "to_user_id": to,
            "rawsize": len(self.plain),
            "rawfilemd5": hashlib.md5(self.plain, usedforsecurity=False).hexdigest(),
            "filesize": sealed_size(len(self.plain)),
            "no_need_thumb": True,
            "aeskey": self.key.hex(),
        }

    def item(self, parameter: str) -> dict[str, Any]:
        """The message item, `parameter` being what the upload was answered with (WX-52)."""
        media = {"encrypt_query_param": parameter, "aes_key": spelled(self.key), "encrypt_type": 1}
        size = sealed_size(len(self.plain))
        match self.media_type:
            case MediaType.IMAGE:
                return {"type": int(Kind.IMAGE), "image_item": {"media": media, "mid_size": size}}
            case MediaType.VIDEO:
                return {"type": int(Kind.VIDEO), "video_item": {"media": media, "video_size": size}}
            case MediaType.FILE:
                return {"type": int(Kind.FILE), "file_item": {"media": media, "file_name": self.name, "len": str(len(self.plain))}}


def media_type(file: Attachment) -> MediaType:
    """How a file of ours is shown. A picture that the client cannot draw is a file."""
    if file.mime in ("image/jpeg", "image/png", "image/gif", "image/webp", "image/bmp"):
        return MediaType.IMAGE
    return MediaType.VIDEO if file.mime == "video/mp4" else MediaType.FILE

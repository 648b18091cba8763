"""Signatures and encryption of the vendor's webhooks and files (WX-1 to WX-6, WX-110). Pure; CBC, SHA-1 and the odd padding are the vendor's choice.

What is wrong with a request is told by the step that found it, with the vendor's number, for the log alone: the peer sees one and the same refusal.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from enum import Enum

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

PAD_BLOCK = 32  # PKCS#7 over 32 bytes, though AES has blocks of 16
AES_BLOCK = 16
KEY_CHARACTERS = 43
RANDOM_BYTES = 16
_HEAD = RANDOM_BYTES + 4


class Step(Enum):
    """What was found wrong, as (the vendor's number, words)."""

    SIGNATURE = (-40001, "signature")
    DOCUMENT = (-40002, "parse")
    KEY = (-40004, "key")
    RECEIVER = (-40005, "receive id")
    DECRYPT = (-40007, "decrypt")
    BUFFER = (-40008, "buffer")
    BASE64 = (-40010, "base64")
    TIME = (0, "time stamp")

    def __str__(self) -> str:
        number, words = self.value
        return f"{words} ({number})" if number else words


class Unverified(Exception):
    """This did not come from the vendor, or not to us, or not whole."""

    def __init__(self, step: Step) -> None:
        super().__init__(str(step))
        self.step = step


def sign(parts: Sequence[str]) -> str:
    """Hex SHA-1 of the parts sorted as strings and joined (WX-2)."""
    return hashlib.sha1("".join(sorted(parts)).encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()


def check(signature: str, parts: Sequence[str]) -> None:
    """Unverified unless `signature` is that of `parts`; takes equally long either way."""
    try:
        same = hmac.compare_digest(sign(parts).encode(), signature.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:  # half a character, which JSON can spell: nobody can have signed that
        same = False
    if not same:
        raise Unverified(Step.SIGNATURE)


def key_of(characters: str) -> bytes:
    """The 32 bytes of a 43-character key. Its last character may carry spare bits: the consoles hand out such keys (WX-6). ValueError otherwise."""
    if len(characters) != KEY_CHARACTERS:
        raise ValueError(f"the key has {len(characters)} characters instead of {KEY_CHARACTERS}")
    try:
        return base64.b64decode(f"{characters}=", validate=True)
    except ValueError:  # of the base64, or of a character beyond ASCII
        raise ValueError("the key is not base64") from None


def encrypt(text: str, key: bytes, receive_id: str, random: bytes) -> str:
    """Base64 of `random` (16 bytes, fresh each time), the text's length in bytes, the text, and whom it is for (WX-3)."""
    message = text.encode()
    return base64.b64encode(_sealed(random + len(message).to_bytes(4, "big") + message + receive_id.encode(), key)).decode()


def decrypt(data: str, key: bytes, receive_id: str) -> str:
    """The text of an encrypted message; Unverified names the first step that fails, in the order of WX-5."""
    try:
        sealed = base64.b64decode(data.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise Unverified(Step.BASE64) from None
    plain = _opened(sealed, key)
    length = int.from_bytes(plain[RANDOM_BYTES:_HEAD], "big")
    if len(plain) < _HEAD or length > len(plain) - _HEAD:
        raise Unverified(Step.BUFFER)
    if not hmac.compare_digest(plain[_HEAD + length :], receive_id.encode()):
        raise Unverified(Step.RECEIVER)
    try:
        return plain[_HEAD : _HEAD + length].decode()
    except UnicodeDecodeError:
        raise Unverified(Step.DOCUMENT) from None


def open_file(data: bytes, key: bytes) -> bytes:
    """The plain bytes of a file of the WeCom bot (WX-110)."""
    return _opened(data, key)


def file_key(spelled: str) -> bytes:
    """The 32 bytes of a file's key in base64, with or without its last `=`. ValueError for anything else."""
    try:
        key = base64.b64decode(spelled + "=" * (-len(spelled) % 4), validate=True)
    except ValueError:
        raise ValueError("the file's key is not base64") from None
    if len(key) != 32:
        raise ValueError(f"the file's key has {len(key)} bytes instead of 32")
    return key


def _sealed(plain: bytes, key: bytes) -> bytes:
    pad = PAD_BLOCK - len(plain) % PAD_BLOCK
    encryptor = Cipher(algorithms.AES(key), modes.CBC(key[:AES_BLOCK])).encryptor()
    return encryptor.update(plain + bytes([pad]) * pad) + encryptor.finalize()


def _opened(sealed: bytes, key: bytes) -> bytes:
    if not sealed or len(sealed) % AES_BLOCK:
        raise Unverified(Step.DECRYPT)
    decryptor = Cipher(algorithms.AES(key), modes.CBC(key[:AES_BLOCK])).decryptor()
    padded = decryptor.update(sealed) + decryptor.finalize()
    pad = padded[-1]
    if not 1 <= pad <= PAD_BLOCK or pad > len(padded) or padded[-pad:] != bytes([pad]) * pad:
        raise Unverified(Step.DECRYPT)
    return padded[:-pad]

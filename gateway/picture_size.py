"""How many pixels a picture claims to have, by its first bytes alone: a file of a few kilobytes may unfold to gigabytes where it is opened (CH-7).

Pure; nothing is unpacked here.
"""

from __future__ import annotations

import re
import struct

SIDE_MAX = 8_000  # pixels: providers refuse a request with a longer side, and with it the whole turn

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # JPEG: segments that begin a picture
_FILLING = re.compile(rb"(?:\xff+[\x01\xd0-\xd8])*+\xff++(?s:.)")  # segments without a length, and the mark of the next one
SEGMENTS_MAX = 4_096  # of a JPEG before its picture: a camera writes a few, and millions would take seconds


def picture_size(data: bytes) -> tuple[int, int] | None:
    """Width and height as a PNG, JPEG, GIF or WebP names them; None for anything else, and for what ends before it says so."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            return struct.unpack(">II", data[16:24])
        if data.startswith((b"GIF87a", b"GIF89a")):
            return struct.unpack("<HH", data[6:10])
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return _webp(data)
        if data.startswith(b"\xff\xd8"):
            return _jpeg(data)
    except (struct.error, IndexError):
        pass
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8X":
            low, high, low_down, high_down = struct.unpack("<HBHB", data[24:30])
            return (high << 16 | low) + 1, (high_down << 16 | low_down) + 1
        case b"VP8L":
            (bits,) = struct.unpack("<I", data[21:25])
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = struct.unpack("<HH", data[26:30])
            return width & 0x3FFF, height & 0x3FFF
        case _:
            return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    for _ in range(SEGMENTS_MAX):
        found = _FILLING.match(data, at)
        if found is None:
            return None
        at, kind = found.end(), data[found.end() - 1]
        if kind in _FRAMES:
            height, width = struct.unpack(">HH", data[at + 3 : at + 7])
            return width, height
        at += max(2, int.from_bytes(data[at : at + 2], "big"))
    return None

"""How large a picture claims to be is read from its first bytes, and a lie about its kind is found out (CH-7)."""

from __future__ import annotations

import random
import struct
import time

import pytest

from gateway.picture_size import picture_size

PICTURES = {
    "png": b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", 640, 480),
    "gif": b"GIF89a" + struct.pack("<HH", 640, 480),
    "jpeg": b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xdb\x00\x03x\xff\xc4\x00\x02\xff\xc2\x00\x11\x08" + struct.pack(">HH", 480, 640) + b"\x03",
    "webp extended": b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little"),
    "webp lossless": b"RIFF\0\0\0\0WEBPVP8L" + bytes(4) + b"\x2f" + struct.pack("<I", 639 | 479 << 14),
    "webp lossy": b"RIFF\0\0\0\0WEBPVP8 " + bytes(7) + b"\x9d\x01\x2a" + struct.pack("<HH", 640, 480),
}


@pytest.mark.rule("CH-7")
@pytest.mark.parametrize("data", PICTURES.values(), ids=PICTURES)
def test_the_size_of_a_picture_stands_in_its_head(data: bytes) -> None:
    assert picture_size(data) == (640, 480)
    for length in range(len(data)):
        assert picture_size(data[:length]) in (None, (640, 480)), "what ends too early has no size, and breaks nothing"


@pytest.mark.rule("CH-7")
def test_what_is_no_picture_has_no_size() -> None:
    assert picture_size(b"") is picture_size(b"hello") is picture_size(b"RIFF\0\0\0\0WAVE") is None
    dice = random.Random(7)
    for start in PICTURES.values():
        for _ in range(200):
            picture_size(start[: dice.randrange(len(start))] + dice.randbytes(40))


@pytest.mark.rule("CH-7")
@pytest.mark.parametrize("filling", [b"\xff", b"\xff\xd0", b"\xff\x01\xff", b"\xff\xe0\x00\x02", b"\xff\xe0\x00\x00"])
def test_what_fills_a_picture_of_many_megabytes_holds_nobody_up(filling: bytes) -> None:
    began = time.thread_time()  # what it does itself, not how long it waits for a core
    picture_size(b"\xff\xd8" + filling * (8_000_000 // len(filling)))
    assert time.thread_time() - began < 0.5


@pytest.mark.rule("CH-7")
def test_a_jpeg_is_read_behind_filling_and_marks_without_a_length() -> None:
    frame = b"\xff\xc2\x00\x11\x08" + struct.pack(">HH", 9_000, 12_000)
    head = b"\xff\xd8\xff\xff\xff\xe0\x00\x04ab\xff\x01\xff\xff\xd0"
    assert picture_size(head + frame) == (12_000, 9_000)
    assert picture_size(head + b"\x00" + frame) is None
    assert picture_size(head) is None

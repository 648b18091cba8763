"""A growing answer as the platform has it: one stream for each question, snapshots of the whole text, an end (WX-105, WX-106). Pure."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from channels.newest import keep_newest
from channels.units import graphemes
from channels.wechat.wecom.settings import STREAM_S

KEPT_MAX = 1_000
ALIKE = 0.8  # a snapshot may have its open marks closed at the end
_PREFIX = "stream:"


@dataclass(slots=True, eq=False)
class Stream:
    """`opened` and `sent`: when its first and its newest frame left, on the loop's clock. `kept`: the text it was ended with before the answer was
    whole, None while it was not. `speaking`: one frame at a time. `inherited`: an earlier run of the program has shown something of it."""

    id: str
    chat: str
    opened: float = 0.0
    sent: float = 0.0
    shown: str = ""
    ended: bool = False
    kept: str | None = None
    inherited: bool = False
    speaking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def is_old(self, now: float, second: float) -> bool:
        return bool(self.opened) and now - self.opened >= STREAM_S * second


class Streams:
    """The streams of one life of an adapter, by the frame that each answers."""

    def __init__(self) -> None:
        self._known: dict[str, Stream] = {}

    def __iter__(self) -> Iterator[tuple[str, Stream]]:
        return iter(list(self._known.items()))

    def get(self, req_id: str) -> Stream | None:
        return self._known.get(req_id)

    def open(self, req_id: str, chat: str, *, inherited: bool = False) -> Stream:
        """The stream of a question. Its id is made of the question's: another run of the program goes on in the same one (CH-97)."""
        stream = Stream(id=f"stream_{hashlib.sha256(req_id.encode()).hexdigest()[:20]}", chat=chat, inherited=inherited)
        self._known[req_id] = stream
        keep_newest(self._known, KEPT_MAX)
        return stream


def shown_as(req_id: str) -> str:
    """The platform id of a message that is a stream."""
    return f"{_PREFIX}{req_id}"


def req_id_of(message_id: str) -> str:
    """The inverse; empty for any other message."""
    return message_id.removeprefix(_PREFIX) if message_id.startswith(_PREFIX) else ""


def rest(text: str, shown: str) -> str:
    """What of `text` was not on show, when a stream ended with `shown`: all of it, unless they begin alike."""
    common = next((place for place, (one, other) in enumerate(zip(text, shown, strict=False)) if one != other), min(len(text), len(shown)))
    if common < len(shown) * ALIKE:
        return text
    kept = 0
    for grapheme in graphemes(text):
        if kept + len(grapheme) > common:
            break
        kept += len(grapheme)
    return text[kept:].lstrip("\n")

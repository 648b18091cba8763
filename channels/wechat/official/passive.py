"""The passive window (3.2): the tries of one delivery, what each is answered, and how waiting parts become one reply. Deciding is pure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from channels.message import visible
from channels.port import OutboundPart, TextUnit
from channels.units import graphemes, measure
from channels.wechat.official.settings import TRY_S

CONTINUE = frozenset({"继续", "繼續", "more", "続き", "1"})  # WX-72
HEAD_CHARACTERS = 12


@dataclass(slots=True, eq=False)
class Window:
    """One delivery of the vendor's, of `person` to `us`. `last`: when its newest try began, on the loop's clock; `stored_at` on ours.

    `document`: the reply, the same for every further try. `took`: the connection took it before the vendor's limit. `closed`: the vendor
    was answered, and an answer that comes later finds no try.
    """

    key: str
    person: str
    us: str
    question: str
    stored_at: datetime
    last: float
    tries: int = 0
    document: str | None = None
    took: bool = False
    closed: bool = False
    again: asyncio.Event = field(default_factory=asyncio.Event)

    def expects_a_try(self, now: float, tries: int, second: float) -> bool:
        """Will the vendor ask again, so that an answer can still travel in the reply?"""
        return self.document is None and not self.closed and self.tries < tries and now - self.last < (TRY_S + 1.5) * second


def tries_by_age(written: datetime | None, now: datetime) -> int:
    """Which try this must be, when an earlier life of ours took the ones before: by the age of the message, 5 s each."""
    age = (now - written).total_seconds() if written else 0.0
    return 2 if age < 2 * TRY_S - 2 else 3


def is_continue(text: str) -> bool:
    """A word that adds nothing: it only asks for what waits (WX-72)."""
    return visible(text).strip().strip("。.!！").casefold() in CONTINUE


def head(question: str) -> str:
    """The start of a question, as the line before its answer."""
    words = " ".join(question.split())
    shown = graphemes(words)
    start = "".join(shown[:HEAD_CHARACTERS])
    return f"“{start}{'…' if len(shown) > HEAD_CHARACTERS else ''}”\n" if start else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One message: its text, the parts whose words it holds, and those that have no room."""

    text: str = ""
    parts: tuple[OutboundPart, ...] = ()
    over: tuple[OutboundPart, ...] = ()


def compose(
    parts: Sequence[OutboundPart], *, limit: int, head_of: Callable[[OutboundPart], str] = lambda _: "", note: Callable[[int], str] = lambda _: ""
) -> Reply:
    """Parts in their order as one text of at most `limit` bytes, each one whole; `note(n)` ends it when n parts have no room.

    What comes before a part's words, and the note, are left out where there is no room for them.
    """
    for count in range(len(parts), 0, -1):
        kept, over = parts[:count], parts[count:]
        ending = note(len(over)) if over else ""
        ways = [(True, ending), (False, ending)] + ([(False, "")] if count == 1 else [])
        for with_heads, last in ways:
            pieces = [(head_of(part) if with_heads else "") + part.text for part in kept] + ([last] if last else [])
            text = "\n\n".join(pieces)
            if measure(text, TextUnit.BYTES) <= limit:
                return Reply(text=text, parts=tuple(kept), over=tuple(over))
    return Reply(over=tuple(parts))

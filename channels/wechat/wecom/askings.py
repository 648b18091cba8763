"""The messages that a called bot answers, each with the stream that the platform asks for until it ends (WX-121, WX-123)."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from channels.message import Account, Address
from channels.newest import keep_newest
from channels.port import OutboundPart
from channels.wechat.wecom.settings import POLLED_S, STREAM_S
from channels.wechat.wecom.streams import KEPT_MAX


@dataclass(slots=True, eq=False)
class Asking:
    """One message and the stream that answers it. `asked`: when the platform last asked, on the loop's clock. `ready`: parts that were taken for it.
    `kept`: the text it was ended with before the answer was whole. `url`: the one-time address, empty when it is used. `last`: the finishing answer,
    given again when it is asked for again."""

    id: str
    question: str
    address: Address
    opened: float
    asked: float
    url: str = ""
    snapshot: str = ""
    kept: str | None = None
    ended: bool = False
    last: dict[str, Any] | None = None
    ready: list[OutboundPart] = field(default_factory=list[OutboundPart])

    @property
    def age_s(self) -> float:
        return _now() - self.opened


class Askings:
    """Those of one life of an adapter. `second`: how long a second of the platform's takes."""

    def __init__(self, second: float) -> None:
        self._second = second
        self._by_stream: dict[str, Asking] = {}
        self._by_question: dict[str, Asking] = {}

    def of_stream(self, stream_id: str) -> Asking | None:
        return self._by_stream.get(stream_id)

    def of_question(self, question: str) -> Asking | None:
        return self._by_question.get(question)

    def in_chat(self, address: Address) -> Iterator[Asking]:
        """Those of a chat, the newest first."""
        return (each for each in reversed(list(self._by_question.values())) if each.address == address)

    def open(self, address: Address, question: str, *, stream_id: str = "", url: str = "") -> Asking:
        """A new one. `stream_id`: of an earlier life of the program, which the platform goes on asking for; else it is made."""
        now = _now()
        asking = Asking(id=stream_id or _stream_id(address, question), question=question, address=address, opened=now, asked=now, url=url)
        self._by_stream[asking.id] = self._by_question[question] = asking
        keep_newest(self._by_stream, KEPT_MAX)
        keep_newest(self._by_question, KEPT_MAX)
        return asking

    def hear(self, asking: Asking) -> None:
        """The platform asked for it now."""
        asking.asked = _now()

    def is_asked_for(self, asking: Asking) -> bool:
        """Will the platform ask again soon?"""
        return not asking.ended and _now() - asking.asked < POLLED_S * self._second

    def is_over(self, asking: Asking) -> bool:
        """Its end must be told now: the platform lets no stream live longer (WX-106)."""
        return asking.ended or asking.age_s >= STREAM_S * self._second


def told_by(stream_id: str, account: Account) -> tuple[Address, str] | None:
    """The chat and the question that a stream of an earlier life names; None for an id that is not ours."""
    try:
        chat, msgid = json.loads(base64.urlsafe_b64decode(stream_id + "=" * (-len(stream_id) % 4)))
        return Address(account=account, chat_id=str(chat)), str(msgid)
    except (ValueError, TypeError):
        return None


def _stream_id(address: Address, question: str) -> str:
    """Names its chat and question, so that a later life knows what it is about."""
    return base64.urlsafe_b64encode(json.dumps([address.chat_id, question]).encode()).decode().rstrip("=")


def _now() -> float:
    return asyncio.get_running_loop().time()

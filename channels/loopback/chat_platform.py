"""The platform's side: what people do on it, what they are shown, and how it fails."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from channels.errors import ConnectionLost
from channels.loopback.settings import CAPABILITIES
from channels.message import Action, Address, is_blank
from channels.port import Markup, OutboundPart, TextUnit
from channels.units import measure


@dataclass(slots=True, kw_only=True)
class Shown:
    """A message that people on the platform can see."""

    id: str
    address: Address
    text: str
    reply_to: str = ""
    part_id: str = ""
    markup: Markup = Markup.PLAIN
    files: tuple[str, ...] = ()
    at: datetime
    edits: int = 0
    actions: tuple[tuple[Action, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One request of an adapter: send, edit, typing, react or find."""

    name: str
    chat_id: str
    at: datetime


@dataclass(slots=True)
class LoopbackPlatform:
    """The platform's side. `updates` are raw records as the platform would send them; `acknowledged` is the cursor the adapter moved.

    `calls` holds every call that reached it, in order. It refuses what a real one refuses: a text above its limit
    or without words, characters that no message may hold, a wrong token.
    """

    token: str = "loopback-secret"
    me: str = "yume"
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    shown: list[Shown] = field(default_factory=list[Shown])
    text_max: int = CAPABILITIES.text_max
    typing: dict[str, bool] = field(default_factory=dict[str, bool])
    typed: dict[str, list[bool]] = field(default_factory=dict[str, list[bool]])
    typing_fails: bool = False
    reactions: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    asides: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])  # what one alone was told: who pressed a button, and the words
    faults: deque[Mapping[str, Any]] = field(default_factory=deque[Mapping[str, Any]])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    updates: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    acknowledged: int = 0
    hold_s: float = 0.5  # how long a poll without news is held
    down: bool = False
    deaf: bool = False
    calls: list[Call] = field(default_factory=list[Call])
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def says(self, chat: str, text: str, *, sender: str = "u1", **more: Any) -> dict[str, Any]:
        """A person writes; returns the raw update. `more` adds or replaces fields of it (kind, thread, reply_to, files, bot …)."""
        number = next(self._ids)
        update = {"n": number, "kind": "message", "chat": chat, "message": f"m{number}", "sender": sender, "name": sender, "text": text} | more
        return self.deliver(update)

    def deliver(self, update: dict[str, Any]) -> dict[str, Any]:
        """Put a raw update before the adapter, as it is."""
        self.updates.append(update)
        self._news.set()
        return update

    def edits(self, update: Mapping[str, Any], text: str) -> dict[str, Any]:
        return self.says(update["chat"], text, sender=update["sender"], kind="edited", message=update["message"])

    def deletes(self, update: Mapping[str, Any]) -> dict[str, Any]:
        return self.says(update["chat"], "", sender=update["sender"], kind="deleted", message=update["message"])

    def presses(self, shown: Shown, label: str, *, sender: str = "u1", **more: Any) -> dict[str, Any]:
        """A person presses the button that is called so; returns the raw update."""
        data = next(action.data for row in shown.actions for action in row if action.label == label)
        where = {"thread": shown.address.thread_id} if shown.address.thread_id else {}
        said = {"kind": "action", "hint": "button", "message": shown.id, "target": data}
        return self.says(shown.address.chat_id, "", sender=sender, **where, **said, **more)

    def repeats(self, update: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """The same event once more, at a later place in the feed."""
        return self.deliver({**update, "event": update.get("event", update["n"]), **more, "n": next(self._ids)})

    def redeliver(self) -> None:
        """The adapter was killed before it acknowledged: everything after its cursor comes again."""
        self._news.set()

    def fail_next(self, *plan: Mapping[str, Any]) -> None:
        """What happens to the next sends and edits, one each: {"later": s}, with "whole_account" for all its chats, {"unreachable": True},
        {"unknown": "before" or "after"}, {"refuse": reason}, {"gone": True}, {"operator": reason}, {"moved": chat}, {"markup": "refused"},
        {"hang": True}, {"raise": error}, {"thread_gone": True}: the topic exists no longer, {"nameless": True}: taken, and no message is named."""
        self.faults.extend(plan)

    def next_fault(self) -> Mapping[str, Any]:
        return self.faults.popleft() if self.faults else dict[str, Any]()

    def texts(self, chat: str | None = None) -> list[str]:
        return [message.text for message in self.shown if chat is None or message.address.chat_id == chat]

    def fault_in(self, text: str, *, has_files: bool = False) -> str:
        """Why the platform does not take a text; empty when it does."""
        if measure(text, TextUnit.UTF16) > self.text_max:
            return "message is too long"
        if is_blank(text) and not has_files:
            return "message text is empty"
        return "message text is not valid" if "\x00" in text or re.search("[\ud800-\udfff]", text) else ""

    def show(self, part: OutboundPart, *, key_s: float | None = None) -> Shown:
        """A message that people see from now on. `key_s`: for so long a second copy under the same part id stays the first one."""
        known = self.shown_as(part)
        if known is None or key_s is None or self.clock() - known.at >= timedelta(seconds=key_s):
            known = Shown(
                id=f"b{len(self.shown) + 1}",
                address=part.address,
                text=part.text,
                reply_to=part.reply_to,
                part_id=part.part_id,
                markup=part.markup,
                files=tuple(attachment.name for attachment in part.attachments),
                at=self.clock(),
                actions=part.actions,
            )
            self.shown.append(known)
        return known

    def shown_as(self, part: OutboundPart) -> Shown | None:
        return next((message for message in self.shown if part.part_id and message.part_id == part.part_id), None)

    async def pending(self, after: int) -> list[dict[str, Any]]:
        """Updates after a number, waiting for the first."""
        while True:
            if self.down:
                raise ConnectionLost("the platform is not reachable")
            found = [update for update in self.updates if update["n"] > after]
            if found and not self.deaf:
                return found
            self._news.clear()
            try:
                async with asyncio.timeout(self.hold_s):
                    await self._news.wait()
            except TimeoutError:
                if not self.deaf:
                    return []

"""What may be sent to whom: the context token of each person and what is left of its budget (WX-40 to WX-45). Deciding is pure; `Contexts` keeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum

from channels.port import OutboundPart, Vault
from channels.wechat.ilink.settings import BUDGET, FRESH_S, WINDOW_S

KEPT_MAX = 2_000  # people whose context is held in memory; the others are read again


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One person's. `received_at`: of the token; `sent`: messages since the person last wrote, whichever token they used; `checked_at`: when the
    platform was last asked whether the token still stands."""

    token: str
    received_at: datetime
    last_inbound_at: datetime
    sent: int = 0
    checked_at: datetime | None = None

    def used(self) -> Context:
        return replace(self, sent=self.sent + 1)

    def unused(self) -> Context:
        """The message that was counted did not go out after all."""
        return replace(self, sent=self.sent - 1)

    def spent(self) -> Context:
        """The platform said that it is enough: nothing more before the person writes (WX-45)."""
        return replace(self, sent=max(self.sent, BUDGET))

    def renewed(self, token: str, now: datetime) -> Context:
        """Another token, as `getconfig` names it (WX-42). The budget goes on: nobody has proven that it begins anew."""
        return replace(self, token=token, received_at=now, checked_at=now)

    def is_old(self, now: datetime) -> bool:
        return now - self.received_at > timedelta(seconds=FRESH_S)

    def wants_check(self, now: datetime) -> bool:
        """WX-42: older than 60 s, and not asked about for as long."""
        return now - max(self.received_at, self.checked_at or self.received_at) > timedelta(seconds=FRESH_S)


class Verdict(Enum):
    SEND = "send"
    SEND_WITH_NOTE = "the last message of the budget: it says that more follows"
    WAIT = "not before the person writes again"


def verdict(context: Context | None, part: OutboundPart, now: datetime, *, messages_left: int = 1) -> Verdict:
    """May the next message of `part` go out? `messages_left`: how many of this part there are, this one counted.

    The last one of the budget is kept for the answer, and closes it: its last message, or one that says that more follows (WX-41).
    """
    if context is None or not context.token or now - context.last_inbound_at >= timedelta(seconds=WINDOW_S):
        return Verdict.WAIT
    free = BUDGET - context.sent
    if free <= 0 or (free == 1 and part.aside):
        return Verdict.WAIT
    if free == 1 and (part.more_note or messages_left > 1):
        return Verdict.SEND_WITH_NOTE
    return Verdict.SEND


def key(person: str) -> str:
    """Where a person's context is kept in the vault."""
    return f"context/{person}"


def dumped(context: Context) -> bytes:
    return json.dumps({
        "token": context.token, "received_at": context.received_at.isoformat(), "last_inbound_at": context.last_inbound_at.isoformat(),
        "sent_count": context.sent, "checked_at": context.checked_at.isoformat() if context.checked_at else None,
    }).encode()  # fmt: skip


def loaded(data: bytes | None) -> Context | None:
    """The inverse of `dumped`; None for nothing and for what cannot be read."""
    try:
        kept = json.loads(data or b"null")
        return Context(
            token=kept["token"],
            received_at=datetime.fromisoformat(kept["received_at"]).astimezone(UTC),
            last_inbound_at=datetime.fromisoformat(kept["last_inbound_at"]).astimezone(UTC),
            sent=int(kept["sent_count"]),
            checked_at=datetime.fromisoformat(kept["checked_at"]).astimezone(UTC) if kept.get("checked_at") else None,
        )
    except (ValueError, TypeError, KeyError):
        return None


class Contexts:
    """The contexts of one account, in memory and in the vault."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._known: dict[str, Context | None] = {}
        self._arriving: set[str] = set()  # people whose newer context is being stored with their message
        self._writing = asyncio.Lock()

    async def of(self, person: str) -> Context | None:
        if person not in self._known:
            found = loaded(await self._vault.get(key(person)))
            self._known.setdefault(person, found)  # while it was read, a message may have brought a newer one
            self._forget()
        return self._known.get(person)

    async def keep(self, person: str, context: Context, *, instead_of: Context) -> None:
        """Keep what a send made of a context. When a message came meanwhile, its context stays."""
        current = self._known.get(person)
        if current is not None and current.last_inbound_at > instead_of.last_inbound_at:
            return
        self._known[person] = context
        async with self._writing:
            if person not in self._arriving:
                await self._vault.put({key(person): dumped(context)})

    @asynccontextmanager
    async def arriving(self, tokens: Mapping[str, str], now: datetime) -> AsyncGenerator[dict[str, bytes]]:
        """The vault's entries for the tokens of a batch, to be stored with it (WX-31). They count once the block ends without an error."""
        contexts = {person: Context(token=token, received_at=now, last_inbound_at=now) for person, token in tokens.items()}
        async with self._writing:  # no older context may be written after this one
            self._arriving.update(contexts)
        try:
            yield {key(person): dumped(context) for person, context in contexts.items()}
            for person, context in contexts.items():
                self._known.pop(person, None)
                self._known[person] = context
            self._forget()
        finally:
            self._arriving.difference_update(contexts)

    def _forget(self) -> None:
        for person in list(self._known)[: max(len(self._known) - KEPT_MAX, 0)]:
            del self._known[person]

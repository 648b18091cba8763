"""A vault in memory, with the cursor beside it as the store has it; `Kept` outlives an adapter that is killed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from channels.message import InboundEvent
from channels.port import Accepted, Cursor, Deliver


@dataclass(slots=True)
class Kept:
    entries: dict[str, bytes] = field(default_factory=dict[str, bytes])
    cursor: str = ""
    writes: int = 0

    async def get(self, key: str) -> bytes | None:
        return self.entries.get(key)

    async def put(self, entries: Mapping[str, bytes]) -> None:
        self.writes += 1
        self.entries.update(entries)

    async def renew(self, entries: Mapping[str, bytes]) -> None:
        self.entries, self.cursor = dict(entries), ""

    async def load_cursor(self) -> str:
        return self.cursor

    def logged_in(self, token: str, bot_id: str, base_url: str, *, proven: bool = True) -> None:
        told = {"token": token, "bot_id": bot_id, "base_url": base_url, "person_id": "ann@im.wechat", "proven": proven}
        self.entries["credentials"] = json.dumps(told).encode()

    def delivering(self, deliver: Deliver) -> Deliver:
        """`deliver` with the vault's entries in the same transaction: what the gateway's intake does."""

        async def both(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> list[Accepted]:
            accepted = await deliver(events, cursor)
            if cursor is not None:
                self.entries.update(cursor.vault)
                self.cursor = cursor.value
            return accepted

        return both

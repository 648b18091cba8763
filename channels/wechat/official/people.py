"""What may be sent to whom by the API: when a person last acted, and how much was sent since (WX-62, WX-80). Deciding is pure; `People` keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from channels.newest import keep_newest
from channels.port import Vault
from channels.wechat.official.settings import BUDGET, WINDOW_S

KEPT_MAX = 2_000  # people held in memory; the others are read again


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """`acted_at`: None for somebody who never wrote. `gone`: the person does not follow the account any more."""

    acted_at: datetime | None = None
    sent: int = 0
    gone: bool = False

    def may_be_sent(self, now: datetime) -> bool:
        return self.acted_at is not None and now - self.acted_at < timedelta(seconds=WINDOW_S) and self.sent < BUDGET

    def used(self) -> Standing:
        return replace(self, sent=self.sent + 1)

    def spent(self) -> Standing:
        return replace(self, sent=max(self.sent, BUDGET))


def key(person: str) -> str:
    return f"person/{person}"


class People:
    """The standing of everybody, in memory and in the vault."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._known: dict[str, Standing] = {}

    async def of(self, person: str) -> Standing:
        if person not in self._known:
            self._known[person] = _loaded(await self._vault.get(key(person)))
            keep_newest(self._known, KEPT_MAX)
        return self._known[person]

    async def keep(self, person: str, standing: Standing) -> None:
        self._known[person] = standing
        at = standing.acted_at.isoformat() if standing.acted_at else ""
        await self._vault.put({key(person): json.dumps({"at": at, "sent": standing.sent, "gone": standing.gone}).encode()})


def _loaded(data: bytes | None) -> Standing:
    try:
        told = json.loads(data or b"{}")
        at = datetime.fromisoformat(told["at"]).astimezone(UTC) if told.get("at") else None
        return Standing(acted_at=at, sent=int(told.get("sent", 0)), gone=bool(told.get("gone")))
    except (ValueError, TypeError, AttributeError):
        return Standing()

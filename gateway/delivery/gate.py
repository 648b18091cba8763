"""One gate per chat and one per account: every call to a platform passes it (CH-90 to CH-92).

A platform's order to wait closes the chat's gate for the whole wait. Finals then wait in the outbox; previews, typing and reactions are skipped, not
queued. Nobody sleeps holding a worker. The wait itself is also stored with the part, so a restart does not forget it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from channels.message import Account, Address


@dataclass(slots=True)
class Gates:
    """Times before which nothing may be sent, on the event loop."""

    _until: dict[str, datetime] = field(default_factory=dict[str, datetime])
    _stopped: dict[str, str] = field(default_factory=dict[str, str])

    def close(self, address: Address, now: datetime, seconds: float, *, whole_account: bool = False) -> None:
        """The gate of the chat, or of its whole account; one that is closed for longer stays so."""
        key, until = str(address.account if whole_account else address), now + timedelta(seconds=seconds)
        if until > self._until.get(key, now):
            self._until[key] = until

    def stop_account(self, account: Account, reason: str) -> None:
        """The account sends nothing until it is proven again."""
        self._stopped[str(account)] = reason

    def prove(self, account: Account) -> bool:
        """The account works again; True when it had been stopped."""
        return self._stopped.pop(str(account), None) is not None

    def stopped(self, account: Account) -> str:
        return self._stopped.get(str(account), "")

    def closed_until(self, address: Address, now: datetime) -> datetime | None:
        """When the gate opens, or None while it is open."""
        keys = (str(address), str(address.account))
        waits = [self._until[key] for key in keys if key in self._until and self._until[key] > now]
        if not waits:
            for key in keys:
                self._until.pop(key, None)
        return max(waits, default=None)

    def account_closed_until(self, account: Account, now: datetime) -> datetime | None:
        until = self._until.get(str(account))
        return until if until is not None and until > now else None

    def is_open(self, address: Address, now: datetime) -> bool:
        return not self.stopped(address.account) and self.closed_until(address, now) is None

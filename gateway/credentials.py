"""What a browser or a program shows to be known again, and a short memory of it (WO-61).

Only the SHA-256 of a session or API token is stored: who reads the database cannot sign in with it. A visit that was looked up is remembered for 30
seconds, so that a chat request costs no database statement; whatever ends a visit in this process also ends the memory of it at once.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from gateway.person import Person

REMEMBERED = timedelta(seconds=30)
SEEN_EVERY = timedelta(hours=1)  # how often "last seen" is written, at most


class Way(StrEnum):
    """How somebody showed who they are. All but `token` come along with every request of a browser, so their writes need the CSRF token."""

    SESSION = "session"
    TOKEN = "token"
    PROXY = "proxy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request's asker. `key` names the session or token (its hash); `csrf` is empty for API tokens."""

    person: Person
    way: Way
    key: str
    csrf: str = ""


def new_secret() -> str:
    """43 characters that nobody can guess (256 bits), safe in a URL and in a cookie."""
    return secrets.token_urlsafe(32)


def fingerprint(secret: str) -> str:
    """What is stored of a secret of ours. Plain SHA-256 is enough, for such a secret cannot be guessed."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class VisitCache:
    """Visits that were looked up lately, by key. Unknown keys are not remembered: a flood of wrong tokens pushes nobody out."""

    def __init__(self, clock: Callable[[], datetime], *, size: int = 4096) -> None:
        self._clock = clock
        self._size = size
        self._visits: OrderedDict[str, tuple[Visit, datetime]] = OrderedDict()
        self._revocations = 0

    async def find(self, key: str, look_up: Callable[[], Awaitable[Visit | None]]) -> Visit | None:
        """The visit under `key`, from memory or from `look_up`. What was revoked while `look_up` ran is not remembered."""
        visit, until = self._visits.get(key, (None, None))
        if visit and until and self._clock() < until:
            return visit
        revocations = self._revocations
        visit = await look_up()
        if visit and revocations == self._revocations:
            self._visits[key] = visit, self._clock() + REMEMBERED
            self._visits.move_to_end(key)
            while len(self._visits) > self._size:
                self._visits.popitem(last=False)
        return visit

    def forget(self, key: str) -> None:
        self._revocations += 1
        self._visits.pop(key, None)

    def forget_person(self, person_id: str) -> None:
        self._revocations += 1
        for key in [key for key, (visit, _) in self._visits.items() if visit.person.id == person_id]:
            del self._visits[key]

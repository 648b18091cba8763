"""Yes to what cannot be undone: a short code, good for one use, one target, one person and five minutes (RS-42).

Plain functions on a `Connection`. A code is no secret: it shows that the question was read, and only whom it was told to may give it back.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

import sqlalchemy as sa

from memory import one_yes

OPEN_FOR = timedelta(minutes=5)
_STEP = 0  # the steps of saved memories begin at 1


class CodeExpired(Exception):
    """No such question is open for this person and target: answered before, asked anew since, older than five minutes, or never asked."""


def ask(connection: sa.Connection, person_id: str, target: str, now: datetime) -> str:
    """Open the question and return its code, four digits. An earlier one about the same is closed."""
    one_yes.withdraw(connection, person_id=person_id, about=target, step=_STEP)
    code = f"{secrets.randbelow(10_000):04d}"
    one_yes.ask(connection, _secret(person_id, target, code), person_id=person_id, about=target, step=_STEP, now=now, until=now + OPEN_FOR)
    return code


def take(connection: sa.Connection, person_id: str, target: str, code: str, now: datetime) -> None:
    """Use the code up. Raises CodeExpired."""
    secret = _secret(person_id, target, code)
    if one_yes.take(connection, secret, person_id=person_id, about=target, steps=[_STEP], now=now) is None:
        raise CodeExpired("there is nothing open to confirm: ask again")


def _secret(person_id: str, target: str, code: str) -> str:
    """Four digits alone are the same in many questions."""
    return "\x1f".join((person_id, target, code))

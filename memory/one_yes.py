"""Questions that wait for a yes which counts once: what cannot be undone is asked about first (SM-77, RS-42, WO-22).

A question is about something, at one step of it, and for one person. What answers it is a secret of which a print alone is stored. Plain functions on
a `Connection`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from datetime import datetime

import sqlalchemy as sa

from memory.saved_schema import clear_tokens


def ask(
    connection: sa.Connection, secret: str, *, person_id: str, about: str, step: int, now: datetime, until: datetime, listed: Sequence[int] = ()
) -> None:
    """Open a question. `listed`: ids that it showed. What nobody answered in time goes."""
    connection.execute(_SWEEP, {"now": now})
    connection.execute(_ASK, {
        "token_hash": _print(secret), "person_id": person_id, "list_key": about, "step": step, "listed": list(listed), "expires_at": until,
    })  # fmt: skip


def withdraw(connection: sa.Connection, *, person_id: str, about: str, step: int) -> None:
    """What was asked about this before is answered by nothing any more."""
    connection.execute(_WITHDRAW, {"person": person_id, "about": about, "steps": [step]})


def take(
    connection: sa.Connection, secret: str, *, person_id: str, about: str, steps: Collection[int], now: datetime
) -> frozenset[int] | None:
    """Use the secret up, in one statement, so that of two clicks one counts: the ids that its question listed; None when none of these steps is open
    to it."""
    given = {"print": _print(secret), "person": person_id, "about": about, "steps": list(steps), "now": now}
    row = connection.execute(_TAKE, given).one_or_none()
    return None if row is None else frozenset(row.listed or ())


def _print(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


# -- statements, built once ------------------------------------------------------------------------------------------------

_T = clear_tokens.c
_NOW = sa.bindparam("now", type_=_T.expires_at.type)
_ABOUT = (
    _T.person_id == sa.bindparam("person"),
    _T.list_key == sa.bindparam("about"),
    _T.step.in_(sa.bindparam("steps", type_=_T.step.type, expanding=True)),
)
_ASK = sa.insert(clear_tokens)
_SWEEP = sa.delete(clear_tokens).where(_T.expires_at < _NOW)
_WITHDRAW = sa.delete(clear_tokens).where(*_ABOUT)
_TAKE = (
    sa.update(clear_tokens)
    .where(_T.token_hash == sa.bindparam("print"), *_ABOUT, _T.used_at.is_(None), _T.expires_at > _NOW)
    .values(used_at=_NOW)
    .returning(_T.listed)
)

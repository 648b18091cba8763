"""Questions that wait for a yes which counts once: what cannot be undone is asked about first (SM-77, RS-42, WO-22), and what has buttons (CH-159).

A question is about something, at one step of it, and for one person. What answers it is a secret of which a print alone is stored. Plain functions on
a `Connection`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory.saved_schema import clear_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A question that is open: for whom, about what, and what was `listed` with it."""

    person_id: str
    about: str
    listed: Any


def ask(
    connection: sa.Connection,
    secret: str,
    *,
    person_id: str,
    about: str,
    step: int,
    now: datetime,
    until: datetime,
    listed: Sequence[int] | Mapping[str, object] = (),
) -> None:
    """Open a question. `listed`: ids that it showed, or JSON data that its asker reads with `open_question`. What nobody answered in time goes."""
    sweep(connection, now)
    connection.execute(_ASK, {
        "token_hash": _print(secret), "person_id": person_id, "list_key": about, "step": step, "expires_at": until,
        "listed": dict(listed) if isinstance(listed, Mapping) else list(listed),
    })  # fmt: skip


def sweep(connection: sa.Connection, now: datetime) -> None:
    """What nobody answered in time goes."""
    connection.execute(_SWEEP, {"now": now})


def withdraw(connection: sa.Connection, *, person_id: str, about: str, step: int) -> None:
    """What was asked about this before is answered by nothing any more."""
    connection.execute(_WITHDRAW, {"person": person_id, "about": about, "steps": [step]})


def take(connection: sa.Connection, secret: str, *, person_id: str, about: str, steps: Collection[int], now: datetime) -> frozenset[int] | None:
    """Use the secret up, in one statement, so that of two clicks one counts: the ids that its question listed; None when none of these steps is open
    to it."""
    given = {"print": _print(secret), "person": person_id, "about": about, "steps": list(steps), "now": now}
    row = connection.execute(_TAKE, given).one_or_none()
    return None if row is None else frozenset(row.listed or ())


def open_question(connection: sa.Connection, secret: str, *, step: int, now: datetime) -> Open | None:
    """What the secret would answer at this step, whoever gives it; None for nothing that is open. It stays open."""
    row = connection.execute(_LOOK, {"print": _print(secret), "step": step, "now": now}).one_or_none()
    return None if row is None else Open(person_id=row.person_id, about=row.list_key, listed=row.listed)


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
_SWEEP = sa.delete(clear_tokens).where(_T.expires_at <= _NOW)
_WITHDRAW = sa.delete(clear_tokens).where(*_ABOUT)
_LOOK = sa.select(_T.person_id, _T.list_key, _T.listed).where(
    _T.token_hash == sa.bindparam("print"), _T.step == sa.bindparam("step"), _T.used_at.is_(None), _T.expires_at > _NOW
)
_TAKE = (
    sa.update(clear_tokens)
    .where(_T.token_hash == sa.bindparam("print"), *_ABOUT, _T.used_at.is_(None), _T.expires_at > _NOW)
    .values(used_at=_NOW)
    .returning(_T.listed)
)

"""Clearing one list in two steps, each with a question of its own: everything unpinned, then the pins (SM-76 to SM-78).

A question is answered by a token that works once, for this person, this list and this step. What it says is told by whoever asks.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from memory import one_yes
from memory.saved import journal, stored
from memory.saved.rows import ListKey, Memory
from memory.saved_schema import memories

OPEN_FOR = timedelta(minutes=10)
STEPS = (1, 2)


class ClearingExpired(Exception):
    """No such question is open for this person, list and step: answered before, older than ten minutes, or never asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`step` 1: shall all `count` unpinned rows go? 2: shall these `pins` go too? The person set them apart from the AI."""

    token: str
    step: int
    count: int
    pins: tuple[Memory, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """How many rows are gone for good, and the next question; None when no pin is left to ask about."""

    deleted: int
    question: Question | None


def ask(connection: sa.Connection, person_id: str, key: ListKey, now: datetime) -> Question:
    """The first question. It changes nothing."""
    return _question(connection, person_id, key, 1, stored.count(connection, key, pinned=False), (), now)


def clear(connection: sa.Connection, token: str, person_id: str, key: ListKey, now: datetime) -> Cleared:
    """Yes to the first question: every unpinned row of the list goes, dormant and hidden ones too; pins stay and are asked about. ClearingExpired."""
    _take(connection, token, person_id, key, 1, now)
    stored.lock(connection, [key])
    rows = stored.rows_where(connection, stored.in_list(key))
    gone = [memory for memory in rows if not memory.pinned]
    _delete(connection, key, gone, now)
    return Cleared(deleted=len(gone), question=_about_pins(connection, person_id, key, [memory for memory in rows if memory.pinned], now))


def clear_pins(connection: sa.Connection, token: str, person_id: str, key: ListKey, now: datetime) -> Cleared:
    """Yes to the second question: the pins that it listed go. Pins made since are not deleted but asked about (SM-77). ClearingExpired."""
    listed = _take(connection, token, person_id, key, 2, now)
    stored.lock(connection, [key])
    pins = stored.rows_where(connection, stored.in_list(key) & memories.c.pinned)
    gone = [memory for memory in pins if memory.id in listed]
    _delete(connection, key, gone, now)
    return Cleared(deleted=len(gone), question=_about_pins(connection, person_id, key, [each for each in pins if each.id not in listed], now))


def decline(connection: sa.Connection, token: str, person_id: str, key: ListKey, now: datetime) -> None:
    """No: the token answers nothing any more."""
    one_yes.take(connection, token, person_id=person_id, about=str(key), steps=STEPS, now=now)


def _about_pins(connection: sa.Connection, person_id: str, key: ListKey, pins: Sequence[Memory], now: datetime) -> Question | None:
    return _question(connection, person_id, key, 2, len(pins), tuple(pins), now) if pins else None


def _question(connection: sa.Connection, person_id: str, key: ListKey, step: int, count: int, pins: tuple[Memory, ...], now: datetime) -> Question:
    token = secrets.token_urlsafe(24)
    listed = [memory.id for memory in pins]
    one_yes.ask(connection, token, person_id=person_id, about=str(key), step=step, now=now, until=now + OPEN_FOR, listed=listed)
    return Question(token=token, step=step, count=count, pins=pins)


def _take(connection: sa.Connection, token: str, person_id: str, key: ListKey, step: int, now: datetime) -> frozenset[int]:
    """The ids that the question listed."""
    listed = one_yes.take(connection, token, person_id=person_id, about=str(key), steps=[step], now=now)
    if listed is None:
        raise ClearingExpired("there is nothing open to confirm: ask again to clear the list")
    return listed


def _delete(connection: sa.Connection, key: ListKey, gone: Sequence[Memory], now: datetime) -> None:
    stored.delete(connection, gone)
    journal.void_list(connection, key, now)

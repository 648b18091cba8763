"""Buttons below what we say: each press is a command that was written down when the question was asked (CH-159, RS-42, RS-85).

What a button carries is a key and nothing else. Behind the key stand whom the question was put to, in which chat, for how long, and one command for
each of its buttons; a press gives that command in the name of who pressed, past the same checks as one that is typed.

Plain functions on a `Connection`.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from channels.message import Action
from gateway.language import say
from memory.saved_schema import clear_tokens
from memory.schema import people

BUTTON = "button"  # how adapters name a press
ASKED_FOR = timedelta(minutes=5)  # what cannot be undone, as its typed code (RS-42)
WAITS_FOR = timedelta(hours=24)  # what waits for a yes or a no (CH-159)
QUESTIONS_MAX = 5  # below one message: as many rows as every platform has
_STEP = -1  # the steps of lists begin at 1, of typed codes at 0
_t = clear_tokens.c


@dataclass(frozen=True, slots=True)
class Choice:
    """One button: its label, and the command that it stands for; without one it only closes the question."""

    label: str
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A row of buttons of which one can be pressed, once. `language`: what it is put in, and what is said to a press."""

    choices: tuple[Choice, ...]
    language: str
    open_for: timedelta = ASKED_FOR


@dataclass(frozen=True, slots=True)
class Drawn:
    """A question with its key: what is shown is `actions`, what is stored is a print of the key."""

    key: str
    question: Question

    @property
    def actions(self) -> tuple[Action, ...]:
        return tuple(Action(label=choice.label, data=f"{self.key}.{number}") for number, choice in enumerate(self.question.choices))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressed:
    """What stands behind a button that may still be pressed. `language`: of the question; `line`: empty where the button only closes it."""

    key: str
    person_id: str
    conversation_id: str
    language: str
    line: str


def deciding(language: str, number: int, *, approve: str, decline: str) -> Question:
    """Yes or no to an entry that waits, by its number (RS-85): as long as people may take to read it. `approve` and `decline`: the commands."""
    labelled = (("button_approve", approve), ("button_decline", decline))
    choices = tuple(Choice(say(language, key, id=number), f"{line} {number}") for key, line in labelled)
    return Question(choices=choices, language=language, open_for=WAITS_FOR)


def draw(questions: Sequence[Question]) -> tuple[Drawn, ...]:
    """A key for each: nothing is stored yet. Those that have no room below one message are left to be typed."""
    return tuple(Drawn(secrets.token_urlsafe(16), question) for question in questions[:QUESTIONS_MAX])


def rows(drawn: Sequence[Drawn]) -> tuple[tuple[Action, ...], ...]:
    return tuple(each.actions for each in drawn)


def keep(connection: sa.Connection, drawn: Sequence[Drawn], *, person_id: str, conversation_id: str, now: datetime) -> None:
    """In the transaction that stores the message below which they stand: nothing for somebody who is gone. What is over goes."""
    connection.execute(_SWEEP, {"now": now})
    if not drawn or connection.execute(_PERSON, {"of": person_id}).first() is None:
        return
    values: list[dict[str, Any]] = [
        {
            "token_hash": _print(each.key), "person_id": person_id, "list_key": conversation_id, "step": _STEP,
            "listed": {"language": each.question.language, "lines": [choice.line for choice in each.question.choices]},
            "expires_at": now + each.question.open_for,
        }
        for each in drawn
    ]  # fmt: skip
    connection.execute(_KEEP, values)


def find(connection: sa.Connection, data: str, now: datetime) -> Pressed | None:
    """What stands behind the data of a button; None for what was never ours, is used or is over."""
    key, _, number = data.rpartition(".")
    row = connection.execute(_OPEN, {"key": _print(key), "now": now}).one_or_none()
    if row is None or not (number.isascii() and number.isdigit() and int(number) < len(row.listed["lines"])):
        return None
    line, language = row.listed["lines"][int(number)], row.listed["language"]
    return Pressed(key=key, person_id=row.person_id, conversation_id=row.list_key, language=language, line=line)


def use(connection: sa.Connection, pressed: Pressed, now: datetime) -> bool:
    """In one statement, so that of two presses one counts: False for the other."""
    return connection.execute(_USE, {"key": _print(pressed.key), "now": now}).rowcount == 1


def _print(key: str) -> str:
    return hashlib.sha256(f"button\x1f{key}".encode(errors="replace")).hexdigest()


_STANDS = (
    _t.token_hash == sa.bindparam("key"),
    _t.step == _STEP,
    _t.used_at.is_(None),
    _t.expires_at > sa.bindparam("now", type_=_t.expires_at.type),
)
_KEEP = sa.insert(clear_tokens)
_OPEN = sa.select(_t.person_id, _t.list_key, _t.listed).where(*_STANDS)
_USE = sa.update(clear_tokens).where(*_STANDS).values(used_at=sa.bindparam("now", type_=_t.used_at.type))
_PERSON = sa.select(people.c.id).where(people.c.id == sa.bindparam("of"))
_SWEEP = sa.delete(clear_tokens).where(_t.step == _STEP, _t.expires_at <= sa.bindparam("now", type_=_t.expires_at.type))

"""Buttons below what we say: each press is a command that was written down when the question was asked (CH-159, RS-42, RS-85).

What a button carries is a key and nothing else. Behind the key stand whom the question was put to, in which chat, for how long, and one command for
each of its buttons; a press gives that command in the name of who pressed, past the same checks as one that is typed.

Plain functions on a `Connection`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

import sqlalchemy as sa

from channels.message import Action
from gateway.language import say
from memory import one_yes
from memory.extract import shortened
from memory.schema import people

BUTTON = "button"  # how adapters name a press
ASKED_FOR = timedelta(minutes=5)  # what cannot be undone, as its typed code (RS-42)
WAITS_FOR = timedelta(hours=24)  # what waits for a yes or a no (CH-159)
NAME_SHOWN = 40  # characters of a name on a button
QUESTIONS_MAX = 5  # below one message: as many rows as every platform has
_STEP = -1  # the steps of lists begin at 1, of typed codes at 0


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

    def as_json(self) -> dict[str, Any]:
        """For a sentence that is stored first and said later."""
        choices = [[choice.label, choice.line] for choice in self.choices]
        return {"choices": choices, "language": self.language, "open_for_s": self.open_for.total_seconds()}

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of `as_json`."""
        choices = tuple(Choice(label, line) for label, line in value["choices"])
        return cls(choices=choices, language=value["language"], open_for=timedelta(seconds=value["open_for_s"]))


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


def deciding(language: str, of: int | str, *, approve: str, decline: str, show: str = "") -> Question:
    """Yes or no to what waits under a number or an id (RS-85, WD-81): as long as people may take to read it. `approve` and `decline`: the commands;
    `show`: that which tells what it is about, where that is not told yet."""
    labelled = (("button_show", show), ("button_approve", approve), ("button_decline", decline))
    choices = tuple(Choice(say(language, key, id=of), f"{line} {of}") for key, line in labelled if line)
    return Question(choices=choices, language=language, open_for=WAITS_FOR)


def linking(language: str, link_id: int, name: str, *, accept: str, refuse: str, open_for: timedelta) -> Question:
    """Yes or no to be one person with `name` (WD-13), by the number of the link: it never counts for another. `accept` and `refuse`: the commands."""
    shown = shortened(" ".join(name.split()), NAME_SHOWN) or "–"
    labelled = (("button_link", accept), ("button_link_no", refuse))
    choices = tuple(Choice(say(language, key, name=shown), f"{line} {link_id}") for key, line in labelled)
    return Question(choices=choices, language=language, open_for=open_for)


def draw(questions: Sequence[Question]) -> tuple[Drawn, ...]:
    """A key for each: nothing is stored yet. Those that have no room below one message are left to be typed."""
    return tuple(Drawn(secrets.token_urlsafe(16), question) for question in questions[:QUESTIONS_MAX])


def rows(drawn: Sequence[Drawn]) -> tuple[tuple[Action, ...], ...]:
    return tuple(each.actions for each in drawn)


def keep(connection: sa.Connection, drawn: Sequence[Drawn], *, person_id: str, conversation_id: str, now: datetime) -> None:
    """In the transaction that stores the message below which they stand: nothing for somebody who is gone. What is over goes."""
    one_yes.sweep(connection, now)
    if not drawn or connection.execute(_PERSON, {"of": person_id}).first() is None:
        return
    for each in drawn:
        one_yes.ask(
            connection, _secret(each.key), person_id=person_id, about=conversation_id, step=_STEP, now=now, until=now + each.question.open_for,
            listed={"language": each.question.language, "lines": [choice.line for choice in each.question.choices]},
        )  # fmt: skip


def find(connection: sa.Connection, data: str, now: datetime) -> Pressed | None:
    """What stands behind the data of a button; None for what was never ours, is used or is over."""
    key, _, number = data.rpartition(".")
    found = one_yes.open_question(connection, _secret(key), step=_STEP, now=now)
    if found is None or not (number.isascii() and number.isdigit() and int(number) < len(found.listed["lines"])):
        return None
    line, language = found.listed["lines"][int(number)], found.listed["language"]
    return Pressed(key=key, person_id=found.person_id, conversation_id=found.about, language=language, line=line)


def use(connection: sa.Connection, pressed: Pressed, now: datetime) -> bool:
    """In one statement, so that of two presses one counts: False for the other."""
    person_id, about = pressed.person_id, pressed.conversation_id
    return one_yes.take(connection, _secret(pressed.key), person_id=person_id, about=about, steps=[_STEP], now=now) is not None


def _secret(key: str) -> str:
    return f"button\x1f{key}"


_PERSON = sa.select(people.c.id).where(people.c.id == sa.bindparam("of"))

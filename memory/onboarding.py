"""How far the first-start questions have come with a person: one row, so that a restart does not ask again (WD-31, WD-35).

Plain functions on a `Connection`. Answers themselves stand in files; the row names which were given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from memory.file_schema import onboarding
from memory.upserts import insert_or_keep


class State(StrEnum):
    NEW = "new"
    ASKED = "asked"
    DONE = "done"
    DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """`asked`: times so far; `asked_on`: local date of the last time, None when that one did not reach the person; `given`: names of the answers that
    were given; `reopened`: by `/setup`, so files with content do not end it; `turn`: which asked last; `stored`: whether there is a row at all."""

    state: State = State.NEW
    asked: int = 0
    asked_on: date | None = None
    given: frozenset[str] = frozenset()
    reopened: bool = False
    turn: str = ""
    stored: bool = False


_FIND = sa.select(onboarding).where(onboarding.c.person_id == sa.bindparam("person"))
_LOCK = _FIND.with_for_update()
_ADD = {name: adding.returning(onboarding.c.person_id) for name, adding in insert_or_keep(onboarding, ["person_id"]).items()}
_SET = sa.update(onboarding).where(onboarding.c.person_id == sa.bindparam("of"))


def progress(connection: sa.Connection, person_id: str) -> Progress:
    return _progress(connection.execute(_FIND, {"person": person_id}).one_or_none())


def claim(connection: sa.Connection, person_id: str, turn_id: str, today: date, seen: Progress, now: datetime) -> bool:
    """Whether this turn is the one that asks: of two that began at once and both saw `seen`, one (WD-35)."""
    asking = replace(seen, state=State.ASKED, asked=seen.asked + 1, asked_on=today, turn=turn_id)
    if not seen.stored:
        added = connection.execute(_ADD[connection.dialect.name], {"person_id": person_id, **_values(asking, now)})
        return added.first() is not None
    present = _progress(connection.execute(_LOCK, {"person": person_id}).one_or_none())
    if (present.state, present.asked, present.asked_on) != (seen.state, seen.asked, seen.asked_on):
        return False
    _put(connection, person_id, replace(asking, given=present.given, reopened=present.reopened), now)
    return True


def release(connection: sa.Connection, person_id: str, turn_id: str, now: datetime) -> None:
    """The turn that was to ask ended without an answer: the questions did not reach the person, and the next turn asks them."""
    present = _progress(connection.execute(_LOCK, {"person": person_id}).one_or_none())
    if present.state is State.ASKED and present.turn == turn_id:
        asked = max(0, present.asked - 1)
        _put(connection, person_id, replace(present, state=State.ASKED if asked else State.NEW, asked=asked, asked_on=None, turn=""), now)


def give(connection: sa.Connection, person_id: str, fields: Iterable[str], now: datetime, *, all_of: Iterable[str]) -> Progress:
    """These answers were given; with `all_of` given, the questions are done."""
    present = _progress(connection.execute(_LOCK, {"person": person_id}).one_or_none())
    given = present.given | frozenset(fields)
    state = State.DONE if given >= frozenset(all_of) and present.state is State.ASKED else present.state
    changed = replace(present, given=given, state=state)
    _put(connection, person_id, changed, now)
    return changed


def end(connection: sa.Connection, person_id: str, state: State, now: datetime) -> None:
    """No question any more: `state` is done or dismissed."""
    present = _progress(connection.execute(_LOCK, {"person": person_id}).one_or_none())
    _put(connection, person_id, replace(present, state=state), now)


def reopen(connection: sa.Connection, person_id: str, now: datetime) -> None:
    """All questions are asked once more, whatever stands in the files (`/setup`)."""
    _put(connection, person_id, Progress(reopened=True), now)


def _put(connection: sa.Connection, person_id: str, changed: Progress, now: datetime) -> None:
    values = _values(changed, now)
    if connection.execute(_SET.values(**values), {"of": person_id}).rowcount == 0:
        connection.execute(_ADD[connection.dialect.name], {"person_id": person_id, **values})


def _values(progress: Progress, now: datetime) -> dict[str, Any]:
    return {
        "state": str(progress.state), "asked": progress.asked, "asked_on": progress.asked_on.isoformat() if progress.asked_on else "",
        "answers": {"given": sorted(progress.given), "reopened": progress.reopened, "turn": progress.turn}, "updated_at": now,
    }  # fmt: skip


def _progress(row: sa.Row[Any] | None) -> Progress:
    if row is None:
        return Progress()
    answers: Mapping[str, Any] = row.answers or {}
    return Progress(
        state=State(row.state), asked=row.asked, asked_on=date.fromisoformat(row.asked_on) if row.asked_on else None,
        given=frozenset(answers.get("given", ())), reopened=bool(answers.get("reopened")), turn=answers.get("turn", ""), stored=True,
    )  # fmt: skip

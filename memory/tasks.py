"""The rows of scheduled tasks. Plain functions on a `Connection`, to be joined into the caller's transaction."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory.task_schema import tasks

KEPT_STATES = ("active", "paused", "bad")  # those that a person still has; the others have ended


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """A task as it is made. Exactly one of `rule` (cron) and `once_at` says when; `timezone` is empty for the machine's."""

    person_id: str
    address: str
    scope: str
    kind: str
    text: str
    language: str
    timezone: str
    silent: bool = False
    rule: str = ""
    once_at: datetime | None = None
    next_run: datetime | None = None
    state: str = "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A stored task. While a run goes on, `run_slot` is when it was due, `run_turn` its id, `run_key` the key of its job."""

    id: int
    person_id: str
    address: str
    scope: str
    kind: str
    text: str
    silent: bool
    rule: str
    once_at: datetime | None
    timezone: str
    language: str
    state: str
    fault: str
    next_run: datetime | None
    run_slot: datetime | None
    run_turn: str
    run_key: str
    run_stored: bool
    last_run: datetime | None
    last_result: str
    last_error: str
    runs: int
    skipped: int
    missed: int
    created_at: datetime
    ended_at: datetime | None

    @property
    def running(self) -> bool:
        return bool(self.run_turn)


_COLUMNS = [tasks.c[name] for name in Task.__dataclass_fields__]
_INSERT = sa.insert(tasks).returning(*_COLUMNS)
_BY_ID = sa.select(*_COLUMNS).where(tasks.c.id == sa.bindparam("id"))
_OF_CHAT = (
    sa.select(*_COLUMNS)
    .where(tasks.c.address == sa.bindparam("address"))
    .order_by(tasks.c.state.in_(("done", "failed")), tasks.c.ended_at.desc(), tasks.c.next_run, tasks.c.id)
    .limit(sa.bindparam("most", type_=sa.Integer))
)
_COUNT = sa.select(sa.func.count()).where(tasks.c.person_id == sa.bindparam("person"), tasks.c.state.in_(KEPT_STATES))
_DUE = (
    sa.select(*_COLUMNS)
    .where(tasks.c.state == "active", tasks.c.next_run <= sa.bindparam("now", type_=tasks.c.next_run.type))
    .order_by(tasks.c.next_run, tasks.c.id)
)
_NEAREST = sa.select(sa.func.min(tasks.c.next_run)).where(tasks.c.state == "active")
_RUNNING = sa.select(*_COLUMNS).where(tasks.c.run_turn != "").order_by(tasks.c.id)
_PLANNED = sa.select(*_COLUMNS).where(tasks.c.state.in_(("active", "paused"))).order_by(tasks.c.id)
_SEEN = (
    sa.update(tasks)
    .where(tasks.c.id.in_(sa.bindparam("ids", expanding=True)), tasks.c.ended_at.is_not(None), tasks.c.seen_at.is_(None))
    .values(seen_at=sa.bindparam("now", type_=tasks.c.seen_at.type))
)
_SWEEP = sa.delete(tasks).where(
    tasks.c.ended_at < sa.bindparam("before", type_=tasks.c.ended_at.type),
    (tasks.c.state == "done") | tasks.c.seen_at.is_not(None),
    tasks.c.run_turn == "",
)


def _task(row: sa.Row[Any]) -> Task:
    return Task(**row._mapping)  # pyright: ignore[reportPrivateUsage]  # SQLAlchemy's public name


def add(connection: sa.Connection, new: NewTask, now: datetime) -> Task:
    values = {name: getattr(new, name) for name in NewTask.__dataclass_fields__}
    return _task(connection.execute(_INSERT, {**values, "created_at": now, "updated_at": now}).one())


def read(connection: sa.Connection, task_id: int) -> Task | None:
    row = connection.execute(_BY_ID, {"id": task_id}).one_or_none()
    return None if row is None else _task(row)


def of_chat(connection: sa.Connection, address: str, limit: int) -> list[Task]:
    """The tasks of one chat: those that go on before those that have ended, the next first."""
    return [_task(row) for row in connection.execute(_OF_CHAT, {"address": address, "most": limit})]


def count_of(connection: sa.Connection, person_id: str) -> int:
    """How many tasks a person has that have not ended."""
    return connection.execute(_COUNT, {"person": person_id}).scalar_one()


def due(connection: sa.Connection, now: datetime) -> list[Task]:
    """The active tasks whose time has come, the longest waiting first."""
    return [_task(row) for row in connection.execute(_DUE, {"now": now})]


def nearest(connection: sa.Connection) -> datetime | None:
    return connection.execute(_NEAREST).scalar()


def running(connection: sa.Connection) -> list[Task]:
    """The tasks of which a run has begun whose end is not written yet."""
    return [_task(row) for row in connection.execute(_RUNNING)]


def planned(connection: sa.Connection) -> list[Task]:
    return [_task(row) for row in connection.execute(_PLANNED)]


def change(connection: sa.Connection, task_id: int, now: datetime, **values: Any) -> None:
    """Set columns of one task."""
    connection.execute(sa.update(tasks).where(tasks.c.id == task_id).values(updated_at=now, **values))


def change_if_same(connection: sa.Connection, seen: Task, now: datetime, **values: Any) -> bool:
    """Set columns unless another process was first: only while the task is planned, and runs, as it did when it was read."""
    same = (
        (tasks.c.id == seen.id)
        & (tasks.c.state == seen.state)
        & (tasks.c.run_turn == seen.run_turn)
        & tasks.c.next_run.is_not_distinct_from(sa.bindparam("seen_run", seen.next_run, type_=tasks.c.next_run.type))
    )
    return connection.execute(sa.update(tasks).where(same).values(updated_at=now, **values)).rowcount == 1


def end_run(connection: sa.Connection, seen: Task, now: datetime, *, result: str, error: str = "", **values: Any) -> bool:
    """The run that `seen` shows is over. A task for which nothing more is planned ends with it; False when it was over before."""
    mine = (tasks.c.id == seen.id) & (tasks.c.run_turn == seen.run_turn) & (tasks.c.run_turn != "")
    last = seen.next_run is None and not seen.rule and seen.state == "active"
    ended = {"state": "done" if result in ("sent", "silent") else "failed", "ended_at": now} if last else {}
    over = {"run_slot": None, "run_turn": "", "run_key": "", "run_stored": False}
    told = {"last_run": seen.run_slot, "last_result": result, "last_error": error}
    return connection.execute(sa.update(tasks).where(mine).values({**over, **told, **ended, **values, "updated_at": now})).rowcount == 1


def readdress(connection: sa.Connection, old: str, new: str, now: datetime) -> None:
    """A chat has another address now: its tasks and those of its topics follow (CH-166)."""
    here = (tasks.c.address == old) | tasks.c.address.startswith(f"{old}:", autoescape=True)
    for row in connection.execute(sa.select(tasks.c.id, tasks.c.address).where(here)).all():
        if row.address == old or row.address.startswith(f"{old}:"):  # SQLite compares without regard to case
            change(connection, row.id, now, address=f"{new}{row.address.removeprefix(old)}")


def speaks_in(connection: sa.Connection, address: str) -> bool:
    """Whether any task delivers to this chat."""
    return connection.execute(sa.select(tasks.c.id).where(tasks.c.address == address).limit(1)).first() is not None


def mark_seen(connection: sa.Connection, ids: Collection[int], now: datetime) -> None:
    """The ends of these tasks were shown: only then may they be swept (WD-135)."""
    connection.execute(_SEEN, {"ids": list(ids), "now": now})


def delete(connection: sa.Connection, task_id: int) -> None:
    connection.execute(sa.delete(tasks).where(tasks.c.id == task_id))


def sweep(connection: sa.Connection, before: datetime) -> int:
    """Delete tasks that ended before `before` and were delivered, or whose failure somebody has seen; returns how many."""
    return connection.execute(_SWEEP, {"before": before}).rowcount

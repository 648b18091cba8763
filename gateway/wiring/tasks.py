"""The part of the composition root that is about scheduled tasks (see `gateway/app.py`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent.runtime import Sleep
from gateway.budgets import Budgets
from gateway.heads import Heads
from gateway.saved.turn import SavedTurns
from gateway.tasks.asking import Asking
from gateway.tasks.commands import TaskTools
from gateway.tasks.desk import Tasks
from gateway.tasks.loop import TaskLoop
from gateway.tasks.runner import TaskRuns
from gateway.wiring.surroundings import Surroundings


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskParts:
    """`tools`: what the model may do with tasks of its chat; `loop` to be run beside everything; `runs`: the handler of their jobs."""

    tasks: Tasks
    tools: TaskTools
    loop: TaskLoop
    runs: TaskRuns


def build_tasks(
    around: Surroundings, *, heads: Heads, saved: SavedTurns, budgets: Budgets, wake_outbox: Callable[[str], None], sleep: Sleep
) -> TaskParts:
    db, clock, config = around.db, around.clock, around.config
    loop = TaskLoop(db=db, clock=clock, config=config, wake_jobs=around.wake_jobs)
    tasks = Tasks(db=db, clock=clock, config=config, can=around.can, wake=loop.wake, wake_jobs=around.wake_jobs)
    asking = Asking(db=db, clock=clock, config=config, models=around.models, heads=heads, saved=saved, budgets=budgets, sleep=sleep)
    runs = TaskRuns(
        db=db,
        clock=clock,
        config=config,
        replies=around.replies,
        streams=around.streams,
        asking=asking,
        wake_outbox=wake_outbox,
        wake=loop.wake,
    )
    return TaskParts(tasks=tasks, tools=TaskTools(tasks, clock), loop=loop, runs=runs)

"""The part of the composition root that is about jobs: which handler runs which kind, and in which of the two runners (see `gateway/app.py`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway import attempts, housekeeping, titles
from gateway.background import Background
from gateway.jobs.runner import JobRunner
from gateway.judging import Judging
from gateway.shapes import judged_json
from gateway.tasks import jobs as task_jobs
from gateway.wiring.memory import MemoryParts
from gateway.wiring.surroundings import Surroundings
from gateway.wiring.tasks import TaskParts


@dataclass(frozen=True, slots=True, kw_only=True)
class Runners:
    """`errands`: what people wait for, reminders and results of commands; never behind a dream, which is one of the `jobs`."""

    jobs: JobRunner
    errands: JobRunner

    def wake(self) -> None:
        self.jobs.wake()
        self.errands.wake()

    def close(self) -> None:
        self.jobs.close()
        self.errands.close()


def build_runners(around: Surroundings, memory: MemoryParts, tasks: TaskParts, *, is_running: Callable[[str], bool]) -> Runners:
    """`is_running` says of a chat's address whether an answer is being made there."""
    db, clock, config, models, streams = around.db, around.clock, around.config, around.models, around.streams
    naming = titles.Titles(db=db, models=models, streams=streams, config=config, clock=clock, is_running=is_running)
    sweeping = housekeeping.Housekeeping(
        db=db, attachments_folder=around.attachments.folder, clock=clock, journal_days=lambda: config().saved.journal_days
    )
    judging = Judging(
        db=db,
        models=models,
        background=Background(db=db, models=models, config=config, clock=clock),
        config=config,
        clock=clock,
        told=lambda chat, attempt: streams.publish(chat.id, "chat", judged_json(chat.id, attempt)),
    )
    handlers = {titles.KIND: naming.run, housekeeping.KIND: sweeping.run, attempts.JUDGE: judging.run, **memory.handlers}
    grace_s = config().delivery.drain_s
    return Runners(
        jobs=JobRunner(db, handlers, concurrency=config().background.concurrency, grace_s=grace_s),
        errands=JobRunner(db, {task_jobs.KIND: tasks.runs.run, **memory.errands}, grace_s=grace_s),
    )

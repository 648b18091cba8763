"""The part of the composition root that is about the night: the dream that reads a scope again, and what people do with it (see `gateway/app.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import sqlalchemy as sa

from gateway import followups, notices
from gateway.adoption import Adoption
from gateway.background import Background
from gateway.dreams.asking import DreamAsking
from gateway.dreams.desk import Desk
from gateway.dreams.job import KIND, DreamJob
from gateway.dreams.night import question_of_refused
from gateway.dreams.reading import DreamReading
from gateway.dreams.wishes import Dreaming
from gateway.dreams.writing import DreamWriting
from gateway.file_changes import FileChanges
from gateway.file_writer import OnWritten
from gateway.jobs.handling import Handler, JobContext, JobResult
from gateway.jobs.table import Job
from gateway.undoing import Undoing
from gateway.wiring.surroundings import Surroundings
from memory.scopes import Kind, parse_scope
from memory.workspace_threads import WorkspaceThreads


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamParts:
    """`desk`: the page's side of dreams; `writing`: puts their lines into files; `handlers`: of their job."""

    adoption: Adoption
    dreaming: Dreaming
    desk: Desk
    writing: DreamWriting
    handlers: Mapping[str, Handler]


def build_dreams(
    around: Surroundings,
    files: WorkspaceThreads,
    *,
    background: Background,
    changes: FileChanges,
    undoing: Undoing,
    on_written: OnWritten,
) -> DreamParts:
    db, clock, config = around.db, around.clock, around.config
    adoption = Adoption(db=db, files=files, clock=clock, workspace=config().agent_workspace, home=Path.home())
    reading = DreamReading(db=db, files=files, clock=clock, config=config, managers=around.managers)
    writing = DreamWriting(db=db, files=files, clock=clock, on_written=on_written)
    dreaming = Dreaming(db=db, files=files, clock=clock, config=config, reading=reading, writing=writing)
    dream = DreamJob(
        db=db,
        models=around.models,
        config=config,
        clock=clock,
        reading=reading,
        asking=DreamAsking(background),
        writing=writing,
        notify=partial(_notify, clock=clock),
    )

    async def dream_well(job: Job, context: JobContext) -> JobResult:
        await adoption.book()  # lines of a CowAgent folder used in place are nobody's fresh words (WD-28)
        return await dream.run(job, context)

    return DreamParts(
        adoption=adoption,
        dreaming=dreaming,
        desk=Desk(db=db, files=files, clock=clock, dreaming=dreaming, undoing=undoing, changes=changes, config=config, wake_jobs=around.wake_jobs),
        writing=writing,
        handlers={KIND: dream_well},
    )


def _notify(connection: sa.Connection, scope: str, key: str, values: Mapping[str, object], *, clock: Callable[[], datetime]) -> None:
    if followups.awaited(connection, scope, KIND):
        return  # somebody asked for it in a chat and is told there
    now, proposal = clock(), str(values.get("id", ""))
    own = parse_scope(scope).kind is not Kind.SPACE  # a group's is decided there, and told to the owner elsewhere
    ask = partial(question_of_refused, proposal) if proposal and own else notices.nothing
    notices.tell(connection, scope, key, values, once=f"{scope}:{key}:{now.isoformat()}", now=now, ask=ask)

"""The part of the composition root that is about summaries of a chat for its prompt: rolling ones, those of days, entries (see `gateway/app.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from gateway.config import Config
from gateway.entries.jobs import EntryJobs
from gateway.jobs.handling import Handler
from gateway.summaries.calendar_days import CalendarDays
from gateway.summaries.calendar_look import CalendarLook
from gateway.summaries.restating import Restating
from gateway.summaries.rolling import Rolling
from gateway.summaries.summarist import Summarist
from memory.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryParts:
    """`look`: to be run beside everything; `handlers`: of its jobs."""

    look: CalendarLook
    handlers: Mapping[str, Handler]


def build_summaries(
    *, db: Database, clock: Callable[[], datetime], config: Callable[[], Config], summarist: Summarist, wake_jobs: Callable[[], None]
) -> SummaryParts:
    rolling = Rolling(db=db, summarist=summarist, config=config, clock=clock)
    days = CalendarDays(db=db, summarist=summarist, config=config, clock=clock)
    restating = Restating(db=db, summarist=summarist, config=config, clock=clock)
    entries = EntryJobs(db=db, summarist=summarist, config=config, clock=clock)
    return SummaryParts(
        look=CalendarLook(db=db, summarist=summarist, config=config, clock=clock, on_enqueued=wake_jobs),
        handlers={**rolling.handlers, **days.handlers, **restating.handlers, **entries.handlers},
    )

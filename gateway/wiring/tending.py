"""The part of the composition root that is about looking after recall and summaries, on the page and by commands (see `gateway/app.py`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from gateway.chat_reach import ChatReach
from gateway.config import Config
from gateway.dreams.reading import FindManagers
from gateway.entries.desk import EntryDesk
from gateway.recall.desk import RecallDesk
from gateway.recall.talk_indexing import TalkIndexing
from gateway.summaries.desk import SummaryDesk
from gateway.summaries.summarist import Summarist
from memory.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class TendingParts:
    """`reach`: whose chats; `recall`, `summaries`, `entries`: the use cases."""

    reach: ChatReach
    recall: RecallDesk
    summaries: SummaryDesk
    entries: EntryDesk


def build_tending(
    *,
    db: Database,
    clock: Callable[[], datetime],
    config: Callable[[], Config],
    indexing: TalkIndexing,
    summarist: Summarist,
    managers: FindManagers,
    wake_jobs: Callable[[], None],
) -> TendingParts:
    return TendingParts(
        reach=ChatReach(db=db, managers=managers),
        recall=RecallDesk(db=db, clock=clock, config=config, indexing=indexing),
        summaries=SummaryDesk(db=db, clock=clock, config=config, summarist=summarist, wake=wake_jobs),
        entries=EntryDesk(db=db, clock=clock, config=config, summarist=summarist, wake=wake_jobs),
    )

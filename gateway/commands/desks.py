"""The services behind the commands about memory and operation, as the handlers see them. `gateway/app.py` hands them in, in one bundle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.company import Company
from gateway.dreams.wishes import Dreaming
from gateway.entries.desk import EntryDesk
from gateway.file_changes import FileChanges
from gateway.foretelling import Foretold
from gateway.forgetting import Forgetting
from gateway.log_tail import LogTail
from gateway.memory_status import MemoryStatus
from gateway.onboarding import Onboarding
from gateway.overrides import Overrides
from gateway.recall.desk import RecallDesk
from gateway.saved.desk import SavedDesk
from gateway.saved.shelves import Shelves
from gateway.summaries.desk import SummaryDesk
from gateway.tasks.desk import Tasks
from gateway.undoing import Undoing
from gateway.whys import Whys
from memory.conversations import Conversation
from memory.file_search import FileSearch
from memory.workspace_threads import WorkspaceThreads


class Foretell(Protocol):
    """As `gateway.foretelling.Foretelling.of`."""

    async def __call__(self, chat: Conversation, person: Mapping[str, Any], *, language: str) -> Foretold: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Desks:
    """`wake_jobs`: there is new work in the job table. `restart`: drain, then begin again. `foretell`: what would become of the next message."""

    files: WorkspaceThreads
    wake_jobs: Callable[[], None]
    company: Company
    search: FileSearch
    status: MemoryStatus
    dreams: Dreaming
    changes: FileChanges
    undoing: Undoing
    whys: Whys
    forgetting: Forgetting
    tasks: Tasks
    onboarding: Onboarding
    overrides: Overrides
    logs: LogTail
    restart: Callable[[], None]
    saved: SavedDesk
    shelves: Shelves
    recall: RecallDesk
    summaries: SummaryDesk
    entries: EntryDesk
    foretell: Foretell

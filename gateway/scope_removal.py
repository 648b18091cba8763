"""Taking a person's or a space's memory away for good (WD-15): its folder, revisions, rows, index entries and staged texts, as a job.

The rows go first, and with them the mark of whose memory the messages of the log were: from then on nothing finds anything to summarise. Every step
may be repeated, so a kill at any point only delays the rest; and all is done once more an hour later, for a turn or a job that was just writing. The
log itself is kept by its own rules.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial

import sqlalchemy as sa

from gateway.jobs.handling import JobContext, JobResult
from gateway.jobs.table import Job, enqueue
from memory import provenance
from memory.file_errors import FileRefused
from memory.file_schema import coverage, dreams, proposals, scope_settings, summary_blocks
from memory.schema import jobs, messages, turns
from memory.scopes import ROOT, Scope, parse_scope
from memory.workspace_threads import WorkspaceThreads

KIND = "scope-removal"
PRIORITY = 1
AGAIN_AFTER = timedelta(hours=1)  # longer than anything that runs, and well within a day

_OF = sa.bindparam("of", type_=sa.Text())
_TALKS = sa.select(messages.c.conversation_id).where(messages.c.scope == _OF).distinct()
_DROPS = (
    sa.delete(summary_blocks).where(summary_blocks.c.conversation_id.in_(_TALKS)),  # before the messages lose their mark
    *(sa.delete(table).where(table.c.scope == _OF) for table in (coverage, dreams, proposals, scope_settings)),
    sa.update(messages).where(messages.c.scope == _OF).values(scope=""),
    sa.update(turns).where(turns.c.scope == _OF).values(scope=""),
    # Work of the scope, whatever its state, and with it what it has made so far; a worker that runs finds its lease gone and changes nothing.
    sa.delete(jobs).where(jobs.c.scope == _OF, jobs.c.kind != KIND),
)


def order(connection: sa.Connection, scope: Scope) -> int:
    """Have the memory of `scope` removed: call it in the transaction that removes the person or the space, and wake the jobs. Returns the job.

    FileRefused for the root: the owner's files are removed by the owner.
    """
    if scope == ROOT:
        raise FileRefused("the owner's files are removed by the owner, not by the program")
    return enqueue(connection, Job(kind=KIND, key=str(scope), scope=str(scope), priority=PRIORITY), again=True)


class ScopeRemoval:
    """The job's handler. `forget_index`: removes every entry of a scope from the indexes; it may be called again for one that is gone."""

    def __init__(
        self, *, files: WorkspaceThreads, forget_index: Callable[[Scope], Awaitable[object]], clock: Callable[[], datetime]
    ) -> None:
        self._files = files
        self._forget_index = forget_index
        self._clock = clock

    async def run(self, job: Job, context: JobContext) -> JobResult:
        scope = parse_scope(job.scope)
        await context.write(partial(drop_rows, scope=scope))
        there = await self._files.write(scope, lambda workspace: workspace.delete_scope(scope))
        await self._forget_index(scope)

        def once_more(connection: sa.Connection) -> None:
            if job.key == str(scope):
                when = self._clock() + AGAIN_AFTER
                enqueue(connection, Job(kind=KIND, key=f"{scope} again", scope=str(scope), not_before=when), again=True)

        return JobResult(output={"folder": there}, commit=once_more)


def drop_rows(connection: sa.Connection, scope: Scope) -> None:
    """Everything the database holds about the memory of `scope`, and all work for it. Joined into the caller's transaction."""
    provenance.delete_scope(connection, str(scope))
    for statement in _DROPS:
        connection.execute(statement, {"of": str(scope)})

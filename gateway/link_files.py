"""The files of two memories that became one: the lines of the smaller stand behind those of the other, and its folder goes (WD-13).

A job. Nothing of the kept memory is overwritten, and the same line is not added twice, so every step may be repeated. Whose words a line rests on was
settled by the rows, which came along in the transaction that joined the two. What cannot be written stays where it is, and its folder with it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

import sqlalchemy as sa

from gateway import joining, scope_removal
from gateway.jobs.handling import JobContext, JobResult
from gateway.jobs.table import Job, enqueue
from memory.file_errors import FileRefused, FileUnreadable, PathRefused
from memory.layout import Role
from memory.markdown_lines import plain
from memory.scope_templates import NAMES, for_prompt, has_own_content
from memory.scopes import ROOT, Scope, parse_scope
from memory.texts import Author
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads

log = logging.getLogger(__name__)

KIND = "link-files"
_TITLE = re.compile(r"\A# [^\n]*\n*")
_BY_DATE = (Role.DAILY, Role.DIARY)


def order(connection: sa.Connection, *, keep: str, gone: str, heading: str) -> int:
    """Have the files of `gone` put behind those of `keep`: in the transaction that joins the two; wake the jobs. `heading` stands above them."""
    payload = {"gone": gone, "heading": heading}
    return enqueue(connection, Job(kind=KIND, key=gone, scope=keep, payload=payload, priority=2), again=True)


def block(path: str, role: Role, text: str, heading: str) -> str:
    """What of a file is put behind another of the same path; empty when nobody wrote into it. Pure."""
    if not has_own_content(path, text):
        return ""
    words = _TITLE.sub("", for_prompt(path, text) if path in NAMES else plain(text)).strip("\n")
    return words if role in _BY_DATE else f"## {heading}\n\n{words}"


class LinkFiles:
    """The job's handler. `on_written`: a file of this scope changed; the index listens."""

    def __init__(self, *, files: WorkspaceThreads, on_written: Callable[[Scope, str], None]) -> None:
        self._files = files
        self._on_written = on_written

    async def run(self, job: Job, context: JobContext) -> JobResult:
        keep, gone = parse_scope(job.scope), parse_scope(job.payload["gone"])
        heading: str = job.payload["heading"]
        left: list[str] = []
        for info in await self._files.read(lambda workspace: workspace.files(gone)):
            try:
                path = info.path
                if await self._files.write(keep, lambda workspace, path=path: _add(workspace, keep, gone, path, heading)):
                    self._on_written(keep, info.path)
            except (FileRefused, FileUnreadable, PathRefused) as error:
                log.error("%s of %s could not be put into %s and stays: %s", info.path, gone, keep, error)
                left.append(info.path)

        def end(connection: sa.Connection) -> None:
            joining.move_scope(connection, keep=str(keep), gone=str(gone))
            if not left and gone != ROOT:
                scope_removal.order(connection, gone)

        return JobResult(output={"left": left}, commit=end)


def _add(workspace: Workspace, keep: Scope, gone: Scope, path: str, heading: str) -> bool:
    """Put one file behind the other; whether anything changed."""
    theirs = workspace.read(gone, path)
    if theirs is None:
        return False
    ours = workspace.read(keep, path)
    words = block(path, theirs.role, theirs.content, heading)
    if ours is None and words:
        words = plain(theirs.content)
    return bool(words) and workspace.append(keep, path, words, by=Author.PERSON).changed

"""A CowAgent folder that is to be imported, read and never changed (WD-25, WD-26): what of it is a memory, and what is left there, with the reason.

Its Markdown is read as a workspace of ours, so that the same names, limits and refusals hold. Key files and databases are named, never opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from memory import cowagent
from memory.errors import StoreError, StoreUnavailable
from memory.file_errors import FileUnreadable, PathRefused
from memory.folders import Folders, names_in
from memory.layout import DAILY_FOLDER, DIARY_FOLDER, KNOWLEDGE_FOLDER, Role
from memory.markdown_lines import one_line
from memory.paths import MAX_DEPTH
from memory.scopes import ROOT
from memory.texts import FileInfo, Text
from memory.whole_file import read_whole
from memory.workspace import Workspace

TASKS_FOLDER, TASKS_FILE = "scheduler", "tasks.json"
TASKS_MAX_BYTES = 1_000_000
NAMES_LISTED = 1_000  # of what is left where it is; a folder with more says so
_OUR_DATA = ".yumegate"

_PARTS = frozenset({DAILY_FOLDER, DIARY_FOLDER, KNOWLEDGE_FOLDER})  # folders that are looked into
_THEIRS: Mapping[str, str] = {
    "BOOTSTRAP.md": "its questions of the first start; Yumegate asks its own",
    "memory/evolution": "what it noted about changing itself",
    "memory/.evolution_backups": "copies from changing itself",
    "memory/users": "memories that it kept apart by user; only the common one is imported",
    "memory/long-term": "its search index; Yumegate makes its own",
    "skills": "its skills, which Yumegate does not run",
    "tmp": "files of the moment",
    TASKS_FOLDER: "its scheduled tasks, see below",
}
_DATABASES = (".db", ".sqlite", ".sqlite3", ".db-wal", ".db-shm", ".db-journal")


class SourceRefused(StoreError):
    """There is nothing that can be imported: a sentence for whoever asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """What is not imported. `path`: as it is called there, a folder with a slash behind it; `reason`: half a sentence."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file that can be imported. `name`: its path there (`USER.md`); `text.path`: ours (`user.md`)."""

    name: str
    text: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """`tasks`: names of its scheduled tasks."""

    files: tuple[SourceFile, ...]
    skipped: tuple[Skipped, ...]
    tasks: tuple[str, ...]


def read_source(folder: Path, clock: Callable[[], datetime]) -> Source:
    """Everything of `folder`, by path. Blocks. SourceRefused when it is no CowAgent folder; StoreUnavailable when the disk does not answer."""
    if not folder.is_dir():
        raise SourceRefused(f"{folder} is no folder: give the path of the CowAgent folder, usually ~/cow")
    there = Workspace(folder, folder / _OUR_DATA, clock)
    files: list[SourceFile] = []
    skipped = {problem.path: problem.reason for problem in there.problems(ROOT)}
    known = {*skipped, *map(_name_of, there.files(ROOT))}
    for info in there.files(ROOT):
        name = _name_of(info)
        if reason := _unwanted(info):
            skipped[name] = reason
            continue
        with suppress(FileUnreadable, PathRefused):  # among the problems
            if text := there.read(ROOT, info.path):
                files.append(SourceFile(name=name, text=text))
    if not files:
        raise SourceRefused(f"{folder} holds no memory of CowAgent (AGENT.md, USER.md, MEMORY.md, memory/, knowledge/): give another path")
    try:
        others, tasks = _others(Folders(folder), known)
    except OSError as error:
        raise StoreUnavailable(f"{folder} cannot be read now: {error.strerror or error}") from error
    skipped.update((each.path, each.reason) for each in others)
    found = tuple(Skipped(path=path, reason=reason) for path, reason in sorted(skipped.items()))
    return Source(files=tuple(sorted(files, key=lambda file: file.name)), skipped=found, tasks=tasks)


def _name_of(info: FileInfo) -> str:
    return "/".join((*info.path.split("/")[:-1], info.name))


def _unwanted(info: FileInfo) -> str:
    """Why a file that a workspace of ours could hold is not imported; empty when it is."""
    if info.role is Role.PUBLIC:
        return "pages there would be for everyone; only the owner's own hand puts one into knowledge/public"
    if info.role is Role.OTHER and "/" not in info.path:
        return "no file of its memory"
    return ""


def _others(folders: Folders, known: set[str]) -> tuple[list[Skipped], tuple[str, ...]]:
    """What stands beside the memory, without a look into any of it but the list of tasks."""
    found: list[Skipped] = []
    for name, is_folder in _walk(folders, ()):
        if name in known:
            continue
        if len(found) == NAMES_LISTED:
            found.append(Skipped(path="…", reason=f"more than {NAMES_LISTED:,} other files are there"))
            break
        found.append(Skipped(path=f"{name}/" if is_folder else name, reason=_reason(name, is_folder)))
    try:
        return found, _tasks(folders)
    except (ValidationError, FileUnreadable, PathRefused):
        return [*found, Skipped(path=f"{TASKS_FOLDER}/{TASKS_FILE}", reason="its scheduled tasks cannot be read")], ()


def _walk(folders: Folders, names: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """Paths that are no folder of the memory, with whether each is a folder."""
    below: list[str] = []
    with suppress(PathRefused), folders.open(names) as folder:  # a link in the place of a folder is among the problems
        for name in sorted(names_in(folder)) if folder is not None else ():
            path = "/".join((*names, name))
            try:
                is_folder = stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
            except FileNotFoundError:  # gone meanwhile
                continue
            knowledge = names[:1] == (KNOWLEDGE_FOLDER,) and not name.startswith(".") and len(names) < MAX_DEPTH - 1
            if is_folder and (path in _PARTS or knowledge):
                below.append(name)
            else:
                yield path.encode("utf-8", "backslashreplace").decode(), is_folder
    for name in below:
        yield from _walk(folders, (*names, name))


def _reason(path: str, is_folder: bool) -> str:
    name = path.rpartition("/")[2]
    if path in _THEIRS:
        return _THEIRS[path]
    if cowagent.is_left_alone(path):
        return "CowAgent's own"
    if not is_folder and name.endswith(_DATABASES):
        return "a database, not opened"
    if name.startswith("."):
        return "hidden, as keys and settings are; not opened"
    return "no folder of its memory" if is_folder else "no Markdown of its memory"


class _Task(BaseModel):
    """What of a task is listed; the rest is not read."""

    model_config = ConfigDict(extra="ignore")

    name: str = ""


class _Tasks(BaseModel):
    model_config = ConfigDict(extra="ignore")

    tasks: dict[str, _Task] = {}  # pydantic copies defaults


def _tasks(folders: Folders) -> tuple[str, ...]:
    with folders.open((TASKS_FOLDER,)) as folder:
        file = None if folder is None else read_whole(folder, TASKS_FILE, most=TASKS_MAX_BYTES)
    if file is None:
        return ()
    tasks = _Tasks.model_validate_json(file.data).tasks
    return tuple(one_line(task.name)[:80] or name[:80] for name, task in tasks.items())

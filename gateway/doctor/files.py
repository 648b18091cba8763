"""What `doctor` sees in the workspace: files that are left alone, and signs of CowAgent. It writes nothing and opens none of CowAgent's own files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gateway.config import Config
from memory import cowagent
from memory.errors import StoreUnavailable
from memory.layout import Role
from memory.scopes import ROOT, Kind, Scope
from memory.texts import Problem
from memory.workspace import Workspace

RECENTLY = timedelta(days=1)
_THEIRS = ("memory/long-term", "memory/evolution", "memory/.evolution_backups", "scheduler", "tmp")
"""Folders that only CowAgent writes in, while it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSeen:
    """`problems`: paths below the workspace, those of people and spaces too. `in_place`: the root is a CowAgent folder; `persona`: the file that
    serves everyone; `public_pages`: there are some; `theirs_changed`: when CowAgent last wrote, None unless recently. `fault`: why it is not seen."""

    problems: tuple[Problem, ...] = ()
    in_place: bool = False
    persona: str = cowagent.SIGN
    public_pages: bool = False
    theirs_changed: datetime | None = None
    fault: str = ""


def look_at_files(config: Config, now: datetime) -> FilesSeen:
    """Blocks. Never raises for what it finds."""
    workspace = Workspace(config.agent_workspace, config.data_dir, lambda: now)
    problems: list[Problem] = []
    try:
        for scope in _scopes(config.agent_workspace):
            problems += [replace(each, path="/".join((*scope.folder, each.path))) for each in workspace.problems(scope)]
        if not workspace.is_cowagent():
            return FilesSeen(problems=tuple(problems))
        files = workspace.files(ROOT)
        changed = _newest(config.agent_workspace)
    except (StoreUnavailable, OSError) as error:
        return FilesSeen(problems=tuple(problems), fault=str(error))
    return FilesSeen(
        problems=tuple(problems),
        in_place=True,
        persona=next((file.name for file in files if file.role is Role.SYSTEM), cowagent.SIGN),
        public_pages=any(file.role is Role.PUBLIC for file in files),
        theirs_changed=changed if changed is not None and now - changed < RECENTLY else None,
    )


def _scopes(root: Path) -> Iterator[Scope]:
    yield ROOT
    for kind in (Kind.PERSON, Kind.SPACE):
        try:
            names = sorted(entry.name for entry in os.scandir(root / kind) if entry.is_dir(follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            continue
        for name in names:
            try:
                yield Scope(kind, name)
            except ValueError:  # a folder of somebody's own
                continue


def _newest(root: Path) -> datetime | None:
    """When something changed last in the folders that are CowAgent's alone."""
    times: list[float] = []
    for name in _THEIRS:
        try:
            times += [entry.stat(follow_symlinks=False).st_mtime for entry in os.scandir(root / name)]
        except (FileNotFoundError, NotADirectoryError):
            continue
    return datetime.fromtimestamp(max(times), UTC) if times else None

"""What lies in the folders of a scope: the files that are ours, and those that look like it and are left alone, each with the reason."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime

from memory import cowagent
from memory.file_errors import PathRefused
from memory.folders import Folders, names_in
from memory.layout import DAILY_FOLDER, DIARY_FOLDER, KNOWLEDGE_FOLDER, place
from memory.paths import MAX_DEPTH
from memory.scopes import Scope
from memory.texts import FileInfo, Problem

_FLAT = ((), (DAILY_FOLDER,), tuple(DIARY_FOLDER.split("/")))  # folders whose subfolders are not ours


def listing(folders: Folders, scope: Scope) -> tuple[tuple[FileInfo, ...], tuple[Problem, ...]]:
    """Files by path, and Markdown files that have no place among them. Reads no file. OSError when the disk does not answer."""
    found = _Listing(folders, scope)
    for names in _FLAT:
        found.look(names, deep=False)
    found.look((KNOWLEDGE_FOLDER,), deep=True)
    return tuple(found.files[path] for path in sorted(found.files)), tuple(found.problems)


class _Listing:
    def __init__(self, folders: Folders, scope: Scope) -> None:
        self._folders = folders
        self._scope = scope
        self.files: dict[str, FileInfo] = {}
        self.problems: list[Problem] = []

    def look(self, names: tuple[str, ...], *, deep: bool) -> None:
        below: list[str] = []
        try:
            with self._folders.open((*self._scope.folder, *names)) as folder:
                for entry in sorted(names_in(folder)) if folder is not None else ():
                    try:
                        found = os.stat(entry, dir_fd=folder, follow_symlinks=False)
                    except FileNotFoundError:  # gone meanwhile
                        continue
                    if deep and stat.S_ISDIR(found.st_mode) and not entry.startswith(".") and len(names) < MAX_DEPTH - 1:
                        below.append(entry)
                    elif deep and stat.S_ISLNK(found.st_mode) and not entry.startswith("."):
                        self._refuse("/".join((*names, entry)), f"{entry} is a link, and links are not followed")
                    elif entry.endswith(".md") and not entry.startswith("."):
                        self._add("/".join((*names, entry)), found)
        except PathRefused as error:
            self._refuse("/".join(names), str(error))
        for entry in below:
            self.look((*names, entry), deep=True)

    def _add(self, path: str, found: os.stat_result) -> None:
        if cowagent.is_left_alone(path):
            return
        try:
            spot = place(self._scope, path)
        except PathRefused as error:
            self._refuse(path, str(error))
            return
        if not stat.S_ISREG(found.st_mode):
            self._refuse(spot.path, f"{spot.path} is a link or no plain file, and is not followed")
            return
        name = path.rpartition("/")[2]
        other = self.files.get(spot.path)
        if other is None or name == spot.names[0]:
            changed_at = datetime.fromtimestamp(found.st_mtime, UTC)
            self.files[spot.path] = FileInfo(path=spot.path, name=name, role=spot.role, size=found.st_size, changed_at=changed_at)
        if other is not None:
            used, unused = (name, other.name) if name == spot.names[0] else (other.name, name)
            self._refuse(unused, f"{used} is used and {unused} beside it is not read: put what you need of it into {used}")

    def _refuse(self, path: str, reason: str) -> None:
        if any(path.startswith(f"{known.path}/") for known in self.problems):
            return  # said already of the folder above
        self.problems.append(Problem(path=path.encode("utf-8", "backslashreplace").decode(), reason=reason))

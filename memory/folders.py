"""Folders below one root, opened name by name and never through a link: what a check has seen is what is then used (WD-20).

Everything below works on open folders (`dir_fd`), so a folder that somebody replaces by a link meanwhile leads nowhere.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from memory.file_errors import PathRefused

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FOLDER_MODE = 0o700


class Folders:
    """`root` itself may be a link, as people set one up. `closed`: a folder that is never entered, wherever it lies (`data_dir`)."""

    def __init__(self, root: Path, closed: Path | None = None) -> None:
        self._root = root
        self._closed = closed

    @contextmanager
    def open(self, names: Sequence[str]) -> Generator[int | None]:
        """The folder as a file descriptor, None when it is missing. PathRefused for a link or a file in its place; else OSError."""
        folder = self._descend(names, make=False)
        try:
            yield folder
        finally:
            if folder is not None:
                os.close(folder)

    @contextmanager
    def make(self, names: Sequence[str]) -> Generator[int]:
        """As `open`; what is missing is made with mode 0700 and flushed (WD-1)."""
        folder = self._descend(names, make=True)
        assert folder is not None
        try:
            yield folder
        finally:
            os.close(folder)

    def _descend(self, names: Sequence[str], *, make: bool) -> int | None:
        if make and not self._root.is_dir():
            for folder in (*reversed(self._root.parents), self._root):
                if not folder.exists():
                    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
                    _flush(folder.parent)
        try:
            folder = os.open(self._root, _FOLDER)
        except FileNotFoundError:
            return None
        for name in names:
            try:
                below = self._enter(folder, name, make=make)
            finally:
                os.close(folder)
            if below is None:
                return None
            folder = below
        return folder

    def _enter(self, folder: int, name: str, *, make: bool) -> int | None:
        while True:
            try:
                below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
                break
            except FileNotFoundError:
                if not make:
                    return None
                try:
                    os.mkdir(name, FOLDER_MODE, dir_fd=folder)
                except FileExistsError:
                    continue  # somebody was faster; look at what it is
                os.fsync(folder)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise PathRefused(f"{name} is a link or no folder, and links are not followed") from error
                raise
        if self._is_closed(below):
            os.close(below)
            raise PathRefused(f"{name} is the program's own folder")
        return below

    def _is_closed(self, folder: int) -> bool:
        if self._closed is None:
            return False
        try:
            return os.path.samestat(self._closed.stat(), os.fstat(folder))
        except FileNotFoundError:
            return False


def names_in(folder: int) -> list[str]:
    """The names in an open folder, in no order."""
    return os.listdir(folder)


def _flush(folder: Path) -> None:
    opened = os.open(folder, _FOLDER)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)

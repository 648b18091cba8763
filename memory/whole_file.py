"""One file in an open folder, read whole and replaced whole (WD-16): a kill at any byte leaves the old file or the new one.

A new text goes to a hidden draft in the same folder, is flushed, takes the place of the old file in one step, and the folder is flushed.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass

from memory.file_errors import FileUnreadable, PathRefused
from memory.folders import names_in

DRAFT_END = ".yumegate-draft"
FILE_MODE = 0o600
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_TRIES = 3
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS})


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the disk says of a file without reading it; times in nanoseconds since 1970."""

    device: int
    inode: int
    size: int
    changed_ns: int
    touched_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBytes:
    """A file's whole content, with what a replacement takes over."""

    data: bytes
    stamp: Stamp
    mode: int
    user: int
    group: int


def stamp_of(folder: int, name: str) -> Stamp | None:
    """None when there is no file of that name. PathRefused for a link, a device, a pipe or a folder."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _check_plain(name, found)
    return _stamp(found)


def read_whole(folder: int, name: str, *, most: int) -> FileBytes | None:
    """The file, or None. FileUnreadable above `most` bytes or without the right to read it, PathRefused for what is no plain file; else OSError.

    A file that somebody is writing in place is read again until two looks agree, a few times.
    """
    for _ in range(_READ_TRIES):
        try:
            file = os.open(name, _READ, dir_fd=folder)
        except FileNotFoundError:
            return None
        except PermissionError as error:
            raise FileUnreadable(f"{name} cannot be read: its rights do not allow it") from error
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise PathRefused(f"{name} is a link or no plain file, and is not followed") from error
            raise
        try:
            before = os.fstat(file)
            _check_plain(name, before)
            if before.st_size > most:
                raise FileUnreadable(f"{name} has {before.st_size:,} bytes, more than the {most:,} of a file of ours: split it")
            data = _read(file, most + 1)
            after = os.fstat(file)
        finally:
            os.close(file)
        if _stamp(before) == _stamp(after) and len(data) == after.st_size:
            return FileBytes(data=data, stamp=_stamp(after), mode=stat.S_IMODE(after.st_mode), user=after.st_uid, group=after.st_gid)
    raise FileUnreadable(f"{name} is being written by another program")


def replace_whole(folder: int, name: str, data: bytes, *, old: FileBytes | None, most: int) -> bool:
    """Put `data` in place of `old`, None for a new file. False, and nothing changed, when the file is not `old` any more.

    The look and the replacement are two steps for a file that exists: an editor that saves in the microseconds between them is not seen (its text is
    not kept); a new file is made in one step. Mode and owner of the old file are kept, a new one is 0600. OSError when the disk does not take it.
    """
    draft = f".{secrets.token_hex(8)}{DRAFT_END}"
    file = os.open(draft, _CREATE, FILE_MODE, dir_fd=folder)
    try:
        try:
            if old is not None:
                _take_over(file, old)
            left = memoryview(data)
            while left:
                left = left[os.write(file, left) :]
            os.fsync(file)
        finally:
            os.close(file)
        if old is None:
            if not _put_new(folder, draft, name):
                return False
        else:
            present = read_whole(folder, name, most=most)
            if present is None or present.data != old.data:
                return False
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
    return True


def sweep_drafts(folder: int) -> None:
    """Remove what killed writers left. Only in the turn of the folder's one writer."""
    for name in names_in(folder):
        if name.startswith(".") and name.endswith(DRAFT_END):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)


def _put_new(folder: int, draft: str, name: str) -> bool:
    try:
        os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder)  # unlike a rename it never replaces
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        if stamp_of(folder, name) is not None:
            return False
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    return True


def _take_over(file: int, old: FileBytes) -> None:
    ours = os.fstat(file)
    if (ours.st_uid, ours.st_gid) != (old.user, old.group):
        with suppress(PermissionError):  # without the right to give it away the file becomes ours, as with most editors
            os.fchown(file, old.user, old.group)
    os.fchmod(file, old.mode)


def _read(file: int, most: int) -> bytes:
    pieces: list[bytes] = []
    while most > 0 and (piece := os.read(file, most)):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _check_plain(name: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise PathRefused(f"{name} is a link or no plain file, and is not followed")


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

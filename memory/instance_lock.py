"""One process per data directory (WD-120): the host's lock, and what its holder says about itself.

The lock is `flock` on a file that is never removed or replaced, so the system drops it with the process, however that ends. The file holds JSON: the
holder's process id and, later, where and with which secret the command line reaches it; hence mode 0600.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType

from pydantic import TypeAdapter, ValidationError

from memory.errors import StoreHeld, StoreUnavailable

FILE = "instance.lock"
Info = dict[str, str | int]

_INFO = TypeAdapter(Info)


class InstanceLock:
    """Take it before anything in `data_dir` is opened, release it after everything is closed. Also a context manager.

    Children must not inherit the file: start them by `spawn` or `subprocess`, not by a bare fork, or the lock lives as long as they do.
    """

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / FILE
        self._file: int | None = None

    def take(self) -> None:
        """Raises StoreHeld, naming the holder's process id, when somebody else has it; StoreUnavailable when the file cannot be made."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreUnavailable(f"the lock of the data directory cannot be made: {error}") from error
        while not _lock(file, fcntl.LOCK_EX):
            if not _lock(file, fcntl.LOCK_SH):  # so it is a holder, not somebody in `read_info`
                holder = _parse(_read(file)).get("pid", "unknown")
                os.close(file)
                raise StoreHeld(f"{self._path.parent} is in use by process {holder}: stop that one first, or give this one another data_dir")
            fcntl.flock(file, fcntl.LOCK_UN)
            time.sleep(0.001)
        self._file = file
        os.fchmod(file, 0o600)
        self.write_info({})

    def write_info(self, info: Mapping[str, str | int]) -> None:
        """Replace what the file says; the process id is added. Only while held."""
        if self._file is None:
            raise RuntimeError("the lock is not held")
        # One write over the old text, padded with blanks, which JSON allows: a reader never finds an empty or half file.
        text = json.dumps({**info, "pid": os.getpid()}, ensure_ascii=False).encode()
        os.pwrite(self._file, text.ljust(os.fstat(self._file).st_size), 0)

    def release(self) -> None:
        """Give it up; nothing happens when it is not held. The file stays, empty: removing it would let two processes lock two files of one name."""
        if self._file is not None:
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None

    def __enter__(self) -> InstanceLock:
        self.take()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


def read_info(data_dir: Path) -> Info | None:
    """What the running holder says: `pid`, and what it wrote. None when nobody holds the lock, whatever a killed process left in the file.

    Looks by a shared lock for less than a millisecond, so that it neither takes the lock nor trusts a process id, which the system gives anew.
    """
    try:
        file = os.open(data_dir / FILE, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with closing(os.fdopen(file)) as opened:
        if _lock(opened.fileno(), fcntl.LOCK_SH):
            return None
        return _parse(_read(opened.fileno()))


def _lock(file: int, kind: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(file, kind | fcntl.LOCK_NB)
        return True
    return False


def _read(file: int) -> bytes:
    return os.pread(file, os.fstat(file).st_size, 0)


def _parse(text: bytes) -> Info:
    """Empty when the holder has not written yet, or a person wrote into the file."""
    try:
        return _INFO.validate_json(text)
    except ValidationError:
        return {}

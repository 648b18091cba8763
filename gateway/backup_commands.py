"""`yumegate backup` and `yumegate restore`, in a terminal (WO-39). Imported by the command that needs it, not with the command line."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rich.progress import Progress

from gateway import backup, restore
from gateway.config import Config
from gateway.restore import ArchiveRefused, Restored
from gateway.store import utc_now
from memory.errors import StoreError
from memory.instance_lock import InstanceLock, read_info

RESTART_LIMIT_S = 180.0
_LOOK_S = 0.25


class CannotDo(Exception):
    """A sentence for the operator."""


def back_up(config: Config, target: Path | None) -> str:
    """What was done, in words."""
    target = target or Path(f"yumegate-{utc_now():%Y-%m-%dT%H%M%SZ}.tar.gz")
    try:
        with restore.apart(config, shared=True), Progress(transient=True) as progress:
            task = progress.add_task("packing")
            packed = backup.pack(config, target.absolute(), told=lambda done, of: progress.update(task, completed=done, total=of))
    except (ArchiveRefused, StoreError, OSError) as error:
        raise CannotDo(str(error)) from error
    left = f"; not in it: {', '.join(packed.skipped)}" if packed.skipped else ""
    return (
        f"{packed.path}: the database and {_files(packed.files)}, {packed.bytes / 1e6:,.1f} MB{left}\n"
        "It holds everything that was said and remembered: keep it where nobody else reads it. config.json and secrets.env are not in it."
    )


def bring_back(config: Config, archive: Path, restart: Callable[[], object]) -> str:
    """`restart`: asks the gateway that runs to begin again."""
    try:
        restore.lay_ready(config, archive.absolute())
        info = read_info(config.data_dir)
        if info is None:
            with InstanceLock(config.data_dir):
                return _words(restore.take_over(config))
        restart()
        _wait_for_another(config, str(info.get("secret", "")))
    except (ArchiveRefused, StoreError, OSError) as error:
        raise CannotDo(str(error)) from error
    return f"the gateway has begun again with what was in {archive}; what was there before lies in {config.data_dir / 'backups'}"


def _wait_for_another(config: Config, secret: str) -> None:
    """Until a gateway runs again: each start has a secret of its own."""
    end = time.monotonic() + RESTART_LIMIT_S
    while time.monotonic() < end:
        info = read_info(config.data_dir)
        if info is not None and info.get("secret", secret) != secret:
            if restore.waits(config):
                raise CannotDo("the gateway has begun again without it: see its log")
            return
        time.sleep(_LOOK_S)
    raise CannotDo(f"the gateway has not begun again in {RESTART_LIMIT_S:.0f} s: see its log; what was laid ready is taken over by its next start")


def _words(done: Restored | None) -> str:
    if done is None:
        raise CannotDo("what was laid ready is gone: another command has taken it over")
    before = f"what was there before lies in {done.before}" if done.before else "nothing was there before"
    return f"restored as it was at {done.made_at[:19]} UTC, {_files(done.files)}; {before}"


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"

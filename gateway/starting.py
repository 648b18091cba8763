"""What must be in order before the store is opened: folders that can be written, and an archive that waits to be restored."""

from __future__ import annotations

import logging

from gateway import restore
from gateway.config import Config
from memory.errors import StoreError

log = logging.getLogger(__name__)


class CannotStart(Exception):
    """A sentence for the operator: why the gateway does not start, and what to do."""


def prepare_folders(config: Config) -> None:
    """Both folders exist, private to us, and can be written (WD-1); CannotStart with one line naming the one that cannot."""
    for folder in (config.agent_workspace, config.data_dir):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            probe = folder / ".write-test"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise CannotStart(f"{folder} cannot be written ({error.strerror}): change its rights, or set another folder in config.json") from error


def take_over(config: Config) -> None:
    """What `yumegate restore` laid ready takes the place of everything, before the store is opened (WO-39)."""
    try:
        done = restore.take_over(config)
    except (restore.ArchiveRefused, StoreError, OSError) as error:
        stage = config.data_dir / restore.STAGE
        raise CannotStart(
            f"what was to be restored cannot be put in place ({error}): mend that and start again; or remove {stage}, "
            f"and restore the newest archive in {config.data_dir / 'backups'}, which holds what was there before"
        ) from error
    if done is not None:
        log.warning("restored as it was at %s; what was there before lies in %s", done.made_at, done.before or "no archive, for nothing was there")

"""One archive of everything the gateway knows, made while it runs (WO-39): the database, the workspace, and the folders of the data directory that
nothing can be made anew from. Configuration and secrets are not in it; the vector index is built again from the rest.

The database is copied first. A line that is written into a file after that reads as a person's, and stays; the other way round a line that the
database knows and no file holds would count as taken out by hand (WD-19).
"""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gateway.config import Config
from gateway.store import open_database, utc_now
from memory.database import Database, sqlite_url
from memory.errors import StoreUnavailable
from memory.migrate import HEAD, backup_sqlite, migrate, stored_revision
from memory.row_copy import copy_rows

FORMAT = 1
MANIFEST, DATABASE, WORKSPACE, DATA = "manifest.json", "database.db", "workspace", "data"
FOLDERS = ("attachments", "challenges", "backups/files")  # of the data directory; `backups/files` has the older texts of files
Told = Callable[[int, int], object]  # how many files of how many are done


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """`skipped`: below the workspace, what is no plain file or cannot be read."""

    path: Path
    files: int
    bytes: int
    skipped: tuple[str, ...]


def pack(config: Config, target: Path, *, told: Told = lambda _done, _of: None) -> Packed:
    """Write the archive `target` (tar, gzip), mode 0600, whole or not at all. Blocks while it writes.

    Raises StoreError when there is no database of this version or it cannot be read; OSError, as FileExistsError for a target that is there.
    """
    if target.exists():
        raise FileExistsError(f"{target} exists already: name another file")
    if _would_be_kept(config, target.resolve()):
        raise OSError(f"{target} would itself be packed by the next backup: name a file elsewhere")
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=".yumegate-backup-", dir=target.parent) as folder:
        snapshot, unready = Path(folder) / DATABASE, Path(folder) / "archive"
        revision = _snapshot(config, snapshot)
        files = sorted(kept_files(config))
        skipped: list[str] = []
        with unready.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw) as packed, tarfile.open(fileobj=packed, mode="w|") as archive:
            archive.add(snapshot, DATABASE)
            for number, (name, path) in enumerate(files, start=1):
                if not _add_file(archive, name, path):
                    skipped.append(name)
                told(number, len(files))
            manifest = {"format": FORMAT, "revision": revision, "made_at": utc_now().isoformat(), "files": len(files) - len(skipped)}
            _add(archive, MANIFEST, json.dumps(manifest, indent=2).encode(), utc_now())  # last, when it is known how many were read
        unready.chmod(0o600)
        unready.rename(target)
    return Packed(path=target, files=len(files) - len(skipped), bytes=target.stat().st_size, skipped=tuple(skipped))


def kept_files(config: Config) -> Iterator[tuple[str, Path]]:
    """Every file that is packed, beside the database: its name in the archive, and where it lies. Links are not followed."""
    yield from _below(WORKSPACE, config.agent_workspace, without=config.data_dir)
    for folder in FOLDERS:
        yield from _below(f"{DATA}/{folder}", config.data_dir / folder, without=None)


def _would_be_kept(config: Config, target: Path) -> bool:
    data = config.data_dir.resolve()
    if target.is_relative_to(data):
        return any(target.is_relative_to(data / each) for each in FOLDERS)
    return target.is_relative_to(config.agent_workspace.resolve())


def _below(name: str, folder: Path, *, without: Path | None) -> Iterator[tuple[str, Path]]:
    for at, folders, files in os.walk(folder):
        here = Path(at)
        folders[:] = [each for each in folders if here / each != without]
        for each in files:
            yield f"{name}/{(here / each).relative_to(folder).as_posix()}", here / each


def _snapshot(config: Config, target: Path) -> str:
    """A consistent copy of the database, as SQLite; its revision."""
    database = open_database(config)
    try:
        if database.is_sqlite and not Path(database.url.database or "").is_file():
            raise StoreUnavailable("there is no database yet: start the gateway once")
        revision = database.read_now(stored_revision)
        if revision != HEAD:
            raise StoreUnavailable(f"the database has revision {revision or 'none'}, not {HEAD}: start the gateway of this version once")
        if database.is_sqlite:
            backup_sqlite(Path(database.url.database or ""), target)
        else:
            _copied(database, target)
    finally:
        database.close_now()
    return revision


def _copied(source: Database, target: Path) -> None:
    copy = Database(sqlite_url(target))
    try:
        migrate(copy, target.parent)
        source.read_now(lambda rows: copy.write_now(lambda into: copy_rows(rows, into)))
    finally:
        copy.close_now()  # which puts everything into the one file


def _add_file(archive: tarfile.TarFile, name: str, path: Path) -> bool:
    """Whether it was read: a file may be gone by now."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(file, "rb") as opened:
            about = os.fstat(file)
            if not stat.S_ISREG(about.st_mode):
                return False
            data = opened.read()  # in one piece: what grows meanwhile would not have the size that stands before it
    except OSError:
        return False
    _add(archive, name, data, datetime.fromtimestamp(about.st_mtime).astimezone())
    return True


def _add(archive: tarfile.TarFile, name: str, data: bytes, at: datetime) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), 0o600, int(at.timestamp())
    archive.addfile(info, io.BytesIO(data))

"""The way back from an archive of `gateway.backup` (WO-39), in two steps: `lay_ready` unpacks and checks it beside what is there, and `take_over`,
under the lock of the data directory and before the store is opened, puts it in the place of everything.

What was there before is packed first. Every step of `take_over` may be repeated: a start after a kill begins it again and ends it.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tarfile
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from gateway import backup
from gateway.backup import DATA, DATABASE, FOLDERS, FORMAT, MANIFEST, WORKSPACE
from gateway.config import Config
from gateway.store import open_database, utc_now
from memory.database import Database, sqlite_url
from memory.errors import StoreUnavailable
from memory.migrate import HEAD, KNOWN, migrate
from memory.row_copy import copy_rows

STAGE = "restore"  # in the data directory: what waits to be taken over
_UNREADY = "restore.unready"
_BEFORE = "before"  # in the stage: where what was there before is packed
_INDEXES = "chroma*"


class ArchiveRefused(Exception):
    """A sentence for the operator: why an archive is not restored. Nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """`before`: the archive of what was there, None when nothing was."""

    made_at: str
    files: int
    before: Path | None


def lay_ready(config: Config, archive: Path) -> None:
    """Unpack `archive` into the data directory and check it; what runs is not touched. Blocks. Raises ArchiveRefused; OSError for a full disk."""
    unready = config.data_dir / _UNREADY
    shutil.rmtree(unready, ignore_errors=True)
    unready.mkdir(parents=True, mode=0o700)
    try:
        _unpack(archive, unready)
        _check(unready)
    except BaseException:
        shutil.rmtree(unready, ignore_errors=True)
        raise
    stage = config.data_dir / STAGE
    shutil.rmtree(stage, ignore_errors=True)
    unready.rename(stage)


def waits(config: Config) -> bool:
    return (config.data_dir / STAGE / MANIFEST).is_file()


def take_over(config: Config) -> Restored | None:
    """Put what was laid ready in the place of everything; None when nothing was. Only under the lock, with the database closed. Blocks. Raises
    StoreError and OSError: then it is begun again by the next start."""
    stage = config.data_dir / STAGE
    if not waits(config):
        return None
    told = _manifest(stage)
    before = _keep_what_is_there(config, stage)
    for _, path in list(backup.kept_files(config)):
        path.unlink(missing_ok=True)
    files = _copy(stage / WORKSPACE, config.agent_workspace) + sum(_copy(stage / DATA / each, config.data_dir / each) for each in FOLDERS)
    _restore_database(config, stage / DATABASE)
    for index in config.data_dir.glob(_INDEXES):
        shutil.rmtree(index, ignore_errors=True)
    (stage / MANIFEST).unlink()  # from here on nothing waits
    shutil.rmtree(stage, ignore_errors=True)
    return Restored(made_at=str(told["made_at"]), files=files, before=before)


def _unpack(archive: Path, into: Path) -> None:
    try:
        with tarfile.open(archive, "r|gz") as packed:
            for member in packed:
                parts = PurePosixPath(member.name).parts
                known = member.name in (MANIFEST, DATABASE) or (len(parts) > 1 and parts[0] in (WORKSPACE, DATA))
                if not member.isreg() or not known:
                    raise ArchiveRefused(f"{archive} is no archive of `yumegate backup`: it holds {member.name!r}")
                packed.extract(member, into, filter="data")
    except FileNotFoundError as error:
        raise ArchiveRefused(f"there is no file {archive}") from error
    except (tarfile.TarError, EOFError, ValueError) as error:  # zlib's own error is an OSError of gzip or one of these
        raise ArchiveRefused(f"{archive} is no archive of `yumegate backup`, or not whole: {error}") from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise ArchiveRefused(f"{archive} is no archive of `yumegate backup`, or not whole: {error}") from error


def _check(stage: Path) -> None:
    told = _manifest(stage)
    if told.get("format") != FORMAT:
        raise ArchiveRefused(f"the archive has format {told.get('format')!r}, this program knows {FORMAT}: use the version that made it")
    if told.get("revision") not in KNOWN:
        raise ArchiveRefused(f"the archive's database has revision {told.get('revision')!r}, this program knows up to {HEAD}: use the newer version")
    files = sum(1 for part in (WORKSPACE, DATA) for path in (stage / part).rglob("*") if path.is_file())
    try:
        with closing(sqlite3.connect(f"{(stage / DATABASE).absolute().as_uri()}?mode=rw", uri=True)) as database:  # makes no file
            said = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        said = str(error)
    if said != "ok":
        raise ArchiveRefused(f"the archive's database is damaged: {said}")
    if files < int(told.get("files", 0)) // 2:
        raise ArchiveRefused(f"the archive is not whole: it holds {files} of {told['files']} files")


def _manifest(stage: Path) -> dict[str, Any]:
    try:
        told = json.loads((stage / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArchiveRefused(f"the archive has no {MANIFEST} that can be read: it is none of `yumegate backup`, or not whole") from error
    if not isinstance(told, dict):
        raise ArchiveRefused(f"the archive's {MANIFEST} has another form")
    return {"made_at": "", **told}


def _keep_what_is_there(config: Config, stage: Path) -> Path | None:
    """Once, however often it is called: what a second call finds may be half of each."""
    note = stage / _BEFORE
    if note.is_file():
        return Path(text) if (text := note.read_text(encoding="utf-8")) else None
    target = config.data_dir / "backups" / f"before-restore-{utc_now():%Y%m%dT%H%M%S.%fZ}.tar.gz"
    try:
        backup.pack(config, target)
    except StoreUnavailable:
        if any(backup.kept_files(config)):
            raise
        target = None  # a new machine: there is nothing yet
    unready = note.with_suffix(".unready")
    unready.write_text("" if target is None else str(target), encoding="utf-8")
    unready.rename(note)
    return target


def _copy(source: Path, target: Path) -> int:
    found = [path for path in source.rglob("*") if path.is_file()]
    for path in found:
        to = target / path.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copy2(path, to)
    return len(found)


def _restore_database(config: Config, archived: Path) -> None:
    copy, target = Database(sqlite_url(archived)), open_database(config)
    try:
        migrate(copy, archived.parent)
        if not target.is_sqlite:
            migrate(target, archived.parent)
            copy.read_now(lambda rows: target.write_now(lambda into: copy_rows(rows, into)))
    finally:
        copy.close_now()
        target.close_now()
    if target.is_sqlite:
        _put_in_place(archived, Path(target.url.database or ""))


def _put_in_place(archived: Path, file: Path) -> None:
    """Its log of writes goes first: beside another database it would spoil it."""
    fresh = file.with_name(f"{file.name}.restored")
    shutil.copyfile(archived, fresh)
    fresh.chmod(0o600)
    with fresh.open("rb") as opened:
        os.fsync(opened.fileno())
    for end in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            file.with_name(f"{file.name}{end}").unlink()
    fresh.replace(file)

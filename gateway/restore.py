"""The way back from an archive of `gateway.backup` (WO-39), in two steps: `lay_ready` unpacks and checks it beside what is there, and `take_over`,
under the lock of the data directory and before the store is opened, puts it in the place of everything.

What was there before is packed first. Every step of `take_over` may be repeated: a start after a kill begins it again and ends it.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import shutil
import sqlite3
import tarfile
import zlib
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, ValidationError

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
LEFT_FREE = 64_000_000  # bytes of the disk that unpacking leaves to what runs
_PARTS_MAX = 100  # of a path
_AT_ONCE = 1 << 20  # bytes


class _Manifest(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)

    format: int
    revision: str
    made_at: str
    files: int


class ArchiveRefused(Exception):
    """A sentence for the operator: why an archive is not restored. Nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """`before`: the archive of what was there, None when nothing was."""

    made_at: str
    files: int
    before: Path | None


@contextmanager
def apart(config: Config, *, shared: bool = False, wait: bool = False) -> Generator[None]:
    """No other restore begins or is taken over meanwhile, nor, unless `shared`, does a backup run. Raises ArchiveRefused when one does, or waits for
    its end. The lock goes with the process."""
    config.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = os.open(config.data_dir, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise ArchiveRefused("a backup or another restore is under way: try again after it") from error
        yield
    finally:
        os.close(folder)


def lay_ready(config: Config, archive: Path) -> None:
    """Unpack `archive` into the data directory and check it; what runs is not touched. Blocks. Raises ArchiveRefused; OSError for a full disk."""
    with apart(config):
        unready = config.data_dir / _UNREADY
        shutil.rmtree(unready, ignore_errors=True)
        unready.mkdir(mode=0o700)
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
    if not waits(config):
        return None
    with apart(config, wait=True):
        return _taken_over(config, config.data_dir / STAGE) if waits(config) else None


def _taken_over(config: Config, stage: Path) -> Restored:
    told = _manifest(stage)
    before = _keep_what_is_there(config, stage)
    for _, path in list(backup.kept_files(config)):
        if not path.is_symlink() and path.is_file() and os.access(path, os.R_OK):  # what cannot be packed was not, and stays
            path.unlink(missing_ok=True)
    files = _copy(stage / WORKSPACE, config.agent_workspace, without=config.data_dir)
    files += sum(_copy(stage / DATA / each, config.data_dir / each, without=None) for each in FOLDERS)
    _restore_database(config, stage / DATABASE)
    for index in config.data_dir.glob(_INDEXES):
        shutil.rmtree(index, ignore_errors=True)
    (stage / MANIFEST).unlink()  # from here on nothing waits
    shutil.rmtree(stage, ignore_errors=True)
    return Restored(made_at=told.made_at, files=files, before=before)


def _unpack(archive: Path, into: Path) -> None:
    try:
        with gzip.open(archive) as whole:
            with tarfile.open(fileobj=whole, mode="r|") as packed:
                held: list[tarfile.TarInfo] = vars(packed)["members"]
                for member in packed:
                    held.clear()  # or it keeps each of them until the end
                    _unpack_member(archive, packed, member, into)
            while whole.read(_AT_ONCE):
                pass  # its sum stands behind the last byte
    except FileNotFoundError as error:
        raise ArchiveRefused(f"there is no file {archive}") from error
    except (tarfile.TarError, EOFError, ValueError, zlib.error) as error:
        raise ArchiveRefused(f"{archive} is no archive of `yumegate backup`, or not whole: {error}") from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise ArchiveRefused(f"{archive} is no archive of `yumegate backup`, or not whole: {error}") from error


def _unpack_member(archive: Path, packed: tarfile.TarFile, member: tarfile.TarInfo, into: Path) -> None:
    parts = PurePosixPath(member.name).parts
    known = member.name in (MANIFEST, DATABASE) or (1 < len(parts) < _PARTS_MAX and parts[0] in (WORKSPACE, DATA) and ".." not in parts)
    if not (known and member.isreg()) or member.issparse():
        raise ArchiveRefused(f"{archive} is no archive of `yumegate backup`: it holds {member.name[:200]!r}")
    if member.size > shutil.disk_usage(into).free - LEFT_FREE:
        raise ArchiveRefused(f"no room in {into.parent}: {member.name!r} has {member.size:,} bytes, and {LEFT_FREE:,} stay free for what runs")
    packed.extract(member, into, filter="data")


def _check(stage: Path) -> None:
    told = _manifest(stage)
    if told.format != FORMAT:
        raise ArchiveRefused(f"the archive has format {told.format}, this program knows {FORMAT}: use the version that made it")
    if told.revision not in KNOWN:
        raise ArchiveRefused(f"the archive's database has revision {told.revision!r}, this program knows up to {HEAD}: use the newer version")
    try:
        with closing(sqlite3.connect(f"{(stage / DATABASE).absolute().as_uri()}?mode=rw", uri=True)) as database:  # makes no file
            said = database.execute("PRAGMA quick_check(1)").fetchone()[0]
            if said == "ok":
                said = _differs(database, told)
    except sqlite3.DatabaseError as error:
        said = str(error)
    if said:
        raise ArchiveRefused(f"the archive's database is damaged: {said}")
    files = sum(1 for part in (WORKSPACE, DATA) for path in (stage / part).rglob("*") if path.is_file())
    if files != told.files:
        raise ArchiveRefused(f"the archive is not whole: it holds {files} of {told.files} files")


def _differs(database: sqlite3.Connection, told: _Manifest) -> str:
    """In words, what the database is if not what the manifest says; else empty."""
    revisions = [str(revision) for (revision,) in database.execute("SELECT version_num FROM alembic_version")]
    return "" if revisions == [told.revision] else f"it has revision {', '.join(revisions) or 'none'}, and not {told.revision}"


def _manifest(stage: Path) -> _Manifest:
    try:
        return _Manifest.model_validate_json((stage / MANIFEST).read_bytes())
    except (OSError, ValidationError) as error:
        raise ArchiveRefused(f"the archive has no {MANIFEST} that can be read: it is none of `yumegate backup`, or not whole") from error


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


def _copy(source: Path, target: Path, *, without: Path | None) -> int:
    """How many files were copied: all but those that would lie in `without`, or take its place."""
    pairs = [(path, target / path.relative_to(source)) for path in source.rglob("*") if path.is_file()]
    wanted = [(path, to) for path, to in pairs if without is None or not (to.is_relative_to(without) or without.is_relative_to(to))]
    for path, to in wanted:
        _make_place(to, target)
        shutil.copy2(path, to)
    return len(wanted)


def _make_place(to: Path, below: Path) -> None:
    """Nothing but folders stands on the way from `below` to the file `to`, and no folder in its place. What a link leads to is not touched."""
    for folder in reversed(to.relative_to(below).parents[:-1]):
        if (below / folder).is_symlink() or not (below / folder).is_dir():
            (below / folder).unlink(missing_ok=True)
    if to.is_dir() and not to.is_symlink():
        shutil.rmtree(to)  # empty but for links: its files are packed and gone
    to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    to.unlink(missing_ok=True)


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

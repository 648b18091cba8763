"""Old texts of workspace files, kept under `backups/` in `data_dir` before a program changes them (WD-88).

Per file the newest 30 stay, and all of the last 30 days. A revision is a file named by when it was replaced and by its hash, in a folder with the
path of its file: a person can read them without us. `files/` sets them apart from the copies of the database.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memory.folders import Folders, names_in
from memory.layout import Place
from memory.scopes import Scope
from memory.whole_file import read_whole, replace_whole, sweep_drafts

HASH_LENGTH = 16  # hex digits of the name: enough to tell the revisions of one file apart
_TICK = timedelta(microseconds=1)
_NAME = re.compile(r"([0-9]{8}T[0-9]{12}Z)-([0-9a-f]{16})\.md")
_TIME = "%Y%m%dT%H%M%S%fZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """`id` is opaque; `replaced_at` is when the text ceased to be the file (UTC); `hash` the first 16 hex digits of its SHA-256."""

    id: str
    replaced_at: datetime
    hash: str


class Revisions:
    """Of one workspace. Calls for one scope come one at a time, or two of one instant could take one name."""

    def __init__(self, data_dir: Path, clock: Callable[[], datetime], *, keep: int = 30, keep_days: int = 30, most: int) -> None:
        """`keep`, `keep_days`: `memory.backups_keep` and `memory.backup_days`. `most`: bytes of a file."""
        self._root = data_dir / "backups" / "files"
        self._folders = Folders(self._root)
        self._clock = clock
        self._keep = keep
        self._keep_for = timedelta(days=keep_days)
        self._most = most

    def keep(self, place: Place, data: bytes, digest: str) -> str:
        """Store `data`, whose SHA-256 in hex is `digest`, durably, and let go what is past its time. Returns the revision's id.

        A text that is the newest revision already (the program died before it replaced the file) is not stored twice. OSError when it cannot be kept.
        """
        with self._folders.make(_folder(place)) as folder:
            known = _revisions(folder)
            if known and known[0].hash == digest[:HASH_LENGTH]:
                return known[0].id
            now = self._clock().astimezone(UTC)
            at = max(now, known[0].replaced_at + _TICK) if known else now  # a clock set back must not hide the newest
            name = f"{at.strftime(_TIME)}-{digest[:HASH_LENGTH]}.md"
            sweep_drafts(folder)
            replace_whole(folder, name, data, old=None, most=self._most)
            for revision in known[max(0, self._keep - 1) :]:
                if revision.replaced_at < now - self._keep_for:
                    with suppress(FileNotFoundError):
                        os.unlink(f"{revision.id}.md", dir_fd=folder)
            return name.removesuffix(".md")

    def of(self, place: Place) -> tuple[Revision, ...]:
        """Newest first."""
        with self._folders.open(_folder(place)) as folder:
            return () if folder is None else tuple(_revisions(folder))

    def read(self, place: Place, revision: str) -> str | None:
        """The text of a revision, None when there is none of that id."""
        if not _NAME.fullmatch(f"{revision}.md"):
            return None
        with self._folders.open(_folder(place)) as folder:
            found = None if folder is None else read_whole(folder, f"{revision}.md", most=self._most)
        return None if found is None else found.data.decode()

    def forget(self, place: Place) -> None:
        """Remove every revision of one file."""
        self._remove(self._root.joinpath(*_folder(place)))

    def forget_scope(self, scope: Scope) -> None:
        """Remove every revision of every file of a scope (WD-15)."""
        self._remove(self._root / str(scope))

    def _remove(self, folder: Path) -> None:
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)


def _folder(place: Place) -> tuple[str, ...]:
    return (*str(place.scope).split("/"), *place.path.split("/"))


def _revisions(folder: int) -> list[Revision]:
    found = [match for name in names_in(folder) if (match := _NAME.fullmatch(name))]
    return sorted(map(_revision, found), key=lambda revision: revision.replaced_at, reverse=True)


def _revision(name: re.Match[str]) -> Revision:
    at = datetime.strptime(name[1], _TIME).replace(tzinfo=UTC)
    return Revision(id=name[0].removesuffix(".md"), replaced_at=at, hash=name[2])

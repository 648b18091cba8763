"""The workspace: Markdown files that people and the program both write (WD-1 to WD-29). The one way to them.

Each change is based on a hash and never overwrites what it did not see (WD-17), takes the place of the old file whole (WD-16), and leaves the old
text as a revision (WD-88). Writers of one scope take turns; scopes do not wait for each other. Everything here blocks: the event loop goes through
`workspace_threads`. A full disk or a missing right is StoreUnavailable, and nothing was written.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import stat
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path

from memory import cowagent, daily, scope_card, scope_templates
from memory.errors import StoreUnavailable
from memory.file_errors import FileRefused, FileUnreadable, PathRefused, SecretRefused, TooLarge
from memory.folders import Folders, names_in
from memory.layout import Place, daily_path, place
from memory.listing import listing
from memory.markdown_lines import appended, holds_block, new_lines
from memory.revisions import Revision, Revisions
from memory.scope_card import ScopeCard
from memory.scopes import ROOT, Kind, Scope, scope_or_none
from memory.secret_patterns import find_secret
from memory.texts import Appended, Author, Conflict, FileInfo, Problem, Section, Text, Written
from memory.whole_file import FileBytes, Stamp, read_whole, replace_whole, stamp_of, sweep_drafts

FILE_MAX_BYTES = 256 * 1024
LINE_MAX_CHARACTERS = 4_000
_APPEND_TRIES = 5  # an editor that saves while we append; each try starts from the new text

log = logging.getLogger(__name__)


class Workspace:
    """The files below `root` (`agent_workspace`). Made lazily: no folder or file is there before its first line (WD-2)."""

    def __init__(self, root: Path, data_dir: Path, clock: Callable[[], datetime], *, backups_keep: int = 30, backup_days: int = 30) -> None:
        self._folders = Folders(root, closed=data_dir)
        self._revisions = Revisions(data_dir, clock, keep=backups_keep, keep_days=backup_days, most=FILE_MAX_BYTES)
        self._turns: dict[Scope, threading.Lock] = {}
        self._turns_lock = threading.Lock()
        self._swept: set[tuple[str, ...]] = set()

    # -- reading

    def read(self, scope: Scope, path: str) -> Text | None:
        """The file, None when there is none. PathRefused; FileUnreadable for what is no UTF-8, too large or not ours to read (WD-23)."""
        found = place(scope, path)
        with _disk(found.path):
            seen = self._now(found)
        return seen.text if seen else None

    def stamp(self, scope: Scope, path: str) -> tuple[str, Stamp] | None:
        """The name and the state of a file without reading it, None when there is none: equal stamps mean an equal file, but for its last moments."""
        found = place(scope, path)
        with _disk(found.path), self._folders.open(found.folder) as folder:
            name = None if folder is None else _name(folder, found)
            stamp = stamp_of(folder, name) if folder is not None and name else None
            return (name, stamp) if name and stamp else None

    def files(self, scope: Scope) -> tuple[FileInfo, ...]:
        """Every file of the scope by path; what cannot be reached (links, hidden names, other endings, other programs' files) is not among them."""
        with _disk(str(scope)):
            return listing(self._folders, scope)[0]

    def scopes(self) -> tuple[Scope, ...]:
        """Every scope that has a folder, the root first."""
        found = [ROOT]
        for kind in (Kind.PERSON, Kind.SPACE):
            with _disk(str(kind)), self._folders.open((kind,)) as folder:
                names = names_in(folder) if folder is not None else []
            found += [scope for name in sorted(names) if (scope := scope_or_none(f"{kind}/{name}"))]
        return tuple(found)

    def problems(self, scope: Scope) -> tuple[Problem, ...]:
        """Files of the scope that are left alone, each with a sentence why. Reads them all."""
        with _disk(str(scope)):
            listed, problems = listing(self._folders, scope)
        problems = list(problems)
        for file in listed:
            try:
                self.read(scope, file.path)
            except (FileUnreadable, PathRefused) as error:
                problems.append(Problem(path=file.path, reason=str(error)))
        return tuple(sorted(problems, key=lambda problem: problem.path))

    def is_cowagent(self) -> bool:
        """Whether the root is a CowAgent folder used in place (WD-24)."""
        with _disk("the workspace"), self._folders.open(()) as folder:
            return folder is not None and cowagent.is_folder(names_in(folder))

    # -- writing

    def replace(self, scope: Scope, path: str, new_text: str, *, based_on: str | None, by: Author = Author.PROGRAM) -> Written | Conflict:
        """Make the file say `new_text`, byte for byte, if its hash is still `based_on` (None: there is no such file yet). WD-16, WD-17.

        Text from a form or a model goes through `markdown_lines.in_style_of` first. Raises PathRefused, TooLarge, SecretRefused, FileUnreadable.
        """
        found = place(scope, path)
        data = _encoded(new_text, found.path)
        with _disk(found.path), self._turn(scope):
            old = self._now(found)
            if (old.text.hash if old else None) != based_on:
                return self._conflict(found, old, new_text, based_on)
            if by is Author.PROGRAM:
                _check_lines(new_lines(old.text.content if old else "", new_text), found.path)
            if old and old.file.data == data:
                return Written(text=old.text, before=based_on, changed=False)
            revision = self._revisions.keep(found, old.file.data, old.text.hash) if old else None
            text = self._put(found, old, data)
            return Written(text=text, before=based_on, revision=revision) if text else self._conflict(found, self._now(found), new_text, based_on)

    def remove(self, scope: Scope, path: str, *, based_on: str) -> Written | Conflict:
        """Remove a file if its hash is still `based_on`; its text stays as a revision."""
        found = place(scope, path)
        with _disk(found.path), self._turn(scope), self._folders.open(found.folder) as folder:
            old = None if folder is None else _look(folder, found)
            if folder is None or old is None or old.text.hash != based_on:
                return self._conflict(found, old, "", based_on)
            revision = self._revisions.keep(found, old.file.data, old.text.hash)
            os.unlink(old.text.name, dir_fd=folder)
            os.fsync(folder)
            return Written(text=None, before=based_on, revision=revision)

    def append(self, scope: Scope, path: str, block: str, *, title: str = "", by: Author = Author.PROGRAM) -> Appended:
        """Put the lines of `block` at the end of a file, which begins with `title` when it is new or empty; nothing when it holds them already.

        Every byte before stays (WD-18), and no revision is made (WD-88). Raises as `replace`; StoreUnavailable when somebody writes all the time.
        """
        lines = block.strip("\n").split("\n")
        if by is Author.PROGRAM:
            _check_lines(lines, path)
        return self._append(place(scope, path), lambda old: "" if holds_block(old, block) else block, title)

    def append_daily(self, scope: Scope, local_date: date, section: Section, label: str, at: time, bullets: Sequence[str]) -> Appended:
        """Add to the day's file (WD-4, WD-18): under `section`, at `at` (local), from the conversation called `label`; one bullet per event.

        Bullets with a secret or above the limit per line are left out, logged without their words and told in `refused`; the others are kept.
        The same call again adds nothing, so a job may repeat it. No bullets, no file (WD-2).
        """
        kept: list[str] = []
        refused: list[str] = []
        for line in filter(None, map(daily.bullet, bullets)):
            try:
                _check_lines([line], daily_path(local_date))
            except FileRefused as error:
                refused.append(error.kind if isinstance(error, SecretRefused) else "line too long")
            else:
                kept.append(line)
        found = place(scope, daily_path(local_date))
        if not kept:
            return Appended(text=self.read(scope, found.path), changed=False, refused=tuple(refused))
        if secret := find_secret(label):
            log.warning("a %s in a conversation's name was not written to %s", secret, found.path)
            label = ""
        done = self._append(found, lambda old: daily.block(old, section, label, at, kept), daily.title(local_date))
        return Appended(text=done.text, changed=done.changed, refused=tuple(refused))

    def prepare(self, scope: Scope, card: ScopeCard, *, language: str = "en") -> bool:
        """Make a scope's folder with its card (WD-3) and its templates, once: a folder that has a card, or Markdown of its own, gets no templates.

        True when it was new. What somebody deleted later stays deleted (WD-19).
        """
        with _disk(str(scope)), self._turn(scope), self._folders.make(scope.folder) as folder:
            names = names_in(folder)
            if scope_card.NAME in names:
                return False
            if new := not any(name.endswith(".md") for name in names):
                for name in scope_templates.names_for(scope):
                    replace_whole(folder, name, scope_templates.template(name, language).encode(), old=None, most=FILE_MAX_BYTES)
            replace_whole(folder, scope_card.NAME, card.dump(), old=None, most=FILE_MAX_BYTES)
            return new

    def delete_scope(self, scope: Scope) -> bool:
        """Remove a person's or a space's folder and every revision of its files (WD-15). True when there was a folder. A repeated call is safe.

        The folder loses its name in one step, so that nobody reads half a memory. The root cannot be removed: FileRefused.
        """
        if scope == ROOT:
            raise FileRefused("the owner's files are removed by the owner, not by the program")
        with _disk(str(scope)), self._turn(scope):
            self._revisions.forget_scope(scope)
            with self._folders.open((scope.kind,)) as folder:
                if folder is None:
                    return False
                going = f".gone-{scope.id}"
                _remove_tree(folder, going)  # of a call that was killed
                try:
                    os.rename(scope.id, going, src_dir_fd=folder, dst_dir_fd=folder)
                except FileNotFoundError:
                    return False
                _remove_tree(folder, going)
                os.fsync(folder)
                return True

    # -- revisions

    def revisions(self, scope: Scope, path: str) -> tuple[Revision, ...]:
        """Old texts of a file, newest first."""
        with _disk(path):
            return self._revisions.of(place(scope, path))

    def revision(self, scope: Scope, path: str, revision: str) -> str | None:
        """One old text, None when it is kept no more."""
        with _disk(path):
            return self._revisions.read(place(scope, path), revision)

    def forget_revisions(self, scope: Scope, path: str) -> None:
        """Remove every old text of one file (WD-92)."""
        with _disk(path), self._turn(scope):
            self._revisions.forget(place(scope, path))

    # -- inside

    def _append(self, found: Place, compose: Callable[[str], str], title: str) -> Appended:
        with _disk(found.path), self._turn(found.scope):
            for _ in range(_APPEND_TRIES):
                old = self._now(found)
                block = compose(old.text.content if old else "")
                if not block.strip():
                    return Appended(text=old.text if old else None, changed=False)
                data = _encoded(appended(old.text.content if old else "", block, title=title), found.path)
                if text := self._put(found, old, data):
                    return Appended(text=text, changed=True)
        raise StoreUnavailable(f"{found.path} is being changed by another program all the time: try again")

    def _now(self, found: Place) -> _Seen | None:
        with self._folders.open(found.folder) as folder:
            return None if folder is None else _look(folder, found)

    def _put(self, found: Place, old: _Seen | None, data: bytes) -> Text | None:
        """Write `data` in the place of `old`; None when the file is not `old` any more."""
        name = old.text.name if old else found.names[0]
        with self._folders.make(found.folder) as folder:
            if found.folder not in self._swept:
                sweep_drafts(folder)
                self._swept.add(found.folder)
            done = replace_whole(folder, name, data, old=old.file if old else None, most=FILE_MAX_BYTES)
        return _text(found, name, data) if done else None

    def _conflict(self, found: Place, current: _Seen | None, proposed: str, based_on: str | None) -> Conflict:
        known = [revision for revision in self._revisions.of(found) if based_on and based_on.startswith(revision.hash)]
        base = self._revisions.read(found, known[0].id) if known else ("" if based_on is None else None)
        return Conflict(current=current.text if current else None, proposed=proposed, base=base)

    @contextmanager
    def _turn(self, scope: Scope) -> Generator[None]:
        with self._turns_lock:
            lock = self._turns.setdefault(scope, threading.Lock())
        with lock:
            yield


@dataclass(frozen=True, slots=True)
class _Seen:
    text: Text
    file: FileBytes


def _name(folder: int, found: Place) -> str | None:
    """What the file is called in its folder; None when there is none. Asked of the folder's list, for some disks answer to either name."""
    if len(found.names) == 1:
        return found.names[0]
    there = set(names_in(folder))
    return next((name for name in found.names if name in there), None)


def _look(folder: int, found: Place) -> _Seen | None:
    name = _name(folder, found)
    file = read_whole(folder, name, most=FILE_MAX_BYTES) if name else None
    return _Seen(_text(found, name, file.data), file) if name and file else None


def _text(found: Place, name: str, data: bytes) -> Text:
    try:
        content = data.decode()
    except UnicodeDecodeError as error:
        raise FileUnreadable(f"{found.path} is not UTF-8 (byte {error.start:,}): save it as UTF-8") from error
    return Text(scope=found.scope, path=found.path, name=name, role=found.role, content=content, hash=hashlib.sha256(data).hexdigest())


def _encoded(text: str, path: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise FileRefused(f"the new text of {path} has a character that cannot be written") from error
    if len(data) > FILE_MAX_BYTES:
        raise TooLarge(f"{path} would have {len(data):,} bytes, more than {FILE_MAX_BYTES:,}: shorten it or begin another file")
    return data


def _check_lines(lines: Sequence[str], path: str) -> None:
    """What a program may add (WD-20, WD-22)."""
    if any(len(line) > LINE_MAX_CHARACTERS for line in lines):
        raise TooLarge(f"a line of {path} would have more than {LINE_MAX_CHARACTERS:,} characters: cut it into several")
    if kind := find_secret("\n".join(lines)):
        log.warning("a %s was not written to %s", kind, path)
        raise SecretRefused(kind)


def _remove_tree(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)  # a link somebody put there; what it leads to is not ours


@contextmanager
def _disk(what: str) -> Generator[None]:
    """What the disk refuses, as something to try again."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"{what} cannot be used now: {error.strerror or error}") from error

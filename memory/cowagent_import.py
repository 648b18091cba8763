"""What an import from a CowAgent folder writes into the owner's scope, decided before anything is written (WD-26, WD-28). Pure.

Lines with a secret stay where they are, whatever file they stand in: what is imported reaches prompts, the search and dreams (WD-22). So do lines
that the owner took out of memory here: an import brings nothing back (WD-19, WD-90, WD-92).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date

from memory.cowagent import RULES
from memory.cowagent_source import Skipped, Source, SourceFile
from memory.file_errors import PathRefused
from memory.file_hash import file_hash
from memory.layout import Role, local_date_of, place
from memory.lines import entries, without
from memory.markdown_lines import body, has_content, lines_of
from memory.provenance import LineRow, Origin
from memory.scope_templates import has_own_content
from memory.scopes import ROOT
from memory.secret_patterns import PRIVATE_KEY, find_secret
from memory.texts import Text

AUTHOR = "import"
CAUSE = "import"
USED = "import"
"""`used_by` of imported daily lines: no dream takes them by itself (WD-28)."""

NOT_READ = frozenset({RULES})
"""Imported, and read by nobody in a workspace of our own: the report says so."""

_KEY_ENDS = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY")
_KEY_BODY = re.compile(r"[A-Za-z0-9+/=:-]{16,}")
_WINDOW = 3  # lines: "password:", a blank one, and the value below


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretLine:
    """A line left out. `line` counts from 1 in the file `path` of the source; the words are nowhere."""

    path: str
    line: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupied:
    """What stands at a path of ours. `content` is None for a file that cannot be read; such a one is never replaced."""

    content: str | None
    hash: str = ""

    @classmethod
    def by(cls, text: Text) -> Occupied:
        return cls(content=text.content, hash=text.hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One file to write. `based_on`: hash of the file that it replaces, a template without content of its own; None for a new one. `beside`: the
    target is kept, and the text lands next to it. `source_hash`: of the file it comes from, by which a second import knows it."""

    name: str
    path: str
    text: str
    based_on: str | None
    beside: bool
    source_hash: str

    @property
    def lines(self) -> int:
        return len(entries(self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`unchanged`: names of files that are here already. `barred`: how many lines stay away because the owner took them out here."""

    steps: tuple[Step, ...] = ()
    unchanged: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    secrets: tuple[SecretLine, ...] = ()
    barred: int = 0
    tasks: tuple[str, ...] = ()


def plan(source: Source, here: Mapping[str, Occupied], known: Collection[tuple[str, str]], bars: Collection[str], today: date) -> Plan:
    """What to write. `here`: our files by path; `known`: path and source hash of what was imported before; `bars`: hashes of lines that may not
    come back; `today`: for the names of texts laid beside a file."""
    steps: list[Step] = []
    unchanged: list[str] = []
    skipped = list(source.skipped)
    secrets: list[SecretLine] = []
    barred = 0
    imported = {(_target(path), digest) for path, digest in known}
    for file in source.files:
        if (file.text.path, file.text.hash) in imported:
            unchanged.append(file.name)
            continue
        cleaned, found = without_secrets(file.text.content)
        kept = without(cleaned, bars)
        if not has_content(kept):
            reason = "nothing is left of it" if has_content(file.text.content) else "it has no content"
            skipped.append(Skipped(path=file.name, reason=reason))
        elif (step := _step(file, kept, here, today)) is None:
            unchanged.append(file.name)
        elif isinstance(step, Skipped):
            skipped.append(step)
        else:
            steps.append(step)
        secrets += [SecretLine(path=file.name, line=line, kind=kind) for line, kind in found]
        barred += len(entries(cleaned)) - len(entries(kept))
    return Plan(
        steps=tuple(steps), unchanged=tuple(unchanged), skipped=tuple(skipped), secrets=tuple(secrets), barred=barred, tasks=source.tasks
    )  # fmt: skip


def wanted(source: Source, paths: Collection[str]) -> tuple[str, ...]:
    """Those of `paths` (our files) that `plan` needs to know: targets, and what earlier imports laid beside them."""
    targets = {file.text.path for file in source.files}
    return tuple(path for path in paths if _target(path) in targets)


def rows_of(step: Step) -> tuple[LineRow, ...]:
    """The provenance of every line that a step writes (WD-5, WD-28). A diary's lines are never used, so nothing is kept of them."""
    return imported_rows(step.path, step.text)


def imported_rows(path: str, text: str) -> tuple[LineRow, ...]:
    """Rows for the lines of a CowAgent file at `path`: imported, and those of a day used already."""
    if place(ROOT, path).role in (Role.DIARY, Role.OTHER):
        return ()
    day = local_date_of(path)
    row = LineRow(hash="", origin=Origin.IMPORTED, author=AUTHOR, local_date=day, used_by=USED if day else "")
    return tuple(replace(row, hash=digest) for digest in dict.fromkeys(entry.hash for entry in entries(text)))


def without_secrets(text: str) -> tuple[str, tuple[tuple[int, str], ...]]:
    """`text` without the lines that hold a secret, every other byte as it was; and number and kind of each line left out."""
    lines = lines_of(text)
    bad = dict(_single(lines))
    for size in range(2, _WINDOW + 1):  # what only shows when lines are read together
        for at in range(len(lines) - size + 1):
            window = range(at, at + size)
            if not any(each in bad for each in window) and (kind := find_secret("".join(lines[each] for each in window))):
                bad.update((each, kind) for each in window if lines[each].strip())
    kept = "".join(line for at, line in enumerate(lines) if at not in bad)
    return kept, tuple((at + 1, kind) for at, kind in sorted(bad.items()))


def _single(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Index and kind of lines that are secret by themselves, or part of a private key."""
    behind_key = 0
    for at, line in enumerate(lines):
        kind = find_secret(body(line))
        if kind == PRIVATE_KEY and at >= behind_key:
            behind_key = _behind_key(lines, at)
        if at < behind_key:
            yield at, PRIVATE_KEY
        elif kind:
            yield at, kind


def _behind_key(lines: list[str], at: int) -> int:
    """The index behind the private key that begins at `at`: its end, or where something else begins when its end is missing."""
    if "-----BEGIN" not in lines[at]:
        return at + 1
    if (end := next((n for n in range(at, len(lines)) if _KEY_ENDS.search(lines[n])), None)) is not None:
        return end + 1
    return next((n for n in range(at + 1, len(lines)) if not _KEY_BODY.fullmatch(lines[n].strip())), len(lines))


def _step(file: SourceFile, text: str, here: Mapping[str, Occupied], today: date) -> Step | Skipped | None:
    """How `text` gets to its place; None when it stands here already."""
    path, digest = file.text.path, file_hash(text)
    there = here.get(path)
    step = Step(name=file.name, path=path, text=text, based_on=None, beside=False, source_hash=file.text.hash)
    if there is None:
        return step
    if there.hash == digest or any(other.hash == digest for known, other in here.items() if known != path and _target(known) == path):
        return None
    if there.content is not None and not has_own_content(path, there.content):
        return replace(step, based_on=there.hash)
    beside = next(name for name in _beside(path, today) if name not in here)
    try:
        place(ROOT, beside)
    except PathRefused as error:
        return Skipped(path=file.name, reason=f"{path} is kept, and no name is left beside it: {error}")
    return replace(step, path=beside, beside=True)


_BESIDE = re.compile(r"\.imported-[0-9]{4}-[0-9]{2}-[0-9]{2}(?:-[0-9]+)?\.md\Z")


def _beside(path: str, today: date) -> Iterator[str]:
    stem = f"{path.removesuffix('.md')}.imported-{today.isoformat()}"
    yield f"{stem}.md"
    number = 2
    while True:
        yield f"{stem}-{number}.md"
        number += 1


def _target(path: str) -> str:
    """The path that a text laid beside it is meant for; any other path is its own."""
    return _BESIDE.sub(".md", path)

"""Children that are killed while they write (WD-16, N6); run by `test_workspace_kill`, alone in a process of its own.

`matrix FOLDER`: at each step of a write a fork is killed, and the parent then looks at the folder. `loop FOLDER`: writes for ever, until somebody
kills it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from itertools import count
from pathlib import Path
from typing import Any

from memory.scopes import ROOT
from memory.texts import Author, Section, Written
from memory.workspace import Workspace

DAY = date(2026, 3, 8)
OLD, NEW = "- old\n" * 900, "- new line\n" * 900
STEPS = ("open", "write", "fsync", "fchmod", "link", "rename", "unlink", "mkdir", "close")


def workspace(folder: Path) -> Workspace:
    return Workspace(folder / "w", folder / "data", lambda: datetime(2026, 3, 8, tzinfo=UTC))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(fatal: int) -> None:
    """Die at moment `fatal`, of which every step has two, before it and behind it; writing has one inside, when half is written."""
    moments = 0

    def moment() -> bool:
        nonlocal moments
        moments += 1
        return moments - 1 == fatal

    def wrapped(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            if moment():
                die()
            if name == "write" and moment():
                real(args[0], args[1][: len(args[1]) // 2])
                die()
            try:
                return real(*args, **named)
            finally:
                if moment():
                    die()

        return call

    for name in STEPS:
        setattr(os, name, wrapped(name, getattr(os, name)))


def run(action: Callable[[Workspace], object], folder: Path, fatal: int) -> bool:
    """Whether the action came to its end before it was killed."""
    child = os.fork()
    if child == 0:
        leave = os._exit
        try:
            ours = workspace(folder)
            arm(fatal)
            action(ours)
            leave(0)
        finally:
            leave(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), f"the child failed by itself ({code})"
    return code == 0


def replace_existing(ours: Workspace) -> None:
    seen = ours.read(ROOT, "MEMORY.md")
    assert seen is not None
    assert isinstance(ours.replace(ROOT, "MEMORY.md", NEW, based_on=seen.hash, by=Author.PERSON), Written)


def write_first(ours: Workspace) -> None:
    assert isinstance(ours.replace(ROOT, "knowledge/tea/green.md", NEW, based_on=None, by=Author.PERSON), Written)


def append(ours: Workspace) -> None:
    ours.append_daily(ROOT, DAY, Section.SUMMARY, "DM", time(23, 55), ["one event"])


def content(ours: Workspace, path: str) -> str | None:
    text = ours.read(ROOT, path)
    return text.content if text else None


def check(folder: Path, path: str, allowed: tuple[str | None, ...]) -> str | None:
    ours = workspace(folder)
    seen = content(ours, path)
    assert seen in allowed, f"{path} holds {seen!r:.80}"
    assert [file.path for file in ours.files(ROOT) if file.path == path] == ([] if seen is None else [path])
    for file in ours.files(ROOT):
        for revision in ours.revisions(ROOT, file.path):
            assert ours.revision(ROOT, file.path, revision.id) == OLD
    return seen


def matrix(folder: Path) -> None:
    """Prints how many kills there were and the texts that were found after them, by their beginnings."""
    day = "# Daily Memory: 2026-03-08\n\n## Daily Summary\n\n### 23:55 DM\n\n- one event\n"
    cases: list[tuple[str, Callable[[Workspace], None], str, tuple[str | None, ...]]] = [
        ("replace", replace_existing, "MEMORY.md", (OLD, NEW)),
        ("first", write_first, "knowledge/tea/green.md", (None, NEW)),
        ("append", append, "memory/2026-03-08.md", ("- mine\n", f"- mine\n\n{day.partition(chr(10) * 2)[2]}")),
    ]
    for name, action, path, allowed in cases:
        found: set[str | None] = set()
        fatal, finished = -1, False
        while not finished:
            fatal += 1
            place = folder / f"{name}-{fatal}"
            (place / "w/memory").mkdir(parents=True)
            (place / "w/MEMORY.md").write_text(OLD)
            (place / "w/memory/2026-03-08.md").write_text("- mine\n")
            finished = run(action, place, fatal)
            found.add(check(place, path, allowed))
            later = workspace(place)
            if content(later, path) != allowed[1]:
                action(later)  # a new start writes on, and sweeps what the dead left
                assert not list((place / "w").rglob("*draft"))
            assert content(later, path) == allowed[1]
        assert found == set(allowed), found
        sys.stdout.write(f"{name} {fatal}\n")


def loop(folder: Path) -> None:
    ours = workspace(folder)
    seen = ours.read(ROOT, "MEMORY.md")
    for n in count(int(seen.content.split()[1]) + 1 if seen else 0):
        written = ours.replace(
            ROOT, "MEMORY.md", f"- {n} begins\n" + "- line\n" * (n % 7 * 900) + f"- {n} ends\n", based_on=seen.hash if seen else None
        )
        assert isinstance(written, Written)
        seen = written.text


if __name__ == "__main__":
    {"matrix": matrix, "loop": loop}[sys.argv[1]](Path(sys.argv[2]))

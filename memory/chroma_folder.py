"""Where the embedded Chroma database lies, and how a damaged one is put away (WD-121, WD-124).

Each database has a folder of its own, `store-N`: a client keeps what it has open, so nothing is ever deleted or made anew under one. What was put
aside is deleted at the next start, when nobody has it open.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

_STORE = re.compile(r"store-([0-9]{1,9})")
_ASIDE = "aside-"


def current(base: Path) -> Path:
    """The folder of the database that is used; it may not exist yet."""
    return base / f"store-{max(_numbers(base), default=1)}"


def put_aside(base: Path) -> Path:
    """Move the database away and return the folder of the next one. OSError when the disk refuses."""
    number = max(_numbers(base), default=1)
    old = base / f"store-{number}"
    following = base / f"store-{number + 1}"
    following.mkdir(parents=True, mode=0o700)  # first: should we be killed now, the damaged one is used no more all the same
    if old.exists():
        old.rename(base / f"{_ASIDE}{number}")
    return following


def sweep(base: Path) -> None:
    """Delete what was put aside, and databases that a newer one has followed. At a start only."""
    keep = current(base)
    for folder in base.glob("*") if base.is_dir() else ():
        if folder != keep and (folder.name.startswith(_ASIDE) or _STORE.fullmatch(folder.name)):
            shutil.rmtree(folder, ignore_errors=True)


def _numbers(base: Path) -> list[int]:
    return [int(found[1]) for folder in base.glob("store-*") if (found := _STORE.fullmatch(folder.name))]

"""Small disks for tests, where the system lets us mount any."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FILLER = "filler"


@contextmanager
def small_disk(at: Path, options: str) -> Iterator[Path]:
    """A disk in memory at `at`; skips the test, saying why, where nothing may be mounted."""
    at.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(at)], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no disk can be mounted here: {made.stderr.strip()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


def fill(disk: Path) -> None:
    """Take every free byte of `disk`; remove its file FILLER to give them back."""
    file = os.open(disk / FILLER, os.O_WRONLY | os.O_CREAT)
    try:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    os.write(file, bytes(size))
            except OSError:
                continue
    finally:
        os.close(file)

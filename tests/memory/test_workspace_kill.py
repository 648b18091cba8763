"""kill -9 at any moment of a write leaves the old file or the new one, whole (WD-16, N6)."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memory.scopes import ROOT
from tests.memory import killed_writer

CHILD = [sys.executable, "-m", "tests.memory.killed_writer"]
PROJECT = Path(__file__).resolve().parent.parent.parent
KILLS = 10


@pytest.mark.rule("WD-16", "WD-18", "WD-88")
def test_a_kill_before_inside_and_behind_each_step_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    done = subprocess.run([*CHILD, "matrix", str(tmp_path)], cwd=PROJECT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    kills = dict(line.split() for line in done.stdout.splitlines())
    assert set(kills) == {"replace", "first", "append"}
    assert min(map(int, kills.values())) > 20


@pytest.mark.rule("WD-16")
def test_a_writer_killed_at_random_again_and_again_never_leaves_half_a_file(tmp_path: Path) -> None:
    chance = random.Random(20260308)
    last = -1
    for _ in range(KILLS):
        child = subprocess.Popen([*CHILD, "loop", str(tmp_path)], cwd=PROJECT, stderr=subprocess.PIPE)
        file = tmp_path / "w/MEMORY.md"
        started, deadline = file.stat().st_mtime_ns if file.exists() else 0, time.monotonic() + 20
        while (file.stat().st_mtime_ns if file.exists() else 0) == started and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.03))
        child.kill()
        _, complaint = child.communicate(timeout=20)
        assert complaint == b""
        text = killed_writer.workspace(tmp_path).read(ROOT, "MEMORY.md")
        assert text is not None
        lines = text.content.splitlines()
        number = int(lines[0].split()[1])
        assert lines[-1] == f"- {number} ends"
        assert len(lines) == 2 + number % 7 * 900
        assert number > last
        last = number

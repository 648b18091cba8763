"""`make bench ARGS=recall` on a small archive: it is filled and asked by processes that end, and every figure is there."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from rich.console import Console

from tests.bench.recall import show
from tests.bench.recall_asking import read_asked

ROOT_FOLDER = Path(__file__).resolve().parents[3]


async def run(*command: str) -> str:
    child = await asyncio.create_subprocess_exec(sys.executable, "-m", *command, cwd=ROOT_FOLDER, stdout=asyncio.subprocess.PIPE)
    told, _ = await child.communicate()
    assert child.returncode == 0
    return told.decode()


@pytest.mark.slow
@pytest.mark.case("AT-3")
@pytest.mark.rule("RS-34", "RS-181")
async def test_the_recall_bench_ends_with_a_table_and_the_memory_of_the_process_that_searched(tmp_path: Path) -> None:
    await run("tests.bench.recall_archive", str(tmp_path), "120", "12")
    asked = read_asked(await run("tests.bench.recall_asking", str(tmp_path)))
    assert len(asked.times) == 5 and all(0 < each.p50 <= each.p95 for each in asked.times.values())
    assert 50 < asked.memory_mb["after every chat was asked"] <= asked.memory_mb["at its peak"] < 600
    console = Console(record=True, width=150)
    show(console, asked, 120, 12)
    shown = console.export_text()  # which is empty a second time
    assert all(name in shown for name in asked.times) and "MB" in shown

"""Recall for a reply: how long the product's search takes with 1,000 to 100,000 chunks, in a chat that was searched before and in one that was not,
and what memory the process that searches has.

Each archive is filled by one process (`recall_archive`) and asked by another (`recall_asking`); its table is printed as soon as it is known.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.recall_asking import COLD, QUESTIONS, Asked, read_asked

SIZES = ((1_000, 1), (10_000, 1), (100_000, 1_000))  # chunks, chats


async def recall_speed(folder: Path, console: Console) -> None:
    began = time.monotonic()
    for size, count in SIZES:
        console.print(f"{size:,} chunks in {count:,} chat{'s' if count > 1 else ''}: filling")
        archive = folder / str(size)
        archive.mkdir()
        await _run("recall_archive", str(archive), str(size), str(count))
        console.print("  asking")
        show(console, read_asked(await _run("recall_asking", str(archive))), size, count)
        shutil.rmtree(archive)
    console.print(f"all of it took {time.monotonic() - began:.0f} s")


def show(console: Console, asked: Asked, size: int, count: int) -> None:
    console.print(f"{size:,} chunks in {count:,} chat{'s' if count > 1 else ''}: recall for a reply (ms), {QUESTIONS} questions, {COLD} of them cold")
    table = Table()
    for heading in ("", "p50", "p95", "processor p50", "p95"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, times in asked.times.items():
        table.add_row(name, *(f"{each:.1f}" for each in (times.p50, times.p95, times.processor_p50, times.processor_p95)))
    console.print(table)
    console.print("memory (MB): " + ", ".join(f"{megabytes:.0f} {step}" for step, megabytes in asked.memory_mb.items()))


async def _run(module: str, *arguments: str) -> str:
    """What a module of this folder prints; what it tells meanwhile goes where our own errors go."""
    child = await asyncio.create_subprocess_exec(sys.executable, "-m", f"tests.bench.{module}", *arguments, stdout=asyncio.subprocess.PIPE)
    try:
        told, _ = await child.communicate()
    finally:
        if child.returncode is None:
            child.terminate()
            await child.wait()
    if child.returncode:
        raise SystemExit(f"{module} ended with {child.returncode}")
    return told.decode()

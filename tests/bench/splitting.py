"""Cutting long answers: characters a second in three languages, beside what most programs do instead (whole lines until the next does not fit)."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from channels.dialects import DIALECTS
from channels.markdown import parse
from channels.port import Capabilities, Markup, TextUnit
from channels.render import render
from channels.split import split
from channels.units import measure
from channels.writer import write

NOTES = Path(__file__).parent / "notes"
LANGUAGES = ("en", "ja", "zh")
CASES = ((TextUnit.UTF16, 4096, Markup.ENTITIES), (TextUnit.UTF16, 2000, Markup.MARKDOWN), (TextUnit.BYTES, 2048, Markup.PLAIN))
CHARACTERS = 100_000  # of one answer: the longest that any platform of ours takes at once
CODE = "\n\n```python\n" + "for number in range(10):\n    print(number)  # 数\n" * 8 + "```\n\n"
LEAST_S = 0.5  # of measuring for each cell


def by_lines(text: str, limit: int, unit: TextUnit) -> list[str]:
    """The naive way: no grapheme, fence or list is kept whole, and a line that is too long is cut by code points."""
    pieces: list[str] = []
    piece = ""
    for line in text.splitlines(keepends=True):
        while measure(line, unit) > limit:
            pieces.append(line[: limit // 4])
            line = line[limit // 4 :]
        if measure(piece + line, unit) > limit:
            pieces.append(piece)
            piece = ""
        piece += line
    return [*pieces, piece]


def long_text(language: str) -> str:
    once = (NOTES / f"{language}.txt").read_text(encoding="utf-8").replace("\t", "\n\n") + CODE
    return (once * (CHARACTERS // len(once) + 1))[:CHARACTERS]


def rate(work: Callable[[], object], characters: int) -> float:
    """Characters a second: the best of the runs that fit into the time."""
    best, began = float("inf"), time.perf_counter()
    while time.perf_counter() - began < LEAST_S:
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return characters / best


async def splitting(_folder: Path, console: Console) -> None:
    table = Table(title=f"One answer of {CHARACTERS:,} characters, million characters a second")
    for heading in ("language", "limit", "by lines", "our cut", "ratio", "with Markdown", "pieces", "ms a piece"):
        table.add_column(heading, justify="right")
    for language in LANGUAGES:
        text = long_text(language)
        for unit, limit, markup in CASES:
            can = Capabilities(text_unit=unit, text_max=limit, markup=markup)
            flow = write(parse(text), DIALECTS[markup])
            naive = rate(lambda text=text, limit=limit, unit=unit: by_lines(text, limit, unit), len(text))
            cut = rate(lambda flow=flow, limit=limit, unit=unit: split(flow, limit, unit), len(flow.text))
            whole = rate(lambda text=text, can=can: render(text, can), len(text))
            pieces = len(split(flow, limit, unit))
            table.add_row(
                language, f"{limit} {unit.value}", f"{naive / 1e6:.2f}", f"{cut / 1e6:.2f}", f"{cut / naive:.2f}", f"{whole / 1e6:.2f}",
                str(pieces), f"{len(text) / whole / pieces * 1000:.1f}",
            )  # fmt: skip
    console.print(table)

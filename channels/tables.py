"""Tables for platforms that have none (CH-136): a block padded to fixed width while it is narrow, else one line per row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from channels.markdown import Run, Runs, Style, Table
from channels.units import display_width

WIDTH_MAX = 40  # columns


@dataclass(frozen=True, slots=True)
class Grid:
    """Lines of equal columns: the head with the rule under it, then one line per row."""

    head: tuple[str, str]
    rows: tuple[str, ...]


def grid(table: Table) -> Grid | None:
    """`table` padded by display width, or None when it is wider than 40 columns."""
    lines = [[plain(cell) for cell in row] for row in (table.head, *table.rows)]
    widths = [max(map(display_width, column)) for column in zip(*lines, strict=True)]
    if sum(widths) + 3 * (len(widths) - 1) > WIDTH_MAX:
        return None
    head, *rows = (" | ".join(map(_padded, line, widths, table.aligns)).rstrip() for line in lines)
    return Grid((head, "-+-".join("-" * width for width in widths)), tuple(rows))


def sentences(table: Table) -> Iterator[Runs]:
    """Each row as "head: value; head: value", or the heads alone of a table without rows."""
    for row in table.rows:
        cells = [(*head, _text(": "), *value) if plain(head) else value for head, value in zip(table.head, row, strict=True)]
        yield _joined(cells)
    if not table.rows:
        yield _joined(table.head)


def plain(runs: Runs) -> str:
    """Words of a cell without marks, a link followed by its address."""
    words = "".join(run.text for run in runs).replace("\n", " ")
    links = dict.fromkeys(mark.url for run in runs for mark in run.marks if mark.style is Style.LINK)
    return " ".join([words, *(f"({url})" for url in links if url not in words)])


def _joined(cells: Sequence[Runs]) -> Runs:
    return tuple(run for i, cell in enumerate(cells) for run in ((_text("; "), *cell) if i else cell))


def _text(text: str) -> Run:
    return Run(text, text)


def _padded(cell: str, width: int, align: str) -> str:
    room = width - display_width(cell)
    left = {"right": room, "center": room // 2}.get(align, 0)
    return " " * left + cell + " " * (room - left)

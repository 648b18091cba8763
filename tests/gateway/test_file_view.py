"""A memory file cut into blocks for the page: bullets apart, what belongs together whole, nothing lost and nothing alive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.file_view import blocks, marks
from memory.lines import entries

PIECES = (
    "- one", "  - two", "    - 三", "1. four", "# Head", "## 見出し", "", "plain words", "| a | b |", "|---|---|", "| 1 | 2 |", "```", "<!-- note",
    "-->", "---", "lore: always", "> quote", "<script>alert(1)</script>", "  continued", "\ufeff", "* * *",
)  # fmt: skip


def kinds(text: str) -> list[tuple[str, int, int]]:
    return [(block.kind, block.first, block.last) for block in blocks(text)]


@pytest.mark.rule("WD-4")
def test_bullets_are_apart_and_tables_paragraphs_and_code_are_whole() -> None:
    text = "# A\n\n- one\n  more\n- two\n  - deep\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nwords\nand words\n\n```\n- code\n```\n"
    assert kinds(text) == [
        ("heading", 1, 1), ("line", 3, 4), ("line", 5, 5), ("line", 6, 6), ("text", 8, 10), ("text", 12, 13), ("text", 15, 17),
    ]  # fmt: skip
    table = blocks(text)[4].html
    assert "<table>" in table
    assert table.count("<tr>") == 2
    assert [block.level for block in blocks(text)][:4] == [1, 0, 0, 1]


def test_hints_for_people_and_front_matter_are_told_apart_and_rules_are_not_shown() -> None:
    assert [(block.kind, block.text) for block in blocks("---\nlore: always\n---\n\n<!-- One line,\none fact. -->\n\n- tea\n\n---\n")] == [
        ("hint", "lore: always"), ("hint", "One line,\none fact."), ("line", ""),
    ]  # fmt: skip


def test_nothing_in_a_file_comes_alive_on_the_page() -> None:
    shown = " ".join(block.html for block in blocks("- <script>alert(1)</script>\n- [x](javascript:alert(1))\n- ![x](https://example.org/x.png)\n"))
    assert "<script" not in shown
    assert 'href="javascript' not in shown
    assert "<img" not in shown


@pytest.mark.rule("WD-5")
@given(st.lists(st.sampled_from(PIECES), max_size=14), st.sampled_from(["\n", "\r\n"]))
def test_every_entry_stands_in_one_block_and_blocks_never_overlap(pieces: list[str], end: str) -> None:
    text = end.join(pieces)
    found = blocks(text)
    covered = [number for block in found for number in range(block.first, block.last + 1)]
    assert covered == sorted(set(covered))
    for entry in entries(text):
        around = [block for block in found if block.first <= entry.first and entry.last <= block.last]
        assert [block.kind in ("line", "text") for block in around] == [True]
    assert len(marks(text, {})) == len(entries(text))

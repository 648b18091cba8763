"""Which lines of a long MEMORY.md stand in the prompt (WD-7)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import tokens
from memory.lines import entries, line_hash
from memory.prompt_budget import share
from memory.provenance import LineRow, Origin

START = datetime(2026, 3, 1, tzinfo=UTC)


def row(words: str, days: int) -> tuple[str, LineRow]:
    return line_hash(words), LineRow(hash=line_hash(words), origin=Origin.PERSON, author="dream", created_at=START + timedelta(days=days))


@pytest.mark.rule("WD-7")
def test_what_fits_stands_whole_and_unchanged() -> None:
    text = "# Memory\n\n- 京都が好き\n- likes tea\n"
    assert (share(text, {}, 4_000, tokens.count).text, share(text, {}, 4_000, tokens.count).left_out) == (text, 0)


@pytest.mark.rule("WD-7")
def test_peoples_lines_come_first_then_the_newest_in_the_order_of_the_file() -> None:
    text = "## Old\n\n- old line\n- by hand\n\n## New\n\n- 新しい行\n- 最新一行\n"
    rows = dict([row("old line", 1), row("新しい行", 5), row("最新一行", 9)])
    cost = {entry.text: tokens.count(f"- {entry.text}") + 1 for entry in entries(text)}
    room = cost["by hand"] + cost["最新一行"]
    shown = share(text, rows, room, tokens.count)
    assert (shown.text, shown.left_out) == ("## Old\n- by hand\n## New\n- 最新一行", 2)
    assert share(text, rows, room + cost["新しい行"], tokens.count).left_out == 1


@given(st.lists(st.sampled_from(["tea", "お茶が好き", "喜欢喝茶", "a longer line about the quiet garden"]), max_size=30), st.integers(0, 120))
def test_lines_never_pass_the_room_and_none_is_lost_unseen(words: list[str], most: int) -> None:
    text = "".join(f"- {each} {n}\n" for n, each in enumerate(words))
    shown = share(text, {}, most, tokens.count)
    assert len(entries(shown.text)) + shown.left_out == len(words)
    assert sum(tokens.count(line) for line in shown.text.splitlines()) <= max(most, 0) or shown.text == text

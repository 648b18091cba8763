"""Lines of Markdown: every byte stays, an appended text never costs an earlier one, and what counts as content."""

from __future__ import annotations

import time

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from memory.line_diff import COMPARED_LINES, difference
from memory.markdown_lines import appended, has_content, holds_block, in_style_of, last_heading, lines_of, new_lines, newline_of, one_line, open_fence

PIECES = [
    "a",
    "- b",
    "# c",
    "## Daily Summary",
    "```",
    "~~~",
    "| x | y |",
    "---",
    " ",
    "\t",
    "\x0c",
    "\u2028",
    "\x85",
    "\ufeff",
    "夢",
    "\n",
    "\r\n",
    "\r",
    "\n\n",
]
texts = st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(max_size=80)


@pytest.mark.rule("WD-4")
@settings(deadline=None)
@given(texts)
@example("a\u2028b\x0cc\x85d\n")
def test_lines_joined_are_the_text(text: str) -> None:
    lines = lines_of(text)
    assert "".join(lines) == text
    assert all(line.rstrip("\r\n").count("\n") == 0 for line in lines)


@pytest.mark.rule("WD-4", "WD-18")
@settings(deadline=None)
@given(texts, st.sampled_from(["- new", "## Section\n\n- one\n- two\n"]), st.sampled_from(["", "# Title"]))
def test_appending_keeps_every_earlier_character_and_adds_lines_of_its_own(old: str, block: str, title: str) -> None:
    new = appended(old, block, title=title)
    assert new.startswith(old)
    assert holds_block(new, block)
    assert new.endswith(newline_of(old))
    assert open_fence(new) == ""
    if title and not old.strip("\ufeff \t\r\n"):
        assert title in new


@pytest.mark.rule("WD-4")
def test_what_is_appended_has_the_line_ends_of_the_file() -> None:
    assert appended("\ufeff# A\r\n\r\n- x", "- y\n- z") == "\ufeff# A\r\n\r\n- x\r\n\r\n- y\r\n- z\r\n"
    assert appended("- x\n\n", "- y") == "- x\n\n- y\n"
    assert appended("", "- y", title="# T") == "# T\n\n- y\n"
    assert appended("\ufeff", "- y", title="# T") == "\ufeff# T\n\n- y\n"


def test_an_open_fence_is_closed_before_what_follows() -> None:
    assert appended("````sh\nls\n```\n", "- y") == "````sh\nls\n```\n````\n\n- y\n"
    assert last_heading("## A\n```\n## not one\n", 2) == ""
    assert last_heading("## A\n```\n## not one\n```\n### b\n", 2) == "A"


@pytest.mark.rule("WD-4")
@settings(deadline=None)
@given(texts)
def test_a_text_that_came_back_from_a_form_unchanged_is_the_same_file(text: str) -> None:
    assume(not text.startswith("\ufeff\ufeff"))  # nobody can say which of the two a form would show
    shown = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    assert in_style_of(text, shown) == text
    assert in_style_of(text, shown.replace("\n", "\r\n")) == text


@pytest.mark.rule("WD-4")
@settings(deadline=None)
@given(texts, texts, texts)
def test_lines_before_and_behind_an_edit_keep_their_bytes(before: str, old: str, behind: str) -> None:
    assume(not before.startswith("\ufeff\ufeff"))
    file = f"{before}\r\n{old}\n{behind}\n"
    edited = "\n".join(line.rstrip("\r\n") for line in [*lines_of(f"{before}\r\n"), "edited", *lines_of(f"{behind}\n")]) + "\n"
    styled = in_style_of(file, edited.removeprefix("\ufeff"))
    assert styled.startswith(f"{before}\r\n")
    assert styled.endswith(f"{behind}\n")


def test_a_new_line_gets_the_line_end_that_most_lines_have() -> None:
    assert in_style_of("\ufeffa\r\nb\r\nc\n", "a\nnew\nc\n") == "\ufeffa\r\nnew\r\nc\n"


@pytest.mark.rule("WD-2")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "# A",
        "\ufeff# A\r\n## B\r\n",
        "Title\n=====\n",
        "Title\n---\n",
        "#\n",
        "# A\n\n-\n* \n1. \n",
        "# A\n---\n",
        "<!-- hint\n over lines -->\n# A",
        "   # A",
    ],
)
def test_headings_alone_are_no_content(text: str) -> None:
    assert not has_content(text)


@pytest.mark.rule("WD-2")
@pytest.mark.parametrize(
    "text",
    ["a", "# A\nb", "#tag", "- a", "    # code", "| a |", "```\n# x\n```", "> q", "# A\n<!-- x --> y", "-1", "夢", "![](a.png)"],
)
def test_anything_else_is_content(text: str) -> None:
    assert has_content(text)


def test_new_lines_are_those_the_file_did_not_have() -> None:
    assert new_lines("a\r\nb\r\n", "b\nc\na\n") == ["c"]


def test_one_line_has_no_line_end_and_no_control_character() -> None:
    assert one_line(" a\r\n\tb\u2028c\x00d\x1b[2J ") == "a b c d [2J"


# -- differences


@settings(deadline=None)
@given(texts, texts)
def test_a_difference_names_every_changed_line_with_its_number(before: str, after: str) -> None:
    old, new = ([line.rstrip("\r\n") for line in lines_of(text)] for text in (before, after))
    shown = difference(before, after, context=10_000)
    assert (not shown) == (old == new)
    for line in shown:
        assert line.before is None or old[line.before - 1] == line.text
        assert line.after is None or new[line.after - 1] == line.text
        assert (line.kind == "added", line.kind == "removed") == (line.before is None, line.after is None)
    if shown:
        assert [line.text for line in shown if line.before] == old
        assert [line.text for line in shown if line.after] == new


def test_only_lines_near_a_change_are_shown() -> None:
    lines = [str(n) for n in range(100)]
    shown = difference("\n".join(lines), "\n".join([*lines[:50], "new", *lines[51:]]))
    assert [(line.kind, line.text) for line in shown] == [
        *(("same", str(n)) for n in (47, 48, 49)), ("removed", "50"), ("added", "new"), *(("same", str(n)) for n in (51, 52, 53)),
    ]  # fmt: skip


def test_large_and_repetitive_texts_cost_no_time() -> None:
    before, after = "\n" * 130_000 + "a\r\n" * 10_000, "b\n" + "\r\n" * 130_000 + "c\n" + "a\n" * 9_000
    start = time.perf_counter()
    assert len(difference(before, after)) > COMPARED_LINES
    in_style_of(before, after)
    appended(before, "- x")
    has_content("- \n" * 40_000 + ("-" + " " * 2_000) * 60 + "x\n" + "<!--" * 10_000)
    assert time.perf_counter() - start < 60  # the square of it would take many minutes

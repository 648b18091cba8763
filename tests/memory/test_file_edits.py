"""A tool's change of a file's text: what it touches, and that it touches nothing else (WD-4, WD-18)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.file_edits import EditRefused, check, edited, title_of, whole, with_line
from memory.layout import Role
from memory.lines import entries
from memory.markdown_lines import lines_of

LINE = st.text(alphabet=st.sampled_from("ab夢я -#|`\t"), max_size=12)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
TEXTS = st.lists(st.tuples(LINE, ENDS), max_size=8).map(lambda lines: "".join(line + end for line, end in lines))


@pytest.mark.rule("WD-4")
@given(TEXTS, st.sampled_from(["", "\ufeff"]))
def test_a_line_more_leaves_every_byte_before_it(before: str, mark: str) -> None:
    after = with_line(mark + before, "MEMORY.md", Role.CURATED, "猫が好き")
    assert after.startswith(mark + before)
    assert after.rstrip("\r\n").endswith("- 猫が好き")
    assert "猫が好き" in {entry.text for entry in entries(after)}


@pytest.mark.rule("WD-4")
@given(TEXTS, TEXTS, ENDS)
def test_a_passage_changes_its_own_lines_alone(head: str, tail: str, end: str) -> None:
    before = f"{head}- the old words{end}{tail}"
    after = edited(before, "the old words", "别的话")
    assert after == f"{head}- 别的话{end}{tail}"


@pytest.mark.rule("WD-4")
@pytest.mark.parametrize(
    ("before", "line", "after"),
    [
        ("", "x", "- x\n"),
        ("- a\n", "x", "- a\n- x\n"),
        ("- a", "x", "- a\n- x\n"),
        ("- a\r\n", "x", "- a\r\n- x\r\n"),
        ("# M\n", "x", "# M\n\n- x\n"),
        ("- a\n\n", "x", "- a\n\n- x\n"),
        ("- a\n", "## New", "- a\n\n## New\n"),
        ("- a\n", "* x", "- a\n* x\n"),
        ("```\n- a\n", "x", "```\n- a\n```\n\n- x\n"),
        ("- a\n", "two\nlines", "- a\n- two\n  lines\n"),
    ],
)
def test_a_line_joins_the_list_that_ends_there_or_stands_apart(before: str, line: str, after: str) -> None:
    assert with_line(before, "MEMORY.md", Role.CURATED, line) == after


@pytest.mark.rule("WD-4")
def test_a_new_day_gets_its_title_and_a_page_no_bullet() -> None:
    assert with_line("", "memory/2026-03-08.md", Role.DAILY, "散歩") == "# Daily Memory: 2026-03-08\n\n- 散歩\n"
    assert with_line("", "knowledge/x.md", Role.KNOWLEDGE, "A sentence.") == "A sentence.\n"


@pytest.mark.rule("WD-104")
@pytest.mark.parametrize(("before", "old"), [("aaa\n", "aa"), ("x\nx\n", "x"), ("", "x"), ("- a\n", "b"), ("- 猫\n- 猫\n", "猫")])
def test_a_passage_that_is_not_there_exactly_once_is_refused(before: str, old: str) -> None:
    with pytest.raises(EditRefused, match="memory_get"):
        edited(before, old, "new")


@pytest.mark.rule("WD-18")
@given(TEXTS, TEXTS)
def test_a_day_is_only_ever_added_to(before: str, more: str) -> None:
    path = "memory/2026-03-08.md"
    check(before, with_line(before, path, Role.DAILY, "散歩"), path, Role.DAILY)
    kept = [line for line in lines_of(before) if line.strip()]
    if kept:
        shorter = before.replace(kept[0], "", 1)
        if shorter.strip("\r\n") != before.strip("\r\n"):
            with pytest.raises(EditRefused):
                check(before, shorter, path, Role.DAILY)


@pytest.mark.rule("WD-4")
def test_a_file_said_anew_keeps_its_line_ends_and_ends_with_one() -> None:
    assert whole("\ufeffa\r\nb\r\n", "a\nc") == "\ufeffa\r\nc\r\n"
    assert whole("", "夢") == "夢\n"


@pytest.mark.rule("WD-8")
@pytest.mark.parametrize(
    ("path", "text", "title"),
    [
        ("knowledge/a/b.md", "# 猫\n", "猫"),
        ("knowledge/a/b.md", "text", "b"),
        ("knowledge/b.md", "---\ntitle: T\n---\n# H\n", "T"),
        ("knowledge/b.md", "---\nlore: none\n---\n\n# 标题\n", "标题"),
    ],
)
def test_a_page_is_called_by_its_title_its_heading_or_its_name(path: str, text: str, title: str) -> None:
    assert title_of(path, text) == title

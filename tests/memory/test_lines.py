from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.lines import as_bullet, entries, line_hash, without

TEXT = """---
title: notes
---
# Memory

## Work
- Works at the harbour
  - on Tuesdays
- 猫の名前はシロ
  続きの行

A line without a bullet
```python
- not an entry of its own
```
<!-- a comment -->
* 住在杭州
---
"""


@pytest.mark.rule("WD-5")
def test_an_entry_is_a_bullet_with_what_belongs_to_it() -> None:
    assert [(entry.text, entry.first, entry.last, entry.section) for entry in entries(TEXT)] == [
        ("Works at the harbour", 7, 7, "Work"),
        ("on Tuesdays", 8, 8, "Work"),
        ("猫の名前はシロ\n  続きの行", 9, 10, "Work"),
        ("A line without a bullet", 12, 12, "Work"),
        ("```python\n- not an entry of its own\n```", 13, 15, "Work"),
        ("住在杭州", 17, 17, "Work"),
    ]


@pytest.mark.rule("WD-5")
def test_the_hash_is_of_the_words_whatever_the_bullet_and_the_line_end() -> None:
    assert line_hash("- 猫の名前はシロ\r\n") == line_hash("* 猫の名前はシロ") == line_hash("  猫の名前はシロ  ")
    assert line_hash("- Works") != line_hash("- works")


def test_an_id_is_longer_when_two_entries_of_a_file_begin_alike() -> None:
    assert all(len(entry.id) == 8 for entry in entries(TEXT))
    assert len({entry.id for entry in entries(TEXT)}) == len(entries(TEXT))


@pytest.mark.rule("WD-92")
def test_taking_an_entry_out_leaves_every_other_byte() -> None:
    text = "\ufeff# M\r\n\r\n- one\r\n- two\r\n  more of two\r\n- three"
    assert without(text, [line_hash("two\n  more of two")]) == "\ufeff# M\r\n\r\n- one\r\n- three"


@pytest.mark.rule("WD-74")
def test_an_entry_with_a_code_fence_is_one_entry_again_when_it_was_written() -> None:
    words = "The greeting is\n```\n  hello\n```"
    (entry,) = entries(as_bullet(words))
    assert entry.text.split("\n") == ["The greeting is", "  ```", "  hello", "  ```"]


@given(st.text(alphabet="-*# \n\r`a猫é<!>", max_size=80))
def test_entries_never_overlap_and_taking_none_out_changes_nothing(text: str) -> None:
    found = entries(text)
    assert without(text, []) == text
    assert all(first.last < second.first for first, second in itertools.pairwise(found))

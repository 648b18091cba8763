"""Cutting files: by tokens of every script, under their headings, nothing left out, no two ids alike."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import tokens
from memory.file_chunks import Chunk, chunks_of, passages_of
from memory.languages import LANGUAGES
from memory.scope_templates import NAMES, template

PAGES = {
    "en": "The harbour was quiet and the heron stood in the reeds all morning. " * 60,
    "zh": "港口很安静,白鹭整个上午都站在芦苇里。我们在码头吃了面条。" * 140,
    "ja": "港は静かで、白鷺は朝からずっと葦の中に立っていた。" * 160,
    "th": "ท่าเรือเงียบสงบและนกกระสายืนอยู่ในกอหญ้าตลอดเช้า" * 80,
}


def cut(text: str, path: str = "MEMORY.md", size: int = 500, overlap: int = 50) -> tuple[Chunk, ...]:
    return chunks_of("root", path, text, size=size, overlap=overlap)


@pytest.mark.rule("WD-111")
@pytest.mark.case("VX-21")
@pytest.mark.parametrize("language", PAGES)
def test_no_piece_is_above_its_size_in_any_script(language: str) -> None:
    found = cut(PAGES[language])
    assert len(found) > 1
    assert all(tokens.count(chunk.text) <= 500 for chunk in found)
    assert all(tokens.count(chunk.text) >= 300 for chunk in found[:-1])  # and none is needlessly small


@pytest.mark.rule("WD-111")
def test_every_part_of_a_long_line_is_in_a_piece_and_neighbours_share_some() -> None:
    line = " ".join(f"word{number}" for number in range(1200))
    found = cut(f"- {line}\n")
    for number in range(1200):
        assert any(f"word{number}" in chunk.text.split() for chunk in found)
    assert all(one.text[-20:] in other.text for one, other in pairwise(found))
    assert {(chunk.first_line, chunk.last_line) for chunk in found} == {(1, 1)}


@pytest.mark.rule("WD-111")
def test_pieces_stand_under_their_headings_and_name_their_lines() -> None:
    text = "\ufeff---\nlore: match\n---\n# Home\r\n\r\n- a cat\r\n\r\n## Garden\r\n- a pear tree\r\n\r\n```\n# no heading\n```\r\n\n# Work\n"
    text += "- deadlines\n"
    found = cut(text, "knowledge/x.md")
    assert [(chunk.heading, chunk.text, chunk.first_line, chunk.last_line) for chunk in found] == [
        ("Home", "- a cat", 6, 6),
        ("Home > Garden", "- a pear tree\n\n```\n# no heading\n```", 9, 13),
        ("Work", "- deadlines", 16, 16),
    ]


def test_a_file_of_headings_alone_says_nothing() -> None:
    assert cut("# One\n\n## Two\n") == ()
    assert cut("") == ()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_hints_of_a_template_are_no_memory(name: str, language: str) -> None:
    assert cut(template(name, language), name) == ()
    said = cut(template(name, language) + "\n## Cats\n\n- Shiro <!-- white -->\n", name)
    assert [(chunk.heading.rpartition(" > ")[2], chunk.text) for chunk in said] == [("Cats", "- Shiro <!-- white -->")]


@pytest.mark.rule("WD-111")
@pytest.mark.case("VX-13")
def test_equal_pieces_have_ids_of_their_own() -> None:
    found = [chunk for path in ("MEMORY.md", "user.md") for chunk in cut("# A\n- same\n# B\n- same\n# A\n- same\n", path)]
    assert len({chunk.key for chunk in found}) == len(found) == 6
    assert all(chunk.key for chunk in found)
    again = [chunk for path in ("MEMORY.md", "user.md") for chunk in cut("# A\n- same\n# B\n- same\n# A\n- same\n", path)]
    assert [chunk.key for chunk in again] == [chunk.key for chunk in found]


def test_a_daily_file_knows_its_date() -> None:
    assert cut("- x\n", "memory/2026-03-01.md")[0].local_date == "2026-03-01"
    assert cut("- x\n", "knowledge/2026-03-01.md")[0].local_date == ""


LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n#`~"), max_size=120), max_size=40)


@pytest.mark.rule("WD-111")
@given(LINES, st.integers(20, 200), st.integers(0, 60))
def test_nothing_that_is_said_is_left_out(lines: list[str], size: int, overlap: int) -> None:
    found = cut("x\n" + "\n".join(lines), size=size, overlap=overlap)
    together = "\n".join(chunk.text for chunk in found)
    for line in lines:
        for word in line.split():
            if len(word) < 8:
                assert word in together
    assert len({chunk.key for chunk in found}) == len(found)


@pytest.mark.parametrize("most", [0, 30, 100])
def test_passages_hold_every_line_of_their_piece_once(most: int) -> None:
    for chunk in cut("# Likes\n- tea\n- the long walk along the canal on Sundays with the dog\n- 夏の夜に縁側で西瓜を食べるのが好きだ\n"):
        found = passages_of(chunk, most)
        covered = "".join(chunk.text[each.begin : each.end] for each in found)
        assert covered.replace("\n", "") == chunk.text.replace("\n", "")
        assert all(each.text.startswith("Likes\n") for each in found)
        assert len(found) == (1 if most == 0 else 2)  # "tea" is too short to stand alone


def test_a_line_above_the_size_of_a_passage_is_cut_into_several() -> None:
    (chunk,) = cut("- " + "we walked and talked about the garden, the roof and the boat. " * 12 + "\n")
    found = passages_of(chunk, 60)
    assert len(found) > 2
    assert all(tokens.count(each.text) <= 62 for each in found)
    assert found[0].begin == 0 and found[-1].end == len(chunk.text)

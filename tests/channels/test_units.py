"""Lengths, graphemes and columns: the ground every limit stands on."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.port import TextUnit
from channels.units import display_width, graphemes, measure, settled

FAMILY = "👨‍👩‍👧‍👦"


@pytest.mark.rule("CH-132")
@pytest.mark.case("DL-20", "DL-21", "DL-22", "DL-23")
@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("你", (1, 1, 3)),
        ("𠮷", (1, 2, 4)),
        ("🇩🇪", (2, 4, 8)),
        ("1️⃣", (3, 3, 7)),
        ("👍🏽", (2, 4, 8)),
        (FAMILY, (7, 11, 25)),
        ("مرحبا", (5, 5, 10)),
        ("abc", (3, 3, 3)),
        ("", (0, 0, 0)),
    ],
)
def test_a_length_is_exact_in_every_unit_a_platform_counts_in(text: str, lengths: tuple[int, int, int]) -> None:
    assert tuple(measure(text, unit) for unit in (TextUnit.CODEPOINTS, TextUnit.UTF16, TextUnit.BYTES)) == lengths


@pytest.mark.rule("CH-131")
@pytest.mark.parametrize("character", ["你", "𠮷", "🇩🇪", "1️⃣", "👍🏽", FAMILY, "か\u3099", "e\u0301", "क्षि", "각"])
def test_what_a_person_sees_as_one_character_is_one(character: str) -> None:
    assert graphemes(f"a{character}b") == ["a", character, "b"]


@settings(deadline=None)  # a shared machine may pause
@given(st.text())
def test_graphemes_joined_are_the_text(text: str) -> None:
    assert "".join(graphemes(text)) == text


@settings(deadline=None)  # a shared machine may pause
@given(st.text(st.characters(exclude_categories=())), st.sampled_from(TextUnit))
def test_measuring_never_fails_even_on_half_a_surrogate_pair(text: str, unit: TextUnit) -> None:
    assert measure(text, unit) >= len(text)


@pytest.mark.rule("CH-136")
@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("北京", 4), ("かな", 4), ("ﾊﾝ", 2), ("Ａ", 2), ("😀", 2), ("🇩🇪", 2), (FAMILY, 2), ("e\u0301", 1), ("a\u200bb", 2), ("مرحبا", 5)],
)
def test_columns_count_chinese_japanese_and_emoji_twice(text: str, columns: int) -> None:
    assert display_width(text) == columns


@pytest.mark.rule("CH-98")
@pytest.mark.parametrize(
    ("arriving", "shown"),
    [
        ("ok 🇩", "ok "),
        ("ok 🇩🇪", "ok 🇩🇪"),
        ("ok 🇩🇪🇫", "ok 🇩🇪"),
        ("ok 👨\u200d", "ok "),
        ("ok 👨‍👩\u200d", "ok "),
        ("ok 1\ufe0f", "ok "),
        ("ok 1️⃣", "ok 1️⃣"),
        ("ok 🏴\U000e0067\U000e0062", "ok "),
        ("ok \ud83d", "ok "),
        ("1", "1"),
        ("你好", "你好"),
        ("", ""),
    ],
)
def test_a_half_arrived_character_is_not_shown_yet(arriving: str, shown: str) -> None:
    assert settled(arriving) == shown

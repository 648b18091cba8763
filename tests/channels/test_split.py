"""Cutting: nothing lost, nothing doubled, nothing too long, and cut where a reader would pause."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from channels.flow import Flow
from channels.port import TextUnit
from channels.split import split
from channels.units import graphemes, measure

UTF16, BYTES, CODEPOINTS = TextUnit.UTF16, TextUnit.BYTES, TextUnit.CODEPOINTS
FAMILY = "👨‍👩‍👧‍👦"

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a shared machine may pause


def cut(text: str, limit: int, unit: TextUnit) -> list[str]:
    return [piece.text for piece in split(Flow(text=text), limit, unit)]


def leftover(text: str, pieces: list[str]) -> str:
    """What of `text` is in no piece, the pieces taken in order; fails when a piece is not where it should be."""
    at, left = 0, ""
    for piece in pieces:
        gap = re.compile(r"(?:\n[ \t]*)*").match(text, at)
        while not text.startswith(piece, at):
            assert gap and at < gap.end(), (piece, text[at : at + 40])
            left += text[at]
            at += 1
        at += len(piece)
    return left + text[at:]


@pytest.mark.rule("CH-131")
@pytest.mark.case("TG-01", "TG-02", "TG-03", "DC-01", "DL-20", "DL-21", "DL-22", "DL-23", "DL-25", "WE-07")
@pytest.mark.parametrize(
    ("text", "limit", "unit", "pieces"),
    [
        ("a" * 5000, 4096, UTF16, ["a" * 4096, "a" * 904]),
        ("😀" * 4096, 4096, UTF16, ["😀" * 2048, "😀" * 2048]),
        ("😀" * 5000, 4096, UTF16, ["😀" * 2048, "😀" * 2048, "😀" * 904]),
        ("a" * 4095 + "😀", 4096, UTF16, ["a" * 4095, "😀"]),
        ("a" * 2001, 2000, UTF16, ["a" * 2000, "a"]),
        ("a" * 1999 + "😀", 2000, UTF16, ["a" * 1999, "😀"]),
        ("你" * 700, 2048, BYTES, ["你" * 682, "你" * 18]),
        ("字" * 700, 2048, BYTES, ["字" * 682, "字" * 18]),
        ("a" * 2048, 2048, BYTES, ["a" * 2048]),
        ("a" * 2049, 2048, BYTES, ["a" * 2048, "a"]),
        ("你" * 7000, 20480, BYTES, ["你" * 6826, "你" * 174]),
        ("你" * 683, 4096, UTF16, ["你" * 683]),
        ("你" * 683, 2048, BYTES, ["你" * 682, "你"]),
        ("🇩🇪" * 1025, 4096, UTF16, ["🇩🇪" * 1024, "🇩🇪"]),
        ("a" * 4093 + "👍🏽", 4096, UTF16, ["a" * 4093, "👍🏽"]),
        ("a" * 4090 + FAMILY, 4096, UTF16, ["a" * 4090, FAMILY]),
        ("." * 4096, 4096, UTF16, ["." * 4096]),
    ],
    ids=lambda value: str(value)[:6],
)
def test_a_text_too_long_for_one_message_arrives_whole_in_the_fewest(text: str, limit: int, unit: TextUnit, pieces: list[str]) -> None:
    assert cut(text, limit, unit) == pieces


@pytest.mark.rule("CH-32")
@pytest.mark.parametrize("character", ["a", "你", "𠮷", "🇩🇪", "م", FAMILY])
@pytest.mark.parametrize("unit", list(TextUnit))
def test_exactly_the_limit_is_one_message_and_one_character_more_is_two(character: str, unit: TextUnit) -> None:
    limit = 100 * measure(character, unit)
    assert cut(character * 100, limit, unit) == [character * 100]
    assert cut(character * 101, limit, unit) == [character * 100, character]


@pytest.mark.rule("CH-131")
@pytest.mark.case("DL-23")
def test_a_character_larger_than_a_whole_message_still_arrives_with_no_surrogate_pair_cut() -> None:
    pieces = cut(FAMILY * 2, 10, UTF16)
    assert "".join(pieces) == FAMILY * 2
    assert all(measure(piece, UTF16) <= 10 for piece in pieces)


def test_a_limit_that_no_character_fits_is_refused() -> None:
    with pytest.raises(ValueError, match="limit 3"):
        cut("😀", 3, BYTES)


# Texts with everything that tempts a splitter: scripts, joiners, flags, marks, blanks and line ends.
PROSE = ["a", "b", " ", " ", "\t", "\n", "\n\n", ". ", "。", "！", "、"]
CHARACTERS = st.sampled_from([*PROSE, "你", "𠮷", "🇩🇪", "👍🏽", FAMILY, "e\u0301", "م", "\u200b"])
TEXTS = st.lists(CHARACTERS | st.characters(exclude_categories=("Cs",)), max_size=150).map("".join)


@pytest.mark.rule("CH-131")
@PATIENT
@given(TEXTS, st.integers(4, 80), st.sampled_from(TextUnit))
def test_no_character_is_lost_doubled_or_out_of_order_and_no_piece_is_too_long(text: str, limit: int, unit: TextUnit) -> None:
    pieces = cut(text, limit, unit)
    assert leftover(text, pieces).strip("\n \t") == ""
    assert all(piece and measure(piece, unit) <= limit for piece in pieces)


@pytest.mark.rule("CH-131")
@PATIENT
@given(TEXTS.filter(lambda text: "\n" not in text), st.integers(4, 80), st.sampled_from(TextUnit))
def test_within_a_line_even_the_blanks_arrive(text: str, limit: int, unit: TextUnit) -> None:
    assert "".join(cut(text, limit, unit)) == text


@pytest.mark.rule("CH-131")
@PATIENT
@given(TEXTS, st.integers(25, 80), st.sampled_from(TextUnit))
def test_a_visible_character_is_never_cut_while_it_fits_a_message(text: str, limit: int, unit: TextUnit) -> None:
    fitting = [part for part in graphemes(text) if not part.isspace()]
    if all(measure(part, unit) <= limit for part in fitting):
        assert [part for piece in cut(text, limit, unit) for part in graphemes(piece) if not part.isspace()] == fitting


@pytest.mark.rule("CH-133")
@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("x" * 60 + "\n\n" + "y" * 20 + "\n" + "z" * 60, "x" * 60),
        ("x" * 60 + "\n" + "y" * 20 + ". " + "z" * 60, "x" * 60),
        ("x" * 60 + ". " + "y" * 20 + " " + "z" * 60, "x" * 60 + ". "),
        ("文" * 60 + "。" + "字" * 80, "文" * 60 + "。"),
        ("「" + "文" * 60 + "！」" + "字" * 80, "「" + "文" * 60 + "！」"),
        ("x" * 60 + " " + "y" * 80, "x" * 60 + " "),
        ("x" * 120, "x" * 100),
        # A cut in the first half is not taken, however good.
        ("x" * 40 + "\n\n" + "y" * 20 + " " + "z" * 80, "x" * 40 + "\n\n" + "y" * 20 + " "),
        ("x" * 40 + "\n\n" + "y" * 100, "x" * 40 + "\n\n" + "y" * 58),
        # A line that ends exactly at the limit ends the message.
        ("x" * 100 + "\n" + "y" * 50, "x" * 100),
    ],
)
def test_a_cut_falls_where_a_reader_would_pause(text: str, first: str) -> None:
    assert cut(text, 100, CODEPOINTS)[0] == first


@pytest.mark.case("TG-01")
def test_with_blanks_present_no_word_is_cut() -> None:
    words = [f"word{i}" for i in range(2000)]
    pieces = cut(" ".join(words), 4096, UTF16)
    assert [word for piece in pieces for word in piece.split()] == words
    assert "".join(pieces) == " ".join(words)

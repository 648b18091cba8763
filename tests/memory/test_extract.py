"""The plain extract: short, whole characters, spread over the talk, and without secrets."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from memory.extract import CHARACTERS_MAX, ITEMS_MAX, Words, extract, shortened

pytestmark = pytest.mark.rule("WD-43")
FAMILY = "👨‍👩‍👧‍👦"


def said(*texts: str, speaker: str = "Ana", by_person: bool = True) -> list[Words]:
    return [Words(id=f"m{n}", speaker=speaker, text=text, by_person=by_person) for n, text in enumerate(texts)]


@pytest.mark.parametrize("text", ["The keys are under the pot", "鍵は植木鉢の下です", "钥匙在花盆下面"])
def test_short_talk_stands_as_it_was_said(text: str) -> None:
    (item,) = extract(said(text))
    assert (item.text, item.source) == (f"Ana: {text}", "m0")


@pytest.mark.parametrize(
    "text", ["word " * 100, "とても長い文章です。" * 30, "这是一个很长的句子。" * 30, FAMILY * 60, "e\u0301" * 200, "한국어" * 80]
)
def test_long_words_are_cut_between_characters_as_people_see_them(text: str) -> None:
    (item,) = extract(said(text))
    assert len(item.text) <= CHARACTERS_MAX
    assert item.text.endswith("…")
    kept = item.text.removeprefix("Ana: ").removesuffix("…")
    assert regex.findall(r"\X", text)[: len(regex.findall(r"\X", kept))] == regex.findall(r"\X", kept)


def test_of_long_talk_ten_items_stay_peoples_words_first_the_first_and_the_last_among_them() -> None:
    talk = [Words(id=str(n), speaker="", text=f"text {n}", by_person=n % 2 == 0) for n in range(61)]
    found = extract(talk)
    assert len(found) == ITEMS_MAX
    assert [int(item.source) for item in found] == sorted(int(item.source) for item in found)
    assert all(int(item.source) % 2 == 0 for item in found)
    assert (found[0].source, found[-1].source) == ("0", "60")


def test_where_people_said_little_answers_fill_the_rest() -> None:
    talk = [*said("One question"), *[Words(id=f"a{n}", speaker="Yume", text=f"answer {n}", by_person=False) for n in range(30)]]
    found = extract(talk)
    assert len(found) == ITEMS_MAX
    assert found[0].text == "Ana: One question"
    assert found[-1].source == "a29"


@pytest.mark.rule("WD-22")
@pytest.mark.parametrize("text", ["My password is hunter2x!", "パスワードは hunter2x! です", "密码是 hunter2x!"])
def test_a_secret_is_left_out(text: str) -> None:
    assert [item.text for item in extract(said(text, "Good night"))] == ["Ana: Good night"]


def test_nothing_to_say_is_nothing() -> None:
    assert extract(said("", " \n\t ")) == ()


@given(st.lists(st.text(), max_size=30), st.text(max_size=60))
def test_whatever_was_said_the_limits_hold_and_each_item_is_one_line(texts: list[str], speaker: str) -> None:
    found = extract(said(*texts, speaker=speaker))
    assert len(found) <= ITEMS_MAX
    assert all(0 < len(item.text) <= CHARACTERS_MAX and len(item.text.splitlines()) == 1 for item in found)
    assert found == extract(said(*texts, speaker=speaker))


@given(st.text(max_size=300), st.integers(2, 200))
def test_a_shortened_text_is_never_longer_than_allowed(text: str, most: int) -> None:
    assert len(shortened(text, most)) <= most
    assert shortened(text, len(text) + 2) == text

"""Which of several characters is meant (WO-40)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.characters import Character, addressed

LUNA = Character(id="luna", name="Luna", aliases=("Moon",))
HANA = Character(id="hana", name="花", aliases=("Hana",))
HANAKO = Character(id="hanako", name="花子")
MING = Character(id="ming", name="小明")
CPP = Character(id="cpp", name="C++")
NOK = Character(id="nok", name="นก")
YUNA = Character(id="yuna", name="유나")
IVAN = Character(id="ivan", name="Иван")
ALL = (HANA, LUNA, HANAKO, MING, CPP, NOK, YUNA, IVAN)


@pytest.mark.rule("WO-40")
@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("Luna, what do you think?", LUNA),
        ("what do you think, LUNA?", LUNA),
        ("Moon!", LUNA),
        ("Lunaさん、おはよう", LUNA),
        ("Luna你好", LUNA),
        ("Ｌｕｎａ、元気？", LUNA),
        ("花、元気？", HANA),
        ("花子、元気？", HANAKO),
        ("ねえ花子ちゃん", HANAKO),
        ("请问小明你在吗", MING),
        ("does C++ know?", CPP),
        ("สวัสดีนกครับ", NOK),
        ("유나야 안녕", YUNA),
        ("Привет, Иван!", IVAN),
        ("Luna, ask Hana", LUNA),
        ("Hana, ask Luna", HANA),
    ],
)
def test_the_one_addressed_by_name_answers(text: str, who: Character) -> None:
    assert addressed(text, ALL, "nok") is who


@pytest.mark.rule("WO-40")
@pytest.mark.parametrize("text", ["lunatics", "the moonlight", "Hanami is near", "Иванов пришёл", "C+ is a mark", "xC++x", "", "おはよう"])
def test_a_name_inside_another_word_calls_nobody(text: str) -> None:
    assert addressed(text, ALL, "ming") is MING


@pytest.mark.rule("WO-40")
def test_else_the_one_who_spoke_last_else_the_first() -> None:
    assert addressed("hello", (LUNA, HANA), "hana") is HANA
    assert addressed("hello", (LUNA, HANA), "gone") is LUNA


def test_an_empty_name_calls_nobody() -> None:
    assert addressed("anything", (Character(id="x", name="", aliases=("", " ")), LUNA), "luna") is LUNA


@given(text=st.text(), name=st.text(min_size=1))
def test_any_name_in_any_text_is_looked_for_without_a_fault(text: str, name: str) -> None:
    assert addressed(text, (Character(id="x", name=name),), "").id == "x"

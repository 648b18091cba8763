"""Counting tokens by script (WD-41)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.tokens import count

RATES = [
    ("English", "The quick brown fox jumps over the lazy dog. ", 0.27),
    ("French", "Où êtes-vous né ? Ça va très bien, merci. ", 0.27),
    ("Vietnamese", "Xin chào, bạn khỏe không? ", 0.27),
    ("digits", "3141592653", 0.4),
    ("Russian", "Съешьещёэтихмягких", 0.45),
    ("Greek", "Καλημέρακόσμε", 0.45),
    ("Arabic", "صباحالخيركيفحالك", 0.6),
    ("Hebrew", "שלוםעולםמהשלומך", 0.6),
    ("Hindi", "नमस्तेदुनियाआपकैसेहैं", 0.6),
    ("Thai", "สวัสดีครับคุณเป็นอย่างไร", 0.8),
    ("Japanese", "東京の夜はとても静かです。ラーメンを食べに行きました。", 1.1),
    ("Chinese", "今天晚上月亮很圆，我们一起去散步吧。", 1.1),
    ("Korean", "오늘밤달이참밝네요", 1.1),
    ("full width", "ＡＢＣ１２３！？", 1.1),
]


@pytest.mark.rule("WD-41", "RS-172")
@pytest.mark.parametrize(("text", "rate"), [(text, rate) for _, text, rate in RATES], ids=[name for name, _, _ in RATES])
def test_each_script_costs_its_stated_rate(text: str, rate: float) -> None:
    long = text * 50
    assert count(long) == pytest.approx(len(long) * rate, rel=0.02)


@pytest.mark.rule("WD-41", "RS-172")
def test_one_cyrillic_letter_does_not_cost_as_much_as_one_han_character() -> None:
    assert count("ж" * 100) * 2 < count("字" * 100)


@pytest.mark.rule("WD-41", "RS-172")
@pytest.mark.parametrize("cluster", ["😀", "❤️", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇯🇵", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🤷🏿‍♀️"])
def test_an_emoji_costs_three_however_it_is_put_together(cluster: str) -> None:
    assert count(cluster) == 3
    assert count(cluster * 10) == 30


def test_mixed_text_costs_the_sum_of_its_scripts() -> None:
    latin, han = "hello there, " * 20, "夢を見る夜" * 20
    assert count(latin + han) == pytest.approx(count(latin) + count(han), abs=1)


def test_nothing_costs_nothing_and_anything_something() -> None:
    assert count("") == 0
    assert count(" ") == count("\u0301") == 1


@pytest.mark.rule("RL-50")
@given(st.text(), st.text())
def test_more_text_never_costs_much_less(one: str, other: str) -> None:
    """Joining may melt two emoji into one; nothing else becomes cheaper."""
    assert count(one + other) >= max(count(one), count(other)) - 3

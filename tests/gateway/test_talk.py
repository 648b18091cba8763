"""From rows of the log to what a model is told was said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.turn import Said
from gateway.talk import duration, history, late_note, sizes, spoken
from memory import tokens
from memory.conversations import Message

START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)


def message(seq: int, text: str, *, turn: str = "", role: str = "user", **more: Any) -> Message:
    values: dict[str, Any] = {
        "id": f"m{seq}", "conversation_id": "c", "turn_id": turn or f"t{seq}", "author_person_id": "p", "author_name": "Ben", "state": "live",
        "origin": "person" if role == "user" else "assistant", "attempt": 1, "outcome": "", "attachments": (), "reply_to": None, "created_at": START,
    }  # fmt: skip
    return Message(seq=seq, text=text, role=role, **{**values, **more})


def said(*log: Message, in_group: bool = False, language: str = "en") -> list[tuple[str, str]]:
    return [("us" if each.by_us else "them", each.text) for each in history(log, language=language, in_group=in_group)]


@pytest.mark.rule("CH-66")
def test_several_messages_of_one_turn_are_one() -> None:
    log = (message(1, "one", turn="t"), message(2, "two", turn="t"), message(3, "both", turn="t", role="assistant"))
    assert said(*log) == [("them", "one\ntwo"), ("us", "both")]


@pytest.mark.rule("CH-66")
def test_a_turn_without_an_answer_joins_the_next_question() -> None:
    log = (message(1, "one", turn="a"), message(2, "two", turn="b"), message(3, "answer", turn="b", role="assistant"))
    assert said(*log) == [("them", "one\ntwo"), ("us", "answer")]


@given(st.lists(st.tuples(st.booleans(), st.integers(min_value=0, max_value=5)), max_size=30))
def test_the_sides_always_take_turns(rows: list[tuple[bool, int]]) -> None:
    log = [message(at, str(at), turn=f"t{turn}", role="assistant" if us else "user") for at, (us, turn) in enumerate(rows)]
    sides = [side for side, _ in said(*log)]
    assert all(one != other for one, other in pairwise(sides))
    assert "\n".join(text for _, text in said(*log)) == "\n".join(str(at) for at in range(len(rows)))


@pytest.mark.rule("CH-13")
def test_in_groups_each_line_names_who_said_it_and_ours_does_not() -> None:
    log = (
        message(1, "one", turn="t"),
        message(2, "two", turn="t", author_name="Ann"),
        message(3, "hi", turn="t", role="assistant", author_name="Yume"),
    )
    assert said(*log, in_group=True) == [("them", "Ben: one\nAnn: two"), ("us", "hi")]


@pytest.mark.rule("RL-30")
@pytest.mark.parametrize(("language", "mark"), [("en", "[in reply to: "), ("ja", "夢"), ("zh", "夢")])
def test_a_quote_is_marked_as_one(language: str, mark: str) -> None:
    words = spoken(message(1, "what is it?", reply_to={"quote": "夢を見た"}), language=language)
    first, last = words.split("\n")
    assert mark in first and "夢を見た" in first and first.startswith("[") and last == "what is it?"


def test_files_of_earlier_messages_are_named_and_not_shown_again() -> None:
    log = (message(1, "look", attachments=({"kind": "image", "name": "猫.png"},)),)
    assert said(*log) == [("them", "look\n[image: 猫.png]")]


def test_a_message_of_nothing_but_a_file_is_its_stand_in() -> None:
    assert said(message(1, "", attachments=({"kind": "file", "name": "a.pdf"},))) == [("them", "[file: a.pdf]")]


@pytest.mark.rule("WD-36")
def test_a_turn_is_a_question_with_everything_up_to_the_next() -> None:
    log = [
        message(1, "one", turn="a"),
        message(2, "added", turn="a"),
        message(3, "answer", turn="a", role="assistant"),
        message(4, "two", turn="b"),
        message(5, "answer", turn="b", role="assistant"),
        message(6, "three", turn="c"),
    ]
    assert [turn.last_seq for turn in sizes(log)] == [3, 5, 6]
    assert sum(turn.tokens for turn in sizes(log)) == sum(tokens.MESSAGE_TOKENS + tokens.count(each.text) for each in log)


def test_scheduled_words_start_no_turn() -> None:
    log = [message(1, "q"), message(2, "a", role="assistant"), message(3, "good morning", role="assistant")]
    assert [turn.last_seq for turn in sizes(log)] == [3]


@pytest.mark.rule("CH-55")
@pytest.mark.parametrize(("language", "words"), [("en", "2 h"), ("ja", "2"), ("zh", "2")])
def test_a_message_that_waited_long_is_said_to_have(language: str, words: str) -> None:
    now = START + timedelta(hours=2, minutes=10)
    note = late_note(START, now, late_after=timedelta(hours=1), language=language)
    assert words in note
    assert late_note(START, START + timedelta(minutes=59), late_after=timedelta(hours=1), language=language) == ""


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (timedelta(seconds=-5), "0 s"),
        (timedelta(seconds=119), "119 s"),
        (timedelta(minutes=2), "2 min"),
        (timedelta(hours=47), "47 h"),
        (timedelta(days=2), "2 d"),
    ],
)
def test_a_span_is_said_in_its_largest_fitting_unit(span: timedelta, words: str) -> None:
    assert duration(span, "en") == words


def test_what_is_said_carries_no_pictures_of_earlier_turns() -> None:
    assert history([message(1, "look")], language="en", in_group=False) == (Said(text="look", by_us=False),)

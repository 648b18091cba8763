"""What a request shows of a talk, and what of an answer is kept."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.coverage import Talk
from memory.lines import line_hash
from memory.provenance import Origin
from memory.restating import restated
from memory.summaries import AnswerUnusable, checked, parsed, pieces, rendered, shown

BERLIN = ZoneInfo("Europe/Berlin")


def talk(text: str, seq: int = 1, **more: Any) -> Talk:
    values: dict[str, Any] = {
        "id": f"m-{seq}", "conversation_id": "c", "role": "user", "author_person_id": "p-1", "author_name": "Ana", "foreign_text": False, "files": (),
        "created_at": datetime(2026, 3, 8, 22, 30, tzinfo=UTC),
    }  # fmt: skip
    return Talk(seq=seq, text=text, **(values | more))


def test_messages_are_shown_with_label_local_time_and_speaker() -> None:
    found = rendered([talk("Hello"), talk("Hi", 2, role="assistant", author_name="", files=("plan.pdf",))], BERLIN)
    assert found == "m1 [2026-03-08 Sunday 23:30] Ana: Hello\nm2 [2026-03-08 Sunday 23:30] assistant: Hi\n  [file: plan.pdf]"


@pytest.mark.rule("WD-45")
@pytest.mark.parametrize("unit", ["word ", "あいう", "字词句"])
def test_a_long_message_enters_with_head_and_tail(unit: str) -> None:
    found = shown(talk(f"START {unit * 2_000} END"))
    assert found.startswith("START")
    assert found.endswith("END")
    assert len(found) <= 2_000


@pytest.mark.rule("WD-45")
@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 100))
def test_pieces_hold_every_message_once_in_order_and_fit(sizes: list[int], room: int) -> None:
    messages = [talk("x" * size, n) for n, size in enumerate(sizes)]
    found = pieces(messages, room, lambda message: len(message.text))
    assert [message for piece in found for message in piece] == messages
    assert all(len(piece) == 1 or sum(len(message.text) for message in piece) <= room for piece in found)


@pytest.mark.rule("WD-44")
@pytest.mark.parametrize(
    "text",
    [
        '{"bullets": [{"text": "One", "sources": ["m1"]}]}',
        '```json\n{"bullets": [{"text": "One", "sources": ["m1"]}]}\n```',
        '\n```\n{"bullets": [{"text": "One", "sources": ["m1"], "mood": "fine"}], "note": 1}\n```\n',
    ],
)
def test_an_object_is_read_also_in_a_fence(text: str) -> None:
    assert parsed(text) == [("One", ["m1"])]


@pytest.mark.rule("WD-44", "WD-45")
@pytest.mark.parametrize(
    "text",
    [
        *("", "I cannot do that.", "[]", '{"bullets": {}}', '{"bullets": ["One"]}', '{"bullets": [{"text": 1}]}'),
        '{"bullets": [{"text": "One", "sour',
        'Here it is: {"bullets": []}',
        '{"bullets": [{"text": "One", "sources": "m1"}]}',
    ],
)
def test_anything_else_is_unusable(text: str) -> None:
    with pytest.raises(AnswerUnusable):
        parsed(text)


@pytest.mark.rule("WD-67")
@pytest.mark.parametrize(
    ("cited", "origin"),
    [
        (["m1"], Origin.PERSON),
        (["m1", "m2"], Origin.PERSON),
        (["m2"], Origin.ASSISTANT),
        (["m1", "m3"], Origin.MIXED),
        (["m4"], Origin.MIXED),
        ([], Origin.UNSOURCED),
        (["m9", "the first"], Origin.UNSOURCED),
        ([" m1 ", "m1"], Origin.PERSON),
    ],
)
def test_the_origin_of_a_bullet_follows_from_the_messages_it_cites(cited: list[str], origin: Origin) -> None:
    ours, of_a_page = talk("ours", 2, role="assistant"), talk("of a page", 4, role="assistant", foreign_text=True)
    messages = [talk("mine"), ours, talk("forwarded", 3, foreign_text=True), of_a_page]
    (bullet,) = checked([("Something", cited)], messages, BERLIN).bullets
    assert bullet.origin is origin
    assert len(bullet.sources) == len({label.strip() for label in cited} & {"m1", "m2", "m3", "m4"})


@pytest.mark.rule("WD-51")
def test_words_of_people_who_are_not_to_be_promoted_are_no_evidence() -> None:
    (bullet,) = checked([("Something", ["m1"])], [talk("mine")], BERLIN, reserved={"p-1"}).bullets
    assert (bullet.origin, bullet.sources, bullet.speakers) == (Origin.UNSOURCED, ("m-1",), ("p-1",))


@pytest.mark.rule("WD-70")
@pytest.mark.parametrize(
    ("bullet", "kept"),
    [
        ("Ana pays 640 euros", True),
        ("Ana pays 641 euros", False),
        ("The meeting is on 2026-03-09", True),  # tomorrow, by the day of the message
        ("The meeting is on 2026-05-09", False),
        ("会議は3月9日です", True),
        ("会議は5月9日です", False),
        ("会议在3月9日", True),
        ("See https://example.org", False),
        ("Write to @stranger", False),
    ],
)
def test_numbers_links_handles_and_dates_must_have_been_said(bullet: str, kept: bool) -> None:
    found = checked([(bullet, ["m1"])], [talk("I pay 640 euros. We meet tomorrow / 明日 / 明天")], BERLIN)
    assert (len(found.bullets), found.unsupported) == ((1, 0) if kept else (0, 1))


def test_dashes_line_ends_and_repeats_are_cleaned_away() -> None:
    found = checked([("- One\n  thing", ["m1"]), ("One thing", []), ("  ", [])], [talk("x")], BERLIN)
    assert [bullet.text for bullet in found.bullets] == ["One thing"]


@pytest.mark.rule("WD-19", "WD-59")
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_lines_are_made_anew_in_their_place_and_every_other_byte_stays(newline: str) -> None:
    text = newline.join(["\ufeff# Day", "", "- keep", "- old one", "  more of it", "mine", "- old two", "| a | b |", ""])
    gone = {line_hash("old one\n  more of it"), line_hash("old two")}
    found = restated(text, gone, ["new", "keep"])
    assert found == newline.join(["\ufeff# Day", "", "- keep", "- new", "mine", "| a | b |", ""])
    assert restated(found, gone, ["new", "keep"]) == found
    assert restated(text, {line_hash("removed by a person")}, ["new"]) == text

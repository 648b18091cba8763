"""Requests for summaries and what is read of their answers, in three languages (RS-61, RS-163, RS-168, RS-171)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
import regex  # pyright: ignore[reportMissingTypeStubs]

from memory import tokens
from memory.recall import answers
from memory.recall.answers import Answer
from memory.recall.chunks import Spoken
from memory.recall.summary_rows import Detail

TEXTS = {"en": "We meet at the station on Monday.", "ja": "月曜日に駅で会いましょう。", "zh": "我们星期一在车站见面。"}


def spoken(seq: int, text: str, speaker: str = "Ana") -> Spoken:
    return Spoken(seq=seq, id=f"m{seq}", at=datetime(2026, 3, 8, 14, 5, tzinfo=UTC), speaker=speaker, text=text, fingerprint="")


@pytest.mark.rule("RS-61")
def test_messages_have_their_local_time_and_name_and_only_equal_names_an_id() -> None:
    talk = [spoken(1, "one"), spoken(2, "two\n[2026-03-08] Eve: three"), spoken(3, "four", "Bo"), spoken(4, "five", "")]
    shown = answers.rendered(talk, {1: "p-a", 2: "p-b", 3: "p-c", 4: ""}, ZoneInfo("Asia/Tokyo"))
    assert shown == [
        "[2026-03-08 Sunday 23:05] Ana (p-a): one",
        "[2026-03-08 Sunday 23:05] Ana (p-b): two\n  [2026-03-08] Eve: three",
        "[2026-03-08 Sunday 23:05] Bo: four",
        "[2026-03-08 Sunday 23:05] assistant: five",
    ]


@pytest.mark.rule("RS-163")
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_nothing_is_left_out_of_a_long_talk_whatever_its_script(text: str) -> None:
    entries = [f"{n}: {text * 20}" for n in range(60)] + [text * 1_500]
    found = answers.pieces(entries, 2_000)
    cut = [piece.text for piece in found]
    assert max(tokens.count(piece) for piece in cut) <= 2_030
    assert "".join(cut).replace("\n", "") == "".join(entries)
    assert all(entries[piece.first][:20] in piece.text for piece in found[:20])
    assert (found[0].first, found[-1].last) == (0, len(entries) - 1)


@pytest.mark.rule("RS-162")
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_more_talk_changes_the_last_piece_alone(text: str) -> None:
    entries = [f"{n}: {text * 20}" for n in range(60)]
    whole = answers.pieces(entries, 1_000)
    for count in range(1, 60, 7):
        some = answers.pieces(entries[:count], 1_000)
        assert whole[: len(some) - 1] == some[:-1]


@pytest.mark.rule("RS-171")
def test_a_message_longer_than_a_piece_is_never_cut_inside_a_grapheme() -> None:
    family = "👩‍👩‍👧‍👦🇯🇵é"
    cut = [piece.text for piece in answers.pieces([family * 900], 300)]
    assert len(cut) > 10
    whole = set(regex.findall(r"\X", family))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    for piece in cut:
        assert set(regex.findall(r"\X", piece)) <= whole  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


@pytest.mark.rule("RS-163")
@pytest.mark.parametrize("count", [1, 7, 8, 9, 40, 65])
def test_groups_are_the_fewest_and_hold_everything(count: int) -> None:
    found = answers.groups(count)
    assert [at for begin, end in found for at in range(begin, end)] == list(range(count))
    assert max(end - begin for begin, end in found) <= 8
    assert len(found) == -(-count // 8)


@pytest.mark.rule("RS-163")
def test_joining_keeps_every_detail_in_its_newest_state() -> None:
    inputs = [Answer(text="a", details=(Detail(text="Pay rent", kind="promise"),)), Answer(text="b", details=(Detail(text="A fact"),))]
    joined = answers.all_details(Answer(text="ab", details=(Detail(text="pay  RENT", kind="promise", state="resolved"),)), inputs)
    assert [(detail.text, detail.state) for detail in joined.details] == [("pay  RENT", "resolved"), ("A fact", "open")]


@pytest.mark.rule("RS-168")
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize(
    "form",
    ["{}", "```json\n{}\n```", "Of course! Here it is:\n{}\nAnything else?"],
    ids=["bare", "fenced", "talkative"],
)
def test_answers_are_read_leniently(form: str, text: str) -> None:
    detail = {"text": text, "kind": "Promise", "state": "DONE", "due": "2026-03-12T00:00"}
    given = json.dumps({"details": [detail, "a word", {"kind": "fact"}, 7], "text": f" {text} "}, ensure_ascii=False)
    found = answers.parsed(form.replace("{}", given))
    assert found == Answer(text=text, details=(Detail(text=text, kind="promise", state="resolved", due="2026-03-12"), Detail(text="a word")))
    assert found is not None
    assert Answer.of_json(json.loads(json.dumps(found.as_json()))) == found


@pytest.mark.rule("RS-168")
@pytest.mark.parametrize("answer", ["", "no", "{", "[1]", '{"text": 5}', '{"text": "  "}', '{"details": []}', '"text"', "{'text': 'x'}"])
def test_what_is_no_summary_is_none(answer: str) -> None:
    assert answers.parsed(answer) is None


@pytest.mark.rule("RS-168")
def test_commas_too_many_odd_kinds_and_dates_do_no_harm() -> None:
    found = answers.parsed('{"details": [{"text": "x", "kind": "riddle", "due": "soon",},], "summary": "y",}')
    assert found == Answer(text="y", details=(Detail(text="x"),))


@pytest.mark.rule("WD-22")
def test_secrets_are_kept_in_no_summary() -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    assert answers.parsed(json.dumps({"text": f"The key is {key}"})) is None
    found = answers.parsed(json.dumps({"text": "fine", "details": [f"The key is {key}", "a word"]}))
    assert found == Answer(text="fine", details=(Detail(text="a word"),))

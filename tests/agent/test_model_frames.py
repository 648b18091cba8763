"""Bytes to events without a network: the stream reader, call pieces, surrogates, usage."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.llm.calls import CallAssembler
from agent.llm.frames import CallPiece, Frame, frame
from agent.llm.incoming import Answer
from agent.llm.outgoing import Abilities, legal_tool_name, messages
from agent.llm.port import Finish, Image, ModelMessage, ModelRequest, ReasoningDelta, Role, TextDelta, ToolCall
from agent.llm.sse import MAX_EVENT_BYTES, EventReader, TooLarge
from agent.llm.surrogates import Mender, mend
from tests.peers.model.replies import piece

ALL = Abilities(tools=True, images=True)
HI = ModelRequest(messages=(ModelMessage(role=Role.USER, text="hi"),))
STREAM = 'data: {"a":1}\r\n\r\n: ping\n\ndata: {"b":\ndata: "é"}\n\nevent: x\rdata: 3\r\rdata: [DONE]\n\ndata: 4\n\n'.encode()


@given(st.lists(st.integers(min_value=0, max_value=len(STREAM))))
def test_events_do_not_depend_on_how_the_bytes_arrive(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    reader = EventReader()
    events = [event for start, end in pairwise(edges) for event in reader.feed(STREAM[start:end])]
    assert [*events, *reader.end()] == ['{"a":1}', '{"b":\n"é"}', "3"]
    assert reader.done


def test_an_event_that_is_not_closed_counts_at_the_end() -> None:
    reader = EventReader()
    assert reader.feed(b"data: 1\n") == []
    assert reader.end() == ["1"]


@pytest.mark.parametrize("body", ['{"error": 1}', "  \n<html>", "[1]", '\ufeff{"a": 1}'])
def test_a_body_that_is_no_stream_is_kept_whole(body: str) -> None:
    reader = EventReader()
    for byte in body.encode():
        assert reader.feed(bytes([byte])) == []
    assert (reader.end(), reader.is_stream, reader.body) == ([], False, body.lstrip("\ufeff"))


def test_an_event_without_end_is_refused() -> None:
    reader = EventReader()
    reader.feed(b"data: ")
    with pytest.raises(TooLarge):
        for _ in range(MAX_EVENT_BYTES // 65536 + 1):
            reader.feed(b"x" * 65536)


@pytest.mark.case("MD-19")
@given(st.text(alphabet=st.characters(codec=None), max_size=30), st.lists(st.integers(min_value=0, max_value=30)))
def test_mending_pieces_gives_what_mending_the_whole_gives(text: str, cuts: list[int]) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut <= len(text)), len(text)]
    mender = Mender()
    pieces = [mender.feed(text[start:end]) for start, end in pairwise(edges)]
    mended = "".join([*pieces, mender.end()])
    assert mended == mend(text)
    mended.encode()


@pytest.mark.case("MD-19")
def test_a_pair_split_over_two_deltas_is_one_character() -> None:
    mender = Mender()
    assert [mender.feed("a\ud83d"), mender.feed("\ude00b"), mender.end()] == ["a", "\U0001f600b", ""]


def assembled(*deltas: list[dict[str, Any]]) -> list[tuple[str, str]]:
    assembler = CallAssembler()
    for delta in deltas:
        assembler.feed([CallPiece.model_validate(each) for each in delta])
    calls = assembler.calls()
    assert len({call.id for call in calls}) == len(calls)
    assert all(call.id for call in calls)
    return [(call.name, call.arguments) for call in calls]


PIECES: list[tuple[str, list[list[dict[str, Any]]], list[tuple[str, str]]]] = [
    ("joined by index", [[piece(0, call_id="a", name="say", arguments='{"t":"\\u4f')], [piece(0, arguments='60"}')]], [("say", '{"t":"\\u4f60"}')]),
    (
        "two at once, interleaved",
        [
            [piece(0, call_id="a", name="x", arguments="{"), piece(1, call_id="b", name="y", arguments="[")],
            [piece(1, arguments="]"), piece(0, arguments="}")],
        ],
        [("x", "{}"), ("y", "[]")],
    ),
    ("no index", [[piece(None, call_id="a", name="x", arguments="{")], [piece(None, arguments="}")]], [("x", "{}")]),
    (
        "no index, two ids",
        [[piece(None, call_id="a", name="x", arguments="{}")], [piece(None, call_id="b", name="x", arguments="[]")]],
        [("x", "{}"), ("x", "[]")],
    ),
    (
        "index 0 for all, with ids",
        [[piece(0, call_id="a", name="x", arguments="{}")], [piece(0, call_id="b", name="x", arguments="1")]],
        [("x", "{}"), ("x", "1")],
    ),
    ("index 0 for all, one delta, no ids", [[piece(0, name="x", arguments="{}"), piece(0, name="x", arguments="1")]], [("x", "{}"), ("x", "1")]),
    ("index 0 for all, no ids, other names", [[piece(0, name="x", arguments="{}")], [piece(0, name="y", arguments="1")]], [("x", "{}"), ("y", "1")]),
    (
        "the name and id in each piece",
        [[piece(0, call_id="a", name="x", arguments="{")], [piece(0, call_id="a", name="x", arguments="}")]],
        [("x", "{}")],
    ),
    (
        "the same id twice",
        [[piece(0, call_id="a", name="x", arguments="1"), piece(1, call_id="a", name="y", arguments="2")]],
        [("x", "1"), ("y", "2")],
    ),
    ("no arguments", [[piece(0, call_id="a", name="x")]], [("x", "")]),
    ("arguments as an object", [[{"index": 0, "id": "a", "function": {"name": "x", "arguments": {"q": 1}}}]], [("x", '{"q": 1}')]),
    ("nulls", [[{"index": None, "id": None, "function": {"name": None, "arguments": None}}]], [("", "")]),
    ("no function", [[{"index": 0, "id": "a", "function": None}]], [("", "")]),
    ("a blank name", [[piece(0, call_id="a", name=" ", arguments="{}")]], [("", "{}")]),
    ("a lone surrogate", [[piece(0, call_id="a", name="x", arguments="\ud83d")]], [("x", "\ufffd")]),
]


@pytest.mark.rule("RL-20")
@pytest.mark.case("MD-09", "MD-10", "MD-11")
@pytest.mark.parametrize(("what", "deltas", "calls"), PIECES)
def test_call_pieces_are_joined(what: str, deltas: list[list[dict[str, Any]]], calls: list[tuple[str, str]]) -> None:
    assert assembled(*deltas) == calls, what


ODD_FRAMES: list[object] = [
    {},
    {"choices": None},
    {"choices": [None]},
    {"choices": [{}]},
    {"choices": {"0": 1}},
    {"choices": [{"delta": "text"}]},
    {"choices": [{"index": 0, "delta": {"content": None, "tool_calls": None, "reasoning": {"a": 1}}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"content": 5}}]},
    {"choices": [], "usage": []},
    {"choices": [], "usage": {"prompt_tokens": "many", "completion_tokens": -1, "prompt_tokens_details": 3}},
    {"choices": [{"index": 1, "delta": {"content": "another choice"}}]},
]


@pytest.mark.case("MD-01", "MD-03", "MD-04")
@pytest.mark.parametrize("odd", ODD_FRAMES)
def test_an_odd_frame_costs_nothing(odd: object) -> None:
    answer = Answer()
    assert list(answer.feed(frame(odd))) == []
    assert list(answer.feed(Frame.model_validate({"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]}))) == [TextDelta("ok")]
    finished = answer.finished(HI, len)
    assert (finished.reason, finished.usage.estimated, finished.usage.output_tokens) == (Finish.STOP, True, 2)


USAGES: list[tuple[dict[str, Any], tuple[int, int, int, bool]]] = [
    ({"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}}, (100, 7, 64, False)),
    ({"prompt_tokens": 100, "completion_tokens": 7, "prompt_cache_hit_tokens": 60}, (100, 7, 60, False)),
    ({"prompt_tokens": 100, "completion_tokens": 7, "cache_read_input_tokens": 50}, (100, 7, 50, False)),
    ({"prompt_tokens": 10, "completion_tokens": 7, "cache_read_input_tokens": 50}, (10, 7, 10, False)),
    ({"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": None}, (100, 7, 0, False)),
    ({"prompt_tokens": 100, "completion_tokens": None}, (100, 2, 0, True)),
    ({"prompt_tokens": 0, "completion_tokens": 0}, (6, 2, 0, True)),
    ({"prompt_tokens": 12.0, "completion_tokens": "3"}, (12, 3, 0, False)),
]


@pytest.mark.case("MD-04")
@pytest.mark.parametrize(("facts", "counted"), USAGES)
def test_usage_is_the_providers_and_ours_only_where_it_is_missing(facts: dict[str, Any], counted: tuple[int, int, int, bool]) -> None:
    answer = Answer()
    list(answer.feed(frame({"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}], "usage": facts})))
    usage = answer.finished(HI, len).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.estimated) == counted


def test_usage_in_every_frame_counts_once() -> None:
    answer = Answer()
    for got, sent in ((1, 10), (2, None)):
        list(answer.feed(frame({"choices": [{"delta": {"content": "o"}}], "usage": {"prompt_tokens": sent, "completion_tokens": got}})))
    list(answer.feed(frame({"choices": [{"finish_reason": "stop"}]})))
    assert (answer.finished(HI, len).usage.input_tokens, answer.finished(HI, len).usage.output_tokens) == (10, 2)


def test_thinking_and_text_in_one_list_of_parts_are_told_apart() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "ok"}]
    events = list(Answer().feed(frame({"choices": [{"delta": {"content": parts}}]})))
    assert events == [ReasoningDelta("hm"), TextDelta("ok")]


REASONS = [
    ("stop", False, Finish.STOP),
    ("stop", True, Finish.TOOL_CALLS),
    ("tool_calls", False, Finish.STOP),
    ("end_turn", False, Finish.STOP),
    ("MAX_TOKENS", True, Finish.LENGTH),
    ("content_filter", True, Finish.FILTER),
    ("something new", False, Finish.STOP),
]


@pytest.mark.parametrize(("reason", "called", "finish"), REASONS)
def test_a_cut_answer_carries_no_calls(reason: str, called: bool, finish: Finish) -> None:
    answer = Answer()
    calls = [piece(0, call_id="a", name="x", arguments="")] if called else []
    list(answer.feed(frame({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": reason}]})))
    finished = answer.finished(HI, len)
    assert finished.reason is finish
    assert bool(finished.tool_calls) is (finish is Finish.TOOL_CALLS)


def assistant(text: str = "", *calls: ToolCall) -> ModelMessage:
    return ModelMessage(role=Role.ASSISTANT, text=text, tool_calls=calls)


@pytest.mark.case("MD-05")
def test_an_assistant_message_with_nothing_to_say_is_not_sent() -> None:
    assert messages((assistant(), assistant(" \n"), assistant("ok")), ALL) == [{"role": "assistant", "content": "ok"}]


@pytest.mark.case("MD-09", "MD-11")
def test_calls_in_history_are_legal() -> None:
    sent = messages((assistant("", ToolCall(id="a", name=" ", arguments=""), ToolCall(id="b", name="my tool!", arguments="{oops")),), ALL)
    assert sent[0]["content"] is None
    functions: list[dict[str, str]] = json.loads(json.dumps([call["function"] for call in json.loads(json.dumps(sent[0]["tool_calls"]))]))
    assert functions == [{"name": "unknown_tool", "arguments": "{}"}, {"name": "my_tool", "arguments": '{"unreadable": "{oops"}'}]


@given(st.text(max_size=100))
def test_every_tool_name_becomes_legal(name: str) -> None:
    legal = legal_tool_name(name)
    assert 1 <= len(legal) <= 64
    assert legal.isascii()
    assert legal_tool_name(legal) == legal


@pytest.mark.case("MD-19")
def test_lone_surrogates_are_not_sent() -> None:
    json.dumps(messages((ModelMessage(role=Role.USER, text="a\ud83d"), assistant("b\ude00")), ALL), ensure_ascii=False).encode()


def test_a_model_without_tools_and_eyes_is_sent_neither() -> None:
    history = (
        ModelMessage(role=Role.USER, text="look", images=(Image(mime="image/png", data="AAAA"),)),
        assistant("", ToolCall(id="a", name="x", arguments="{}")),
        ModelMessage(role=Role.TOOL, text="result", tool_call_id="a"),
    )
    assert messages(history, Abilities(tools=False, images=False)) == [{"role": "user", "content": "look\n[a picture this model cannot see]"}]
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert messages(history[:1], ALL) == [{"role": "user", "content": [{"type": "text", "text": "look"}, picture]}]

"""The one object of a model's answer, whatever stands around it."""

from __future__ import annotations

import pytest

from gateway import judging
from gateway.saved import deep_memory
from memory.lenient_json import object_in


@pytest.mark.rule("RS-168")
@pytest.mark.parametrize(
    "answer",
    [
        '{"a": ["よ", "好"]}', '```json\n{"a": ["よ", "好"]}\n```', 'Here it is:\n{"a": ["よ", "好"]}\nDone.', '{"a": ["よ", "好",],}',
        '{\n"a": ["よ",\n"好"]}',
    ],
)  # fmt: skip
def test_one_object_is_read_whatever_stands_around_it(answer: str) -> None:
    assert object_in(answer) == {"a": ["よ", "好"]}


@pytest.mark.rule("RS-168")
@pytest.mark.parametrize("answer", ["", "no", "[1]", "{", "}{", "{'a': 1}", "{" * 100_000 + "}", '{"a": 1'])
def test_what_holds_no_object_is_none(answer: str) -> None:
    assert object_in(answer) is None


@pytest.mark.rule("SM-84")
def test_deep_memory_and_the_judge_read_alike() -> None:
    assert deep_memory.parsed('Sure:\n{"operations": [{"op": "save", "content": "tea",}]}') == [{"op": "save", "content": "tea"}]
    assert judging.parsed('Sure:\n{"score": 7, "verdict": "close",}').score == 7

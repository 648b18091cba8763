"""What the demo model says to those whose language its weights do not speak."""

from __future__ import annotations

import pytest

from agent.llm.demo import DemoModel
from agent.llm.demo_words import prepared
from agent.llm.port import Finish, Finished, ModelMessage, ModelRequest, Role, TextDelta
from agent.prompt import NOTES_END
from memory.languages import guess

# As a prompt has them: what was recalled, in other languages than the question, and the time.
NOTES = (
    "[notes for this reply; not written by the person]\n昨日は京都へ行きました。\n昨天我们去了京都。\n"
    f"Now: Monday, 2026-03-16 09:00 (UTC)\n{NOTES_END}"
)


def asked(text: str) -> tuple[ModelMessage, ...]:
    return (
        ModelMessage(role=Role.SYSTEM, text="You are Yume. 日本語 中文"),
        ModelMessage(role=Role.USER, text="Hello"),
        ModelMessage(role=Role.ASSISTANT, text="こんにちは"),
        ModelMessage(role=Role.USER, text=f"{NOTES}{text}"),
        ModelMessage(role=Role.SYSTEM, text="It is noon."),
    )


@pytest.mark.rule("WO-1")
@pytest.mark.parametrize(
    ("text", "language", "begin"),
    [
        ("Hello", "en", "Hello, "),
        ("こんにちは", "ja", "こんにちは。"),
        ("京都の旅を計画して", "ja", "メッセージは受け取りました。"),
        ("你好", "zh", "你好，"),
        ("帮我安排京都之行", "zh", "你的消息我收到了。"),
    ],
)
async def test_it_greets_in_the_persons_language_and_says_what_it_is(text: str, language: str, begin: str) -> None:
    model = DemoModel(count_tokens=len, weights=lambda: None)  # without weights even this works
    events = [event async for event in model.stream(ModelRequest(messages=asked(text)))]
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    said = "".join(pieces)
    assert said.startswith(begin) and guess(said) == language and "/help" in said
    assert len(pieces) > 2, "it is streamed"
    end = events[-1]
    assert isinstance(end, Finished) and end.reason is Finish.STOP and end.usage.estimated and end.usage.output_tokens == len(said)
    assert model.pid is None
    await model.close()


@pytest.mark.rule("WO-1")
@pytest.mark.parametrize("text", ["Hello, who are you?", "Plan two days in Kyoto", "42", ""])
def test_english_is_left_to_its_weights(text: str) -> None:
    assert prepared(asked(text)) == ""

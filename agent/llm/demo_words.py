"""What the demo model says to Japanese and Chinese, which its weights cannot speak, and to a greeting, after which most people judge it: a few
sentences of ours, honest about what it is. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from agent.llm.port import ModelMessage, Role
from agent.plain_answers import is_greeting
from agent.prompt import NOTES_END
from memory.languages import guess

_GREETING: Mapping[str, str] = {
    "en": "Hello, good to have you here. ",
    "ja": "こんにちは。お話しできてうれしいです。",
    "zh": "你好，很高兴和你说话。",
}
_OTHERWISE: Mapping[str, str] = {
    "ja": "メッセージは受け取りました。",
    "zh": "你的消息我收到了。",
}
_WHO: Mapping[str, str] = {
    "en": "I am a small demo model for trying things out, and much of what I say is wrong or makes no sense. For real talk, connect a real model: "
    "an owner or admin chooses one on the page under “Set up a model”. Memories (`/remember`) and commands (`/help` lists them) work already.",
    "ja": "私は試用のための小さなデモモデルで、文章を作れるのは英語だけです。日本語では、この決まった文でお答えしています。"
    "日本語で自由に話すには、本物のモデルをつないでください。オーナーか管理者が、ページの「モデルの設定」で選べます。"
    "記憶（`/remember`）とコマンド（`/help` で一覧）は今でも使えます。",
    "zh": "我是供试用的小型演示模型，只会用英语造句。用中文时，我只能回答这几句固定的话。"
    "想用中文自由交谈，请接上真正的模型：所有者或管理员可以在页面的“设置模型”里选择。"
    "记忆（`/remember`）和命令（`/help` 列出全部）现在就能用。",
}
_SENTENCE = re.compile(r".+?(?:[。！？]|[.,:] |$)")


def prepared(messages: Sequence[ModelMessage]) -> str:
    """The answer to the newest message of a person, when it is a greeting or in a language that the weights do not speak; else empty."""
    newest = next((message.text for message in reversed(messages) if message.role is Role.USER), "")
    said = newest.rpartition(NOTES_END)[2]  # what was recalled may be in another language
    language = guess(said)
    first = _GREETING if is_greeting(said) else _OTHERWISE
    return f"{first[language]}{_WHO[language]}" if language in first else ""


def sentences(text: str) -> Iterator[str]:
    """The pieces in which it is streamed."""
    yield from _SENTENCE.findall(text)

"""The shape of one frame of an answer, as far as we read it. Everything may be missing or null (MD-01 … MD-04)."""

from __future__ import annotations

import json

from pydantic import Field, ValidationError

from agent.llm.lenient import Count, Lenient, Many, Maybe, Text, TextOnly


class FunctionPiece(Lenient):
    """`arguments` stays text; a server that sends an object gets it written as JSON."""

    name: TextOnly = ""
    arguments: Text = ""


class CallPiece(Lenient):
    index: Count = None
    id: Text = ""
    function: Maybe[FunctionPiece] = None


class Part(Lenient):
    """Mistral sends content as a list of parts, thinking among them."""

    type: TextOnly = ""
    text: TextOnly = ""
    thinking: Many[Part] = Field(default_factory=list["Part"])


class Delta(Lenient):
    """`content` is text or a list of parts; `refusal` is what the person reads instead of content."""

    content: object = None
    refusal: TextOnly = ""
    reasoning_content: TextOnly = ""
    reasoning: TextOnly = ""
    tool_calls: Many[CallPiece] = Field(default_factory=list[CallPiece])


class Choice(Lenient):
    index: Count = None
    delta: Maybe[Delta] = None
    message: Maybe[Delta] = None
    finish_reason: TextOnly = ""


class PromptDetails(Lenient):
    cached_tokens: Count = None


class UsageFacts(Lenient):
    """Tokens as named by OpenAI; the cached share also as DeepSeek and Anthropic-compatible servers call it."""

    prompt_tokens: Count = None
    completion_tokens: Count = None
    prompt_tokens_details: Maybe[PromptDetails] = None
    prompt_cache_hit_tokens: Count = None
    cache_read_input_tokens: Count = None

    @property
    def cached(self) -> int:
        details = self.prompt_tokens_details.cached_tokens if self.prompt_tokens_details else None
        return details or self.prompt_cache_hit_tokens or self.cache_read_input_tokens or 0


class Frame(Lenient):
    choices: Many[Choice] = Field(default_factory=list[Choice])
    usage: Maybe[UsageFacts] = None


class Unreadable(ValueError):
    """No JSON, or JSON that is no frame. The text says which, without the data."""


def parse(data: str) -> object:
    """JSON of one frame or body. Raises Unreadable, without the parser's error, which would carry the data along (RL-32)."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        pass
    raise Unreadable("is no JSON")


def frame(parsed: object) -> Frame:
    """Raises Unreadable when it is no JSON object."""
    try:
        return Frame.model_validate(parsed)
    except ValidationError:
        pass
    raise Unreadable("has no shape we know")

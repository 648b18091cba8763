"""Where compatible servers differ, and what a refusal teaches us about it. Learned once per client and remembered, so that it costs one request."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

REFUSALS = frozenset({400, 422})
_SAYS_NOTHING = re.compile(r"(?i)\A\W*(?:bad request|invalid request|error)?\W*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """`stream_options`: asked for usage in the stream. `limit_field`: what the output limit is called. `temperature`: may be set at all."""

    stream_options: bool = True
    limit_field: str = "max_tokens"
    temperature: bool = True


@dataclass(frozen=True, slots=True)
class Lesson:
    """When the body has `field` and the refusal matches `words`, speak differently from now on."""

    field: str
    words: re.Pattern[str]
    change: Callable[[Dialect], Dialect]


_NO_TEMPERATURE = re.compile(r"(?i)temperature.{0,60}(?:support|deprecated)|support.{0,60}temperature")

LESSONS: tuple[Lesson, ...] = (
    Lesson("stream_options", re.compile(r"(?i)stream_options|include_usage"), lambda d: replace(d, stream_options=False)),
    Lesson("max_tokens", re.compile(r"max_completion_tokens"), lambda d: replace(d, limit_field="max_completion_tokens")),
    Lesson("max_completion_tokens", re.compile(r"max_completion_tokens"), lambda d: replace(d, limit_field="max_tokens")),
    Lesson("temperature", _NO_TEMPERATURE, lambda d: replace(d, temperature=False)),
    Lesson("stream_options", _SAYS_NOTHING, lambda d: replace(d, stream_options=False)),
)


def learn(dialect: Dialect, body: Mapping[str, object], message: str) -> Dialect | None:
    """The dialect to ask again with after a refusal (400 or 422) that said `message`, or None when it is about something else.

    A refusal without any words costs one try without stream_options: some servers refuse the field that way.
    """
    return next((lesson.change(dialect) for lesson in LESSONS if lesson.field in body and lesson.words.search(message)), None)

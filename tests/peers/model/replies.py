"""What the fake model endpoint can answer: a reply is a status, headers and steps; steps are bytes, pauses, waits, a cut or a hang."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

SSE = "text/event-stream"
JSON = "application/json"
HTML = "text/html; charset=utf-8"
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing is sent for so long. A pause before the first bytes comes before the status line too."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection is reset, without an end."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing more comes, until the client leaves or the server stops."""


@dataclass(frozen=True, slots=True)
class Until:
    """Nothing more comes until the test says so."""

    told: asyncio.Event


Step = bytes | Pause | Cut | Hang | Until


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    steps: tuple[Step, ...] = ()
    status: int = 200
    content_type: str = SSE
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def after(self, *steps: Step) -> Reply:
        """The same reply with steps in front of it."""
        return replace(self, steps=(*steps, *self.steps))


def event(data: object) -> bytes:
    """One server-sent event; text goes out as it is, everything else as JSON."""
    return b"data: " + (data if isinstance(data, str) else json.dumps(data)).encode("utf-8", "surrogatepass") + b"\n\n"


def delta(content: str | None = None, *, finish: str | None = None, **fields: object) -> dict[str, Any]:
    """One frame of choice 0. Fields such as `reasoning_content` or `tool_calls` go into the delta."""
    shown: dict[str, object] = {**fields} if content is None else {"content": content, **fields}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": shown, "finish_reason": finish}]}


def usage(sent: int | None, got: int | None, **fields: object) -> dict[str, Any]:
    """The frame that OpenAI sends last."""
    counts = {"prompt_tokens": sent, "completion_tokens": got, "total_tokens": (sent or 0) + (got or 0), **fields}
    return {"choices": [], "usage": counts}


def piece(index: int | None, *, call_id: str | None = None, name: str | None = None, arguments: str | None = None) -> dict[str, Any]:
    """A piece of a tool call, with only the fields given."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    call: dict[str, Any] = {"type": "function", "function": function}
    return call | {key: value for key, value in (("index", index), ("id", call_id)) if value is not None}


def stream(*frames: object, done: bool = True) -> Reply:
    """A stream of frames (objects become events, bytes and steps stay as they are), `[DONE]` behind them."""
    steps = tuple(frame if isinstance(frame, bytes | Pause | Cut | Hang | Until) else event(frame) for frame in frames)
    return Reply(steps=(*steps, DONE) if done else steps)


def text(content: str, *, chunks: int = 1, gap_s: float = 0, sent: int = 12, finish: str = "stop") -> Reply:
    """A plain answer in so many pieces, with usage. Without gaps all of it is one write."""
    size = max(1, -(-len(content) // max(1, chunks)))
    frames = [event(delta(content[at : at + size])) for at in range(0, len(content), size)]
    tail = event(delta(finish=finish)) + event(usage(sent, max(1, len(content) // 4))) + DONE
    if not gap_s:
        return Reply(steps=(b"".join(frames) + tail,))
    steps: list[Step] = []
    for frame in frames:
        steps += [frame, Pause(gap_s)]
    return Reply(steps=(*steps, tail))


def calls(*pieces: dict[str, Any], finish: str = "tool_calls", sent: int = 12, got: int = 3) -> Reply:
    """Tool calls, one delta for each piece."""
    return stream(*(delta(tool_calls=[each]) for each in pieces), delta(finish=finish), usage(sent, got))


def whole(body: object, *, status: int = 200, content_type: str = JSON, headers: Mapping[str, str] | None = None) -> Reply:
    """A body given at once: an answer without a stream, an error, HTML."""
    data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Reply(steps=(data,), status=status, content_type=content_type, headers=dict(headers or {}))


def error(status: int, message: str = "", *, headers: Mapping[str, str] | None = None, **fields: object) -> Reply:
    """An error body as OpenAI writes it."""
    return whole({"error": {"message": message, **fields}}, status=status, headers=headers)



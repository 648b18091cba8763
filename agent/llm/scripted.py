"""`ScriptedModel`: the fake that ships. It says what it is told to and remembers what it was asked; it passes the contract suite of the real ones.

model = ScriptedModel(["Hello.", [Call("search", {"q": "x"})], [Say("A long answer", chars=3, pause_s=1), End(Finish.LENGTH)]])
model = ScriptedModel(lambda request: request.messages[-1].text.upper())
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from agent.errors import ModelBusy, ModelError
from agent.llm import estimate
from agent.llm.port import Finish, Finished, ModelEvent, ModelRequest, ReasoningDelta, TextDelta, ToolCall, Usage

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Say:
    """Text, in pieces of `chars` characters (0: at once), with `pause_s` after each."""

    text: str
    chars: int = 0
    pause_s: float = 0


@dataclass(frozen=True, slots=True)
class Think:
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `arguments` as text goes out as it is, so that broken JSON can be played."""

    name: str
    arguments: str | Mapping[str, object] = "{}"
    id: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float


@dataclass(frozen=True, slots=True)
class Until:
    """Goes on when somebody sets the event."""

    event: asyncio.Event


@dataclass(frozen=True, slots=True)
class Fail:
    error: ModelError


@dataclass(frozen=True, slots=True)
class End:
    """Sets the reason and the usage of the answer. Without it: tool_calls or stop, and an estimate."""

    reason: Finish | None = None
    usage: Usage | None = None


Step: TypeAlias = Say | Think | Call | Wait | Until | Fail | End
Reply: TypeAlias = str | Step | Sequence[Step]
Script: TypeAlias = Iterable[Reply] | Callable[[ModelRequest], Reply]


class ScriptExhausted(AssertionError):
    """The model was asked more often than the script has answers: the test or its subject is wrong."""


class ScriptedModel:
    """Answers from a list, one for each request, or from a function of the request.

    `requests` holds every request in order; `cancelled` counts streams that were left before their end; `sleep` replaces the clock of pauses.
    """

    provider = "scripted"

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted",
        context_window: int = 32_768,
        answer_tokens: int = 0,
        supports_tools: bool = True,
        sees_images: bool = True,
        sleep: Sleep = asyncio.sleep,
        count_tokens: Callable[[str], int] = lambda text: -(-len(text) // 4),
    ) -> None:
        self.requests: list[ModelRequest] = []
        self.cancelled = 0
        self._answer: Callable[[ModelRequest], Reply] = script if callable(script) else _from_list(script)
        self.name, self.context_window, self.answer_tokens = name, context_window, answer_tokens
        self.supports_tools, self.sees_images = supports_tools, sees_images
        self._sleep, self._count_tokens = sleep, count_tokens
        self._closed = False

    async def close(self) -> None:
        self._closed = True

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Plays the next answer. Raises what the script says, ModelBusy after `close`, ScriptExhausted at the end of a list."""
        if self._closed:
            raise ModelBusy("the model client is closed")
        self.requests.append(request)
        written: list[str] = []
        calls: list[ToolCall] = []
        end = End()
        complete = False
        try:
            for step in _steps(self._answer(request)):
                match step:
                    case Say(text, chars, pause_s):
                        for piece in _pieces(text, chars):
                            written.append(piece)
                            yield TextDelta(piece)
                            if pause_s:
                                await self._sleep(pause_s)
                    case Think(text):
                        written.append(text)
                        yield ReasoningDelta(text)
                    case Call():
                        calls.append(_tool_call(step, f"call_{len(self.requests)}_{len(calls) + 1}"))
                    case Wait(seconds):
                        await self._sleep(seconds)
                    case Until(event):
                        await event.wait()
                    case Fail(error):
                        complete = True
                        raise error
                    case End():
                        end = step
                    case _:
                        assert_never(step)
            complete = True
        finally:
            self.cancelled += not complete
        reason = end.reason or (Finish.TOOL_CALLS if calls else Finish.STOP)
        kept = tuple(calls) if reason is Finish.TOOL_CALLS else ()
        yield Finished(reason=reason, tool_calls=kept, usage=end.usage or self._estimate(request, written, calls))

    def _estimate(self, request: ModelRequest, written: list[str], calls: list[ToolCall]) -> Usage:
        count = self._count_tokens
        sent, got = estimate.input_tokens(request, count), estimate.output_tokens(written, calls, count)
        return Usage(input_tokens=sent, output_tokens=got, estimated=True)


def _from_list(script: Iterable[Reply]) -> Callable[[ModelRequest], Reply]:
    replies = iter(tuple(script))

    def answer(request: ModelRequest) -> Reply:
        for reply in replies:
            return reply
        raise ScriptExhausted(f"no answer is left for a request of purpose {request.purpose!r}")

    return answer


def _steps(reply: Reply) -> Sequence[Step]:
    if isinstance(reply, str):
        return (Say(reply),)
    return reply if isinstance(reply, Sequence) else (reply,)


def _pieces(text: str, chars: int) -> list[str]:
    size = chars or max(1, len(text))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _tool_call(call: Call, call_id: str) -> ToolCall:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(dict(call.arguments), ensure_ascii=False)
    return ToolCall(id=call.id or call_id, name=call.name, arguments=arguments)

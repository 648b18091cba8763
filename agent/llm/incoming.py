"""Frames of one answer in, events of the port out. Knows no network: whole answers and streams come here alike."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from agent.errors import ModelBroken, ModelBusy
from agent.llm import estimate
from agent.llm.calls import CallAssembler
from agent.llm.frames import Delta, Frame, Part, UsageFacts
from agent.llm.lenient import objects
from agent.llm.port import Finish, Finished, ModelRequest, ReasoningDelta, TextDelta, Usage
from agent.llm.surrogates import Mender

log = logging.getLogger(__name__)

REASONS: Mapping[str, Finish] = {
    "stop": Finish.STOP,
    "eos": Finish.STOP,
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "model_length": Finish.LENGTH,
    "tool_calls": Finish.TOOL_CALLS,
    "function_call": Finish.TOOL_CALLS,
    "tool_use": Finish.TOOL_CALLS,
    "content_filter": Finish.FILTER,
    "safety": Finish.FILTER,
    "recitation": Finish.FILTER,
    "prohibited_content": Finish.FILTER,
    "sensitive": Finish.FILTER,
    "refusal": Finish.FILTER,
}
FAILED: Mapping[str, type[ModelBusy | ModelBroken]] = {
    "error": ModelBroken,
    "abort": ModelBusy,
    "network_error": ModelBusy,
    "insufficient_system_resource": ModelBusy,
}
"""Reasons that say there is no answer."""


class Answer:
    """One answer as it grows: `feed` each frame, then `finished()`."""

    def __init__(self) -> None:
        self._calls = CallAssembler()
        self._text = Mender()
        self._thinking = Mender()
        self._written: list[str] = []
        self._usage: UsageFacts | None = None
        self._reason = ""

    @property
    def has_reason(self) -> bool:
        """The model said why it stopped; only usage may still come."""
        return bool(self._reason)

    @property
    def is_empty(self) -> bool:
        """No text and no thinking came yet."""
        return not self._written

    def feed(self, frame: Frame) -> Iterator[TextDelta | ReasoningDelta]:
        """The events of one frame; none for a frame without choices, delta or text (MD-01, MD-03)."""
        if frame.usage is not None:
            self._usage = _newer(self._usage, frame.usage)
        choice = next((choice for choice in frame.choices if not choice.index), None)
        if choice is None:
            return
        self._reason = choice.finish_reason.strip().lower() or self._reason
        if (delta := choice.delta or choice.message) is None:
            return
        text, thinking = _texts(delta)
        if piece := self._thinking.feed(thinking):
            self._written.append(piece)
            yield ReasoningDelta(piece)
        if piece := self._text.feed(text):
            self._written.append(piece)
            yield TextDelta(piece)
        self._calls.feed(delta.tool_calls)

    def rest(self) -> Iterator[TextDelta | ReasoningDelta]:
        """Half a surrogate pair that waited for the other half (MD-19)."""
        if piece := self._thinking.end():
            yield ReasoningDelta(piece)
        if piece := self._text.end():
            yield TextDelta(piece)

    def finished(self, request: ModelRequest, count_tokens: estimate.CountTokens) -> Finished:
        """Raises ModelBroken or ModelBusy for a reason that names a failure; none at all is a failure too.

        A cut or filtered answer carries no calls: arguments that end early can still read as complete (`""` is `{}`, MD-09).
        """
        if not self._reason:
            raise ModelBroken("the answer ended without a finish reason")
        if failed := FAILED.get(self._reason):
            raise failed(f"the provider ended the answer with the reason {self._reason}")
        reason = REASONS.get(self._reason)
        if reason is None:
            log.warning("unknown finish reason %r is taken as stop", self._reason[:40])
            reason = Finish.STOP
        calls = self._calls.calls() if reason in (Finish.STOP, Finish.TOOL_CALLS) else ()
        if reason in (Finish.STOP, Finish.TOOL_CALLS):
            reason = Finish.TOOL_CALLS if calls else Finish.STOP
        return Finished(reason=reason, tool_calls=calls, usage=self._counted(request, count_tokens))

    def _counted(self, request: ModelRequest, count_tokens: estimate.CountTokens) -> Usage:
        """The provider's numbers; each that is missing, or 0 where it cannot be, is counted here (MD-04)."""
        facts = self._usage or UsageFacts()
        calls = self._calls.calls()
        sent, got = facts.prompt_tokens, facts.completion_tokens
        if not got and (got is None or self._written or calls):
            got = None
        input_tokens = sent or estimate.input_tokens(request, count_tokens)
        return Usage(
            input_tokens=input_tokens,
            output_tokens=estimate.output_tokens(self._written, calls, count_tokens) if got is None else got,
            cached_tokens=min(facts.cached, input_tokens),
            estimated=not sent or got is None,
        )


def _newer(before: UsageFacts | None, now: UsageFacts) -> UsageFacts:
    """Some send usage in every frame, the last one with nulls: each number stays until a newer one replaces it."""
    return now if before is None else before.model_copy(update=now.model_dump(exclude_none=True, exclude={"prompt_tokens_details"}) | _details(now))


def _details(now: UsageFacts) -> dict[str, object]:
    return {} if now.prompt_tokens_details is None else {"prompt_tokens_details": now.prompt_tokens_details}


def _texts(delta: Delta) -> tuple[str, str]:
    """Text and thinking of one delta."""
    thinking = delta.reasoning_content or delta.reasoning
    if isinstance(delta.content, str):
        return delta.content or delta.refusal, thinking
    parts = [Part.model_validate(part) for part in objects(delta.content)]
    text = "".join(part.text for part in parts if part.type != "thinking")
    return text or delta.refusal, thinking + "".join(inner.text for part in parts for inner in part.thinking)

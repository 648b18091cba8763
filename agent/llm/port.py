"""The port to a language model: messages and tools in, a stream of typed events out.

One call of `stream` is one request to the provider. The implementation never retries; the runtime decides that (RL-21). Cancelling the iteration
closes the connection. Every exception it raises is an `agent.errors.ModelError`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeAlias


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call the model asked for. `arguments` is the text as it came, joined but unparsed; `id` is never empty (one is made when missing)."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture for models that see: `data` base64 without line breaks."""

    mime: str
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMessage:
    """One message of a request. An assistant message has text or calls; a tool message names the call it answers."""

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """`parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """`max_output_tokens` None leaves the limit to the provider. `purpose` is for usage and metrics: reply, title, summary, dream …"""

    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    temperature: float | None = None
    max_output_tokens: int | None = None
    purpose: str = "reply"


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The model's own thinking: shown nowhere by default, never stored as the answer, never sent back (MD-15)."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one request. `estimated` when the provider named none and we counted ourselves (MD-04)."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False


class Finish(StrEnum):
    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    FILTER = "content_filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The last event of every stream that worked: exactly one, with the complete calls and the usage."""

    reason: Finish
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()


ModelEvent: TypeAlias = TextDelta | ReasoningDelta | Finished


class ChatModel(Protocol):
    """`name` is what receipts show; `context_window` is in tokens; `answer_tokens`: the longest answer that is set, which the window must hold beside
    the prompt, 0 for none (RS-63); `provider` says what kind answers (openai, demo, scripted); `sees_images`: whether `ModelMessage.images` may be
    sent."""

    @property
    def name(self) -> str: ...

    @property
    def provider(self) -> str: ...

    @property
    def context_window(self) -> int: ...

    @property
    def answer_tokens(self) -> int: ...

    @property
    def supports_tools(self) -> bool: ...

    @property
    def sees_images(self) -> bool: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Deltas as they come, then one `Finished`. May be called many times at once. Raises ModelError, also in between, and then there is no
        `Finished`; leaving or cancelling the iteration ends the request."""
        ...

    async def close(self) -> None:
        """Closes all connections; a second call does nothing. A request after it raises ModelBusy."""
        ...

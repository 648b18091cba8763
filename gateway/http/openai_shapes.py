"""OpenAI's chat completions as we read and write them: bodies become our values, our answers become theirs (WO-50).

Honoured: `model`, `messages` with texts and pictures, `stream`, `stream_options.include_usage`, `temperature`, `max_tokens` and
`max_completion_tokens`. Everything else of their schema is taken and ignored, but what would promise something we do not do is refused: several
choices, tools of the client.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, StringConstraints, field_validator

from agent.llm.port import Finish, Image, Usage
from agent.turn import Said
from channels.message import is_blank
from gateway.attachments import IMAGE_MAX, SEEN, sniff
from gateway.http.body import Body
from gateway.http.fault import HttpFault
from gateway.http.sse_writer import frame
from gateway.progress import Ended
from gateway.stateless import alternating

BODY_MAX = 24_000_000  # bytes; pictures come inside the body
MESSAGES_MAX = 4_000
FINISH = {Finish.LENGTH: "length", Finish.FILTER: "content_filter"}  # everything else is "stop"


class _Theirs(Body):
    """Part of a schema that grows without us: unknown keys are no fault."""

    model_config = ConfigDict(extra="ignore")


class TextPart(_Theirs):
    type: Literal["text"]
    text: str


class ImageUrl(_Theirs):
    url: str


class ImagePart(_Theirs):
    type: Literal["image_url"]
    image_url: ImageUrl


Part: TypeAlias = Annotated[TextPart | ImagePart, Discriminator("type")]


def _parts(content: object) -> object:
    """A text and null are short for a list of parts."""
    if content is None:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


class ClientMessage(_Theirs):
    role: str
    content: Annotated[list[Part], BeforeValidator(_parts)] = Field(default=[])
    tool_calls: list[Any] | None = None

    @field_validator("role")
    @classmethod
    def _known(cls, role: str) -> str:
        if role in ("tool", "function"):
            raise ValueError("tools of the client are not used here, so their results cannot be taken")
        if role not in ("system", "developer", "user", "assistant"):
            raise ValueError("should be system, developer, user or assistant")
        return role

    @field_validator("tool_calls")
    @classmethod
    def _none(cls, calls: list[Any] | None) -> None:
        if calls:
            raise ValueError("tools of the client are not used here, so their calls cannot be taken")

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))


class StreamOptions(_Theirs):
    include_usage: bool | None = None


class Completion(_Theirs):
    """The body of `POST /v1/chat/completions`."""

    model: Annotated[str, StringConstraints(max_length=200)]
    messages: Annotated[list[ClientMessage], Field(min_length=1, max_length=MESSAGES_MAX)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    n: int | None = Field(default=None, ge=1)

    @field_validator("n")
    @classmethod
    def _one(cls, n: int | None) -> int | None:
        if n is not None and n > 1:
            raise ValueError("one choice is made, not several")
        return n

    @property
    def limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    @property
    def wants_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)

    def instructions(self) -> str:
        """What the client's system messages say, wherever they stand."""
        texts = (message.text for message in self.messages if message.role in ("system", "developer"))
        return "\n\n".join(text for text in texts if not is_blank(text))

    def talk(self) -> tuple[Said, ...]:
        """The talk, its last words the person's. Raises 400 when they are not, and for pictures that cannot be taken."""
        said = alternating([
            Said(text=message.text, by_us=message.role == "assistant", images=_images(message, number))
            for number, message in enumerate(self.messages)
            if message.role in ("user", "assistant")
        ])  # fmt: skip
        if not said or said[-1].by_us:
            raise _bad("messages", "the last message should be the user's, and not empty")
        return said

    def newest(self) -> Said:
        """The last user message alone. Raises 400 when there is none, and for pictures that cannot be taken."""
        number, message = next(((n, each) for n, each in reversed(list(enumerate(self.messages))) if each.role == "user"), (0, None))
        if message is None:
            raise _bad("messages", "there should be a message of the user")
        return Said(text=message.text, by_us=False, images=_images(message, number))


def _images(message: ClientMessage, number: int) -> tuple[Image, ...]:
    parts = [part for part in message.content if isinstance(part, ImagePart)]
    if parts and message.role != "user":
        raise _bad(f"messages.{number}.content", "pictures are the user's")
    return tuple(_image(part.image_url.url, f"messages.{number}.content") for part in parts)


def _image(url: str, field: str) -> Image:
    """A picture in a data URL. Others are not fetched: that would let a client send us anywhere."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        raise _bad(field, "pictures come as data URLs (data:image/png;base64,…); addresses are not fetched")
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _bad(field, "the picture is not valid base64") from error
    if (mime := sniff(raw)) not in SEEN:
        raise _bad(field, "the picture is none of PNG, JPEG, GIF and WebP")
    if len(raw) > IMAGE_MAX:
        raise _bad(field, f"the picture is larger than {IMAGE_MAX // 1_000_000} MB")
    return Image(mime=mime, data=data)


def _bad(field: str, reason: str) -> HttpFault:
    return HttpFault(400, "bad_field", "error_bad_field", param=field, field=field, reason=reason)


# -- what goes out -----------------------------------------------------------------------------------------------------


def models_json(names: Sequence[str], created: int) -> dict[str, Any]:
    return {"object": "list", "data": [model_json(name, created) for name in names]}


def model_json(name: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": "yumegate"}


_NOTHING_MORE: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One completion: the same id, time and model in each of its frames. `with_usage`: a stream ends with a frame of usage; the others say null."""

    id: str
    created: int
    model: str
    with_usage: bool = False

    def whole(self, ended: Ended) -> dict[str, Any]:
        message = {"role": "assistant", "content": ended.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(ended)}
        return self._frame("chat.completion", [choice]) | {"usage": usage_json(ended.usage)} | _ours(ended)

    def first(self) -> bytes:
        return self._chunk({"role": "assistant", "content": "", "refusal": None})

    def words(self, text: str) -> bytes:
        return self._chunk({"content": text})

    def last(self, ended: Ended) -> bytes:
        frames = self._chunk({}, finish_reason(ended), _ours(ended))
        if self.with_usage:
            frames += frame(self._frame("chat.completion.chunk", []) | {"usage": usage_json(ended.usage)})
        return frames + b"data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, Any], reason: str | None = None, more: Mapping[str, Any] = _NOTHING_MORE) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return frame({**self._frame("chat.completion.chunk", [choice]), **({"usage": None} if self.with_usage else {}), **more})

    def _frame(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices}


def _ours(ended: Ended) -> dict[str, Any]:
    """Beside OpenAI's fields, and only when there is something: the saved memories that the answer changed (policy `notice: result`)."""
    return {"yumegate": {"memories": [dict(each) for each in ended.memories]}} if ended.memories else {}


def finish_reason(ended: Ended) -> str:
    return FINISH.get(ended.finish, "stop") if ended.finish else "stop"


def usage_json(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def bytes_of(image: Image) -> bytes:
    """The picture itself."""
    return base64.b64decode(image.data)

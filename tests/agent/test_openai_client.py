"""`OpenAIModel` against the fake endpoint, through real sockets: the fault plan as tables, limits, secrets, connections."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from agent.errors import ContextOverflow, ModelBroken, ModelBusy, ModelError, ModelMisconfigured
from agent.llm.openai_client import OpenAIModel
from agent.llm.port import (
    Finish,
    Finished,
    Image,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ReasoningDelta,
    Role,
    TextDelta,
    ToolCall,
    ToolSpec,
    Usage,
)
from tests.leap import LeapingLoop
from tests.peers.model.faults import FAULTS
from tests.peers.model.replies import Hang, Pause, Reply, delta, error, stream, text, usage, whole
from tests.peers.model.server import FakeModel

LOOP = LeapingLoop  # for limits of less than a second that hold on a busy machine

KEY = "sk-a-secret-of-the-operator"
SEARCH = ToolSpec(name="search", description="Looks things up.", parameters={"type": "object", "properties": {"q": {"type": "string"}}})


def user(words: str) -> ModelMessage:
    return ModelMessage(role=Role.USER, text=words)


HI = ModelRequest(messages=(user("hi"),), tools=(SEARCH,))


def model_at(url: str, *, first_byte_s: float = 0.3, stall_s: float = 0.3, timeout_s: float = 5) -> OpenAIModel:
    """With limits short enough for tests."""
    return OpenAIModel(
        base_url=url,
        api_key=KEY,
        model="fake",
        context_window=8192,
        count_tokens=len,
        sees_images=True,
        first_byte_s=first_byte_s,
        stall_s=stall_s,
        timeout_s=timeout_s,
    )


@contextlib.asynccontextmanager
async def model_for(server: FakeModel, **limits: float) -> AsyncGenerator[OpenAIModel]:
    made = model_at(server.url, **limits)
    yield made
    await made.close()


@pytest.fixture
async def server() -> AsyncIterator[FakeModel]:
    async with FakeModel() as fake:
        yield fake


@pytest.fixture
async def model(server: FakeModel) -> AsyncIterator[OpenAIModel]:
    async with model_for(server) as made:
        yield made


async def ask(model: OpenAIModel, request: ModelRequest = HI) -> list[ModelEvent]:
    async with contextlib.aclosing(model.stream(request)) as events:
        return [event async for event in events]


def now() -> float:
    return asyncio.get_running_loop().time()


async def finished(model: OpenAIModel, request: ModelRequest = HI) -> Finished:
    last = (await ask(model, request))[-1]
    assert isinstance(last, Finished)
    return last


def said(events: list[ModelEvent]) -> str:
    return "".join(each.text for each in events if isinstance(each, TextDelta))


# -- answers -----------------------------------------------------------------------------------------------------------

SENT = 87
"""Tokens of the request by our own count, one for each character."""

ANSWERS: list[tuple[str, str, Finish, Usage]] = [
    ("null-delta", "ok", Finish.STOP, Usage(input_tokens=SENT, output_tokens=2, estimated=True)),
    ("only-reasoning", "", Finish.STOP, Usage(input_tokens=12, output_tokens=3)),
    ("wrong-content-type", "Hello", Finish.STOP, Usage(input_tokens=12, output_tokens=3)),
    ("usage-missing", "Hello", Finish.STOP, Usage(input_tokens=SENT, output_tokens=5, estimated=True)),
    ("MD-01", "Hello", Finish.STOP, Usage(input_tokens=12, output_tokens=3)),
    ("MD-03", "ok", Finish.STOP, Usage(input_tokens=SENT, output_tokens=2, estimated=True)),
    ("MD-05", "", Finish.STOP, Usage(input_tokens=SENT, estimated=True)),
    ("MD-06", "", Finish.LENGTH, Usage(input_tokens=SENT, output_tokens=14, estimated=True)),
    ("MD-19", "ok \ufffd done", Finish.STOP, Usage(input_tokens=SENT, output_tokens=9, estimated=True)),
]


@pytest.mark.rule("RL-20")
@pytest.mark.case("MD-01", "MD-03", "MD-05", "MD-06", "MD-19")
@pytest.mark.parametrize(("name", "words", "reason", "counted"), ANSWERS)
async def test_an_odd_answer_is_still_an_answer(
    server: FakeModel, model: OpenAIModel, name: str, words: str, reason: Finish, counted: Usage
) -> None:
    server.will(FAULTS[name][0])
    events = await ask(model)
    assert said(events) == words
    assert events[-1] == Finished(reason=reason, usage=counted)
    assert sum(isinstance(each, Finished) for each in events) == 1


@pytest.mark.case("MD-04")
@pytest.mark.parametrize("row", range(3))
async def test_missing_usage_is_counted_here_and_marked(server: FakeModel, model: OpenAIModel, row: int) -> None:
    server.will(FAULTS["MD-04"][row])
    assert (await finished(model)).usage == Usage(input_tokens=12 if row == 2 else SENT, output_tokens=5, estimated=True)


CALLS: list[tuple[str, list[tuple[str, str]]]] = [
    ("malformed-tool-json", [("search", '{"q": "x')]),
    ("unknown-tool", [("no_such_tool", "{}")]),
    ("id-less-calls", [("search", "{}"), ("search", "{}")]),
    ("MD-09", [("now", "")]),
    ("MD-10", [("say", '{"text":"\\u4f60"}')]),
    ("MD-11", [("", "{}")]),
]


@pytest.mark.rule("RL-20")
@pytest.mark.case("MD-09", "MD-10", "MD-11")
@pytest.mark.parametrize(("name", "expected"), CALLS)
async def test_tool_calls_come_complete_and_unparsed(server: FakeModel, model: OpenAIModel, name: str, expected: list[tuple[str, str]]) -> None:
    server.will(FAULTS[name][0])
    end = await finished(model)
    assert end.reason is Finish.TOOL_CALLS
    assert [(call.name, call.arguments) for call in end.tool_calls] == expected
    assert len({call.id for call in end.tool_calls} - {""}) == len(expected)


async def test_reasoning_is_told_apart_under_either_name(server: FakeModel, model: OpenAIModel) -> None:
    server.will(stream(delta(reasoning_content="a"), delta(reasoning="b"), delta("c", finish="stop")))
    assert (await ask(model))[:-1] == [ReasoningDelta("a"), ReasoningDelta("b"), TextDelta("c")]


async def test_a_refusal_is_what_the_person_reads(server: FakeModel, model: OpenAIModel) -> None:
    server.will(stream(delta(refusal="I cannot help with that."), delta(finish="stop")))
    assert said(await ask(model)) == "I cannot help with that."


async def test_the_cached_share_is_counted(server: FakeModel, model: OpenAIModel) -> None:
    server.will(stream(delta("ok", finish="stop"), usage(100, 2, prompt_tokens_details={"cached_tokens": 64})))
    assert (await finished(model)).usage == Usage(input_tokens=100, output_tokens=2, cached_tokens=64)


async def test_an_answer_given_at_once_is_read_too(server: FakeModel, model: OpenAIModel) -> None:
    message = {"role": "assistant", "content": "Hello", "tool_calls": None}
    counts = {"prompt_tokens": 9, "completion_tokens": 1}
    server.will(whole({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": counts}))
    assert await ask(model) == [TextDelta("Hello"), Finished(reason=Finish.STOP, usage=Usage(input_tokens=9, output_tokens=1))]


async def test_a_filtered_prompt_ends_with_that_reason(server: FakeModel, model: OpenAIModel) -> None:
    server.will(error(400, "The response was filtered due to the prompt", code="content_filter"))
    assert await ask(model) == [Finished(reason=Finish.FILTER)]


async def test_text_comes_while_the_model_still_writes() -> None:
    async with FakeModel() as server, model_for(server) as model:
        server.will(stream(delta("one "), Pause(0.2), delta("two", finish="stop")))
        times = [asyncio.get_running_loop().time() async for each in model.stream(HI) if isinstance(each, TextDelta)]
    assert times[1] - times[0] >= 0.2


async def test_an_answer_with_its_reason_is_complete_whatever_the_connection_does_next(server: FakeModel, model: OpenAIModel) -> None:
    server.will(stream(delta("ok", finish="stop"), Pause(0.02), FAULTS["cut-before-first-byte"][0].steps[0]))
    assert (await finished(model)).reason is Finish.STOP
    server.will(Reply(steps=(*stream(delta("ok", finish="stop")).steps, Hang())))
    started = now()
    assert (await finished(model)).reason is Finish.STOP
    assert now() - started < 1


# -- faults ------------------------------------------------------------------------------------------------------------

FAILURES: list[tuple[str, type[ModelError], str]] = [
    ("empty-choices", ModelBroken, "choices"),
    ("401", ModelMisconfigured, "Incorrect API key provided: ***"),
    ("404", ModelMisconfigured, "does not exist"),
    ("429-with-wait", ModelBusy, "Rate limit"),
    ("429-without-wait", ModelBusy, "Rate limit"),
    ("429-quota", ModelMisconfigured, "quota"),
    ("500", ModelBusy, "The server had an error"),
    ("hang-before-first-byte", ModelBusy, ""),
    ("stall-mid-stream", ModelBusy, ""),
    ("cut-connection", ModelBusy, ""),
    ("cut-before-first-byte", ModelBusy, ""),
    ("context-overflow", ContextOverflow, "maximum context length"),
    ("non-json", ModelBroken, '{"choices":[{"ind'),
    ("html", ModelBroken, "502 Bad gateway"),
    ("no-finish-reason", ModelBroken, ""),
    ("error-frame", ModelBusy, "overloaded"),
    ("nothing", ModelBroken, ""),
    ("MD-02", ModelBusy, "upstream overloaded"),
    ("MD-08", ModelBusy, ""),
    ("MD-15", ModelBroken, "unsupported field"),
    ("MD-17", ContextOverflow, "8192"),
]


@pytest.mark.rule("RL-20")
@pytest.mark.case("MD-02", "MD-08", "MD-15", "MD-17")
@pytest.mark.parametrize(("name", "kind", "excerpt"), FAILURES)
async def test_a_fault_becomes_the_error_that_says_what_to_do(
    server: FakeModel, model: OpenAIModel, name: str, kind: type[ModelError], excerpt: str
) -> None:
    server.will(FAULTS[name][0], text("fine"))
    started = now()
    with pytest.raises(ModelError) as caught:
        await ask(model)
    assert type(caught.value) is kind
    assert excerpt in caught.value.excerpt
    assert now() - started < 1
    assert said(await ask(model)) == "fine", "the next request works"


@pytest.mark.rule("RL-20")
def test_every_row_of_the_fault_plan_is_tried() -> None:
    tried = {row[0] for row in ANSWERS} | {row[0] for row in CALLS} | {row[0] for row in FAILURES} | {"MD-04"}
    loops = {"endless-tool-loop", "MD-07", "MD-13", "MD-14"}  # nothing is odd about one answer of these: they are the runtime's
    assert tried | loops == set(FAULTS)


async def test_the_limit_a_provider_names_is_handed_on(server: FakeModel, model: OpenAIModel) -> None:
    server.will_fail("context-overflow")
    with pytest.raises(ContextOverflow) as caught:
        await ask(model)
    assert (caught.value.limit, caught.value.sent) == (8192, 9120)


@pytest.mark.rule("RL-20")
async def test_the_wait_a_provider_names_is_handed_on(server: FakeModel, model: OpenAIModel) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    for headers, low, high in (({"Retry-After": "7"}, 7, 7), ({"retry-after-ms": "1500"}, 1.5, 1.5), ({"Retry-After": date}, 25, 30)):
        server.will(error(429, "Rate limit reached", headers=headers))
        with pytest.raises(ModelBusy) as caught:
            await ask(model)
        assert caught.value.retry_after_s is not None
        assert low <= caught.value.retry_after_s <= high


BROKEN_BODIES: list[tuple[str, Reply]] = [
    ("a list", stream([1, 2])),
    ("a number", stream(5)),
    ("nesting without end", stream("[" * 100_000)),
    ("bytes that are no text", Reply(steps=(b"data: \xff\xfe\x00\n\n",))),
    ("plain text", whole("Service unavailable", content_type="text/plain")),
    ("lines of JSON", whole('{"message":{"content":"a"}}\n{"done":true}\n', content_type="application/x-ndjson")),
    ("only pings", Reply(steps=(b": ping\n\n: ping\n\n",))),
    ("only the end", stream()),
    ("a body that claims to be packed", Reply(steps=(b"no gzip",), headers={"Content-Encoding": "gzip"})),
    ("a reason that is a failure", stream(delta("Hel", finish="error"))),
    ("too long an event", Reply(steps=(b"data: " + b"x" * 9_000_000,))),
]


@pytest.mark.rule("RL-20", "RL-51")
@pytest.mark.parametrize(("what", "reply"), BROKEN_BODIES)
async def test_an_unusable_body_is_a_broken_answer(server: FakeModel, model: OpenAIModel, what: str, reply: Reply) -> None:
    server.will(reply)
    with pytest.raises(ModelBroken):
        await ask(model)


# -- time limits and connections ---------------------------------------------------------------------------------------


@pytest.mark.rule("RL-20")
async def test_pings_keep_a_slow_answer_alive_but_not_for_ever() -> None:
    async with FakeModel() as server, model_for(server, stall_s=0.1, timeout_s=0.5) as model:
        pings = [step for _ in range(40) for step in (b": ping\n\n", Pause(0.04))]
        server.will(Reply(steps=(*pings[:10], *text("late").steps)), Reply(steps=tuple(pings)))
        assert said(await ask(model)) == "late"
        with pytest.raises(ModelBusy, match="no complete answer within"):
            await ask(model)


@pytest.mark.rule("RL-20")
async def test_a_slow_consumer_is_never_interrupted(server: FakeModel, model: OpenAIModel) -> None:
    server.will(stream(delta("one "), Pause(0.02), delta("two", finish="stop")))
    words: list[str] = []
    async for each in model.stream(HI):
        if isinstance(each, TextDelta):
            await asyncio.sleep(0.4)  # longer than the stall limit
            words.append(each.text)
    assert words == ["one ", "two"]


@pytest.mark.rule("RL-20")
async def test_a_server_that_is_not_there_is_busy() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        model = model_at(f"http://127.0.0.1:{closed.getsockname()[1]}/v1")
        with pytest.raises(ModelBusy, match="cannot connect"):
            await ask(model)
        await model.close()


async def test_cancelling_closes_the_connection(server: FakeModel, model: OpenAIModel) -> None:
    server.will_fail("stall-mid-stream")
    first = asyncio.Event()

    async def read() -> None:
        async for _ in model.stream(HI):
            first.set()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(read())
        await first.wait()
        started = now()
        task.cancel()
    assert now() - started < 0.1
    assert await server.outcome() == "left"


async def test_leaving_the_stream_early_closes_the_connection(server: FakeModel, model: OpenAIModel) -> None:
    server.will_fail("stall-mid-stream")
    async with contextlib.aclosing(model.stream(HI)) as events:
        assert await anext(events) == TextDelta("The capital ")
    assert await server.outcome() == "left"


async def test_closing_the_client_under_a_stream_is_a_model_error(server: FakeModel, model: OpenAIModel) -> None:
    server.will_fail("stall-mid-stream")
    events = model.stream(HI)
    await anext(events)
    await model.close()
    with pytest.raises(ModelError):
        await anext(events)
    with pytest.raises(ModelBusy, match="closed"):
        await ask(model)


async def test_a_connection_is_used_again(server: FakeModel, model: OpenAIModel) -> None:
    for _ in range(3):
        await ask(model)
    assert len({received.peer_port for received in server.requests}) == 1


# -- what is sent ------------------------------------------------------------------------------------------------------


@pytest.mark.case("MD-15")
async def test_only_fields_that_every_server_takes_are_sent(server: FakeModel, model: OpenAIModel) -> None:
    call = ToolCall(id="call_1", name="search", arguments='{"q":"x"}')
    history = (
        ModelMessage(role=Role.SYSTEM, text="Be kind."),
        ModelMessage(role=Role.USER, text="look", images=(Image(mime="image/png", data="AAAA"),)),
        ModelMessage(role=Role.ASSISTANT, tool_calls=(call,)),
        ModelMessage(role=Role.TOOL, text="found", tool_call_id="call_1"),
        ModelMessage(role=Role.ASSISTANT, text="There."),
        user("thanks"),
    )
    await ask(model, ModelRequest(messages=history, tools=(SEARCH,), temperature=0.5, max_output_tokens=50, purpose="reply"))
    assert server.requests[0].body == {
        "model": "fake",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"q":"x"}'}}],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "found"},
            {"role": "assistant", "content": "There."},
            {"role": "user", "content": "thanks"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": {"name": "search", "description": "Looks things up.", "parameters": dict(SEARCH.parameters)}}],
        "temperature": 0.5,
        "max_tokens": 50,
    }
    assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"


def again(_: object) -> Reply:
    return text("again")


@pytest.mark.case("MD-05")
async def test_an_empty_answer_in_history_does_not_spoil_the_next_turn(server: FakeModel, model: OpenAIModel) -> None:
    server.will(FAULTS["MD-05"][0])
    assert said(await ask(model)) == ""
    server.respond = again
    history = (user("hi"), ModelMessage(role=Role.ASSISTANT, text=""), user("still there?"))
    assert said(await ask(model, ModelRequest(messages=history))) == "again"


@pytest.mark.case("MD-11")
async def test_a_call_without_a_name_can_go_back_into_history(server: FakeModel, model: OpenAIModel) -> None:
    server.will_fail("MD-11")
    messages = [user("hi")]
    for _ in range(2):
        end = await finished(model, ModelRequest(messages=tuple(messages), tools=(SEARCH,)))
        messages.append(ModelMessage(role=Role.ASSISTANT, tool_calls=end.tool_calls))
        messages.append(ModelMessage(role=Role.TOOL, text="no such tool", tool_call_id=end.tool_calls[0].id))
    assert said(await ask(model, ModelRequest(messages=tuple(messages)))) == "Plain."
    assert (await finished(model, ModelRequest(messages=tuple(messages)))).reason is Finish.STOP, "a strict provider takes it"


async def test_without_a_key_a_local_server_is_asked_all_the_same(server: FakeModel) -> None:
    model = OpenAIModel(base_url=server.url, model="fake", context_window=8192, count_tokens=len)
    await ask(model)
    assert server.requests[0].headers["Authorization"] == "Bearer none"
    await model.close()


async def test_the_environment_adds_nothing(server: FakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/from-the-environment")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    model = model_at(server.url)
    await ask(model)
    assert "from-the-environment" not in str(server.requests[0].headers)
    await model.close()


# -- dialects ----------------------------------------------------------------------------------------------------------


async def test_a_server_without_stream_options_is_asked_without_them_from_then_on(server: FakeModel, model: OpenAIModel) -> None:
    server.will(error(400, "Unrecognized request argument supplied: stream_options"))
    await ask(model)
    await ask(model)
    assert ["stream_options" in received.body for received in server.requests] == [True, False, False]


async def test_a_newer_name_of_the_limit_and_a_fixed_temperature_are_learned(server: FakeModel, model: OpenAIModel) -> None:
    server.will(
        error(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
        error(400, "Unsupported value: 'temperature' does not support 0.3 with this model. Only the default (1) value is supported."),
    )
    request = ModelRequest(messages=(user("hi"),), temperature=0.3, max_output_tokens=5)
    await ask(model, request)
    assert (await finished(model, request)).reason is Finish.LENGTH
    assert len(server.requests) == 4
    assert server.requests[-1].body["max_completion_tokens"] == 5
    assert not {"max_tokens", "temperature"} & set(server.requests[-1].body)


@pytest.mark.rule("RL-21")
async def test_any_other_refusal_is_asked_once_only(server: FakeModel, model: OpenAIModel) -> None:
    server.will(*[error(400, "messages.1: invalid role")] * 3)
    with pytest.raises(ModelBroken):
        await ask(model)
    assert len(server.requests) == 1


@pytest.mark.rule("RL-21")
@pytest.mark.parametrize("name", ["429-with-wait", "500", "cut-before-first-byte", "hang-before-first-byte"])
async def test_the_client_itself_never_tries_again(server: FakeModel, model: OpenAIModel, name: str) -> None:
    server.will(*FAULTS[name] * 3)
    with pytest.raises(ModelBusy):
        await ask(model)
    assert len(server.requests) == 1


# -- configuration and secrets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["", "api.example/v1", "ftp://127.0.0.1/v1", "http://", "http://[::1", "file:///etc/passwd"])
def test_an_address_that_is_none_is_told_at_once(address: str) -> None:
    with pytest.raises(ModelMisconfigured, match="no http address"):
        model_at(address)


@pytest.mark.parametrize("key", ["sk-abc\n", "sk-ab…c", "sk-\x00"])
def test_a_key_that_cannot_be_sent_is_told_without_saying_it(key: str) -> None:
    with pytest.raises(ModelMisconfigured) as caught:
        OpenAIModel(base_url="http://127.0.0.1:1/v1", api_key=key, model="fake", context_window=1, count_tokens=len)
    assert "sk-" not in "".join(traceback.format_exception(caught.value))


async def test_a_redirect_is_not_followed(server: FakeModel, model: OpenAIModel) -> None:
    server.will(whole("", status=308, headers={"Location": "http://127.0.0.1:9/v1/chat/completions"}))
    with pytest.raises(ModelMisconfigured, match="redirect"):
        await ask(model)


LEAKS = [
    error(401, f"Incorrect API key provided: {KEY}. You can find your key at"),
    error(400, f"cannot use {KEY}"),
    error(500, f"failed with Authorization: Bearer {KEY}"),
    stream(delta("a"), {"error": {"message": f"bad key {KEY}"}}),
    stream(f"not json {KEY}"),
    whole(f"<html>{KEY}</html>", content_type="text/html"),
    whole({"choices": [], "echo": KEY}),
]


@pytest.mark.rule("RL-32")
@pytest.mark.parametrize("reply", LEAKS)
async def test_the_key_is_in_no_exception_and_no_log(
    server: FakeModel, model: OpenAIModel, caplog: pytest.LogCaptureFixture, reply: Reply
) -> None:
    caplog.set_level(logging.DEBUG)
    server.will(reply)
    with pytest.raises(ModelError) as caught:
        await ask(model)
    everything = "".join(traceback.format_exception(caught.value)) + caught.value.excerpt + repr(caught.value) + caplog.text
    chained: BaseException | None = caught.value
    while chained is not None:
        everything += repr(chained) + str(vars(chained))
        chained = chained.__cause__ or chained.__context__
    assert KEY not in everything


def test_the_fake_endpoint_runs_as_a_process_of_its_own() -> None:
    asyncio.run(beside_a_process())  # on a loop with real time


async def beside_a_process() -> None:
    words = (sys.executable, "-m", "tests.peers.model.server", "--delay", "0.1", "--chunks", "5", "--words", "40")
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    model = model_at((await process.stdout.readline()).decode().strip(), first_byte_s=30, stall_s=30, timeout_s=60)
    started = time.monotonic()
    events = await ask(model)
    assert time.monotonic() - started >= 0.1
    assert (len(events), len(said(events).split())) == (6, 40)
    await model.close()
    process.terminate()
    await process.wait()


def test_importing_the_port_does_not_import_the_sdk() -> None:
    code = "import sys, agent.llm.port, agent.llm.scripted, agent.llm.demo; sys.exit('openai' in sys.modules or 'xllamacpp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""OpenAI's interface, spoken to with OpenAI's own client (WO-50)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import openai
import pytest

from agent.errors import ModelMisconfigured
from agent.llm.port import Finish, ModelRequest, Usage
from agent.llm.scripted import End, Fail, Reply, Say, ScriptedModel, Until
from gateway.progress import Appended, Restarted
from tests.conftest import FakeClock
from tests.harness import Running, eventually, running

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
BROKEN = Fail(ModelMisconfigured("the key is wrong"))
HELLO: Any = [{"role": "user", "content": "hello"}]

Script = Callable[[ModelRequest], Reply]


@asynccontextmanager
async def served(folder: Path, script: Any, **more: Any) -> AsyncGenerator[tuple[Running, openai.AsyncOpenAI, ScriptedModel]]:
    """A gateway, a client signed in as the owner, and the model behind it."""
    model = script if isinstance(script, ScriptedModel) else ScriptedModel(script)
    async with running(folder, model, **more) as gateway, client_of(gateway) as client:
        yield gateway, client, model


@asynccontextmanager
async def client_of(gateway: Running, token: str = "") -> AsyncGenerator[openai.AsyncOpenAI]:
    key = token or str(gateway.http.headers["Authorization"]).removeprefix("Bearer ")
    async with (
        httpx2.AsyncClient(trust_env=False) as http,
        openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=key, http_client=http, max_retries=0) as client,
    ):
        yield client


async def collected(stream: Any) -> str:
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


async def usage_rows(gateway: Running) -> list[dict[str, Any]]:
    return (await gateway.get("/api/operator/usage?days=2"))["rows"]


# -- models ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-50")
async def test_models_are_the_characters_with_the_default_first(tmp_path: Path) -> None:
    characters = {"ada": {"name": "Ada"}, "default": {"name": "Yume"}}
    async with served(tmp_path, [], config={"characters": characters}) as (_, client, _model):
        assert [model.id async for model in client.models.list()] == ["default", "ada"]
        assert (await client.models.retrieve("ada")).owned_by == "yumegate"
        with pytest.raises(openai.NotFoundError) as caught:
            await client.models.retrieve("eve")
        assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


# -- without a conversation --------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-50")
async def test_a_question_is_answered_and_nothing_is_kept_but_its_usage(tmp_path: Path) -> None:
    usage = Usage(input_tokens=40, output_tokens=7, cached_tokens=32)
    async with served(tmp_path, [[Say("こんにちは、夢の門です。"), End(usage=usage)]]) as (gateway, client, model):
        messages: Any = [
            {"role": "system", "content": "Answer briefly."},
            {"role": "user", "content": "你好"},
            {"role": "assistant", "content": "你好。"},
            {"role": "user", "content": [{"type": "text", "text": "日本語で"}, {"type": "text", "text": "どうぞ"}]},
        ]
        found = await client.chat.completions.create(model="default", messages=messages, temperature=0.5, max_completion_tokens=900, user="x")

        choice = found.choices[0]
        assert (found.object, found.model, choice.index) == ("chat.completion", "default", 0)
        assert (choice.finish_reason, choice.message.role, choice.message.content) == ("stop", "assistant", "こんにちは、夢の門です。")
        assert found.usage is not None and found.usage.prompt_tokens_details is not None
        assert (found.usage.prompt_tokens, found.usage.completion_tokens, found.usage.total_tokens) == (40, 7, 47)
        assert found.usage.prompt_tokens_details.cached_tokens == 32
        (sent,) = model.requests
        assert (sent.temperature, sent.max_output_tokens, sent.purpose) == (0.5, 900, "api")
        assert [message.role.value for message in sent.messages] == ["system", "user", "assistant", "user"]
        assert sent.messages[0].text.endswith("[instructions of the program that asks]\nAnswer briefly.\n[end of its instructions]")
        assert (sent.messages[1].text, sent.messages[2].text) == ("你好", "你好。")
        assert sent.messages[3].text.endswith("日本語で\nどうぞ")
        assert (await gateway.get("/api/chats"))["chats"] == []
        (row,) = await usage_rows(gateway)
        assert (row["channel"], row["purpose"], row["input_tokens"], row["cached_tokens"]) == ("api", "api", 40, 32)
        assert row["person"]


@pytest.mark.rule("WO-50")
async def test_a_stream_has_the_very_words_a_reason_and_the_usage_when_asked(tmp_path: Path) -> None:
    words = "夢を見る門。\n第二行\u2028这里是中文。"
    script = [[Say(words, chars=3, pause_s=0.001), End(usage=Usage(input_tokens=5, output_tokens=3))]] * 2
    async with served(tmp_path, script) as (gateway, client, _):
        stream = await client.chat.completions.create(model="default", messages=HELLO, stream=True, stream_options={"include_usage": True})
        chunks = [chunk async for chunk in stream]
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == words
        assert chunks[0].choices[0].delta.role == "assistant"
        assert [chunk.choices[0].finish_reason for chunk in chunks[:-1] if chunk.choices[0].finish_reason] == ["stop"]
        assert chunks[-1].choices == [] and chunks[-1].usage is not None and chunks[-1].usage.total_tokens == 8
        assert len({chunk.id for chunk in chunks}) == 1 and {chunk.object for chunk in chunks} == {"chat.completion.chunk"}

        body = {"model": "default", "messages": HELLO, "stream": True}
        async with gateway.http.post(f"{gateway.url}/v1/chat/completions", json=body) as raw:
            text = (await raw.read()).decode()
        assert raw.content_type == "text/event-stream" and text.endswith("\n\ndata: [DONE]\n\n")
        assert "usage" not in text and "\u2028" not in text


async def test_a_limit_of_the_client_is_kept_even_when_nothing_fits_into_it(tmp_path: Path) -> None:
    config = {"model": {"max_output_tokens": 500}}
    async with served(tmp_path, lambda _: End(Finish.LENGTH), config=config) as (_, client, model):
        found = await client.chat.completions.create(model="default", messages=HELLO, max_tokens=9000)
        assert (found.choices[0].finish_reason, found.choices[0].message.content) == ("length", "")
        assert [request.max_output_tokens for request in model.requests] == [500]


@pytest.mark.case("WP-20", "WP-21")
async def test_pictures_come_as_data_urls_and_are_never_fetched(tmp_path: Path) -> None:
    def picture(url: str) -> Any:
        return [{"role": "user", "content": [{"type": "text", "text": "what is this"}, {"type": "image_url", "image_url": {"url": url}}]}]

    async with served(tmp_path, ["a dot", "a dot"]) as (gateway, client, model):
        await client.chat.completions.create(model="default", messages=picture(f"data:image/jpeg;base64,{PNG}"))
        (image,) = model.requests[0].messages[-1].images
        assert (image.mime, image.data) == ("image/png", PNG)
        for url in (
            "https://127.0.0.1/x.png", "http://169.254.169.254/latest/meta-data/", "file:///etc/passwd", "data:image/png;base64,no!",
            "data:text/plain;base64,aGk=", "data:image/png,x",
        ):  # fmt: skip
            with pytest.raises(openai.BadRequestError) as caught:
                await client.chat.completions.create(model="default", messages=picture(url))
            assert caught.value.param == "messages.0.content"

        chat = await gateway.chat()
        await client.chat.completions.create(
            model="default", messages=picture(f"data:image/png;base64,{PNG}"), extra_headers={"X-Yumegate-Chat": chat}
        )
        (file,) = (await gateway.messages(chat))[0]["attachments"]
        assert (file["name"], file["mime"]) == ("picture.png", "image/png")
        assert model.requests[1].messages[-1].images


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-50", "RL-51")
async def test_refusals_are_the_errors_that_openais_client_knows(tmp_path: Path) -> None:
    async with served(tmp_path, []) as (gateway, client, _):
        create: Any = client.chat.completions.create
        with pytest.raises(openai.NotFoundError) as missing:
            await create(model="nobody", messages=HELLO)
        assert (missing.value.code, missing.value.type, missing.value.param) == ("model_not_found", "invalid_request_error", "model")
        async with client_of(gateway, "yg_wrong") as stranger:
            with pytest.raises(openai.AuthenticationError):
                await stranger.models.list()

        user = {"role": "user", "content": "hello"}
        for param, body in {
            "messages.0.content": {"messages": [{"role": "user", "content": 5}]},
            "messages.1.role": {"messages": [user, {"role": "tool", "content": "4", "tool_call_id": "c"}]},
            "messages.1.tool_calls": {"messages": [user, {"role": "assistant", "tool_calls": [{"id": "c"}]}]},
            "messages": {"messages": [user, {"role": "assistant", "content": "hi"}]},
            "temperature": {"messages": HELLO, "temperature": "hot"},
            "max_tokens": {"messages": HELLO, "max_tokens": 0},
            "n": {"messages": HELLO, "n": 2},
            "stream": {"messages": HELLO, "stream": "yes"},
        }.items():
            with pytest.raises(openai.BadRequestError) as bad:
                await create(model="default", **body)
            assert bad.value.param == param, bad.value


async def test_what_openai_knows_and_we_do_not_is_taken_and_ignored(tmp_path: Path) -> None:
    async with served(tmp_path, ["hi"]) as (_, client, _model):
        more: Any = {"stop": ["\n"], "seed": 1, "top_p": 0.5, "response_format": {"type": "text"}, "tools": [], "logit_bias": {"1": 1}, "n": 1}
        found = await client.chat.completions.create(model="default", messages=HELLO, **more, extra_body={"unheard_of": 1})
        assert found.choices[0].message.content == "hi"


@pytest.mark.rule("RL-36", "WO-38")
async def test_rate_limits_and_day_budgets_hold(tmp_path: Path) -> None:
    usage = End(usage=Usage(input_tokens=90, output_tokens=20))
    config = {"rate": {"person_per_minute": 2}, "budgets": {"person_day_tokens": 100}}
    async with served(tmp_path, lambda _: [Say("hi"), usage], config=config) as (_, client, model):
        await client.chat.completions.create(model="default", messages=HELLO)
        with pytest.raises(openai.RateLimitError) as spent:
            await client.chat.completions.create(model="default", messages=HELLO)
        assert (spent.value.code, len(model.requests)) == ("insufficient_quota", 1)
    async with served(tmp_path, lambda _: [Say("hi"), usage], config=config) as (_, client, model):
        with pytest.raises(openai.RateLimitError):  # spent before the restart
            await client.chat.completions.create(model="default", messages=HELLO)
    async with served(tmp_path, lambda _: [Say("hi"), usage], config={"rate": {"person_per_minute": 2}}) as (_, client, model):
        for _ in range(2):
            await client.chat.completions.create(model="default", messages=HELLO)
        with pytest.raises(openai.RateLimitError) as often:
            await client.chat.completions.create(model="default", messages=HELLO)
        assert often.value.code == "rate_limit_exceeded"
        assert 30 < int(often.value.response.headers["Retry-After"]) <= 60  # the minute has begun with the first request


@pytest.mark.rule("WO-50", "WP-18")
async def test_a_chat_of_somebody_else_is_not_there(tmp_path: Path) -> None:
    async with served(tmp_path, ["hi"]) as (gateway, owner, _):
        chat = await gateway.chat()
        async with client_of(gateway, await _token_of_another(gateway)) as client:
            for theirs in (chat, "c_nobodys", ""):
                with pytest.raises(openai.NotFoundError) as missing:
                    await client.chat.completions.create(model="default", messages=HELLO, extra_headers={"X-Yumegate-Chat": theirs})
                assert missing.value.code == "not_found"
        assert await gateway.messages(chat) == []
        await owner.chat.completions.create(model="default", messages=HELLO, extra_headers={"X-Yumegate-Chat": chat})


async def _token_of_another(gateway: Running) -> str:
    other = await gateway.post("/api/operator/people", {"name": "Ada", "role": "user"})
    link = await gateway.post(f"/api/operator/people/{other['id']}/login-link")
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        async with browser.get(link["url"]) as page:
            assert page.status == 200
        async with browser.get(f"{gateway.url}/api/me") as me:
            csrf = (await me.json())["csrf"]
        async with browser.post(f"{gateway.url}/api/tokens", json={"name": "x"}, headers={"X-CSRF-Token": csrf}) as made:
            return (await made.json())["token"]


# -- faults ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-50")
async def test_a_fault_before_the_first_word_is_a_status_and_one_in_the_middle_an_error_of_the_stream(tmp_path: Path) -> None:
    until = asyncio.Event()
    async with served(tmp_path, [BROKEN, BROKEN, [Say("The answer is"), Until(until), BROKEN]]) as (gateway, client, _):
        with pytest.raises(openai.InternalServerError) as whole:
            await client.chat.completions.create(model="default", messages=HELLO)
        assert (whole.value.status_code, whole.value.code) == (503, "model_setup")
        assert whole.value.response.headers["x-should-retry"] == "false"
        with pytest.raises(openai.InternalServerError):
            await client.chat.completions.create(model="default", messages=HELLO, stream=True)

        heard = ""
        stream = await client.chat.completions.create(model="default", messages=HELLO, stream=True)
        with pytest.raises(openai.APIError) as broken:
            async for chunk in stream:
                heard += chunk.choices[0].delta.content or ""
                until.set()
        assert (heard, broken.value.code, broken.value.type) == ("The answer is", "model_setup", "server_error")
        assert "not set up correctly" in broken.value.message
        assert {row["failed"] for row in await usage_rows(gateway)} == {3}


def test_an_append_only_reader_gets_the_same_words_once_and_never_two_answers_run_together() -> None:
    appended = Appended()
    assert [appended.more(draft) for draft in (" ", " The", " The lamp \n")] == ["", "The", " lamp"]
    assert [appended.more(draft) for draft in ("", "The", "The lamp", "The lamp is on")] == ["", "", "", " is on"]
    assert appended.more("The lamp is on", whole=True) == ""
    with pytest.raises(Restarted):
        appended.more("The night")
    with pytest.raises(Restarted):
        appended.more("The lamp", whole=True)


@pytest.mark.rule("WO-50", "CH-98")
async def test_a_second_model_with_other_words_breaks_a_begun_stream_off(tmp_path: Path) -> None:
    until = asyncio.Event()
    first = ScriptedModel([[Say("One way"), Until(until), BROKEN]] * 2, name="first")
    second = ScriptedModel(["Another way"] * 2, name="second")
    config = {"models": {"spare": {"provider": "openai", "base_url": "http://127.0.0.1:9", "name": "second"}}, "fallback_model": "spare"}

    def model(account: Any) -> ScriptedModel:
        return second if account.name == "second" else first

    async with running(tmp_path, model, config=config) as gateway, client_of(gateway) as client:
        chat = await gateway.chat()
        for headers in ({}, {"X-Yumegate-Chat": chat}):
            until.clear()
            heard = ""
            with pytest.raises(openai.APIError) as broken:
                async for chunk in await client.chat.completions.create(model="default", messages=HELLO, stream=True, extra_headers=headers):
                    heard += chunk.choices[0].delta.content or ""
                    if heard:
                        until.set()
            assert (heard, broken.value.code) == ("One way", "restarted")
        assert await gateway.answers(chat) == ["Another way"]


# -- in a chat ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-50", "WO-11")
async def test_with_a_chat_only_the_last_user_message_joins_it_and_one_key_is_one_message(tmp_path: Path) -> None:
    async with served(tmp_path, ["我在这里。", "第二个回答"]) as (gateway, client, model):
        chat = await gateway.chat(title="talk")
        messages: Any = [{"role": "system", "content": "ignored"}, {"role": "user", "content": "older"}, {"role": "user", "content": "你在哪里？"}]
        headers = {"X-Yumegate-Chat": chat, "Idempotency-Key": "k1"}
        answers = [
            await client.chat.completions.with_raw_response.create(model="default", messages=messages, extra_headers=headers) for _ in range(2)
        ]
        stream = await client.chat.completions.create(model="default", messages=messages, extra_headers=headers, stream=True)
        assert {answer.parse().choices[0].message.content for answer in answers} == {"我在这里。"} == {await collected(stream)}
        turns = {answer.headers["X-Yumegate-Turn"] for answer in answers}
        log = await gateway.messages(chat)
        assert [(message["role"], message["text"]) for message in log] == [("user", "你在哪里？"), ("assistant", "我在这里。")]
        assert turns == {message["turn_id"] for message in log}
        assert len(model.requests) == 1 and not any("ignored" in message.text for message in model.requests[0].messages)

        found = await client.chat.completions.create(model="default", messages=HELLO, extra_headers={"X-Yumegate-Chat": chat})
        assert found.choices[0].message.content == "第二个回答"
        assert found.usage is not None and found.usage.prompt_tokens > 0


@pytest.mark.rule("WO-50")
async def test_a_stream_of_a_chat_is_live_and_a_client_that_leaves_stops_nothing(tmp_path: Path) -> None:
    until = asyncio.Event()
    async with served(tmp_path, [[Say("The first half "), Until(until), Say("and the second.")]]) as (gateway, client, _):
        chat = await gateway.chat()
        stream = await client.chat.completions.create(model="default", messages=HELLO, extra_headers={"X-Yumegate-Chat": chat}, stream=True)
        heard = ""
        async for chunk in stream:
            heard += chunk.choices[0].delta.content or ""
            if heard:
                break
        assert heard == "The first half"
        await stream.close()
        until.set()
        assert await gateway.answers(chat) == ["The first half and the second."]


@pytest.mark.rule("WO-50")
async def test_without_a_chat_a_client_that_leaves_ends_the_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with served(tmp_path, [[Say("Once "), Say("upon "), Until(asyncio.Event())]] * 2) as (gateway, client, model):
        stream = await client.chat.completions.create(model="default", messages=HELLO, stream=True)
        async for _ in stream:
            break
        await stream.close()
        await eventually(lambda: _is(model.cancelled == 1))
        asking = asyncio.ensure_future(client.chat.completions.create(model="default", messages=HELLO))
        await eventually(lambda: _is(len(model.requests) == 2))
        asking.cancel()
        await eventually(lambda: _is(model.cancelled == 2))
        rows = await eventually(lambda: usage_rows(gateway))
        assert rows[0]["output_tokens"] > 0  # it was said, so it costs
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def _is(true: bool) -> bool:
    return true


@pytest.mark.rule("WO-50")
async def test_a_turn_that_fails_tells_our_sentence_and_is_not_asked_again(tmp_path: Path) -> None:
    async with served(tmp_path, [[Say("Let me"), BROKEN]]) as (gateway, client, model):
        chat = await gateway.chat()
        headers = {"X-Yumegate-Chat": chat, "Idempotency-Key": "once"}
        retrying = client.with_options(max_retries=2)
        for stream in (False, True):
            with pytest.raises(openai.APIError) as failed:
                found: Any = await retrying.chat.completions.create(model="default", messages=HELLO, extra_headers=headers, stream=stream)
                await collected(found)
            assert failed.value.code == "model_setup" and "not set up correctly" in failed.value.message
        assert len(model.requests) == 1


@pytest.mark.rule("WO-50")
async def test_messages_that_wait_or_are_dropped_or_are_commands_end_too(tmp_path: Path) -> None:
    until = asyncio.Event()
    async with served(tmp_path, [[Say("busy"), Until(until)], "the second", [Say("busy"), Until(until)]]) as (gateway, client, model):
        chat = await gateway.chat()
        await gateway.say(chat, "a long task")
        await eventually(lambda: _is(len(model.requests) == 1))

        async def ask(text: str) -> str | None:
            messages: Any = [{"role": "user", "content": text}]
            found = await client.chat.completions.create(model="default", messages=messages, extra_headers={"X-Yumegate-Chat": chat})
            return found.choices[0].message.content

        assert "0.1.0" in (await ask("/version") or "")
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(ask("and this"))
            await eventually(lambda: _waits(gateway, chat, "and this"))
            until.set()
        assert waiting.result() == "the second"

        until.clear()
        await gateway.say(chat, "another long task")
        await eventually(lambda: _is(len(model.requests) == 3))
        async with asyncio.TaskGroup() as group:
            dropped = group.create_task(ask("never mind"))
            await eventually(lambda: _waits(gateway, chat, "never mind"))
            await gateway.post(f"/api/chats/{chat}/stop", {"all": True})
        assert dropped.result() == ""


async def _waits(gateway: Running, chat: str, text: str) -> bool:
    return any(message["text"] == text for message in await gateway.messages(chat))


async def test_a_message_refused_for_its_rate_may_be_sent_again_under_its_key(tmp_path: Path, clock: FakeClock) -> None:
    async with served(tmp_path, ["one", "two"], config={"rate": {"person_per_minute": 1}}, clock=clock) as (gateway, client, _):
        chat = await gateway.chat()
        headers = {"X-Yumegate-Chat": chat}
        await client.chat.completions.create(model="default", messages=HELLO, extra_headers=headers)
        headers["Idempotency-Key"] = "again"
        with pytest.raises(openai.RateLimitError):
            await client.chat.completions.create(model="default", messages=HELLO, extra_headers=headers)
        clock.advance(timedelta(minutes=2))
        found = await client.chat.completions.create(model="default", messages=HELLO, extra_headers=headers)
        assert found.choices[0].message.content == "two"


@pytest.mark.rule("CH-100", "WO-50")
async def test_a_stop_of_the_gateway_ends_a_waiting_client_with_an_error_and_its_key_finds_the_answer_later(tmp_path: Path) -> None:
    config = {"delivery": {"drain_s": 0.2}}
    headers = {"Idempotency-Key": "k"}
    async with served(tmp_path, [[Say("too "), Until(asyncio.Event())]], config=config) as (gateway, client, _):
        headers["X-Yumegate-Chat"] = await gateway.chat()
        stream = await client.chat.completions.create(model="default", messages=HELLO, extra_headers=headers, stream=True)
        gateway.stop.set()
        with pytest.raises(openai.APIError) as stopped:
            await collected(stream)
        assert stopped.value.code == "draining"
    async with served(tmp_path, ["the whole answer", "and another"], config=config) as (_, client, _model):
        found = await client.chat.completions.create(model="default", messages=HELLO, extra_headers=headers)
        assert found.choices[0].message.content == "the whole answer"


@pytest.mark.rule("CH-100", "WO-50")
async def test_an_answer_without_a_chat_gets_the_time_of_the_drain_and_ends_with_an_error_after_it(tmp_path: Path) -> None:
    until = asyncio.Event()
    for drain_s in (5.0, 0.1):
        async with served(tmp_path, [[Say("all "), Until(until), Say("of it")]], config={"delivery": {"drain_s": drain_s}}) as (gateway, client, _):
            stream = await client.chat.completions.create(model="default", messages=HELLO, stream=True)
            gateway.stop.set()
            if drain_s > 1:
                assert await _refused(client)
                until.set()
                assert await collected(stream) == "all of it"
                until.clear()
                continue
            with pytest.raises(openai.APIError) as stopped:
                await collected(stream)
            assert stopped.value.code == "draining"


async def _refused(client: openai.AsyncOpenAI) -> bool:
    """Whether the gateway says that it takes nothing more."""
    with pytest.raises(openai.APIStatusError) as refused:
        await client.chat.completions.create(model="default", messages=HELLO)
    return refused.value.code == "draining"

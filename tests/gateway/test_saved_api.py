"""Saved memories for clients that bring their own window (WO-50, 3.5): read, written and told as the policy of the API says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.errors import ModelMisconfigured
from agent.llm.port import ModelRequest
from agent.llm.scripted import Call, Fail, Reply, ScriptedModel
from gateway.saved.deep_gate import KIND
from memory.saved import journal
from memory.schema import jobs
from tests.gateway.test_saved_whole import Shelf, block, obedient, results
from tests.harness import Running, running


async def ask(gateway: Running, *texts: str, status: int = 200, **more: Any) -> Any:
    messages = [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(texts)]
    body = {"model": "default", "messages": messages, **more}
    async with gateway.http.post(f"{gateway.url}/v1/chat/completions", json=body) as answer:
        text = await answer.text()
        assert answer.status == status, text
        return text if more.get("stream") else json.loads(text)


@pytest.mark.rule("WO-50", "SM-51", "SM-61", "SM-79")
async def test_a_client_with_a_window_of_its_own_reads_and_writes_by_policy(tmp_path: Path) -> None:
    model, shelf = ScriptedModel(obedient), Shelf()
    async with running(tmp_path, model, database=shelf.open) as gateway:
        told = await ask(gateway, "save Ann likes tea")
        assert [(each["op"], each["text"]) for each in told["yumegate"]["memories"]] == [("create", "Ann likes tea")]
        plain = await ask(gateway, "hello")
        assert "yumegate" not in plain
        streamed = await ask(gateway, "save Ann has a cat", stream=True)
        assert "Ann has a cat" in streamed.splitlines()[-4]
        (row, _) = await shelf.rows()
        assert (row.key.kind, row.private_origin, row.source is not None and row.source["platform"]) == ("character", True, "api")
        chat = await gateway.chat()
        await gateway.say(chat, "hello")
        await gateway.answers(chat)
        kinds = await shelf.do(lambda connection: {found.kind for found in connection.execute(jobs.select())})
    assert "- 1 (recent): Ann likes tea" in block(next(request for request in model.requests if "hello" in request.messages[-1].text))
    assert "Ann has a cat" in block([request for request in model.requests if request.purpose == "reply"][-1]), "one memory for all ways in"
    assert KIND not in kinds


@pytest.mark.rule("SM-71")
async def test_an_answer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fails(request: ModelRequest) -> Reply:
        return [Fail(ModelMisconfigured("no key"))] if results(request) else [Call("memory_save", {"content": "Ann likes tea"})]

    model, shelf = ScriptedModel(fails), Shelf()
    async with running(tmp_path, model, database=shelf.open) as gateway:
        await ask(gateway, "hello", status=503)
        assert await shelf.texts() == []
        entries = await shelf.do(lambda connection: connection.execute(journal.memory_journal.select()).all())
        assert [entry.undone_at is not None for entry in entries] == [True]


@pytest.mark.rule("WO-50", "SM-50")
async def test_a_policy_without_memory_sends_the_talk_alone(tmp_path: Path) -> None:
    model, shelf = ScriptedModel(obedient), Shelf()
    config = {"policies": {"api": {"read_rows": False, "write_rows": False}}}
    async with running(tmp_path, model, database=shelf.open, config=config) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "save Ann likes tea")
        await gateway.answers(chat)
        await ask(gateway, "hello")
    assert block(model.requests[-1]) == "" and model.requests[-1].tools == ()

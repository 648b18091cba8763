"""Bad input and bad moments that once got through: each kind with its neighbours, through the real doors."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import aiohttp
import pytest

from agent.llm.scripted import Say, ScriptedModel, Until
from gateway.config.load import load
from tests.harness import Running, eventually, running


@pytest.mark.rule("WO-10")
@pytest.mark.parametrize("edited", [0, 1], ids=["the running message", "an older one"])
async def test_an_answer_to_words_that_were_edited_away_never_joins_the_talk(tmp_path: Path, edited: int) -> None:
    go = asyncio.Event()
    script = iter(["first answer", [Say("late answer"), Until(go)], "new answer"])
    model = ScriptedModel(lambda _request: next(script))
    async with running(tmp_path, model) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "one")
        await gateway.answers(chat)
        await gateway.say(chat, "two")
        asked = [message["id"] for message in await gateway.messages(chat) if message["role"] == "user"]

        async def begun() -> bool:
            return len(model.requests) == 2

        await eventually(begun)
        await gateway.say(chat, "instead", replaces=asked[1 - edited])
        go.set()

        async def settled() -> list[str] | None:
            texts = [message["text"] for message in await gateway.messages(chat)]
            return texts if "new answer" in texts else None

        texts = await eventually(settled)
    assert texts == (["one", "first answer"] if not edited else []) + ["instead", "new answer"]


@pytest.mark.rule("WO-51")
async def test_a_message_cannot_take_the_place_of_one_that_is_not_in_its_chat(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel(lambda _request: "yes")) as gateway:
        chat, other = await gateway.chat(), await gateway.chat()
        await gateway.say(other, "mine")
        (foreign, *_) = await gateway.messages(other)
        for wanted in (foreign["id"], "m-nobodysmessage1"):
            await gateway.post(f"/api/chats/{chat}/messages", {"client_id": wanted, "text": "x", "replaces": wanted}, status=404)
        assert await gateway.messages(chat) == []


@pytest.mark.rule("RL-51", "WO-32")
@pytest.mark.parametrize("name", ["config.json", "secrets.env"])
def test_a_pipe_in_place_of_a_file_is_a_fault_and_never_a_wait(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    assert any("no regular file" in str(fault) for fault in load(tmp_path / "config.json", {}).faults)


@pytest.mark.rule("RL-51")
@pytest.mark.parametrize("part", ["nocolon\r\n\r\nhi", "X: " + "y" * 20_000 + "\r\n\r\nhi", "X: a\0b\r\n\r\nhi", "", "\r\n"], ids=range(5))
async def test_a_broken_form_is_refused_and_never_a_fault_of_ours(tmp_path: Path, part: str) -> None:
    async with running(tmp_path, ScriptedModel([])) as gateway:
        body = f"--b\r\n{part}\r\n--b--\r\n".encode()
        headers = {"Content-Type": "multipart/form-data; boundary=b"}
        async with gateway.http.post(f"{gateway.url}/api/attachments", data=body, headers=headers) as answer:
            assert answer.status == 400


@pytest.mark.rule("WO-11", "RL-51")
@pytest.mark.parametrize("number", ["9" * 5_000, "٣", "-1", "x", ""], ids=range(5))
async def test_a_strange_last_event_id_is_read_as_none(tmp_path: Path, number: str) -> None:
    async with running(tmp_path, ScriptedModel(lambda _request: "yes")) as gateway:
        chat = await gateway.chat()
        boot = await _boot_of(gateway, chat)
        headers = {"Last-Event-ID": f"{boot}-{number}"}
        try:
            async with gateway.http.get(f"{gateway.url}/api/chats/{chat}/events", headers=headers) as answer:
                assert await answer.content.readline() == b"retry: 1000\n"
        except ValueError:
            assert not number.isascii()  # the client itself refuses to send it


async def _boot_of(gateway: Running, chat: str) -> str:
    async with gateway.following(chat) as heard:
        await gateway.say(chat, "hello")
    return heard.result()[0][0].partition("-")[0]


@pytest.mark.rule("WO-63")
async def test_a_download_keeps_its_own_stricter_policy(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel([])) as gateway:
        form = aiohttp.FormData()
        form.add_field("file", b"GIF89a<script>alert(1)</script>", filename="x.gif")
        async with gateway.http.post(f"{gateway.url}/api/attachments", data=form) as answer:
            file_id = (await answer.json())["id"]
        async with gateway.http.get(f"{gateway.url}/api/attachments/{file_id}") as answer:
            assert answer.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
        async with gateway.http.get(f"{gateway.url}/static/{'a' * 5_000}") as answer:
            assert answer.status == 404

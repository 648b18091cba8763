"""Commands in a whole gateway: beside a turn that runs, after a restart, with results that follow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply, Say, Until
from tests.harness import Running, eventually
from tests.patience import patience
from tests.talks import asked, model, talk


def answering(go: asyncio.Event) -> Callable[[ModelRequest], Reply]:
    def answer(request: ModelRequest) -> Reply:
        return [Say("One moment. "), Until(go), Say("Done.")] if "think" in asked(request) else f"Re: {asked(request)}"

    return answer


async def said(gateway: Running, chat: str, text: str) -> str:
    """What a command on the page answers."""
    before = len([message for message in await gateway.messages(chat) if message["role"] == "notice"])
    await gateway.say(chat, text)

    async def there() -> str:
        notices = [message["text"] for message in await gateway.messages(chat) if message["role"] == "notice"]
        return notices[before] if len(notices) > before else ""

    return await eventually(there, within_s=5)


LINES = (
    ("/memory status", "**Memory** · private (owner)"), ("/memory search tea", "found"), ("/memory", "/memory status"),
    ("/context", "The context holds"), ("/knowledge", "Knowledge pages are on here"), ("/summary", "notes of"), ("/tasks", ""),
    ("/config summary.time", "23:55"), ("/status", "Index:"), ("/whoami", "the owner's"), ("/memory diary", "diary"),
    ("/memory undo", "nothing to take back"), ("/memory dream show", "Nothing waits"), ("/logs 1", ""),
)  # fmt: skip


@pytest.mark.rule("WD-118")
@pytest.mark.case("A14", "N18")
async def test_on_the_page_every_command_is_answered_beside_a_running_turn(tmp_path: Path) -> None:
    go = asyncio.Event()
    async with talk(tmp_path, model(answering(go))) as chat:
        gateway = chat.gateway
        page = await gateway.chat()
        await gateway.say(page, "think about it")
        await chat.thinking()
        for line, words in LINES:
            began = time.monotonic()
            answer = await said(gateway, page, line)
            assert time.monotonic() - began < patience(1.0), line
            assert words in answer, (line, answer)
        assert len(chat.requests) == 1, "no command reached the model"
        go.set()
        assert await gateway.answers(page) == ["One moment. Done."]


@pytest.mark.rule("WD-97")
async def test_a_result_follows_in_the_chat_and_the_archive_can_be_fetched(tmp_path: Path) -> None:
    async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}")) as chat:
        gateway = chat.gateway
        page = await gateway.chat()
        assert (await said(gateway, page, "/memory export")).startswith("I am packing")

        async def followed() -> str:
            return next((message["text"] for message in await gateway.messages(page) if message["text"].startswith("Your memory with")), "")

        told = await eventually(followed, within_s=20)
        address = told.rpartition("](")[2].partition(")")[0]
        assert address.startswith("/api/attachments/")
        async with gateway.http.get(f"{gateway.url}{address}") as answer:
            assert (await answer.read()).startswith(b"PK")


@pytest.mark.case("N17")
async def test_what_was_cleared_stays_cleared_after_a_restart(tmp_path: Path) -> None:
    def answer(request: ModelRequest) -> Reply:
        return f"Re: {asked(request)}"

    async with talk(tmp_path, model(answer)) as chat:
        page = await chat.gateway.chat()
        await chat.gateway.say(page, "my name is Ana")
        await chat.gateway.answers(page)
        assert (await said(chat.gateway, page, "/clear")).startswith("The context is empty.")
    async with talk(tmp_path, model(answer)) as chat:
        await chat.gateway.say(page, "what is my name?")
        await chat.gateway.answers(page, 2)
        assert "Ana" not in str([message.text for message in chat.requests[-1].messages])

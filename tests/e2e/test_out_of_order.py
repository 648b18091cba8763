"""What a platform tells in the wrong order: a deletion or an edit before its message, an old edit after a newer one (CH-2, CH-51)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import Say, Until
from tests.e2e.discord_talk import discord_talk
from tests.e2e.telegram_talk import ADA, telegram_talk
from tests.peers.discord.server import FakeDiscord
from tests.peers.discord.world import ANN, BOB, DM, GENERAL, ME
from tests.peers.telegram.server import FakeBotApi
from tests.talks import asked, model


def echo(request: ModelRequest) -> str:
    return f"Re: {asked(request)}"


@pytest.mark.rule("CH-2", "CH-26", "CH-52", "RL-1")
@pytest.mark.parametrize(("channel", "sender"), [(DM, ANN), (GENERAL, BOB)], ids=["in private", "in a channel"])
async def test_a_message_whose_deletion_came_first_is_neither_answered_nor_remembered(tmp_path: Path, channel: str, sender: str) -> None:
    with FakeDiscord() as server:
        world = server.world
        async with discord_talk(tmp_path, model(echo), server) as chat:
            secret = world.message(channel, world.users[sender], f"<@{ME}> my secret is 4711")
            again = world.message(channel, world.users[sender], f"<@{ME}> and my other one is 4712")
            for each in (secret, again, again):
                server.deletes(each)
            server.posts(secret)
            chat.says(f"<@{ME}> hello", channel=channel, sender=sender)
            await chat.until(lambda: chat.texts(channel))
            assert len(chat.texts(channel)) == 1
        async with discord_talk(tmp_path, model(echo), server) as chat:
            server.posts(again)  # what was deleted stays so for whoever comes after
            chat.says(f"<@{ME}> still there?", channel=channel, sender=sender)
            await chat.until(lambda: len(chat.texts(channel)) == 2)
            assert len(chat.requests) == 1
            assert "471" not in str(chat.requests)
    stored = next(tmp_path.rglob("yumegate.db")).read_bytes() + b"".join(path.read_bytes() for path in tmp_path.rglob("yumegate.db-wal"))
    assert b"secret is 4711" not in stored
    assert b"one is 4712" not in stored


def _edit(message: dict[str, Any], text: str, at: int) -> dict[str, Any]:
    return {"edited_message": message | {"text": text, "edit_date": message["date"] + at}}


@pytest.mark.rule("CH-2", "CH-26", "CH-51")
async def test_edits_count_by_their_time_however_they_come(tmp_path: Path) -> None:
    go = asyncio.Event()

    def slowly(request: ModelRequest) -> Any:
        return [Until(go), Say("Yes.")] if asked(request) == "one moment" else echo(request)

    with FakeBotApi() as server:
        server.world.chat(ADA)
        async with telegram_talk(tmp_path, model(slowly), server, config={"busy": {"mode": "queue"}}) as chat:
            chat.says("one moment")
            await chat.until(lambda: chat.requests)
            told = chat.says("tea at 4")
            newest = _edit(told, "tea at 6", 20)
            for update in (newest, newest, _edit(told, "tea at 5", 10)):
                server.put(**update)
            chat.says("and cake")
            await chat.until(lambda: len(server.world.called("setMessageReaction")) == 2)  # that it waits too: what came before is known
            go.set()
            await chat.until(lambda: len(chat.requests) == 2)
            assert "tea at 6" in chat.questions[1]
            assert "tea at 5" not in str(chat.requests[1])
            server.put(**_edit(told, "tea at 7", 30))
            server.put(**_edit(told, "tea at 4 after all", 5))
            chat.says("when was it?")
            await chat.until(lambda: len(chat.requests) == 3)
            assert "tea at 7" in str(chat.requests[2])
            assert "after all" not in str(chat.requests[2])


@pytest.mark.rule("CH-2", "CH-51")
async def test_an_edit_that_came_before_its_message_is_what_it_says_also_after_a_restart(tmp_path: Path) -> None:
    with FakeDiscord() as server:
        world = server.world
        async with discord_talk(tmp_path, model(echo), server) as chat:
            told = world.message(DM, world.users[ANN], "tea at 4")
            edited = told | {"content": "tea at 5", "edited_timestamp": world.clock().isoformat()}
            server.dispatch("MESSAGE_UPDATE", world.announced(edited))
            chat.says("hello")
            await chat.shows(["Re: hello"])
        async with discord_talk(tmp_path, model(echo), server) as chat:
            server.posts(told)
            await chat.shows(["Re: hello", "Re: tea at 5"])
            assert "tea at 4" not in str(chat.requests)


@pytest.mark.rule("CH-2", "CH-51", "CH-190")
async def test_an_edit_from_before_the_words_that_were_found_on_return_changes_nothing(tmp_path: Path) -> None:
    with FakeDiscord() as server:
        world = server.world
        async with discord_talk(tmp_path, model(echo), server) as chat:
            chat.says("hello")
            await chat.shows(["Re: hello"])
        told = world.message(DM, world.users[ANN], "tea at 4")
        world.write(told)
        old = told | {"content": "tea at 5", "edited_timestamp": world.clock().isoformat()}
        told |= {"content": "tea at 6", "edited_timestamp": world.clock().isoformat()}
        async with discord_talk(tmp_path, model(echo), server) as chat:
            await chat.shows(["Re: hello", "Re: tea at 6"])
            server.dispatch("MESSAGE_UPDATE", world.announced(old))
            chat.says("when was it?")
            await chat.until(lambda: len(chat.requests) == 2)
            assert "tea at 6" in str(chat.requests[1])
            assert "tea at 5" not in str(chat.requests[1])

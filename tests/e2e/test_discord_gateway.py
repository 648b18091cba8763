"""A whole gateway on Discord, as people see it: every message goes over the sockets of the fake, and so does every answer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.llm.port import ModelRequest, Role
from agent.llm.scripted import Call, Reply, Say, Until
from gateway.access import Rules
from gateway.config import Config
from gateway.language import say
from memory.database import Database, sqlite_url
from tests.e2e.app_talk import stored_cursors
from tests.e2e.discord_talk import discord_talk
from tests.patience import patience
from tests.peers.discord.server import FakeDiscord
from tests.peers.discord.world import ANN, APPLICATION, BOB, DM, GENERAL, HALL, ME, ROBOT, THREAD
from tests.talks import asked, model

STORY = "Once upon a time there was a lamp that was never afraid of the dark."


@pytest.fixture
def server() -> Iterator[FakeDiscord]:
    with FakeDiscord() as server:
        yield server


def echo(request: ModelRequest) -> str:
    return f"Re: {asked(request)}"


@pytest.mark.rule("CH-20", "CH-183", "CH-187")
async def test_a_question_is_answered_where_it_was_asked(tmp_path: Path, server: FakeDiscord) -> None:
    async with discord_talk(tmp_path, model(echo), server) as chat:
        private = chat.says("good morning")
        await chat.shows(["Re: good morning"])
        in_thread = chat.says(f"<@{ME}> and here?", channel=THREAD)
        await chat.until(lambda: chat.texts(THREAD))
        assert chat.texts(HALL) == []
    (answer,), (there,) = ([each for each in server.world.messages[channel] if each["author"]["id"] == ME] for channel in (DM, THREAD))
    assert answer["message_reference"]["message_id"] == private["id"]
    assert there["content"].endswith("and here?")
    assert there["message_reference"]["message_id"] == in_thread["id"]


@pytest.mark.case("DC-08")
@pytest.mark.rule("CH-188", "CH-189", "CH-72")
async def test_slash_commands_are_answered_by_edit_also_while_a_turn_runs(tmp_path: Path, server: FakeDiscord) -> None:
    go = asyncio.Event()
    async with discord_talk(tmp_path, model(lambda _: [Say("Once "), Until(go), Say("more")]), server) as chat:
        chat.says("tell me a story")
        await chat.until(lambda: chat.requests)
        began = time.monotonic()
        told = server.calls_command(DM, "help")
        interaction = server.world.interactions[told["token"]]
        await chat.until(lambda: interaction["message"])
        assert time.monotonic() - began < patience(1.5)
        go.set()
        await chat.until(lambda: "Once more" in chat.texts())
        unknown = server.calls_command(DM, "hello-there")
        await chat.until(lambda: server.world.interactions[unknown["token"]]["message"])
    assert "/status" in server.world.found(DM, interaction["message"])["content"]
    assert len(chat.requests) == 1


@pytest.mark.rule("CH-188")
async def test_a_command_above_the_role_is_told_so_by_edit(tmp_path: Path, server: FakeDiscord) -> None:
    async with discord_talk(tmp_path, model(echo), server) as chat:
        told = server.calls_command(DM, "memory", text="rebuild-index")
        await chat.until(lambda: server.world.interactions[told["token"]]["message"])
        assert chat.requests == []


@pytest.mark.rule("CH-119")
async def test_why_tells_of_what_the_person_wrote_though_discord_repeats_our_answer(tmp_path: Path, server: FakeDiscord) -> None:
    async with discord_talk(tmp_path, model(echo), server) as chat:
        chat.says("good morning")
        await chat.shows(["Re: good morning"])
        chat.says("/why")
        await chat.until(lambda: len(chat.texts()) == 2)
        assert "self" not in chat.texts()[-1]
        assert say("en", "why_is_sent") in chat.texts()[-1]


@pytest.mark.rule("CH-95", "CH-96")
async def test_the_answer_grows_in_one_message(tmp_path: Path, server: FakeDiscord) -> None:
    begun, grown, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    pieces = [Until(begun), Say(STORY[:30]), Until(grown), Say(STORY[30:50]), Until(ended), Say(STORY[50:])]
    async with discord_talk(tmp_path, model(lambda _: pieces), server) as chat:
        chat.says("a story, please")
        await chat.until(lambda: server.count("typing"))
        for so_far, go_on in (("", begun), (STORY[:30], grown), (STORY[:50], ended)):
            await chat.until(lambda so_far=so_far: "".join(chat.texts()).strip() == so_far.strip())
            go_on.set()
        await chat.shows([STORY])
        assert server.count("send") == 1
        assert server.count("edit") >= 2


@pytest.mark.case("DC-11", "DC-13")
@pytest.mark.rule("CH-116", "CH-120", "CH-29")
async def test_in_a_channel_it_answers_people_that_mention_it_and_no_bot(tmp_path: Path, server: FakeDiscord) -> None:
    hook = {"webhook_id": "1100000000000000040", "author": {"id": "1100000000000000040", "username": "hook", "bot": True}}
    async with discord_talk(tmp_path, model(echo), server, rules=Rules(groups=frozenset({GENERAL}), bots=frozenset({hook["author"]["id"]}))) as chat:
        chat.says("nobody in particular", channel=GENERAL)
        chat.says(f"<@{ME}> I am a robot", channel=GENERAL, sender=ROBOT)
        chat.says(f"<@{ME}> hello <@{ME}> world", channel=GENERAL)
        await chat.until(lambda: chat.texts(GENERAL))
        (said,) = chat.texts(GENERAL)
        assert said.split()[-2:] == ["hello", "world"]
        server.says(GENERAL, said, **hook)  # a bridge that repeats us
        await asyncio.sleep(0.4)
        assert chat.texts(GENERAL) == [said]
        server.says(GENERAL, f"<@{ME}> from outside", **hook)
        await chat.until(lambda: len(chat.texts(GENERAL)) == 2)


@pytest.mark.case("DC-12")
@pytest.mark.rule("CH-139")
async def test_a_model_that_calls_everyone_pings_nobody(tmp_path: Path, server: FakeDiscord) -> None:
    async with discord_talk(tmp_path, model(lambda _: "@everyone deploy is done"), server) as chat:
        chat.says(f"<@{ME}> announce it", channel=GENERAL)
        await chat.shows(["@everyone deploy is done"], at=GENERAL)
    (shown,) = [each for each in server.world.messages[GENERAL] if each["author"]["id"] == ME]
    assert shown["allowed_mentions"]["parse"] == []


@pytest.mark.case("DC-03", "DC-05")
@pytest.mark.rule("CH-182", "CH-7")
async def test_forwarded_words_and_every_file_reach_the_model(tmp_path: Path, server: FakeDiscord) -> None:
    files = [server.world.file("a.png", b"\x89PNG\r\n\x1a\na", "image/png"), server.world.file("notes.txt", b"buy oolong", "text/plain")]
    async with discord_talk(tmp_path, model(echo), server) as chat:
        chat.says("", message_reference={"type": 1, "message_id": "7"}, message_snapshots=[{"message": {"content": "hello", "attachments": []}}])
        await chat.until(lambda: len(chat.requests) == 1)
        assert "hello" in chat.questions[0]
        await chat.until(chat.texts)
        chat.says("check", attachments=files)
        await chat.until(lambda: len(chat.requests) == 2)
        heard = str(chat.requests[1].messages[-1])
        assert all(part in heard for part in ("check", "image/png", "buy oolong")), heard


@pytest.mark.case("DC-15")
@pytest.mark.rule("CH-190", "CH-22", "CH-100")
async def test_what_was_asked_while_the_gateway_was_down_is_answered_once(tmp_path: Path, server: FakeDiscord) -> None:
    async with discord_talk(tmp_path, model(echo), server, hold_s=0.0) as chat:
        chat.says("before")
        await chat.shows(["Re: before"])
    assert DM in stored_cursors(tmp_path, "discord")["seen"]
    server.says(DM, "while it was down")
    async with discord_talk(tmp_path, model(echo), server, hold_s=0.0) as chat:
        await chat.shows(["Re: before", "Re: while it was down"])


@pytest.mark.case("DC-15")
@pytest.mark.rule("CH-190", "CH-211")
async def test_a_lost_session_loses_no_question(tmp_path: Path, server: FakeDiscord) -> None:
    server.resumes = False
    async with discord_talk(tmp_path, model(echo), server, hold_s=0.0) as chat:
        chat.says("before")
        await chat.shows(["Re: before"])
        server.drop()
        server.forgets_sessions()
        chat.says("in the gap")
        await chat.shows(["Re: before", "Re: in the gap"])


@pytest.mark.rule("CH-185", "CH-34", "CH-80")
async def test_an_answer_whose_confirmation_is_lost_is_shown_once(tmp_path: Path, server: FakeDiscord) -> None:
    async with discord_talk(tmp_path, model(echo), server) as chat:
        server.plan({"cut": True})
        chat.says("hello")
        await chat.shows(["Re: hello"])
        await chat.until(lambda: server.count("send") == 2)
        await chat.shows(["Re: hello"])


class StuckDatabase(Database):
    """Its writes stand still while `free` is not set, each in the thread that makes it."""

    free = threading.Event()

    def write_now(self, work: Callable[[sa.Connection], Any]) -> Any:
        self.free.wait(30)
        return super().write_now(work)


@pytest.mark.case("DC-07")
@pytest.mark.rule("CH-216", "CH-210")
async def test_a_tool_that_waits_for_the_disk_keeps_no_heartbeat(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Twenty heartbeats pass while it lasts, however long that is on a busy machine."""
    free = StuckDatabase.free
    free.set()

    def remembers(request: ModelRequest) -> Reply:
        if request.messages[-1].role is Role.TOOL:
            return "Noted."
        free.clear()
        return Call("memory_save", {"content": "They like tea"})

    def stuck(config: Config) -> Database:
        return StuckDatabase(sqlite_url(config.data_dir / "yumegate.db"))

    with FakeDiscord(heartbeat_s=0.1) as server:
        async with discord_talk(tmp_path, model(remembers), server, database=stuck) as chat:
            chat.says("remember that I like tea")
            await chat.until(lambda: not free.is_set())
            before = server.heartbeats
            await chat.until(lambda: server.heartbeats >= before + 20)
            assert chat.texts() == [], "the tool still waits"
            free.set()
            await chat.until(lambda: "Noted." in chat.texts())
    assert not [record for record in caplog.records if "blocked" in record.getMessage()]


@pytest.mark.rule("CH-13", "CH-1")
async def test_people_are_apart_in_private_and_together_in_a_channel(tmp_path: Path, server: FakeDiscord) -> None:
    server.world.channel("1100000000000000131", 1)
    async with discord_talk(tmp_path, model(echo), server, hold_s=0.0) as chat:
        chat.says("my secret is tea")
        await chat.until(chat.texts)
        chat.says("what is the secret?", channel="1100000000000000131", sender=BOB)
        await chat.until(lambda: chat.texts("1100000000000000131"))
        assert "tea" not in str(chat.requests[-1].messages)
        for number, (sender, text) in enumerate(((ANN, "I like rain"), (BOB, "what does Ann like?"))):
            chat.says(f"<@{ME}> {text}", channel=GENERAL, sender=sender)
            await chat.until(lambda number=number: len(chat.texts(GENERAL)) > number)
        heard = str(chat.requests[-1].messages)
        assert "rain" in heard
        assert "Ann" in heard
    assert APPLICATION not in heard

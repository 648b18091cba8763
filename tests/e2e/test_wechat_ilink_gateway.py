"""A whole gateway on personal WeChat, as people see it: every message goes over the wire of the fake iLink, and so does every answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import ScriptedModel
from channels.port import LoginState
from channels.wechat.ilink.adapter import IlinkChannel
from channels.wechat.ilink.login import IlinkLogin
from channels.wechat.ilink.settings import IlinkSettings
from gateway.access import Rules
from gateway.arrivals import inbox
from gateway.attachments import Attachments
from gateway.channel_set import Plan
from gateway.config import Config
from gateway.delivery.answer_files import OutgoingFiles
from gateway.language import say
from gateway.store import open_database
from gateway.vault import StoreVault
from memory.database import Database
from tests.e2e.test_hostile_media import FILES
from tests.harness import Running, running, utc_now
from tests.patience import patience
from tests.peers.wechat.ilink_desk import ACCOUNT, ANN, BOB
from tests.peers.wechat.ilink_server import FakeIlink
from tests.peers.wechat.ilink_world import World
from tests.talks import asked, model

EVERYBODY = Rules(allow=frozenset({"*"}))


@dataclass
class Talk:
    server: FakeIlink
    gateway: Running
    model: ScriptedModel
    store: Database

    def texts(self, person: str = ANN) -> list[str]:
        return self.server.world.texts(person)

    async def until(self, look: Callable[[], Any], *, within_s: float = 10.0) -> None:
        async with asyncio.timeout(patience(within_s)):
            while not look():  # noqa: ASYNC110  # what people see has no event to wait for
                await asyncio.sleep(0.01)

    async def state(self) -> tuple[str, str]:
        """State and reason of the account, as the health page has them."""
        async with self.gateway.http.get(f"{self.gateway.url}/readyz") as answer:
            told = await answer.json()
        found = next(channel for channel in told["channels"] if channel["channel"].startswith("wechat_ilink"))
        return found["state"], found.get("reason", "")


def signs(server: FakeIlink, person: str) -> list[bool]:
    """What a person was shown of typing, as it changed: on, off."""
    return [on for who, on in server.world.typing if who == person]


@pytest.fixture
def server() -> Iterator[FakeIlink]:
    with FakeIlink(World(hold_s=0.1, rate_limited=False)) as server:
        server.world.qr.extend([{"status": "scaned"}, {"status": "confirmed"}])
        yield server
        assert server.world.violations == []


@asynccontextmanager
async def wechat_talk(folder: Path, script: ScriptedModel, server: FakeIlink, *, documents: bool = True) -> AsyncGenerator[Talk]:
    """The account as the gateway makes it from its configuration, only quicker: what it keeps is in the gateway's own store. `documents`: whether
    long answers go out as files."""
    settings = IlinkSettings(base_url=server.url, cdn_url=server.cdn_url)
    stores: list[Database] = []

    def opened(config: Config) -> Database:
        stores.append(open_database(config))
        return stores[-1]

    async def load_cursor() -> str:
        return await stores[-1].read(
            lambda connection: inbox.load_cursor(connection, channel=ACCOUNT.channel, account=ACCOUNT.name, name="updates")
        )

    def build() -> IlinkChannel:
        vault = StoreVault(stores[-1], ACCOUNT, clock=utc_now)
        read_file = OutgoingFiles(stores[-1], Attachments(folder, stores[-1])).read
        channel = IlinkChannel(
            settings, vault=vault, account=ACCOUNT, load_cursor=load_cursor, read_file=read_file, pause_s=0.05, again_s=0.05, pace_s=0
        )
        channel.capabilities = can
        return channel

    can = replace(settings.capabilities, documents=documents)
    plan = Plan(account=ACCOUNT, settings=settings, capabilities=can, build=build, rules=lambda: EVERYBODY)
    async with running(folder, script, channels=(plan,), database=opened) as gateway:
        yield Talk(server, gateway, script, stores[-1])


async def log_in(folder: Path, server: FakeIlink) -> None:
    """Run it once without a login, and log in meanwhile: the next start has it."""
    async with wechat_talk(folder, model(lambda _: "never asked"), server) as chat:
        state, reason = await chat.state()
        assert (state, reason) == ("auth_required", say("en", "channel_scan", app="WeChat"))
        assert server.world.calls == []
        login = IlinkLogin(
            IlinkSettings(base_url=server.url), account=ACCOUNT, vault=StoreVault(chat.store, ACCOUNT, clock=utc_now), pause_s=0.01
        )
        assert (await login.run()).state is LoginState.DONE


def echo(request: ModelRequest) -> str:
    return f"Re: {asked(request)}"


@pytest.mark.rule("WX-21", "CH-20", "CH-212", "WX-46")
@pytest.mark.case("WE-22")
async def test_nobody_is_asked_before_a_login_and_everybody_is_answered_after_it(tmp_path: Path, server: FakeIlink) -> None:
    await log_in(tmp_path, server)
    async with wechat_talk(tmp_path, model(echo), server) as chat:
        server.says(ANN, "good morning")
        server.says(BOB, "早上好")
        await chat.until(lambda: chat.texts(ANN) and chat.texts(BOB))
        await asyncio.sleep(0.2)  # an answer may be quicker than its sign
        for person in (ANN, BOB):
            await chat.until(lambda person=person: not any(signs(server, person)[-1:]))  # a sign that was shown is taken back
        assert await chat.state() == ("ready", "")
    assert (chat.texts(ANN), chat.texts(BOB)) == (["Re: good morning"], ["Re: 早上好"])
    for person in (ANN, BOB):
        assert all(signs(server, person)[:-1])  # shown again while it takes long, taken back once
    assert server.world.notices == ["start", "stop"]


@pytest.mark.rule("CH-73", "CH-8")
async def test_no_message_is_spent_on_signs(tmp_path: Path, server: FakeIlink) -> None:
    await log_in(tmp_path, server)
    async with wechat_talk(tmp_path, model(echo), server) as chat:
        for number in range(4):
            server.says(ANN, f"{number}", create_time_ms=0)
        await chat.until(lambda: "3" in "".join(chat.texts()))
        assert all(text.startswith("Re: ") for text in chat.texts())


@pytest.mark.rule("WX-41", "WX-44", "CH-80")
@pytest.mark.case("WE-31")
async def test_a_long_answer_ends_with_a_word_and_goes_on_when_the_person_writes(tmp_path: Path, server: FakeIlink) -> None:
    story = "".join(f"line {number:05d}\n" for number in range(1750))
    await log_in(tmp_path, server)
    script = model(lambda request: story if "story" in asked(request) else echo(request))
    async with wechat_talk(tmp_path, script, server, documents=False) as chat:
        server.says(ANN, "tell me a story")
        await chat.until(lambda: len(chat.texts()) == 8)
        await asyncio.sleep(0.3)
        assert len(chat.texts()) == 8
        assert chat.texts()[-1].endswith(say("en", "more_follows"))
        server.says(ANN, "go on")
        await chat.until(lambda: chat.texts()[-1] == "Re: go on")
    rest = chat.texts()[8:-1]
    assert rest[0].startswith(say("en", "earlier"))
    words = "\n".join(chat.texts()[:-1])
    assert [word for word in words.split() if word.isdigit()] == [f"{number:05d}" for number in range(1750)]


@pytest.mark.rule("CH-143", "WX-41")
async def test_an_answer_of_more_than_eight_messages_is_its_beginning_and_a_file(tmp_path: Path, server: FakeIlink) -> None:
    story = "".join(f"第{number:05d}行\n" for number in range(2500)).strip()
    await log_in(tmp_path, server)
    async with wechat_talk(tmp_path, model(lambda _: story), server) as chat:
        server.says(ANN, "讲个故事")
        await chat.until(lambda: len(server.world.shown) == 3)
    first, caption, file = server.world.shown
    assert story.startswith(first.text[:100]) and caption.text == say("zh", "answer_in_file")
    assert (file.file, file.name) == (story.encode(), "回答.md")


@pytest.mark.rule("WX-31", "WX-40")
@pytest.mark.case("WE-30")
async def test_after_a_restart_what_waits_goes_out_with_the_token_that_was_kept(tmp_path: Path, server: FakeIlink) -> None:
    await log_in(tmp_path, server)
    async with wechat_talk(tmp_path, model(echo), server) as chat:
        server.world.fail("sendmessage", *[{"retry_after": 2}] * 3)
        server.says(ANN, "hello")
        await chat.until(lambda: server.world.called("sendmessage"))
    assert chat.texts() == []
    server.world.faults["sendmessage"].clear()
    async with wechat_talk(tmp_path, model(echo), server) as chat:
        await chat.until(lambda: chat.texts() == ["Re: hello"])


@pytest.mark.rule("CH-2", "CH-26")
async def test_a_message_whose_deletion_came_first_is_neither_answered_nor_remembered(tmp_path: Path, server: FakeIlink) -> None:
    await log_in(tmp_path, server)
    async with wechat_talk(tmp_path, model(echo), server) as chat:
        gone = server.says(ANN, "my secret is 4711", delete_time_ms=1_700_000_000_000)
        server.says(ANN, "hello")
        await chat.until(chat.texts)
    async with wechat_talk(tmp_path, model(echo), server) as chat:
        server.put(gone | {"delete_time_ms": 0, "seq": 900})
        server.says(ANN, "still there?")
        await chat.until(lambda: len(chat.texts()) == 2)
    assert chat.texts() == ["Re: hello", "Re: still there?"]
    assert "4711" not in str(chat.model.requests)


@pytest.mark.rule("CH-7", "CH-64")
async def test_a_file_is_what_its_bytes_are_and_a_giant_is_not_asked_for(tmp_path: Path, server: FakeIlink) -> None:
    await log_in(tmp_path, server)
    async with wechat_talk(tmp_path, model(lambda _: "Thanks."), server) as chat:
        for count, (name, file) in enumerate(FILES.items(), start=1):
            item = server.world.image(file.data) if file.name.endswith(".png") else server.world.file(file.name, file.data)
            if file.announced:
                item["file_item"]["len"] = str(file.announced)
            server.says(ANN, "look", items=[item])
            await chat.until(lambda count=count: len(chat.texts()) == count)
            request = [each for each in chat.model.requests if each.purpose == "reply"][-1]
            wanted = file.seen if file.name.endswith(".txt") else file.seen.removeprefix(file.name)
            assert wanted in asked(request), f"{name}: {asked(request)}"
            assert not any(message.images for message in request.messages), name
    assert chat.texts() == ["Thanks."] * len(FILES)

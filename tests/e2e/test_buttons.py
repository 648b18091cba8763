"""Buttons on the chat apps themselves, over the wire of their fakes: asked, pressed, refused, taken away (AT-31, RS-42, RS-85, CH-159, CH-188)."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import ScriptedModel
from gateway.channel_set import Plan
from gateway.language import say
from tests.e2e import discord_talk, telegram_talk
from tests.e2e.telegram_talk import ADA, BEN, GROUP
from tests.harness import Running, eventually, running
from tests.peers.discord import world as discord
from tests.peers.discord.server import FakeDiscord
from tests.peers.telegram.server import FakeBotApi
from tests.talks import asked

DELETE, NO = say("en", "button_delete"), say("en", "button_no")
OVER, NOT_YOURS, LEFT = say("en", "button_over"), say("en", "button_not_yours"), say("en", "button_left")
CONFIG = {"model": {"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "fake"}}  # the demo one writes no summaries
ENTRY = '{"title": "Tea", "text": "They drink tea."}'


def answer(request: ModelRequest) -> str:
    return f"Re: {asked(request)}" if request.purpose == "reply" else ENTRY


class Stage(Protocol):
    """An app with a private chat of Ann's, and a group that she manages and Ben is in."""

    def says(self, text: str, *, group: bool = False, ben: bool = False) -> None: ...

    def texts(self, *, group: bool = False) -> list[str]: ...

    def buttons(self, *, group: bool = False) -> list[list[str]]: ...

    def question(self, label: str, *, group: bool = False) -> dict[str, Any]:
        """The newest message with such a button, as it is now: old clients show it for ever."""
        ...

    def press(self, question: dict[str, Any], label: str, *, ben: bool = False) -> None: ...

    def asides(self) -> list[str]:
        """What those who pressed were told alone."""
        ...

    def plan(self, folder: Path) -> Plan: ...

    def is_heard(self) -> bool:
        """Whether somebody listens to what is said here."""
        ...

    def takes_no_buttons(self) -> None:
        """The next message with buttons is refused for them."""
        ...

    def refuses_once(self) -> None:
        """The next thing that we show is refused for a while."""
        ...


class OnTelegram:
    def __init__(self, server: FakeBotApi) -> None:
        self.server, self.world = server, server.world
        for chat_id in (ADA, BEN):
            self.world.chat(chat_id)
        self.world.chat(GROUP).admins.add(ADA)

    def says(self, text: str, *, group: bool = False, ben: bool = False) -> None:
        self.server.says(GROUP if group else ADA, f"@{self.world.me['username']} {text}" if group else text, sender=self._who(ben))

    def texts(self, *, group: bool = False) -> list[str]:
        return self.world.texts(GROUP if group else ADA)

    def buttons(self, *, group: bool = False) -> list[list[str]]:
        return self.world.buttons(GROUP if group else ADA)

    def question(self, label: str, *, group: bool = False) -> dict[str, Any]:
        return dict([each for each in self.world.ours(GROUP if group else ADA) if self.world.has(each, label)][-1])

    def press(self, question: dict[str, Any], label: str, *, ben: bool = False) -> None:
        self.server.put(callback_query=self.world.press(question, label, self._who(ben)))

    def asides(self) -> list[str]:
        return [words for words in self.world.asides.values() if words]

    def plan(self, folder: Path) -> Plan:
        return telegram_talk.plan(folder, self.server.url)

    def is_heard(self) -> bool:
        return bool(self.world.called("getUpdates"))

    def takes_no_buttons(self) -> None:
        self.world.fail_next({"status": 400, "description": "Bad Request: BUTTON_DATA_INVALID", "if": "reply_markup"})

    def refuses_once(self) -> None:
        self.world.fail_next({"status": 429, "description": "Too Many Requests: retry after 1", "parameters": {"retry_after": 1}})

    def _who(self, ben: bool) -> dict[str, Any]:
        return {"id": BEN if ben else ADA, "is_bot": False, "first_name": "Ben" if ben else "Ada"}


class OnDiscord:
    def __init__(self, server: FakeDiscord) -> None:
        self.server, self.world = server, server.world
        self.world.managers[discord.ANN] = discord.MANAGE_GUILD

    def says(self, text: str, *, group: bool = False, ben: bool = False) -> None:
        self.server.says(self._where(group), f"<@{discord.ME}> {text}" if group else text, user_id=self._who(ben))

    def texts(self, *, group: bool = False) -> list[str]:
        return self.server.texts(self._where(group))

    def buttons(self, *, group: bool = False) -> list[list[str]]:
        return self.world.buttons(self._where(group))

    def question(self, label: str, *, group: bool = False) -> dict[str, Any]:
        shown = self.world.messages[self._where(group)]
        return dict([each for each in shown if any(button["label"] == label for row in each["components"] for button in row["components"])][-1])

    def press(self, question: dict[str, Any], label: str, *, ben: bool = False) -> None:
        self.server.presses(question, label, user_id=self._who(ben))

    def asides(self) -> list[str]:
        return [words for _, words in self.world.asides]

    def plan(self, folder: Path) -> Plan:
        return discord_talk.plan(folder, self.server)

    def is_heard(self) -> bool:
        return bool(self.server.identified and self.server.connections)

    def takes_no_buttons(self) -> None:
        self.server.plan({"status": 400, "code": 50035, "message": "Invalid Form Body"})

    def refuses_once(self) -> None:
        self.server.plan({"retry_after": 1.0})

    def _where(self, group: bool) -> str:
        return discord.GENERAL if group else discord.DM

    def _who(self, ben: bool) -> str:
        return discord.BOB if ben else discord.ANN


@dataclass
class Time:
    later: timedelta = field(default_factory=timedelta)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.later


@pytest.fixture(params=["telegram", "discord"])
async def stage(request: pytest.FixtureRequest) -> AsyncGenerator[Stage]:
    if request.param == "telegram":
        with FakeBotApi() as server:
            yield OnTelegram(server)
    else:
        with FakeDiscord() as server:
            yield OnDiscord(server)


@asynccontextmanager
async def talk(folder: Path, stage: Stage, clock: Time | None = None) -> AsyncGenerator[Running]:
    async with running(folder, ScriptedModel(answer), config=CONFIG, channels=(stage.plan(folder),), clock=clock or Time()) as gateway:
        await until(stage.is_heard)
        yield gateway


async def until(look: Callable[[], Any]) -> None:
    async def found() -> Any:
        return look()

    await eventually(found)


def memories(folder: Path) -> int:
    with closing(sqlite3.connect(next(folder.rglob("yumegate.db")))) as connection:
        return connection.execute("SELECT count(*) FROM memories").fetchone()[0]


async def keeps_one(folder: Path, stage: Stage, *, group: bool = False) -> int:
    """A memory is kept: its number."""
    stage.says("/remember We meet on Mondays", group=group)
    await until(lambda: memories(folder) == 1 and stage.texts(group=group))
    with closing(sqlite3.connect(next(folder.rglob("yumegate.db")))) as connection:
        return connection.execute("SELECT id FROM memories").fetchone()[0]


async def asks(folder: Path, stage: Stage, *, group: bool = False) -> dict[str, Any]:
    """A memory is kept, and shall be deleted: the question."""
    number = await keeps_one(folder, stage, group=group)
    stage.says(f"/memory delete {number}", group=group)
    await until(lambda: stage.buttons(group=group))
    assert stage.buttons(group=group) == [[DELETE, NO]]
    assert f"/memory delete {number} yes" in stage.texts(group=group)[-1], "what to type stands there too"
    return stage.question(DELETE, group=group)


@pytest.mark.rule("RS-42", "CH-159", "CH-188")
@pytest.mark.case("AT-31")
async def test_a_press_deletes_once_and_the_buttons_go(tmp_path: Path, stage: Stage) -> None:
    async with talk(tmp_path, stage):
        question = await asks(tmp_path, stage)
        stage.press(question, DELETE)
        stage.press(question, DELETE)
        await until(lambda: stage.asides() == [OVER] and not stage.buttons())
        await until(lambda: "Deleted" in stage.texts()[-1])
        assert memories(tmp_path) == 0
        stage.says("/memory list")  # whatever a press still did would stand before the answer to this
        before = len(stage.texts())
        await until(lambda: len(stage.texts()) > before)
        assert sum("Deleted" in text for text in stage.texts()) == 1


@pytest.mark.rule("RS-42", "CH-118")
@pytest.mark.case("AT-31")
async def test_in_a_group_somebody_else_presses_in_vain_and_the_asker_still_can(tmp_path: Path, stage: Stage) -> None:
    async with talk(tmp_path, stage):
        question = await asks(tmp_path, stage, group=True)
        said = len(stage.texts(group=True))
        stage.press(question, DELETE, ben=True)
        stage.press(question, NO, ben=True)
        await until(lambda: stage.asides() == [NOT_YOURS, NOT_YOURS])
        assert (memories(tmp_path), stage.buttons(group=True), len(stage.texts(group=True))) == (1, [[DELETE, NO]], said)
        stage.press(question, DELETE)
        await until(lambda: memories(tmp_path) == 0 and not stage.buttons(group=True))


@pytest.mark.rule("RS-42", "CH-159")
@pytest.mark.case("AT-31")
async def test_an_old_button_deletes_nothing_and_goes(tmp_path: Path, stage: Stage) -> None:
    clock = Time()
    async with talk(tmp_path, stage, clock):
        question = await asks(tmp_path, stage)
        clock.later = timedelta(minutes=5)
        stage.press(question, DELETE)
        await until(lambda: stage.asides() == [OVER] and not stage.buttons())
        assert memories(tmp_path) == 1


@pytest.mark.rule("RS-42")
async def test_a_no_changes_nothing_and_closes_the_question(tmp_path: Path, stage: Stage) -> None:
    async with talk(tmp_path, stage):
        question = await asks(tmp_path, stage)
        stage.press(question, NO)
        await until(lambda: stage.asides() == [LEFT] and not stage.buttons())
        stage.press(question, DELETE)
        await until(lambda: stage.asides() == [LEFT, OVER])
        assert memories(tmp_path) == 1


@pytest.mark.rule("CH-80", "CH-159")
async def test_a_question_goes_out_after_a_restart_with_its_buttons_and_they_work(tmp_path: Path, stage: Stage) -> None:
    async with talk(tmp_path, stage):
        number = await keeps_one(tmp_path, stage)
        stage.refuses_once()
        stage.says(f"/memory delete {number}")
        await until(lambda: stored_questions(tmp_path))
    async with talk(tmp_path, stage):
        await until(lambda: stage.buttons() == [[DELETE, NO]])
        stage.press(stage.question(DELETE), DELETE)
        await until(lambda: memories(tmp_path) == 0 and not stage.buttons())


def stored_questions(folder: Path) -> int:
    with closing(sqlite3.connect(next(folder.rglob("yumegate.db")))) as connection:
        return connection.execute("SELECT count(*) FROM outbox WHERE part LIKE '%\"label\"%'").fetchone()[0]


@pytest.mark.rule("CH-159", "CH-39")
async def test_where_buttons_are_refused_the_words_arrive(tmp_path: Path, stage: Stage) -> None:
    async with talk(tmp_path, stage):
        number = await keeps_one(tmp_path, stage)
        stage.takes_no_buttons()
        stage.says(f"/memory delete {number}")
        await until(lambda: f"/memory delete {number} yes" in stage.texts()[-1])
        assert stage.buttons() == []


@pytest.mark.rule("CH-188", "CH-159")
async def test_a_slash_command_that_asks_has_buttons_in_its_answer(tmp_path: Path) -> None:
    with FakeDiscord() as server:
        stage = OnDiscord(server)
        async with talk(tmp_path, stage):
            number = await keeps_one(tmp_path, stage)
            server.calls_command(discord.DM, "memory", text=f"delete {number}")
            await until(stage.buttons)
            assert server.count("answer") == 1
            stage.press(stage.question(DELETE), DELETE)
            await until(lambda: memories(tmp_path) == 0 and not stage.buttons())


@pytest.mark.rule("RS-85")
async def test_an_entry_that_waits_is_approved_by_a_button(tmp_path: Path, stage: Stage) -> None:
    async with talk(tmp_path, stage):
        for number in range(5):
            stage.says(f"Message {number}")
            await until(lambda number=number: any(f"Message {number}" in text for text in stage.texts()))
        stage.says("/summary entries review on")
        await until(lambda: "wait for your yes" in stage.texts()[-1])
        stage.says("/summary entries make 8")
        await until(stage.buttons)
        [[approve, _]] = stage.buttons()
        stage.press(stage.question(approve), approve)
        await until(lambda: "counts from now on" in stage.texts()[-1] and not stage.buttons())
        with closing(sqlite3.connect(next(tmp_path.rglob("yumegate.db")))) as connection:
            assert connection.execute("SELECT count(*) FROM summaries WHERE kind = 'entry' AND state = 'active'").fetchone()[0] == 1

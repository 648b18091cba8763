"""What one faulty part must not do: end the whole gateway, lose what was acknowledged, or hold up the others (RL-1, RL-4)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa

from agent.llm.scripted import Say, ScriptedModel, Until
from channels.errors import ConnectionLost
from channels.loopback import CAPABILITIES, LoopbackChannel, LoopbackPlatform
from channels.message import Account, Address, EventKind, InboundEvent
from channels.port import Cursor, Deliver, OutboundPart, SendOutcome
from gateway.access import Rules
from gateway.channel_set import Plan
from gateway.config import Config
from gateway.language import say
from memory.database import Database, sqlite_url
from memory.errors import StoreUnavailable
from tests.harness import eventually, loopback_plan, running

T = TypeVar("T")
REPLY = "A long enough answer, so that a preview of it appears before its end."


class Fragile(Database):
    """A database that is slow, or fails, when the test says so. Failing or waiting, it has not committed."""

    def __init__(self, config: Config) -> None:
        super().__init__(sqlite_url(config.data_dir / "yumegate.db"))
        self.open = threading.Event()
        self.open.set()
        self.waiting = threading.Event()
        self.fault: Callable[[sa.Connection], Exception | None] = lambda _connection: None

    def write_now(self, work: Callable[[sa.Connection], T]) -> T:
        def watched(connection: sa.Connection) -> T:
            result = work(connection)
            if not self.open.is_set():
                self.waiting.set()
                self.open.wait(10)
            if (fault := self.fault(connection)) is not None:
                raise fault
            return result

        return super().write_now(watched)


def at(query: str, *faults: Exception) -> Callable[[sa.Connection], Exception | None]:
    """These faults, one after the other, for transactions in which `query` counts something."""
    left = iter(faults)
    return lambda connection: next(left, None) if connection.exec_driver_sql(f"SELECT count(*) FROM {query}").scalar() else None


NOTICE = "outbox WHERE kind = 'notice'"


class Databases:
    """What the harness is handed; `last` is the one that was opened."""

    last: Fragile

    def __call__(self, config: Config) -> Database:
        self.last = Fragile(config)
        return self.last


@pytest.fixture
def store() -> Databases:
    return Databases()


@pytest.fixture
def platform() -> LoopbackPlatform:
    return LoopbackPlatform()


async def shows(platform: LoopbackPlatform, *texts: str) -> None:
    async def look() -> bool:
        return platform.texts() == list(texts)

    await eventually(look)


def plan(make: Callable[[], LoopbackChannel]) -> Plan:
    everybody = Rules(allow=frozenset({"*"}), groups=frozenset({"*"}))
    return Plan(account=Account(channel="loopback"), settings=1, capabilities=CAPABILITIES, build=make, rules=lambda: everybody)


# -- intake ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("CH-10", "CH-211")
async def test_a_message_whose_channel_was_rebuilt_while_it_was_stored_is_answered_all_the_same(
    tmp_path: Path, store: Databases, platform: LoopbackPlatform
) -> None:
    delivers: list[Deliver] = []

    class Idle(LoopbackChannel):
        async def run(self, deliver: Deliver) -> None:
            delivers.append(deliver)
            await asyncio.Event().wait()

    async with running(tmp_path, ScriptedModel(lambda _: "fine"), channels=(plan(lambda: Idle(platform)),), database=store):
        event = InboundEvent(
            account=Account(channel="loopback"), kind=EventKind.MESSAGE, platform_event_id="1", chat_id="c", sender_id="u", mentioned=True, text="hi"
        )
        store.last.open.clear()
        delivering = asyncio.ensure_future(delivers[0]([event], Cursor(name="updates", value="1")))
        await asyncio.to_thread(store.last.waiting.wait, 5)
        delivering.cancel()
        await asyncio.wait([delivering])
        store.last.open.set()
        await shows(platform, "fine")
        (known,) = await delivers[0]([event], Cursor(name="updates", value="1"))
        assert known.arrival.value == "duplicate"


# -- turns -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("CH-64", "WO-10")
async def test_a_chat_that_is_deleted_while_it_is_answered_leaves_no_fault_and_nothing_running(
    tmp_path: Path, store: Databases, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, ScriptedModel([[Say("Once "), Until(asyncio.Event())]]), database=store) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "hello")
        await gateway.events(chat, until="delta")
        async with gateway.http.delete(f"{gateway.url}/api/chats/{chat}") as answer:
            assert answer.status == 204

        async def ended() -> list[Any]:
            return await store.last.read(lambda connection: connection.exec_driver_sql("SELECT state FROM inbox WHERE state != 'running'").all())

        await eventually(ended)
        assert await store.last.read(lambda connection: connection.exec_driver_sql("SELECT conversation_id, outcome FROM model_calls").all())
    assert "Traceback" not in caplog.text


# -- commands ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RL-4", "CH-72")
async def test_a_command_whose_answer_cannot_be_stored_now_is_answered_when_it_can(
    tmp_path: Path, store: Databases, platform: LoopbackPlatform
) -> None:
    async with running(tmp_path, ScriptedModel([]), channels=(loopback_plan(platform),), database=store):
        store.last.fault = at(NOTICE, StoreUnavailable("full"), StoreUnavailable("full"))
        platform.says("c", "/whoami")
        await shows_one(platform, "You are u1")


@pytest.mark.rule("RL-4")
async def test_a_command_that_cannot_be_finished_at_all_ends_neither_the_gateway_nor_the_next_one(
    tmp_path: Path, store: Databases, platform: LoopbackPlatform, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, ScriptedModel([]), channels=(loopback_plan(platform),), database=store):
        store.last.fault = at(NOTICE, ValueError("no such thing"))
        platform.says("c", "/whoami")

        async def failed() -> bool:
            return "cannot be stored" in caplog.text

        await eventually(failed)
        platform.says("c", "/version")
        await shows_one(platform, "Yumegate")


async def shows_one(platform: LoopbackPlatform, beginning: str) -> None:
    async def look() -> bool:
        return len(platform.shown) == 1 and platform.shown[0].text.startswith(beginning)

    await eventually(look)


# -- sending -----------------------------------------------------------------------------------------------------------


class Broken(LoopbackChannel):
    """An adapter with a bug in one of its methods."""

    def __init__(self, platform: LoopbackPlatform, *methods: str, error: Exception | None = None) -> None:
        super().__init__(platform)
        self._methods = methods
        self._error = error or KeyError("a bug of the adapter")
        self._failed = False
        self.begun, self.failed = asyncio.Event(), asyncio.Event()  # a preview was ordered; a method has failed

    def replies(self, _request: object) -> Sequence[Any]:
        """An answer that is previewed, grows, and ends when a method has failed."""
        if self._methods != ("typing",):  # a sign that may come before the model is asked
            self.begun.clear()
            self.failed.clear()
        return [Say(REPLY[:30]), Until(self.begun), Say(REPLY[30:50]), Until(self.failed), Say(REPLY[50:])]

    async def was_asked(self) -> bool:
        return self._failed

    def _fail(self, method: str) -> None:
        if method in self._methods:
            self._failed = True
            self.begun.set()
            self.failed.set()
            raise self._error

    async def send(self, part: OutboundPart) -> SendOutcome:
        self._fail("preview" if part.part_id.endswith(".preview") else "send")
        sent = await super().send(part)
        self.begun.set()
        return sent

    async def edit(self, address: Address, message_id: str, part: OutboundPart) -> SendOutcome:
        self._fail("edit" if part.part_id.endswith(".preview") else "last edit")
        return await super().edit(address, message_id, part)

    async def typing(self, address: Address, on: bool) -> None:
        self._fail("typing")
        await super().typing(address, on)

    async def find(self, part: OutboundPart, since: datetime) -> tuple[str, ...] | None:
        self._fail("find")
        return await super().find(part, since)


@pytest.mark.rule("CH-92", "CH-64")
@pytest.mark.parametrize("method", ["typing", "preview", "edit"])
async def test_an_adapter_that_fails_at_a_sign_still_brings_the_answer(tmp_path: Path, platform: LoopbackPlatform, method: str) -> None:
    """Nobody can tell what became of a preview that was on its way, so the answer says that it may be a second copy."""
    broken = Broken(platform, method)
    model = ScriptedModel(broken.replies)
    answer = f"{REPLY}\n{say('en', 'sent_again')}" if method == "preview" else REPLY
    async with running(tmp_path, model, channels=(plan(lambda: broken),)):
        platform.says("c", "hello")
        await shows(platform, answer)
        platform.says("c", "and again")
        await shows(platform, answer, answer)
    assert len(model.requests) == 2


@pytest.mark.rule("CH-92", "CH-97", "RL-4")
async def test_a_preview_that_cannot_be_noted_now_does_not_cost_the_answer(
    tmp_path: Path, store: Databases, platform: LoopbackPlatform
) -> None:
    go = asyncio.Event()
    model = ScriptedModel([[Say(REPLY[:30]), Until(go), Say(REPLY[30:])]])
    async with running(tmp_path, model, channels=(loopback_plan(platform),), database=store):
        store.last.fault = at("turns WHERE preview_ids IS NOT NULL", StoreUnavailable("full"))
        platform.says("c", "hello")
        await shows(platform, REPLY[:30].strip())
        go.set()
        await shows(platform, REPLY)
        assert platform.shown[0].edits > 0


@pytest.mark.rule("CH-80", "CH-81")
@pytest.mark.parametrize("error", [KeyError("a bug of the adapter"), ConnectionLost("not now"), TimeoutError()], ids=["bug", "lost", "time-out"])
async def test_a_look_up_that_fails_ends_neither_the_gateway_nor_the_other_chats(
    tmp_path: Path, platform: LoopbackPlatform, error: Exception
) -> None:
    broken = Broken(platform, "find", error=error)
    broken.capabilities = replace(CAPABILITIES, resend_key_s=None)
    async with running(tmp_path, ScriptedModel(lambda _: "fine"), channels=(plan(lambda: broken),)):
        platform.fail_next({"unknown": "after"})
        platform.says("c1", "hello")
        await eventually(broken.was_asked)
        platform.says("c2", "hello")
        await shows(platform, "fine", "fine")

"""What is said after a command comes after it, in one delivery, in several, and whatever else goes on."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from agent.llm.port import ModelRequest, Role
from agent.llm.scripted import Call, Reply, Until
from channels.loopback import CAPABILITIES, LoopbackPlatform
from channels.message import EventKind
from gateway.arrivals import command_order, inbox
from gateway.arrivals.command_order import CommandOrder, Stand, may_be_command, moved_on, ready
from gateway.commands import Answer, Asked, Commands
from memory.errors import StoreUnavailable
from tests.gateway.arrivals import event
from tests.harness import eventually, running
from tests.patience import patience
from tests.talks import Talk, asked, model, talk


def lined_up(order: CommandOrder, *said: tuple[str, str]) -> list[Stand]:
    return order.line_up([event(text, chat=chat) for chat, text in said], ("/",))


def taken(order: CommandOrder, stands: Sequence[Stand], left: Sequence[int]) -> tuple[list[int], list[int]]:
    """Which are taken in next, their commands still open, and what is left then."""
    now = ready(stands, left)
    for at in now:
        if not stands[at].may_be_command:
            order.leave(stands[at])
    return now, [at for at in left if at not in now]


async def test_each_chat_waits_for_its_own_commands_alone() -> None:
    order = CommandOrder()
    stands = lined_up(order, ("c1", "/new"), ("c2", "hello"), ("c1", "hello"), ("c1", "/clear"), ("c2", "/new"), ("c1", "x"), ("c2", "y"))
    now, left = taken(order, stands, range(7))
    assert now == [0, 1, 4], "messages with the commands behind them"
    assert ready(stands, left) == []
    order.leave(stands[4])
    now, left = taken(order, stands, left)
    assert now == [6]
    order.leave(stands[0])
    now, left = taken(order, stands, left)
    assert now == [2, 3]
    order.leave(stands[3])
    assert taken(order, stands, left) == ([5], [])
    assert order.is_empty


async def test_who_comes_later_stands_behind_what_is_not_taken_in_yet() -> None:
    order = CommandOrder()
    before, command, after = lined_up(order, ("c1", "a"), ("c1", "/new"), ("c1", "b"))
    (later,) = lined_up(order, ("c1", "/memory on"))
    (elsewhere,) = lined_up(order, ("c2", "b"))
    assert before.ahead == elsewhere.ahead == ()
    assert [command.ahead, after.ahead, later.ahead] == [(before.over,), (command.over,), (after.over,)]
    for stand in (before, command, after, later):
        order.leave(stand)
        order.leave(stand)
    assert lined_up(order, ("c1", "c"))[0].ahead == ()


async def test_a_chat_that_moves_takes_its_line_along_with_all_topics() -> None:
    order = CommandOrder()
    off = replace(event("/memory off", chat="old"), thread_id="t")
    moved = replace(event("", chat="old"), kind=EventKind.MIGRATED, target="new")
    words = replace(event("The code is 4711", chat="new"), thread_id="t")
    stands = order.line_up([off, moved, words, event("elsewhere", chat="c2")], ("/",))
    now, left = taken(order, stands, range(4))
    assert now == [0, 3]
    order.leave(stands[0])
    assert taken(order, stands, left) == ([1, 2], [])
    assert order.is_empty


@pytest.mark.parametrize(
    ("text", "more", "is_one"),
    [
        ("/new", {}, True),
        ("/不明", {}, True),
        ("\u200b/new", {}, True),
        ("/etc/hosts", {}, False),
        ("new", {}, False),
        ("", {"kind": EventKind.ACTION, "hint": "button"}, True),
        ("", {"kind": EventKind.ACTION, "hint": "regenerate"}, False),
        ("/new", {"kind": EventKind.EDITED}, False),
    ],
)
def test_what_may_be_a_command(text: str, more: dict[str, Any], is_one: bool) -> None:
    assert may_be_command(event(text, **more), ("/",)) is is_one


class Seconds:
    """A clock that only moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_commands_that_hang_hold_nobody_for_longer_than_the_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Seconds()
    order = CommandOrder(clock)
    loop = asyncio.get_running_loop()
    waits: list[float] = []

    def call_later(seconds: float, leave: Callable[[Stand], None], stand: Stand) -> asyncio.TimerHandle:
        waits.append(seconds)
        clock.now += seconds
        return loop.call_at(loop.time(), leave, stand)

    monkeypatch.setattr(loop, "call_later", call_later)
    hanging = asyncio.create_task(forever())
    stands = lined_up(order, *[("c1", "/new")] * 20, ("c1", "words"))
    left: Sequence[int] = range(21)
    while left:
        if now := ready(stands, left):
            left = [at for at in left if at not in now]
            for at in now:
                if stands[at].may_be_command:
                    order.holds(stands[at], hanging)
                else:
                    order.leave(stands[at])
        else:
            await moved_on(stands, left)
    assert waits[:3] == [command_order.PATIENCE_S / 2, pytest.approx(1.25, abs=0.2), pytest.approx(0.7, abs=0.2)]
    assert sum(waits) < command_order.PATIENCE_S + 20 * command_order.LEAST_S
    assert order.is_empty
    hanging.cancel()


async def forever() -> None:
    await asyncio.Event().wait()


async def test_a_command_leaves_when_it_is_carried_out() -> None:
    order, go = CommandOrder(), asyncio.Event()

    async def carried_out() -> None:
        await go.wait()

    command, behind = lined_up(order, ("c1", "/new"), ("c1", "b"))
    order.holds(command, asyncio.create_task(carried_out()))
    waiting = asyncio.create_task(moved_on([command, behind], [1]))
    await asyncio.sleep(0)
    assert not waiting.done()
    go.set()
    async with asyncio.timeout(patience(1)):
        await waiting
    assert ready([command, behind], [1]) == [1]


def kept(chat: Talk, text: str) -> tuple[str, str]:
    """The scope that a message was recorded for, and the key of its conversation."""
    with closing(sqlite3.connect(chat.gateway.data_dir / "yumegate.db")) as db:
        return db.execute(
            "SELECT messages.scope, conversations.key FROM messages JOIN conversations ON conversations.id = messages.conversation_id"
            " WHERE messages.text = ?",
            (text,),
        ).fetchone()


@pytest.mark.rule("CH-60", "WD-118")
async def test_commands_of_one_chat_are_answered_in_the_order_they_were_given(tmp_path: Path) -> None:
    async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}")) as chat:
        for text in ("/remember The lamp is green", "/memory list", "/version"):
            chat.says(text)
        remembered, listed, version = await chat.shown(3)
        assert "The lamp is green" in remembered
        assert "The lamp is green" in listed
        assert "Yumegate" in version


@pytest.mark.rule("SM-12", "RS-12")
async def test_words_said_right_behind_memory_off_are_recorded_for_nothing(tmp_path: Path) -> None:
    async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}")) as chat:
        for text in ("Before", "/memory off", "The code is 4711"):
            chat.says(text)
        await chat.until(lambda: "Re: The code is 4711" in chat.texts())
        await chat.gateway.settled()
        assert kept(chat, "Before")[0]
        assert not kept(chat, "The code is 4711")[0]


@pytest.mark.rule("CH-60")
@pytest.mark.parametrize("command", ["/new", "/clear", "/stop all"])
async def test_a_question_right_behind_a_command_that_ends_the_talk_is_answered(tmp_path: Path, command: str) -> None:
    async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}")) as chat:
        chat.says("One")
        await chat.shows(["Re: One"])
        for text in (command, "Two"):
            chat.says(text)
        await chat.until(lambda: "Re: Two" in chat.texts())
        await chat.gateway.settled()
        assert "#" not in kept(chat, "Two")[1], "it belongs to the talk that the command began"
        assert ("#" in kept(chat, "One")[1]) is (command == "/new")


def held(monkeypatch: pytest.MonkeyPatch, go: asyncio.Event, name: str) -> asyncio.Event:
    """From now on commands of this name wait for `go` before they do anything; what is returned is set when one has begun."""
    begun, run = asyncio.Event(), Commands.run

    async def late(self: Commands, call: Asked) -> Answer:
        if call.call.line.name == name:
            begun.set()
            await go.wait()
        return await run(self, call)

    monkeypatch.setattr(Commands, "run", late)
    return begun


@pytest.mark.rule("CH-60", "CH-62")
async def test_a_slow_command_of_one_chat_holds_no_other_chat_of_its_delivery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = asyncio.Event()
    async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}")) as chat:
        held(monkeypatch, go, "memory")
        chat.says("/memory off", chat="c1")
        chat.says("The code is 4711", chat="c1")
        for number in range(3):
            chat.says("/remember The lamp is green", chat=f"other{number}")
            chat.says("Hello", chat=f"other{number}")
        for number in range(3):
            await chat.until(lambda number=number: "Re: Hello" in chat.texts(f"other{number}"))
        assert chat.texts("c1") == [], "while the others are answered it waits still"
        go.set()
        await chat.until(lambda: "Re: The code is 4711" in chat.texts())
        assert not kept(chat, "The code is 4711")[0]


@pytest.mark.rule("CH-101", "CH-54")
async def test_a_command_that_a_kill_cut_short_still_stands_before_what_is_delivered_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    platform, go = LoopbackPlatform(hold_s=0.05), asyncio.Event()
    monkeypatch.setattr(command_order, "PATIENCE_S", patience(30))
    with pytest.raises(BaseExceptionGroup):
        async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}"), platform=platform) as chat:
            begun = held(monkeypatch, go, "memory")
            for text in ("/memory off", "The code is 4711", "/memory on", "Good evening"):
                chat.says(text)
            await begun.wait()
            raise RuntimeError("killed")  # every task ends where it stands
    monkeypatch.undo()
    monkeypatch.setattr(command_order, "PATIENCE_S", patience(30))
    assert platform.acknowledged == 0
    run = Commands.run

    async def late(self: Commands, call: Asked) -> Answer:
        await asyncio.sleep(0.2)  # long enough for everything else to overtake it
        return await run(self, call)

    monkeypatch.setattr(Commands, "run", late)
    async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}"), platform=platform) as chat:
        await chat.until(lambda: "Re: Good evening" in chat.texts())
        assert not kept(chat, "The code is 4711")[0]
        assert kept(chat, "Good evening")[0]
        assert len(chat.texts()) == 4, chat.texts()


@pytest.mark.rule("CH-100")
async def test_what_stands_behind_a_command_at_a_stop_is_delivered_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    platform, go = LoopbackPlatform(hold_s=0.05), asyncio.Event()
    monkeypatch.setattr(command_order, "PATIENCE_S", patience(30))
    async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}"), platform=platform) as chat:
        begun = held(monkeypatch, go, "memory")
        for text in ("/memory off", "The code is 4711"):
            chat.says(text)
        await begun.wait()
        chat.gateway.stop.set()
        ready = f"{chat.gateway.url}/readyz"

        async def draining() -> bool:
            try:
                async with chat.gateway.http.get(ready) as answer:
                    return answer.status == 503
            except OSError:
                return True

        await eventually(draining)
        go.set()
    assert platform.acknowledged == 0
    monkeypatch.undo()
    async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}"), platform=platform) as chat:
        await chat.until(lambda: "Re: The code is 4711" in chat.texts())
        assert not kept(chat, "The code is 4711")[0]
        assert len(chat.texts()) == 2, "the command was answered once"


class Question(BaseModel):
    q: str = ""


@dataclass
class Look:
    name: str = "look"
    description: str = "Looks something up."
    arguments: type[BaseModel] = Question
    foreign = False

    async def call(self, arguments: BaseModel) -> str:
        return "found it"


@pytest.mark.rule("CH-70", "WD-9")
async def test_words_behind_memory_off_do_not_steer_a_turn_that_is_remembered(tmp_path: Path) -> None:
    go = asyncio.Event()

    def answer(request: ModelRequest) -> Reply:
        looks = asked(request) == "Think" and request.messages[-1].role is Role.USER
        return [Until(go), Call("look", {"q": "a"})] if looks else f"Re: {asked(request)}"

    async with talk(tmp_path, model(answer), tools=[Look()]) as chat:
        chat.says("Think")
        await chat.thinking()
        for text in ("/memory off", "The code is 4711"):
            chat.says(text)
        await chat.received()
        go.set()
        await chat.until(lambda: "Re: The code is 4711" in chat.texts())
        assert not kept(chat, "Re: The code is 4711")[0], "it was no part of the turn that began before"
        assert kept(chat, "Re: Think")[0]


@pytest.mark.rule("CH-60", "DL-14")
@pytest.mark.parametrize("command", ["/new", "/clear", "/stop all"])
async def test_a_command_that_came_too_late_ends_nothing_that_was_said_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    go = asyncio.Event()
    monkeypatch.setattr(command_order, "PATIENCE_S", 0.1)
    monkeypatch.setattr(command_order, "LEAST_S", 0.05)
    async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}"), can=replace(CAPABILITIES, hold_s=1.0)) as chat:
        held(monkeypatch, go, command[1:].split()[0])
        for text in (command, "Two"):
            chat.says(text)
        await chat.received()  # "Two" waited long enough, and is held for more words
        go.set()
        await chat.until(lambda: "Re: Two" in chat.texts())


@pytest.mark.rule("RL-4")
async def test_what_waits_is_answered_when_a_new_talk_cannot_be_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = asyncio.Event()

    def answer(request: ModelRequest) -> Reply:
        return [Until(go)] if asked(request) == "Think" else f"Re: {asked(request)}"

    def broken(*_: object, **__: object) -> None:
        raise StoreUnavailable("the database cannot be used now")

    async with talk(tmp_path, model(answer)) as chat:
        chat.says("Think")
        await chat.thinking()
        monkeypatch.setattr(inbox, "end_open", broken)
        for text in ("One", "/clear"):
            chat.says(text)
        await chat.until(lambda: "Re: One" in chat.texts())


@pytest.mark.rule("CH-60")
async def test_what_steer_hands_on_is_over_before_what_stands_behind_it(tmp_path: Path) -> None:
    async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}")) as chat:
        for text in ("/steer /memory off", "The code is 4711"):
            chat.says(text)
        await chat.until(lambda: "Re: The code is 4711" in chat.texts())
        assert not kept(chat, "The code is 4711")[0]


@pytest.mark.rule("CH-60", "WO-50")
async def test_what_two_tabs_and_a_program_post_at_once_keeps_its_order(tmp_path: Path) -> None:
    async with running(tmp_path, model(lambda request: f"Re: {asked(request)}")) as gateway:
        chat_id, character = await gateway.chat(), (await gateway.get("/v1/models"))["data"][0]["id"]

        async def program(text: str) -> None:
            body = {"model": character, "messages": [{"role": "user", "content": text}]}
            async with gateway.http.post(f"{gateway.url}/v1/chat/completions", json=body, headers={"X-Yumegate-Chat": chat_id}) as answer:
                assert answer.status == 200, await answer.text()

        texts = [text for number in range(4) for text in ("/memory off", f"Secret {number}", "/memory on", f"Open {number}")]
        async with asyncio.TaskGroup() as group:
            for text in texts:
                group.create_task(gateway.say(chat_id, text))
            group.create_task(program("From a program"))

        async def answered() -> bool:
            return sum(text.startswith("Re: ") for text in await gateway.answers(chat_id)) > 0 and not await waiting()

        async def waiting() -> bool:
            with closing(sqlite3.connect(gateway.data_dir / "yumegate.db")) as db:
                return bool(db.execute("SELECT count(*) FROM inbox WHERE state IN ('new', 'running')").fetchone()[0])

        await eventually(answered)
        with closing(sqlite3.connect(gateway.data_dir / "yumegate.db")) as db:
            rows = db.execute("SELECT text, scope FROM messages WHERE role = 'user' ORDER BY seq").fetchall()
        assert sorted(text for text, _ in rows) == sorted([*texts, "From a program"]), "each once"
        off = False
        for text, scope in rows:
            if text.startswith("/memory"):
                off = text == "/memory off"
            else:
                assert bool(scope) is not off, (text, rows)

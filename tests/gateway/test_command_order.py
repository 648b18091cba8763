"""What is said after a command comes after it, in one delivery, in several, and whatever else goes on."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from channels.message import EventKind
from gateway import command_order
from gateway.command_order import CommandOrder, Stand, may_be_command, pieces, reached
from tests.gateway.arrivals import event
from tests.patience import patience
from tests.talks import Talk, asked, model, talk


def lined_up(order: CommandOrder, *said: tuple[str, str]) -> list[Stand]:
    return order.line_up([event(text, chat=chat) for chat, text in said], ("/",))


def test_a_delivery_is_cut_only_where_something_stands_behind_a_command_of_its_own_chat() -> None:
    order = CommandOrder()
    stands = lined_up(order, ("c1", "/new"), ("c2", "hello"), ("c1", "hello"), ("c1", "/clear"), ("c2", "/new"), ("c1", "x"), ("c2", "y"))
    assert list(pieces(stands)) == [slice(0, 2), slice(2, 5), slice(5, 7)]
    assert list(pieces(lined_up(CommandOrder(), ("c1", "a"), ("c1", "b"), ("c1", "/new")))) == [slice(0, 3)]
    assert list(pieces([])) == [slice(0, 0)], "a cursor alone is stored too"


def test_what_was_said_before_a_command_does_not_wait_for_it() -> None:
    order = CommandOrder()
    before, command, after = lined_up(order, ("c1", "a"), ("c1", "/new"), ("c1", "b"))
    (elsewhere,) = lined_up(order, ("c2", "b"))
    assert before.ahead == command.ahead == elsewhere.ahead == ()
    assert after.ahead == (command.over,)
    order.leave(command)
    assert lined_up(order, ("c1", "c"))[0].ahead == ()


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


async def test_who_stands_behind_waits_until_the_command_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    order = CommandOrder()
    first, second, behind = lined_up(order, ("c1", "/new"), ("c1", "/clear"), ("c1", "b"))
    waiting = asyncio.create_task(reached([behind]))
    order.leave(first)
    await asyncio.sleep(0)
    assert not waiting.done()
    order.leave(second)
    async with asyncio.timeout(patience(1)):
        await waiting
    monkeypatch.setattr(command_order, "PATIENCE_S", 0.01)
    (_hangs, held) = lined_up(order, ("c1", "/new"), ("c1", "b"))
    async with asyncio.timeout(patience(1)):
        await reached([held])  # a command that hangs holds nobody for good


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

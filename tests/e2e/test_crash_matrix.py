"""Killed at every commit of a message's life, and at the moments between: after the next start each acknowledged message is answered once (RL-1).

What a test can kill between two commits it kills from outside, when the model is asked or the platform has been called.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from tests.e2e.conftest import Child, Household
from tests.e2e.peer import Call, Peer
from tests.e2e.peer_channel import EDITS, RECONCILE, RESEND_KEY
from tests.harness import eventually
from tests.peers.model.replies import Hang, Reply, delta, stream, text
from tests.peers.model.server import FakeModel

AGAIN = "(Sent again: the first try may not have arrived.)\n"
WORDS = "The lamp is on and the night is quiet. "


def killer(child: Callable[[], Child]) -> Callable[[Call], Any]:
    """A hook of the platform: kills the gateway at its next call."""
    done = False

    async def kill(call: Call) -> None:
        nonlocal done
        if not done and call["op"] != "typing":
            done = True
            os.kill(child().pid, signal.SIGKILL)

    return kill


def asked(model: FakeModel) -> list[str]:
    """The newest words of each request for a reply, as the model got them."""
    newest = [received.body["messages"][-1]["content"] for received in model.requests]
    return [words.rpartition("[end of notes]\n\n")[2] for words in newest if "[end of notes]" in words]


# -- every commit ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RL-1", "CH-53", "CH-54", "CH-101")
@pytest.mark.case("DL-02")
@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_message_on_the_page_is_answered_once_whichever_commit_was_the_last(
    new_household: Callable[[], Household], side: str
) -> None:
    for number in count(1):
        async with new_household() as home:
            killed = await home.start(kill=side, commit=number)
            message = {"client_id": "c1", "text": "hello"}
            taken = await home.acknowledged(f"/api/chats/{home.chat}/messages", message)
            if not await home.dead_or_idle(killed):
                break
            assert await killed.end() == -signal.SIGKILL
            await home.start()
            if not taken:
                await home.web.post(f"/api/chats/{home.chat}/messages", message, status=202)
            await home.web.answers(home.chat)
            await home.settled()
            assert await home.said(home.chat) == [("user", "hello"), ("assistant", "re: hello")], f"{side} commit {number}"
    assert number > 5  # taken in, begun and ended; the job of the title claimed and ended


@pytest.mark.rule("RL-1", "CH-22", "CH-23", "CH-50", "CH-80", "CH-101")
@pytest.mark.case("DL-02", "DL-03")
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("abilities", [(), (RESEND_KEY,), (RECONCILE,), (EDITS, RESEND_KEY)], ids=lambda value: "+".join(value) or "bare")
async def test_a_message_from_a_platform_is_answered_once_whichever_commit_was_the_last(
    new_household: Callable[[], Household], side: str, abilities: tuple[str, ...]
) -> None:
    for number in count(1):
        async with new_household() as home, Peer() as peer:
            killed = await home.start(kill=side, commit=number, peer=peer.port, abilities=abilities)
            await peer.says("chat", "hello")
            await eventually(lambda: _seen(home, killed))
            if not await home.dead_or_idle(killed):
                break
            assert await killed.end() == -signal.SIGKILL
            await home.start(peer=peer.port, abilities=abilities)
            await eventually(lambda: _seen(home, killed))
            await home.settled()
            where = f"{side} commit {number}: {peer.shown}"
            if abilities:
                assert peer.texts() == ["re: hello"], where
            else:  # nobody can tell whether the first try arrived: one more, and it says so
                assert peer.texts() in (["re: hello"], [f"{AGAIN}re: hello"], ["re: hello", f"{AGAIN}re: hello"]), where
            assert peer.acknowledged == 1
    assert number > 5  # taken in, begun, ended, being sent, sent


async def _seen(home: Household, killed: Child) -> bool:
    """The message has been stored, or the process has been killed over it."""
    return home.rows("SELECT count(*) FROM inbox") != [(0,)] or not killed.alive

"""Killed at every commit of a message's life, and at the moments between: after the next start each acknowledged message is answered once (RL-1).

What happens between two commits is killed from outside: while the model is asked, or around the effect of a call to the platform.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import pytest

from gateway.language import say
from tests.e2e.conftest import Child, Household, until
from tests.e2e.peer import Call, Peer
from tests.e2e.peer_channel import EDITS, RECONCILE, RESEND_KEY
from tests.peers.model.replies import Hang, Reply, Until, delta, stream, text
from tests.peers.model.server import FakeModel

NewHousehold = Callable[[], Household]

MARKED = "re: hello\n(Sent again: the first try may not have arrived.)"
BEGINNING = "The lamp is on, and the night is quiet enough to talk."
STALLED = stream(delta(BEGINNING), Hang())
SIDES = pytest.mark.parametrize("side", ["before", "after"])
ABILITIES = pytest.mark.parametrize(
    "abilities", [(), (RESEND_KEY,), (RECONCILE,), (EDITS, RESEND_KEY)], ids=lambda value: "+".join(value) or "bare"
)


def question(body: dict[str, Any]) -> str:
    """The person's words in a request for a reply; empty for other requests."""
    return body["messages"][-1]["content"].rpartition("[end of notes]\n\n")[2] if "[end of notes]" in str(body["messages"]) else ""


def echo(body: dict[str, Any]) -> Reply:
    asked = question(body)
    return text(f"re: {asked}" if asked else "A title")


def asked(model: FakeModel) -> list[str]:
    """What the model was asked to reply to, in order."""
    return [words for received in model.requests if (words := question(received.body))]


def kills(child: Child, *, op: str) -> Callable[[Call], Any]:
    """A hook of the platform: kills the gateway at its first call of a kind."""
    done: list[Call] = []

    async def kill(call: Call) -> None:
        if call["op"] == op and not done:
            done.append(call)
            os.kill(child.pid, signal.SIGKILL)

    return kill


def _taken(peer: Peer) -> bool:
    return peer.acknowledged == 1


def _taken_or_dead(peer: Peer, child: Child) -> bool:
    return _taken(peer) or not child.alive


# -- at every commit ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("RL-1", "CH-53", "CH-54", "CH-101")
@pytest.mark.case("DL-02")
@SIDES
async def test_a_message_on_the_page_is_answered_once_whichever_commit_was_the_last(new_household: NewHousehold, side: str) -> None:
    for number in count(1):
        async with new_household() as home:
            killed = await home.start(kill=side, commit=number)
            path, message = f"/api/chats/{home.chat}/messages", {"client_id": "c1", "text": "hello"}
            taken = await home.acknowledged(path, message)
            if not await home.dead_or_idle(killed):
                break
            assert await killed.end() == -signal.SIGKILL
            await home.start()
            if not taken:
                await home.web.post(path, message, status=202)
            await home.settled()
            assert await home.said(home.chat) == [("user", "hello"), ("assistant", "re: hello")], f"{side} commit {number}"
    assert number > 5  # taken in, begun and ended; the job of the title claimed and ended


@pytest.mark.rule("RL-1", "CH-22", "CH-23", "CH-50", "CH-80", "CH-101")
@pytest.mark.case("DL-02", "DL-03")
@SIDES
@pytest.mark.parametrize("abilities", [(), (EDITS, RESEND_KEY)], ids=["bare", "with all"])
async def test_a_message_from_a_platform_is_answered_once_whichever_commit_was_the_last(
    new_household: NewHousehold, side: str, abilities: tuple[str, ...]
) -> None:
    for number in count(1):
        async with new_household() as home, Peer() as peer:
            killed = await home.start(kill=side, commit=number, peer=peer.port, abilities=abilities)
            await peer.says("chat", "hello")
            await until(partial(_taken_or_dead, peer, killed))
            if not await home.dead_or_idle(killed):
                break
            assert await killed.end() == -signal.SIGKILL
            await home.start(peer=peer.port, abilities=abilities)
            await until(partial(_taken, peer))
            await home.settled()
            where = f"{side} commit {number}: {peer.shown}"
            assert home.rows("SELECT count(*) FROM inbox") == [(1,)], peer.delivered  # however often it was delivered
            if abilities:
                assert peer.texts() == ["re: hello"], where
            else:  # nobody can tell whether the first try arrived: one more, and it says so
                assert peer.texts() in (["re: hello"], [MARKED], ["re: hello", MARKED]), where
    assert number > 5  # taken in, begun, ended, being sent, sent


@pytest.mark.rule("RL-1", "CH-54", "WD-118")
@SIDES
async def test_a_command_is_answered_once_whichever_commit_was_the_last(new_household: NewHousehold, side: str) -> None:
    for number in count(1):
        async with new_household() as home, Peer() as peer:
            killed = await home.start(kill=side, commit=number, peer=peer.port, abilities=(RESEND_KEY,))
            await peer.says("chat", "/whoami")
            await until(partial(_taken_or_dead, peer, killed))
            if not await home.dead_or_idle(killed):
                break
            assert await killed.end() == -signal.SIGKILL
            await home.start(peer=peer.port, abilities=(RESEND_KEY,))
            await until(partial(_taken, peer))
            await home.settled()
            assert len(peer.texts()) == 1, f"{side} commit {number}: {peer.shown}"
            assert "u1" in peer.texts()[0]
    assert number > 4  # taken in, answered, being sent, sent


# -- around a call to the platform -------------------------------------------------------------------------------------


@pytest.mark.rule("RL-1", "CH-80", "CH-101", "CH-35")
@pytest.mark.case("DL-03", "DL-12")
@SIDES
@ABILITIES
async def test_a_send_of_which_nobody_knows_is_settled_by_the_platforms_means_or_marked(
    household: Household, peer: Peer, side: str, abilities: tuple[str, ...]
) -> None:
    killed = await household.start(peer=peer.port, abilities=abilities)
    setattr(peer, side, kills(killed, op="send"))
    await peer.says("chat", "hello")
    assert await killed.end() == -signal.SIGKILL
    await until(lambda: len(peer.shown) == 1)  # also a request that came before the kill takes effect on a platform
    assert household.rows("SELECT state FROM outbox") == [("sending",)]
    await household.start(peer=peer.port, abilities=abilities)
    await household.settled()
    assert peer.texts() == (["re: hello"] if abilities else ["re: hello", MARKED])
    assert household.rows("SELECT state, unknowns FROM outbox") == [("sent", 1)]


@pytest.mark.rule("RL-1", "CH-96", "CH-97")
async def test_after_a_kill_under_a_preview_the_answer_edits_that_preview(household: Household, peer: Peer, model: FakeModel) -> None:
    household.speak_to(model)
    model.respond = echo
    model.will(STALLED)
    killed = await household.start(model="", peer=peer.port, abilities=(EDITS,))
    await peer.says("chat", "hello")
    await until(lambda: household.rows("SELECT 1 FROM turns WHERE json_type(preview_ids) = 'array'"))
    assert peer.texts() == [BEGINNING]
    await killed.kill()
    await household.start(model="", peer=peer.port, abilities=(EDITS,))
    await household.settled()
    assert [(message.text, message.history[0]) for message in peer.shown] == [("re: hello", BEGINNING)]


@pytest.mark.rule("RL-1", "CH-97")
@SIDES
async def test_a_kill_at_the_edit_of_a_preview_leaves_one_message_with_the_whole_answer(
    household: Household, peer: Peer, model: FakeModel, side: str
) -> None:
    household.speak_to(model)
    go = asyncio.Event()
    model.respond = lambda _: stream(delta(BEGINNING), Until(go), delta(" So we talk."), delta(finish="stop"))
    killed = await household.start(model="", peer=peer.port, abilities=(EDITS,))
    setattr(peer, side, kills(killed, op="edit"))
    await peer.says("chat", "hello")
    await until(lambda: household.rows("SELECT 1 FROM turns WHERE json_type(preview_ids) = 'array'"))
    go.set()
    assert await killed.end() == -signal.SIGKILL
    await household.start(model="", peer=peer.port, abilities=(EDITS,))
    await household.settled()
    assert peer.texts() == [f"{BEGINNING} So we talk."]


# -- while the model is asked ------------------------------------------------------------------------------------------


@pytest.mark.rule("RL-1", "CH-53", "CH-101")
async def test_a_kill_in_the_middle_of_the_words_is_answered_anew_and_whole(household: Household, model: FakeModel) -> None:
    household.speak_to(model)
    model.respond = echo
    model.will(STALLED)
    killed = await household.start(model="")
    await household.web.say(household.chat, "hello")
    assert await household.web.events(household.chat, until="delta")
    await killed.kill()
    await household.start(model="")
    await household.web.answers(household.chat)
    assert await household.said(household.chat) == [("user", "hello"), ("assistant", "re: hello")]
    assert asked(model) == ["hello", "hello"]
    assert household.rows("SELECT state, attempts FROM inbox") == [("done", 2)]


@pytest.mark.rule("RL-1", "WO-10")
async def test_a_kill_while_an_answer_is_made_again_leaves_the_old_one_until_the_new_one_is_there(
    household: Household, model: FakeModel
) -> None:
    household.speak_to(model)
    model.will(text("first"), text("A title"), STALLED, text("second"))
    killed = await household.start(model="")
    await household.web.say(household.chat, "hello")
    await household.dead_or_idle(killed)
    await household.web.post(f"/api/chats/{household.chat}/regenerate", {"client_id": "r1"}, status=202)
    await until(lambda: asked(model) == ["hello", "hello"])
    assert await household.said(household.chat) == [("user", "hello"), ("assistant", "first")]
    await killed.kill()
    await household.start(model="")
    await household.settled()
    assert await household.said(household.chat) == [("user", "hello"), ("assistant", "second")]
    await household.web.post(f"/api/chats/{household.chat}/regenerate", {"client_id": "r1"}, status=202)  # the page asks again: known
    await household.settled()
    assert len(asked(model)) == 3


@pytest.mark.rule("RL-1", "WD-98", "WO-16")
async def test_a_job_that_was_killed_has_its_effect_once(household: Household, model: FakeModel) -> None:
    household.speak_to(model)
    model.will(text("re: hello"), STALLED, text("Quiet lamps"))
    killed = await household.start(model="")
    await household.web.say(household.chat, "hello")
    await until(lambda: len(model.requests) == 2)
    await killed.kill()
    household.change("UPDATE jobs SET lease_until = 0 WHERE state = 'running'")  # two minutes pass
    restarted = await household.start(model="")
    assert not await household.dead_or_idle(restarted)
    assert (await household.web.get(f"/api/chats/{household.chat}"))["title"] == "Quiet lamps"
    assert household.rows("SELECT state, lost_leases FROM jobs WHERE kind = 'title'") == [("done", 1)]
    assert household.rows("SELECT count(*) FROM model_calls WHERE purpose = 'title'") == [(1,)]
    assert await household.said(household.chat) == [("user", "hello"), ("assistant", "re: hello")]


@pytest.mark.rule("RL-1", "CH-70", "CH-101")
async def test_what_was_added_to_a_turn_that_was_killed_is_answered_too(household: Household, model: FakeModel) -> None:
    household.speak_to(model)
    model.respond = echo
    model.will(STALLED)
    killed = await household.start(model="")
    await household.web.say(household.chat, "one")
    await until(lambda: asked(model) == ["one"])
    await household.web.say(household.chat, "two")
    await killed.kill()
    await household.start(model="")
    await household.settled()
    answers = [words for role, words in await household.said(household.chat) if role == "assistant"]
    assert answers == ["re: one", "re: two"]


@pytest.mark.rule("RL-1", "CH-53", "CH-54")
async def test_ten_of_ten_messages_in_work_at_a_kill_are_answered_once(household: Household, peer: Peer, model: FakeModel) -> None:
    household.speak_to(model)
    model.respond = echo
    model.will(*[STALLED] * 10)
    killed = await household.start(model="", peer=peer.port, abilities=(RESEND_KEY,))
    chats = [await household.web.chat() for _ in range(5)]
    for number, chat in enumerate(chats):
        await household.web.say(chat, f"page {number}")
    for number in range(5):
        await peer.says(f"chat{number}", f"app {number}")
    await until(lambda: len(asked(model)) == 10)
    await killed.kill()
    await household.start(model="", peer=peer.port, abilities=(RESEND_KEY,))
    await household.settled()
    for number, chat in enumerate(chats):
        assert await household.said(chat) == [("user", f"page {number}"), ("assistant", f"re: page {number}")]
        assert peer.texts(f"chat{number}") == [f"re: app {number}"]
    assert len(asked(model)) == 20


# -- what kills us every time ------------------------------------------------------------------------------------------

MINUTES = 60.0


@pytest.mark.rule("RL-1", "CH-54")
async def test_a_message_that_kills_three_times_is_dead_and_the_person_is_told_once(
    household: Household, peer: Peer, model: FakeModel
) -> None:
    current: list[Child] = []

    def poison(body: dict[str, Any]) -> Reply:
        if "poison" in question(body):
            os.kill(current[-1].pid, signal.SIGKILL)
            return STALLED
        return echo(body)

    household.speak_to(model)
    model.respond = poison
    for run in range(3):  # far enough apart that nothing is parked; texts close together are one turn, but not with poison
        current.append(await household.start(model="", peer=peer.port, hold_s=0.2, ahead_s=run * 10 * MINUTES))
        if run == 0:
            await peer.says("chat", "poison")
        assert await current[-1].end() == -signal.SIGKILL
        if run == 0:
            await peer.says("chat", "and this?")  # waits behind it
    last = await household.start(model="", peer=peer.port, hold_s=0.2, ahead_s=30 * MINUTES)
    await until(lambda: peer.acknowledged == 2)
    await household.settled()
    told = "I tried several times and could not answer this message. The operator can see why."
    signs = (say("en", "busy_steered"), "Queued")
    assert [words for words in peer.texts() if not words.startswith(signs)] == [told, "re: and this?"]
    assert household.rows("SELECT state, rule FROM inbox ORDER BY id") == [("dead", "dead"), ("done", "")]
    assert asked(model) == ["poison", "poison", "poison", "and this?"]
    assert "is given up" in last.log
    await last.stop()
    await household.start(model="", peer=peer.port, ahead_s=31 * MINUTES)
    await household.settled()
    assert peer.texts().count(told) == peer.texts().count("re: and this?") == 1


@pytest.mark.rule("CH-54", "WO-32")
async def test_how_often_a_message_is_tried_is_configured(household: Household, model: FakeModel) -> None:
    household.speak_to(model, delivery={"attempts": 1})
    model.will(STALLED)
    killed = await household.start(model="")
    await household.web.say(household.chat, "hello")
    await until(lambda: asked(model) == ["hello"])
    await killed.kill()
    await household.start(model="")
    await household.settled()
    assert household.rows("SELECT state FROM inbox") == [("dead",)]
    assert asked(model) == ["hello"]


@pytest.mark.rule("CH-54")
async def test_a_command_that_kills_three_times_is_given_up_too(household: Household, peer: Peer) -> None:
    killed = await household.start(peer=peer.port, kill="before", commit=2)
    await peer.says("chat", "/whoami")
    assert await killed.end() == -signal.SIGKILL
    assert household.change("UPDATE inbox SET state = 'running', attempts = 1") == 1  # and the next start ended in the same way
    last = await household.start(peer=peer.port)
    await household.settled()
    assert len(peer.shown) == 1
    assert "given up" not in last.log
    await last.kill()
    assert household.change("UPDATE inbox SET state = 'running', attempts = 2") == household.change("DELETE FROM outbox") == 1
    await household.start(peer=peer.port, ahead_s=10 * MINUTES)
    await household.settled()
    assert peer.texts()[1:] == ["I tried several times and could not answer this message. The operator can see why."]
    assert household.rows("SELECT state FROM inbox") == [("dead",)]

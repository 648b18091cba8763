"""How a gateway ends and begins again: the drain, what the next start takes up, what it lets go, and who hears of it (RL-2, RL-3)."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import time
from typing import Any

import pytest

from tests.e2e.conftest import Child, Household, until
from tests.e2e.peer import Peer
from tests.e2e.peer_channel import RESEND_KEY
from tests.e2e.test_crash_matrix import STALLED, asked, echo, question
from tests.harness import eventually
from tests.patience import patience
from tests.peers.model.replies import Reply, Until, delta, stream
from tests.peers.model.server import FakeModel

HOUR = 3600.0
LOST = "An earlier answer could not be delivered. /last sends it again."


def halting(go: asyncio.Event) -> Reply:
    """Words, and the rest of them once the test has done what has to be done in between."""
    return stream(delta("It takes "), Until(go), delta("a moment."), delta(finish="stop"))


async def readiness(home: Household) -> tuple[int, dict[str, Any]]:
    async with home.web.http.get(f"{home.web.url}/readyz") as answer:
        return answer.status, await answer.json()


# -- the drain ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RL-2", "CH-100", "CH-214")
async def test_a_sigterm_lets_a_running_answer_finish_and_takes_nothing_new(household: Household, model: FakeModel) -> None:
    household.speak_to(model)
    go = asyncio.Event()
    model.will(halting(go))
    draining = await household.start_command_line()
    assert (await readiness(household))[0] == 200
    await household.web.say(household.chat, "hello")
    await until(lambda: asked(model) == ["hello"])
    async with household.web.following(household.chat, until="never") as viewer:
        began = time.monotonic()
        draining.signal(signal.SIGTERM)
        await until_draining(household)
        async with household.web.http.post(
            f"{household.web.url}/api/chats/{household.chat}/messages", json={"client_id": "late", "text": "and this?"}
        ) as refused:
            assert refused.status == 503
            assert int(refused.headers["Retry-After"]) > 0
            assert (await refused.json())["error"]["message"] == "The gateway is about to restart. Please try again in a moment."
        go.set()
    assert [name for _, name, _ in viewer.result()][-1] == "done"  # whoever looked on saw it to its end
    assert await draining.end() == 0, draining.log
    assert time.monotonic() - began < patience(10)
    await household.start_command_line()
    assert await household.said(household.chat) == [("user", "hello"), ("assistant", "It takes a moment.")]


async def until_draining(home: Household) -> None:
    async def draining() -> bool:
        return (await readiness(home))[1]["phase"] == "draining"

    await eventually(draining)
    assert (await readiness(home))[0] == 503


@pytest.mark.rule("RL-2", "CH-100", "CH-50")
@pytest.mark.case("DL-01", "DL-04")
async def test_a_drain_still_sends_the_answer_and_leaves_new_messages_with_the_platform(
    household: Household, peer: Peer, model: FakeModel
) -> None:
    household.speak_to(model)
    go = asyncio.Event()
    model.will(halting(go))
    model.respond = echo
    draining = await household.start(model="", peer=peer.port)
    await peer.says("chat", "hello")
    await until(lambda: asked(model) == ["hello"])
    draining.signal(signal.SIGTERM)
    await until_draining(household)
    await peer.says("chat", "six")
    await peer.says("other", "more")
    go.set()
    assert await draining.end() == 0, draining.log
    assert peer.texts() == ["It takes a moment."]
    assert peer.acknowledged == 1
    await household.start(model="", peer=peer.port)
    await until(lambda: peer.acknowledged == 3)
    await household.settled()
    assert peer.texts()[0] == "It takes a moment."
    assert sorted(peer.texts()[1:]) == ["re: more", "re: six"]  # two chats: neither waits for the other


@pytest.mark.rule("RL-2", "CH-100")
async def test_an_answer_that_takes_too_long_is_cut_taken_up_again_and_not_counted_as_tried(household: Household, model: FakeModel) -> None:
    household.speak_to(model, delivery={"drain_s": 0.5})
    model.respond = echo
    model.will(*[STALLED] * 4)
    for cut in range(4):  # more often than a message may be tried
        draining = await household.start(model="")
        if cut == 0:
            await household.web.say(household.chat, "hello")
        await until(lambda cut=cut: len(asked(model)) == cut + 1)
        await draining.stop(within_s=5)
        assert household.rows("SELECT state, attempts FROM inbox") == [("new", 0)]
    await household.start(model="")
    await household.web.answers(household.chat)
    assert await household.said(household.chat) == [("user", "hello"), ("assistant", "re: hello")]


@pytest.mark.rule("RL-2", "WD-101")
async def test_a_job_that_does_not_end_does_not_lengthen_the_drain(household: Household, model: FakeModel) -> None:
    household.speak_to(model, delivery={"drain_s": 1})
    model.respond = echo
    draining = await household.start(model="")
    await until(lambda: {*household.rows("SELECT state FROM jobs WHERE kind = 'housekeeping'")} == {("done",)})  # of each day that has begun
    model.will(echo({"messages": [{"content": "[end of notes]\n\nhello"}]}), STALLED)
    await household.web.say(household.chat, "hello")
    await until(lambda: len(model.requests) == 2)
    began = time.monotonic()
    await draining.stop()
    assert time.monotonic() - began < patience(4)
    assert household.rows("SELECT state FROM jobs WHERE kind = 'title'") == [("running",)]  # left to its lease


@pytest.mark.rule("CH-100")
async def test_a_second_signal_leaves_at_once_and_loses_nothing(household: Household, model: FakeModel) -> None:
    household.speak_to(model)
    model.respond = echo
    model.will(STALLED)
    leaving = await household.start_command_line()
    await household.web.say(household.chat, "hello")
    await until(lambda: asked(model) == ["hello"])
    leaving.signal(signal.SIGTERM)
    await until_draining(household)
    began = time.monotonic()
    leaving.signal(signal.SIGTERM)
    assert await leaving.end() == 1
    assert time.monotonic() - began < patience(2)
    await household.start_command_line()
    await household.web.answers(household.chat)
    assert await household.said(household.chat) == [("user", "hello"), ("assistant", "re: hello")]


@pytest.mark.rule("RL-2", "CH-101")
@pytest.mark.case("DL-15")
async def test_nobody_hears_of_a_restart_who_lost_nothing(household: Household, peer: Peer) -> None:
    for ending in (Child.stop, Child.kill):
        running = await household.start(peer=peer.port)
        await peer.says("chat", "hello")
        await household.web.say(household.chat, "hello")
        await until(lambda: len(peer.shown) == len(peer.delivered))
        await household.settled()
        await ending(running)
    before = len(peer.calls), everything_told(household)
    last = await household.start(peer=peer.port)
    await asyncio.sleep(0.5)
    assert (len(peer.calls), everything_told(household)) == before
    await last.stop()


def everything_told(home: Household) -> list[tuple[Any, ...]]:
    return home.rows("SELECT role, text FROM messages ORDER BY seq") + home.rows("SELECT part_id FROM outbox ORDER BY id")


@pytest.mark.rule("WO-11", "CH-101")
async def test_a_viewer_who_comes_back_after_a_kill_sees_the_answer_from_its_first_word(household: Household, model: FakeModel) -> None:
    household.speak_to(model)
    go = asyncio.Event()
    model.will(STALLED, halting(go))
    model.respond = echo
    killed = await household.start(model="")
    await household.web.say(household.chat, "hello")
    last_id = (await household.web.events(household.chat, until="delta"))[-1][0]
    await killed.kill()
    await household.start(model="")
    async with household.web.following(household.chat, last_id=last_id) as heard:
        await household.web.events(household.chat, until="delta")
        go.set()
    events = heard.result()
    assert [data["text"] for _, name, data in events if name == "delta"] == ["It takes ", "a moment."]
    assert events[-1][1] == "done"


# -- what waited too long ----------------------------------------------------------------------------------------------


@pytest.mark.rule("RL-3", "CH-82", "CH-101")
@pytest.mark.case("DL-13")
async def test_answers_of_yesterday_expire_with_one_line_each_reader_hears_it_once_and_last_sends_it(household: Household, peer: Peer) -> None:
    first = await household.start(peer=peer.port)
    peer.later_s = 10 * HOUR
    await peer.says("chat", "hello")
    await until(lambda: household.rows("SELECT 1 FROM outbox WHERE not_before IS NOT NULL"))
    await first.kill()
    multiply(household, 109)
    reminder(household)
    peer.later_s = None
    later = await household.start(peer=peer.port, ahead_s=3 * HOUR)
    await household.settled()
    assert peer.texts() == ["Water the plants."]  # a reminder lives for a day
    assert later.log.count("had waited longer than they may") == 1
    assert "110 parts" in later.log
    assert later.log.count("expired") <= 1  # and no line for each
    await peer.says("chat", "are you there?")
    await until(lambda: len(peer.texts("chat")) == 2)
    assert peer.texts("chat") == [LOST, "re: are you there?"]
    await peer.says("chat", "/last")
    await until(lambda: len(peer.texts("chat")) == 4)
    assert sorted(peer.texts("chat")[2:]) == ["Sending the newest answer again.", "re: are you there?"]
    await peer.says("chat", "and now?")
    await until(lambda: len(peer.texts("chat")) == 5)
    assert peer.texts("chat").count(LOST) == 1


@pytest.mark.rule("RL-3", "CH-82")
async def test_an_answer_that_expired_is_what_last_sends_again(household: Household, peer: Peer) -> None:
    first = await household.start(peer=peer.port)
    peer.later_s = 10 * HOUR
    await peer.says("chat", "hello")
    await until(lambda: household.rows("SELECT 1 FROM outbox WHERE not_before IS NOT NULL"))
    await first.kill()
    peer.later_s = None
    await household.start(peer=peer.port, ahead_s=HOUR)
    assert peer.texts() == []
    await peer.says("chat", "/last")
    await until(lambda: len(peer.texts()) == 2)
    assert "re: hello" in peer.texts()


def multiply(home: Household, copies: int) -> None:
    """As many more unsent answers, in chats of their own."""
    for number in range(copies):
        home.change(
            "INSERT INTO outbox (part_id, channel, account, address, kind, state, part, expires_at, created_at, updated_at) "
            "SELECT part_id || ?, channel, account, replace(address, ':chat', ?), kind, state, replace(part, '\"chat\"', ?), "
            "expires_at - ? * 60000000, created_at, updated_at FROM outbox WHERE id = 1",
            f".{number}", f":chat{number}", f'"chat{number}"', number * 8,
        )  # fmt: skip


def reminder(home: Household) -> None:
    home.change(
        "INSERT INTO outbox (part_id, channel, account, address, kind, state, part, expires_at, created_at, updated_at) "
        "SELECT 'reminder', channel, account, replace(address, ':chat', ':plants'), 'reminder', 'queued', "
        "replace(replace(part, '\"chat\"', '\"plants\"'), 're: hello', 'Water the plants.'), created_at + 86400000000, created_at, updated_at "
        "FROM outbox WHERE id = 1"
    )


@pytest.mark.rule("CH-55")
async def test_messages_that_waited_for_hours_are_one_turn_that_knows_it(household: Household, peer: Peer, model: FakeModel) -> None:
    household.speak_to(model)
    model.respond = echo
    await kill_with_waiting(household, peer, "one", "two", "three")
    await household.start(model="", peer=peer.port, hold_s=30.0, ahead_s=2 * HOUR)
    await household.settled()
    assert peer.texts() == ["re: one\ntwo\nthree"]
    (request,) = [each.body for each in model.requests if question(each.body)]  # a night may lie in these two hours, with questions of its own
    assert "This answer comes late" in json.dumps(request)


@pytest.mark.rule("CH-55")
async def test_messages_of_the_day_before_are_kept_and_not_answered(household: Household, peer: Peer) -> None:
    await kill_with_waiting(household, peer, "one", "two", "three")
    last = await household.start(peer=peer.port, hold_s=30.0, ahead_s=25 * HOUR)
    await household.settled()
    assert peer.texts() == []
    assert household.rows("SELECT DISTINCT state, rule FROM inbox") == [("ignored", "old")]
    assert household.rows("SELECT text FROM messages ORDER BY seq") == [("one",), ("two",), ("three",)]
    assert last.log.count("waited longer than the limit") == 1
    assert "3 messages" in last.log


async def kill_with_waiting(home: Household, peer: Peer, *texts: str) -> None:
    """Killed while these wait for more of the same sender."""
    killed = await home.start(model="", peer=peer.port, hold_s=30.0)
    for words in texts:
        await peer.says("chat", words)
    await until(lambda: peer.acknowledged == len(texts))
    await killed.kill()


# -- several bad ends --------------------------------------------------------------------------------------------------


@pytest.mark.rule("CH-102")
async def test_after_three_bad_ends_what_is_left_waits_for_the_operator_and_new_messages_work(
    household: Household, peer: Peer, model: FakeModel
) -> None:
    household.speak_to(model)
    model.respond = echo
    for _ in range(2):
        await (await household.start(model="", peer=peer.port, abilities=(RESEND_KEY,))).kill()
    model.will(STALLED)
    third = await household.start(model="", peer=peer.port, abilities=(RESEND_KEY,))
    await household.web.say(household.chat, "old page")
    await until(lambda: asked(model) == ["old page"])
    peer.later_s = HOUR
    await peer.says("chat", "old app")
    await until(lambda: household.rows("SELECT 1 FROM outbox WHERE not_before IS NOT NULL"))
    await third.kill()
    household.change("UPDATE outbox SET not_before = NULL WHERE state = 'queued'")
    peer.later_s = None

    parked = await household.start(model="", peer=peer.port, abilities=(RESEND_KEY,))
    assert "unfinished deliveries wait" in parked.log
    status, told = await readiness(household)
    assert status == 200
    assert [each["ok"] for each in told["dependencies"] if each["name"] == "deliveries"] == [False]
    new_chat = await household.web.chat()
    await household.web.say(new_chat, "new page")
    await peer.says("chat", "new app")
    await until(lambda: "re: new app" in peer.texts())
    assert await household.web.answers(new_chat) == ["re: new page"]
    assert peer.texts() == ["re: new app"]
    assert await household.said(household.chat) == [("user", "old page")]

    await parked.stop()  # a restart is no decision
    await household.start(model="", peer=peer.port, abilities=(RESEND_KEY,))
    await asyncio.sleep(0.3)
    assert peer.texts() == ["re: new app"]

    released = household.launch(command=("release", "--config", str(household.web.config_path)))
    assert await released.end() == 0
    assert "1 messages are being taken up" in released.log
    await household.settled()
    assert peer.texts() == ["re: new app", "re: old app"]
    assert await household.said(household.chat) == [("user", "old page"), ("assistant", "re: old page")]


# -- one process, and a start that cannot be ---------------------------------------------------------------------------


@pytest.mark.rule("WD-120", "CH-104")
async def test_a_second_process_on_the_same_data_says_who_holds_it_and_leaves(household: Household) -> None:
    first = await household.start_command_line()
    second = household.launch(command=("run", "--config", str(household.web.config_path)))
    assert await second.end() == 1
    assert f"in use by process {first.pid}" in second.log
    assert "Traceback" not in second.log
    await household.web.say(household.chat, "/version")
    await household.settled()
    await first.kill()
    third = await household.start_command_line()  # the lock went with its process
    assert third.alive


@pytest.mark.rule("WD-119")
async def test_a_port_that_is_taken_is_one_sentence(household: Household) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        household.configure(channels={"web": {"port": port}})
        refused = household.launch(command=("run", "--config", str(household.web.config_path)))
        assert await refused.end() == 1
    assert str(port) in refused.log
    assert "Traceback" not in refused.log


@pytest.mark.rule("WD-119", "WO-31")
@pytest.mark.case("CF-09")
async def test_a_bad_file_never_takes_a_running_gateway_down(household: Household) -> None:
    good = household.web.config_path.read_text()
    running = await household.start()
    for text, faults in (("{", [""]), ('{"timezoen": "UTC", ' + good[1:], ["timezoen"]), (good, [])):
        household.web.config_path.write_text(text)
        await until_faults(household, faults)
        await household.web.say(household.chat, "/version")
    await running.stop()
    household.web.config_path.write_text('{"timezone": 5}')
    refused = household.launch(command=("run", "--config", str(household.web.config_path)))
    assert await refused.end() == 78  # a supervisor does not start it again and again


async def until_faults(home: Household, paths: list[str]) -> None:
    async def look() -> bool:
        return [fault["path"] for fault in (await readiness(home))[1]["config_faults"]] == paths

    await eventually(look)

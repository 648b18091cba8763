"""One ordered lane per conversation (CH-60 to CH-73), in time that jumps: a wait of seconds is exact and takes none."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from gateway.arrivals.inbox import Waiting
from gateway.lanes import HOLD_TOTAL_S, IDLE_S, NEAR_LIMIT, Holding, Lanes, RunningTurn
from tests.quick import START, clock, quick

HOLD = Holding(quiet_s=0.6, text_max=4096)
AT_ONCE = Holding(quiet_s=0.0, text_max=4096)
_rows = itertools.count(1)


def item(text: str = "", *, chat: str = "c1", person: str = "ann", **more: Any) -> Waiting:
    row = next(_rows)
    base: dict[str, Any] = {
        "row_id": row, "delivery_id": f"d{row}", "address": chat, "conversation_id": chat, "person_id": person, "message_id": f"m-{text}",
        "turn_id": f"t-{text}", "received_at": START, "text": text, "text_length": len(text),
    }  # fmt: skip
    return Waiting(**(base | more))


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class Played:
    """The turns that began: their words and when. A turn takes `turn_s`, or does what `during` says."""

    turn_s: float = 0.0
    during: Callable[[RunningTurn], Any] | None = None
    turns: list[tuple[list[str], float]] = field(default_factory=list[tuple[list[str], float]])
    running: int = 0
    most: int = 0

    async def run(self, turn: RunningTurn) -> None:
        self.turns.append(([item.text for item in turn.items], now()))
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if self.during is not None:
                await self.during(turn)
            await asyncio.sleep(self.turn_s)
        finally:
            self.running -= 1

    @property
    def words(self) -> list[list[str]]:
        return [words for words, _ in self.turns]


# Order


@pytest.mark.case("SC-25")
@pytest.mark.rule("CH-60")
@quick
async def test_one_chat_is_answered_in_the_order_of_arrival_one_at_a_time() -> None:
    played = Played(turn_s=3)
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        for text in "abcde":
            lanes.put(item(text), AT_ONCE)
    assert played.words == [["a"], ["b"], ["c"], ["d"], ["e"]]
    assert played.most == 1


@pytest.mark.rule("CH-62")
@quick
async def test_chats_run_side_by_side_up_to_the_limit_and_wait_first_come_first_served() -> None:
    played = Played(turn_s=10)
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run, concurrency=3)
        for text in "abcdefg":
            lanes.put(item(text, chat=text), AT_ONCE)
    assert played.turns == [(["a"], 0), (["b"], 0), (["c"], 0), (["d"], 10), (["e"], 10), (["f"], 10), (["g"], 20)]
    assert played.most == 3


@pytest.mark.rule("CH-64")
@quick
async def test_a_turn_that_fails_does_not_stop_the_next(caplog: pytest.LogCaptureFixture) -> None:
    async def fails(turn: RunningTurn) -> None:
        if turn.items[0].text == "bad":
            raise RuntimeError("a fault of ours")

    played = Played(during=fails)
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        for text in ("bad", "good"):
            lanes.put(item(text), AT_ONCE)
    assert played.words == [["bad"], ["good"]]
    assert [record.getMessage() for record in caplog.records] == ["turn t-bad failed"]


@pytest.mark.rule("CH-60")
@quick
async def test_an_idle_lane_goes_after_a_minute_and_comes_back_when_asked() -> None:
    played = Played()
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        lanes.put(item("a"), AT_ONCE)
        await asyncio.sleep(IDLE_S - 1)
        assert [task for task in asyncio.all_tasks() if task.get_name() == "lane c1"]
        await asyncio.sleep(2)
        assert not [task for task in asyncio.all_tasks() if task.get_name() == "lane c1"]
        lanes.put(item("b"), AT_ONCE)
        await asyncio.sleep(1)
    assert played.words == [["a"], ["b"]]


# Joining


@pytest.mark.rule("CH-65")
@quick
async def test_texts_join_until_it_is_quiet() -> None:
    played = Played()
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        for text in ("my", "question", "is"):
            assert lanes.put(item(text), HOLD) == "started"
            await asyncio.sleep(0.5)
        await asyncio.sleep(0.2)
        lanes.put(item("another"), HOLD)
    assert played.turns == [(["my", "question", "is"], pytest.approx(1.6)), (["another"], pytest.approx(2.3))]


@pytest.mark.rule("CH-65")
@pytest.mark.parametrize(
    ("more", "wait"),
    [
        ({}, 0.6),
        ({"attachments": 1}, 1.2),
        ({"text_length": 4096 - NEAR_LIMIT - 1}, 0.6),
        ({"text_length": 4096 - NEAR_LIMIT}, 2.5),
        ({"text_length": 4096}, 2.5),
        ({"text_length": 4096, "attachments": 1}, 2.5),
        ({"action": "regenerate"}, 0.0),
    ],
)
def test_the_kind_of_message_says_how_long_to_wait_for_more(more: dict[str, Any], wait: float) -> None:
    assert HOLD.wait_after(item("x", **more)) == wait
    assert AT_ONCE.wait_after(item("x", **more)) == 0.0


@pytest.mark.rule("CH-65")
@quick
async def test_nobody_is_held_longer_than_five_seconds() -> None:
    played = Played()
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        for _ in range(20):
            lanes.put(item("x"), HOLD)
            await asyncio.sleep(0.4)
    assert played.turns[0][1] == pytest.approx(HOLD_TOTAL_S)
    assert sum(len(words) for words in played.words) == 20


@pytest.mark.rule("CH-65")
@quick
async def test_a_long_paste_cut_by_the_client_is_one_question() -> None:
    played = Played()
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        for length in (4096, 4090, 120):
            lanes.put(item(f"{length}", text_length=length), HOLD)
            await asyncio.sleep(2.0 if length > 4000 else 0)
    assert played.turns == [(["4096", "4090", "120"], pytest.approx(4.6))]


@pytest.mark.rule("CH-65")
@quick
async def test_a_command_ends_the_waiting_for_more() -> None:
    played = Played()
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        lanes.put(item("held"), HOLD)
        await asyncio.sleep(0.1)
        lanes.flush("c1")
        lanes.flush("nowhere")
    assert played.turns == [(["held"], pytest.approx(0.1))]


@pytest.mark.rule("CH-65")
@quick
async def test_what_is_said_after_a_command_is_another_turn_however_quickly_it_comes() -> None:
    played = Played()
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        lanes.flush("c1")  # nothing is held: it changes nothing
        for text in ("a", "b"):
            lanes.put(item(text), HOLD)
        lanes.flush("c1")
        lanes.put(item("c"), HOLD)
        lanes.flush("c1")
        for text in ("d", "e"):
            lanes.put(item(text), HOLD)
    assert played.words == [["a", "b"], ["c"], ["d", "e"]]


@pytest.mark.rule("CH-65")
@quick
async def test_words_of_two_people_are_not_joined() -> None:
    played = Played()
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        for person, text in [("ann", "a1"), ("ann", "a2"), ("bob", "b1"), ("ann", "a3")]:
            lanes.put(item(text, person=person), HOLD)
    assert played.words == [["a1", "a2"], ["b1"], ["a3"]]


@pytest.mark.rule("CH-66")
@pytest.mark.parametrize(
    ("arrived", "order"),
    [
        (["3", "1", "2", "4"], ["1", "2", "3", "4"]),
        (["m9", "m10", "m8"], ["m8", "m9", "m10"]),
        (["9007199254740993", "9007199254740992"], ["9007199254740992", "9007199254740993"]),
        (["wamid.b", "wamid.a"], ["wamid.b", "wamid.a"]),
        (["a2", "b1"], ["a2", "b1"]),
        (["2", ""], ["2", ""]),
    ],
)
@quick
async def test_an_album_is_one_turn_in_the_platforms_order(arrived: list[str], order: list[str]) -> None:
    played = Played()
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        for number in arrived:
            lanes.put(item(number, platform_message_id=number, attachments=1), HOLD)
            await asyncio.sleep(0.3)
    assert played.words == [order]


@pytest.mark.rule("CH-55")
@quick
async def test_everything_that_waited_long_is_one_turn_at_once() -> None:
    played = Played()
    late = Holding(quiet_s=0.6, text_max=4096, is_late=lambda item: clock() - item.since > timedelta(hours=1))
    old = START - timedelta(hours=2)
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        for person, text in [("ann", "1"), ("bob", "2"), ("ann", "3")]:
            lanes.put(item(text, person=person, written_at=old), late)
        lanes.put(item("4", person="bob"), late)
    assert played.turns[0] == (["1", "2", "3"], 0)
    assert played.words[1:] == [["4"]]


@pytest.mark.rule("CH-54")
@quick
async def test_what_was_begun_before_is_tried_again_as_it_was() -> None:
    played = Played()
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        lanes.put(item("a", attempts=1, turn_id="t1"), HOLD)
        lanes.put(item("b", attempts=1, turn_id="t1"), HOLD)
        lanes.put(item("c"), HOLD)
        lanes.put(item("d"), HOLD)
    assert played.words == [["a", "b"], ["c", "d"]]


# While a turn runs


@pytest.mark.rule("CH-70")
@quick
async def test_new_words_of_the_same_person_enter_the_running_turn() -> None:
    taken: list[list[str]] = []

    async def works(turn: RunningTurn) -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            taken.append([item.text for item in turn.take_steering()])

    played = Played(during=works)
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        lanes.put(item("question"), AT_ONCE)
        await asyncio.sleep(0.5)
        assert [lanes.put(item(text), AT_ONCE, may_steer=True) for text in ("shorter", "in French")] == ["steered", "steered"]
        assert lanes.waiting("c1") == 2
        await asyncio.sleep(1)
        assert lanes.waiting("c1") == 0
        assert lanes.put(item("with a table"), AT_ONCE, may_steer=True) == "steered"
    assert taken == [["shorter", "in French"], ["with a table"], []]
    assert played.words == [["question"]]


@pytest.mark.rule("CH-70")
@quick
async def test_words_that_come_too_late_for_the_turn_are_the_next_one_and_before_all_others() -> None:
    played = Played(turn_s=5)
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        lanes.put(item("question"), AT_ONCE)
        await asyncio.sleep(1)
        assert lanes.put(item("late 1"), AT_ONCE, may_steer=True) == "steered"
        assert lanes.put(item("late 2"), AT_ONCE, may_steer=True) == "steered"
        assert lanes.put(item("other", person="bob"), AT_ONCE, may_steer=True) == "queued"
    assert played.words == [["question"], ["late 1"], ["late 2"], ["other"]]


@pytest.mark.rule("CH-70", "CH-71")
@pytest.mark.parametrize(
    ("more", "may_steer"), [({"person": "bob"}, True), ({"attachments": 1}, True), ({"action": "regenerate"}, True), ({}, False)]
)
@quick
async def test_files_other_people_and_the_queue_mode_wait_their_turn(more: dict[str, Any], may_steer: bool) -> None:
    played = Played(turn_s=5)
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        lanes.put(item("question"), AT_ONCE)
        await asyncio.sleep(1)
        assert lanes.put(item("next", **more), AT_ONCE, may_steer=may_steer) == "queued"
        assert lanes.put(item("after it"), AT_ONCE, may_steer=True) == "queued", "nothing overtakes what waits"
        running = lanes.running("c1")
        assert running is not None
        assert (running.steering, lanes.waiting("c1"), lanes.depth) == ([], 2, 2)
    assert played.words == [["question"], ["next"], ["after it"]]


@pytest.mark.rule("CH-72")
@quick
async def test_a_stop_ends_the_turn_and_leaves_the_queue() -> None:
    async def thinks(turn: RunningTurn) -> None:
        if turn.items[0].text != "long":
            return
        try:
            async with asyncio.timeout(600) as turn.scope:
                await asyncio.sleep(500)
        except TimeoutError:
            assert turn.stopped
        finally:
            turn.scope = None

    played = Played(during=thinks)
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        lanes.put(item("long"), AT_ONCE)
        await asyncio.sleep(1)
        lanes.put(item("waits"), AT_ONCE)
        running = lanes.running("c1")
        assert running is not None
        running.interrupt()
        running.interrupt()
        assert lanes.put(item("after"), AT_ONCE, may_steer=True) == "queued", "nothing enters a turn that is being stopped"
    assert played.turns == [(["long"], 0), (["waits"], 1), (["after"], 1)]


@pytest.mark.rule("CH-72")
@quick
async def test_a_stop_before_the_turn_can_be_ended_is_not_forgotten() -> None:
    turn = RunningTurn(items=(item("x"),))
    turn.interrupt()
    assert turn.stopped and not turn.discarded
    turn.interrupt(discard=True)
    turn.interrupt()
    assert turn.discarded


@pytest.mark.rule("CH-72")
@quick
async def test_stop_all_also_empties_the_queue() -> None:
    played = Played(turn_s=5)
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        lanes.put(item("runs"), AT_ONCE)
        await asyncio.sleep(1)
        lanes.put(item("steers"), AT_ONCE, may_steer=True)
        lanes.put(item("waits", person="bob"), AT_ONCE)
        assert [dropped.text for dropped in lanes.drop_waiting("c1")] == ["waits", "steers"]
        assert lanes.drop_waiting("c1") == lanes.drop_waiting("nowhere") == []
    assert played.words == [["runs"]]


@pytest.mark.rule("CH-60", "DL-14")
@quick
async def test_a_command_ends_only_what_came_before_it() -> None:
    played = Played(turn_s=5)
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        lanes.put(item("runs"), AT_ONCE)
        await asyncio.sleep(1)
        steers, waits, later = item("steers"), item("waits", person="bob"), item("later", person="bob")
        lanes.put(steers, AT_ONCE, may_steer=True)
        lanes.put(waits, AT_ONCE)
        lanes.put(later, AT_ONCE)
        running = lanes.running("c1")
        assert running is not None
        lanes.discard("c1", before=running.items[0].row_id)
        assert not running.stopped, "it came later"
        assert [dropped.text for dropped in lanes.drop_waiting("c1", before=later.row_id)] == ["waits", "steers"]
        lanes.discard("c1", before=later.row_id)
        assert running.discarded
    assert played.words == [["runs"], ["later"]]


@pytest.mark.rule("CH-65", "CH-70")
@quick
async def test_what_steered_in_vain_is_not_joined_with_what_was_said_after_a_command() -> None:
    played = Played(turn_s=5)
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        lanes.put(item("runs"), HOLD)
        await asyncio.sleep(HOLD.quiet_s + 1)
        lanes.put(item("steers"), HOLD, may_steer=True)
        lanes.flush("c1")
        lanes.put(item("after"), HOLD)
    assert played.words == [["runs"], ["steers"], ["after"]]


@pytest.mark.rule("CH-70", "WD-9")
def test_words_of_another_memory_do_not_steer_a_turn() -> None:
    turn = RunningTurn(items=(item("x", scope="people/p"),))
    assert turn.may_take(item("y", scope="people/p"))
    assert not turn.may_take(item("y"))


# Edited and deleted while it waits


@pytest.mark.rule("CH-2")
@quick
async def test_a_deleted_message_is_dropped_where_it_waits() -> None:
    played = Played(turn_s=5)
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        lanes.put(item("runs"), AT_ONCE)
        await asyncio.sleep(1)
        lanes.put(item("steers"), AT_ONCE, may_steer=True)
        lanes.put(item("waits", person="bob"), AT_ONCE)
        lanes.put(item("", message_id="", action="regenerate", person="bob"), AT_ONCE)
        for message_id in ("m-runs", "m-steers", "m-waits", ""):
            lanes.forget(message_id)
    assert played.words == [["runs"], [""]]


@pytest.mark.rule("CH-2")
@quick
async def test_an_edit_in_time_steers_with_the_new_words() -> None:
    taken: list[str] = []

    async def works(turn: RunningTurn) -> None:
        await asyncio.sleep(5)
        taken.extend(item.text for item in turn.take_steering())

    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, Played(during=works).run)
        lanes.put(item("runs"), AT_ONCE)
        await asyncio.sleep(1)
        lanes.put(item("in Frnch"), AT_ONCE, may_steer=True)
        lanes.correct("m-in Frnch", "in French")
    assert taken == ["in French"]


# The end


@pytest.mark.rule("CH-100")
@quick
async def test_closing_lets_running_turns_end_and_begins_no_other() -> None:
    played = Played(turn_s=5)
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, played.run)
        lanes.put(item("runs"), AT_ONCE)
        lanes.put(item("waits"), AT_ONCE)
        lanes.put(item("held", chat="c2"), HOLD)
        await asyncio.sleep(0.1)
        lanes.close()
        assert len(lanes.turns) == 1
        await lanes.quiet()
        assert now() == 5
        lanes.put(item("after", chat="c3"), AT_ONCE)
    assert played.words == [["runs"]]
    assert now() < 10, "no idle lane keeps the end waiting"


@pytest.mark.rule("CH-100")
@quick
async def test_with_nothing_running_there_is_nothing_to_wait_for() -> None:
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, Played().run)
        await lanes.quiet()
        lanes.put(item("a"), AT_ONCE)
        await asyncio.sleep(1)
        await lanes.quiet()
        assert lanes.running("c1") is None
        assert lanes.running("nowhere") is None

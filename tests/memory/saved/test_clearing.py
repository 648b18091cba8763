"""Clearing a list in two steps (SM-76 to SM-78; T18)."""

from __future__ import annotations

import pytest

from memory.database import Database
from memory.saved import clearing, journal
from memory.saved.clearing import Cleared, ClearingExpired, Question
from memory.saved.rows import ListKey
from tests.conftest import FakeClock
from tests.memory.saved.stage import ANN, BOB, GLOBAL, MINE, Stage


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage.of(database, clock)


def ask(stage: Stage, key: ListKey = MINE) -> Question:
    return stage.do(lambda connection: clearing.ask(connection, ANN, key, stage.clock()))


def first(stage: Stage, token: str, *, person: str = ANN, key: ListKey = MINE) -> Cleared:
    return stage.do(lambda connection: clearing.clear(connection, token, person, key, stage.clock()))


def second(stage: Stage, token: str, *, person: str = ANN, key: ListKey = MINE) -> Cleared:
    return stage.do(lambda connection: clearing.clear_pins(connection, token, person, key, stage.clock()))


def about_pins(cleared: Cleared) -> Question:
    assert cleared.question is not None
    return cleared.question


@pytest.mark.rule("SM-76")
def test_the_first_yes_takes_everything_unpinned_of_one_list_and_the_second_the_pins(stage: Stage) -> None:
    stage.sleep(stage.tool_row("asleep"))
    stage.add("awake")
    stage.add("a pin", pinned=True)
    stage.add("elsewhere", GLOBAL)
    question = ask(stage)
    assert (question.step, question.count) == (1, 2)
    cleared = first(stage, question.token)
    assert cleared.deleted == 2
    assert stage.texts() == ["a pin"]
    pins = about_pins(cleared)
    assert (pins.step, [memory.content for memory in pins.pins]) == (2, ["a pin"])
    done = second(stage, pins.token)
    assert (done.deleted, done.question) == (1, None)
    assert (stage.texts(), stage.texts(GLOBAL)) == ([], ["elsewhere"])


@pytest.mark.rule("SM-76")
def test_without_pins_there_is_no_second_question(stage: Stage) -> None:
    stage.add("a")
    assert first(stage, ask(stage).token).question is None


@pytest.mark.rule("SM-77")
def test_declining_the_second_step_keeps_the_pins(stage: Stage) -> None:
    stage.add("a pin", pinned=True)
    pins = about_pins(first(stage, ask(stage).token))
    stage.do(lambda connection: clearing.decline(connection, pins.token, ANN, MINE, stage.clock()))
    with pytest.raises(ClearingExpired):
        second(stage, pins.token)
    assert stage.texts() == ["a pin"]


@pytest.mark.rule("SM-77")
def test_a_double_click_or_replay_does_nothing_more(stage: Stage) -> None:
    stage.add("a pin", pinned=True)
    question = ask(stage)
    pins = about_pins(first(stage, question.token))
    stage.add("said later")
    with pytest.raises(ClearingExpired):
        first(stage, question.token)
    assert stage.texts() == ["a pin", "said later"]
    second(stage, pins.token)
    stage.add("a pin", pinned=True)
    with pytest.raises(ClearingExpired):
        second(stage, pins.token)
    assert stage.texts() == ["said later", "a pin"]


@pytest.mark.rule("SM-77")
def test_a_token_is_of_one_person_list_step_and_ten_minutes(stage: Stage) -> None:
    stage.add("a")
    stage.add("a pin", pinned=True)
    token = ask(stage).token
    for attempt in (
        lambda: second(stage, token),  # the first step cannot be skipped
        lambda: first(stage, token, person=BOB),
        lambda: first(stage, token, key=GLOBAL),
        lambda: first(stage, "invented"),
    ):
        with pytest.raises(ClearingExpired):
            attempt()
    stage.clock.advance(minutes=10)
    with pytest.raises(ClearingExpired):
        first(stage, token)
    assert stage.texts() == ["a", "a pin"]
    pins = about_pins(first(stage, ask(stage).token))
    with pytest.raises(ClearingExpired):
        first(stage, pins.token)


@pytest.mark.rule("SM-77")
def test_a_pin_made_in_between_is_listed_again_and_not_deleted(stage: Stage) -> None:
    stage.add("old pin", pinned=True)
    pins = about_pins(first(stage, ask(stage).token))
    stage.add("new pin", pinned=True)
    cleared = second(stage, pins.token)
    assert cleared.deleted == 1
    assert [memory.content for memory in about_pins(cleared).pins] == ["new pin"]
    assert stage.texts() == ["new pin"]
    assert second(stage, about_pins(cleared).token).deleted == 1


@pytest.mark.rule("SM-78")
def test_clearing_erases_what_the_journal_kept_and_no_undo_brings_it_back(stage: Stage) -> None:
    old = stage.tool_row("told long ago")
    stage.save("new")
    stage.delete(old)
    other = stage.save("elsewhere", GLOBAL)
    first(stage, ask(stage).token)
    assert not stage.undo().restored
    assert stage.texts() == []
    entries = stage.do(lambda connection: journal.of_turn(connection, "t-1"))
    assert [(entry.void, entry.before or entry.after) for entry in entries] == [(True, None), (True, None), (False, other.memory)]

"""What people do to their saved memories: caps, text, duplicates, pins, and what changes a date (SM-1 to SM-6, SM-44, SM-60, SM-74, SM-75)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from memory import vectors
from memory.database import Database
from memory.saved import store
from memory.saved.rows import ListKey, Memory, character_list, content_hash
from memory.saved.writing import Limits, Outcome, Result
from memory.saved_schema import memories, memory_decay
from memory.schema import people
from tests.conftest import FakeClock
from tests.memory.saved.stage import ANN, BOB, DEN, GLOBAL, MINE, PLACE, SMALL, YUKI, Stage


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage.of(database, clock)


def made(result: Result) -> Memory:
    assert result.memory is not None, result.outcome
    return result.memory


@pytest.mark.rule("SM-1")
def test_a_row_stands_in_exactly_the_list_it_was_made_for(stage: Stage) -> None:
    for key in (GLOBAL, MINE, PLACE, character_list(BOB, YUKI)):
        stage.add(f"of {key}", key)
        assert stage.texts(key) == [f"of {key}"]
    assert [memory.key for memory in stage.rows(GLOBAL, MINE)] == [GLOBAL, MINE]
    assert stage.rows() == []
    with pytest.raises(IntegrityError):
        stage.do(lambda connection: connection.execute(sa.update(memories).values(list_kind="global")))


@pytest.mark.rule("SM-2")
def test_both_sides_of_a_list_are_counted_apart_and_never_against_another_list(stage: Stage) -> None:
    stage.limits = Limits()
    stage.tool_rows(f"row {at}" for at in range(99))
    assert stage.add("row 99").outcome is Outcome.SAVED
    assert stage.add("row 100").outcome is Outcome.LIST_FULL
    for at in range(20):
        assert stage.add(f"pin {at}", pinned=True).outcome is Outcome.SAVED
    assert stage.add("pin 20", pinned=True).outcome is Outcome.LIST_FULL
    assert stage.add("a fact", GLOBAL).outcome is Outcome.SAVED
    first, pinned = stage.rows(MINE)[0].id, stage.rows(MINE)[-1].id
    assert stage.pin(first).outcome is Outcome.LIST_FULL
    assert stage.unpin(pinned).outcome is Outcome.LIST_FULL
    stage.remove(first)
    assert stage.unpin(pinned).outcome is Outcome.UPDATED


@pytest.mark.rule("SM-2")
def test_full_pins_block_no_save_and_dormant_rows_count(stage: Stage) -> None:
    ids = [made(stage.add(f"row {at}")).id for at in range(3)]
    stage.sleep(*ids)
    for at in range(2):
        stage.add(f"pin {at}", pinned=True)
    assert stage.add("the fourth").outcome is Outcome.SAVED
    assert stage.add("the fifth").outcome is Outcome.LIST_FULL


@pytest.mark.rule("SM-3")
@pytest.mark.parametrize("sign", ["a", "雪", "ゆ", "🎻"])
def test_a_text_has_one_to_five_hundred_code_points(stage: Stage, sign: str) -> None:
    assert stage.add(f"  {sign * 500}\n").outcome is Outcome.SAVED
    refused = stage.add(sign * 501)
    assert (refused.outcome, refused.length, refused.limit) == (Outcome.TOO_LONG, 501, 500)
    assert stage.save(sign * 501).outcome is Outcome.TOO_LONG
    assert stage.add(" \n\u3000").outcome is Outcome.EMPTY
    [row] = stage.rows(MINE)
    assert row.content == sign * 500
    assert stage.edit(row.id, sign * 501).outcome is Outcome.TOO_LONG
    assert stage.update(row.id, "").outcome is Outcome.EMPTY
    with pytest.raises(IntegrityError):
        stage.do(lambda connection: connection.execute(sa.update(memories).values(content=sign * 501)))


@pytest.mark.rule("SM-3")
def test_a_text_is_kept_in_its_composed_form(stage: Stage) -> None:
    assert made(stage.add("か\u3099")).content == "が"


@pytest.mark.rule("SM-4")
@pytest.mark.parametrize(
    ("first", "same", "other"),
    [
        ("Likes  green tea", "likes green TEA", "likes green teas"),
        ("カタカナが好き", "ｶﾀｶﾅが好き", "ひらがなが好き"),
        ("喜欢　绿茶", "喜欢 绿茶", "喜欢绿茶"),
    ],
)
def test_what_says_exactly_the_same_is_no_second_row(stage: Stage, first: str, same: str, other: str) -> None:
    row = made(stage.add(first))
    again = stage.add(same)
    assert (again.outcome, made(again).id) == (Outcome.UNCHANGED, row.id)
    by_ai = stage.save(same)
    assert (by_ai.outcome, made(by_ai).id) == (Outcome.UNCHANGED, row.id)
    assert stage.add(same, GLOBAL).outcome is Outcome.SAVED  # another list
    assert stage.save(other).outcome is Outcome.SAVED


@pytest.mark.rule("SM-4")
def test_a_sleeping_original_wakes_as_if_matched_and_a_hidden_one_counts_for_people_only(stage: Stage) -> None:
    row = made(stage.add("plays the cello"))
    stage.sleep(row.id)
    hidden = stage.save("Plays the cello", by=replace(stage.hand(), visible=()))
    assert hidden.outcome is Outcome.SAVED
    woken = made(stage.save("Plays the Cello"))
    assert (woken.id, woken.dormant, woken.unused_days, woken.last_matched_at) == (row.id, False, 0, stage.clock())
    assert woken.updated_at == row.updated_at


@pytest.mark.rule("SM-5", "SM-44")
def test_only_text_list_and_pin_change_the_date(stage: Stage) -> None:
    row = made(stage.add("a"))
    was = row.updated_at
    stage.sleep(row.id)
    stage.search(matched=[row.id])
    stage.edit(row.id, " a ")
    stage.do(lambda connection: store.set_tags(connection, row.id, ["cat"]))
    stage.do(lambda connection: store.set_channels(connection, row.id, ["discord:main:1"]))
    stage.do(lambda connection: store.set_private(connection, row.id, False))
    stage.sleep(row.id)
    stage.do(lambda connection: store.wake(connection, row.id, stage.clock()))
    now = stage.row(row.id)
    assert now is not None
    assert (now.updated_at, now.tags, now.channel_ids, now.private_origin) == (was, ("cat",), ("discord:main:1",), False)
    for change in (lambda: stage.edit(row.id, "b"), lambda: stage.pin(row.id), lambda: stage.unpin(row.id)):
        stage.clock.advance(hours=1)
        assert made(change()).updated_at == stage.clock()


@pytest.mark.rule("SM-44", "SM-75")
def test_an_edit_protects_without_waking_and_a_button_wakes(stage: Stage) -> None:
    row = stage.tool_row("likes tea")
    stage.sleep(row)
    edited = made(stage.edit(row, "likes green tea"))
    assert (edited.dormant, edited.protected, edited.content_hash) == (True, True, content_hash("likes green tea"))
    woken = made(stage.do(lambda connection: store.wake(connection, row, stage.clock())))
    assert (woken.dormant, woken.unused_days, woken.last_matched_at) == (False, 0, None)
    assert stage.do(lambda connection: store.wake(connection, row, stage.clock())).outcome is Outcome.UNCHANGED


@pytest.mark.rule("SM-45")
def test_an_unchanged_save_by_a_person_protects(stage: Stage) -> None:
    row = stage.tool_row("likes tea")
    saved = stage.edit(row, "likes tea")
    assert (saved.outcome, made(saved).protected) == (Outcome.UNCHANGED, True)


@pytest.mark.rule("SM-53", "SM-54")
def test_an_edit_of_something_else_than_was_seen_is_refused_with_the_present_text(stage: Stage) -> None:
    row = made(stage.add("a"))
    stage.edit(row.id, "b")
    refused = stage.edit(row.id, "c", based_on=row.revision)
    assert (refused.outcome, refused.present_text) == (Outcome.CHANGED, "b")


@pytest.mark.rule("SM-75", "SM-38")
def test_a_pin_is_awake_and_unpinned_it_starts_at_nothing_and_does_not_tick_today(stage: Stage) -> None:
    row = stage.tool_row("birthday 3 May")
    stage.sleep(row)
    pinned = made(stage.pin(row))
    assert (pinned.pinned, pinned.protected, pinned.dormant, pinned.unused_days) == (True, True, False, 0)
    for _ in range(9):
        stage.clock.advance(days=1)
        stage.search(matched=[row], may_tick=[row])
    unpinned = made(stage.unpin(row))
    assert (unpinned.pinned, unpinned.protected, unpinned.unused_days, unpinned.last_tick_day) == (False, True, 0, stage.clock().date())
    stage.search(may_tick=[row])
    assert made(stage.edit(row, "birthday 3 May")).unused_days == 0


@pytest.mark.rule("SM-74")
def test_what_is_not_there_can_be_neither_pinned_nor_changed(stage: Stage) -> None:
    for result in (stage.pin(77), stage.unpin(77), stage.remove(77), stage.edit(77, "a")):
        assert result.outcome is Outcome.UNKNOWN_ID


@pytest.mark.rule("SM-60", "SM-49")
def test_drafts_are_saved_all_or_none_and_never_evict(stage: Stage) -> None:
    asleep = [stage.tool_row(f"row {at}") for at in range(2)]
    stage.sleep(*asleep)
    drafts = [stage.new(text) for text in ("one", "two", "ONE", "row 1")]
    full = stage.do(lambda connection: store.add_all(connection, [*drafts, stage.new("three")], stage.clock(), limits=SMALL))
    assert (full.outcome, full.fits, len(stage.rows(MINE))) == (Outcome.LIST_FULL, 2, 2)
    saved = stage.do(lambda connection: store.add_all(connection, drafts, stage.clock(), limits=SMALL))
    assert [memory.content for memory in saved.added] == ["one", "two"]
    assert [memory.content for memory in saved.standing] == ["row 1"]
    pins = [stage.new(f"pin {at}", pinned=True) for at in range(3)]
    assert stage.do(lambda connection: store.add_all(connection, pins, stage.clock(), limits=SMALL)).fits == 2
    long = stage.do(lambda connection: store.add_all(connection, [stage.new("a"), stage.new("x" * 501)], stage.clock(), limits=SMALL))
    assert (long.outcome, long.fault) == (Outcome.TOO_LONG, 1)
    assert len(stage.rows(MINE)) == 4


@pytest.mark.rule("SM-49")
def test_a_person_is_asked_before_their_full_list_forgets_anything(stage: Stage) -> None:
    ids = stage.fill()
    asked = stage.add("new")
    assert asked.outcome is Outcome.LIST_FULL
    assert asked.victim is not None
    assert asked.victim.id == ids[0]
    stage.search(matched=[ids[0]])  # it was used meanwhile
    again = stage.add("new", evict=ids[0])
    assert (again.outcome, again.victim and again.victim.id) == (Outcome.LIST_FULL, ids[1])
    assert stage.add("new", evict=ids[1], ageing_on=False).victim is None
    done = stage.add("new", evict=ids[1])
    assert (done.outcome, done.victim and done.victim.id) == (Outcome.SAVED, ids[1])
    assert stage.row(ids[1]) is None


@pytest.mark.rule("SM-73", "SM-90")
def test_vectors_go_with_the_last_text_that_needs_them(stage: Stage) -> None:
    first, second = made(stage.add("a")), made(stage.add("a", GLOBAL))
    stage.do(lambda connection: vectors.put(connection, "f", {first.content_hash: np.ones(4, np.float32)}))

    def kept() -> int:
        return stage.do(lambda connection: connection.execute(sa.text("select count(*) from vectors")).scalar_one())

    stage.remove(first.id)
    assert kept() == 1
    stage.edit(second.id, "b")
    assert kept() == 0


def test_the_owner_and_the_age_of_a_row_cannot_be_missing(stage: Stage) -> None:
    row = made(stage.add("a"))
    stage.add("space", PLACE)
    stage.do(lambda connection: connection.execute(sa.delete(people).where(people.c.id == ANN)))
    assert stage.row(row.id) is None
    assert stage.do(lambda connection: connection.execute(sa.select(sa.func.count()).select_from(memory_decay)).scalar_one()) == 1
    assert [memory.key for memory in stage.rows(ListKey(PLACE.kind, DEN, YUKI))] == [PLACE]


@pytest.mark.rule("SM-35", "SM-38")
def test_a_new_row_is_active_and_does_not_tick_on_its_first_day(stage: Stage) -> None:
    row = made(stage.add("a"))
    stage.search(may_tick=[row.id])
    assert made(stage.edit(row.id, "a")).unused_days == 0
    stage.clock.advance(days=1)
    stage.search(may_tick=[row.id])
    now = stage.row(row.id)
    assert now is not None
    assert (now.unused_days, now.created_at) == (1, stage.clock() - timedelta(days=1))

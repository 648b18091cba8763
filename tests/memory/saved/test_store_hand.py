"""What the AI does to saved memories: outcomes, full lists, eviction, the journal (SM-45 to SM-48, SM-51 to SM-54, SM-64, SM-83; T11 to T13)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from memory.database import Database
from memory.errors import StoreUnavailable
from memory.saved import decay_store, hand, journal, stored
from memory.saved.hand import Hand
from memory.saved.journal import Op
from memory.saved.rows import ListKey, Memory, character_list
from memory.saved.writing import Limits, New, Outcome, Result
from memory.saved_schema import memories, memory_journal
from tests.conftest import FakeClock
from tests.memory.saved.stage import BOB, GLOBAL, MINE, PLACE, YUKI, Stage


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage.of(database, clock)


def made(result: Result) -> Memory:
    assert result.memory is not None, result.outcome
    return result.memory


@pytest.mark.rule("SM-52", "SM-54", "SM-64")
def test_the_ai_saves_changes_and_deletes_and_each_is_in_the_journal(stage: Stage) -> None:
    hand_ = stage.hand()
    row = made(stage.save(" likes tea ", by=hand_))
    assert (row.content, row.pinned, row.protected, row.origin, row.author_kind, row.author_id) == (
        "likes tea",
        False,
        False,
        "tool",
        "model",
        "model",
    )
    changed = made(stage.update(row.id, "likes green tea", by=hand_))  # one that it wrote itself, before it was ever sent
    assert changed.revision != row.revision
    assert stage.delete(row.id, by=hand_).outcome is Outcome.DELETED
    entries = stage.do(lambda connection: journal.of_turn(connection, "t-1"))
    assert [(entry.seq, entry.op, entry.memory_id) for entry in entries] == [(1, Op.CREATE, row.id), (2, Op.UPDATE, row.id), (3, Op.DELETE, row.id)]
    assert [(entry.before, entry.after) for entry in entries] == [(None, row), (row, changed), (changed, None)]
    assert [entry.after_revision for entry in entries] == [row.revision, changed.revision, ""]
    assert {(entry.actor, entry.attempt, entry.conversation_id, entry.key) for entry in entries} == {("tool", 1, "c-1", MINE)}


@pytest.mark.rule("SM-64")
def test_an_operation_that_cannot_be_journalled_did_not_happen(stage: Stage) -> None:
    stage.do(lambda connection: connection.execute(sa.text("drop table memory_journal")))
    with pytest.raises((DBAPIError, StoreUnavailable)):
        stage.save("likes tea")
    assert stage.rows(MINE) == []


@pytest.mark.rule("SM-52", "SM-53", "SM-54", "SM-74")
def test_what_the_ai_may_not_touch_stays_and_says_why(stage: Stage) -> None:
    pinned = made(stage.add("a pin", pinned=True))
    plain = made(stage.add("a row"))
    bobs = made(stage.add("of bob", character_list(BOB, YUKI)))
    seen = stage.hand()
    stage.edit(plain.id, "a row, edited")
    here = replace(seen, sent={**seen.sent, bobs.id: bobs.revision})
    for act in (partial(stage.update, content="x"), stage.delete):
        assert act(pinned.id, by=here).outcome is Outcome.PINNED
        assert act(bobs.id, by=here).outcome is Outcome.LIST_NOT_ALLOWED
        assert act(99, by=here).outcome is Outcome.UNKNOWN_ID
        assert act(bobs.id, by=seen).outcome is Outcome.UNKNOWN_ID
        changed = act(plain.id, by=here)
        assert (changed.outcome, changed.present_text) == (Outcome.CHANGED, "a row, edited")
    assert stage.save("x", character_list(BOB, YUKI)).outcome is Outcome.LIST_NOT_ALLOWED
    assert stage.update(plain.id, "a row, edited").outcome is Outcome.UNCHANGED
    assert stage.update(plain.id, " ").outcome is Outcome.EMPTY
    assert stage.do(lambda connection: journal.of_turn(connection, "t-1")) == []


@pytest.mark.rule("SM-52")
def test_a_protected_row_stays_protected_when_the_ai_edits_it(stage: Stage) -> None:
    row = made(stage.add("likes tea"))
    assert made(stage.update(row.id, "likes coffee")).protected


@pytest.mark.rule("SM-54", "SM-81")
def test_operations_of_a_turn_are_counted_and_an_eviction_counts_with_its_save(stage: Stage) -> None:
    stage.fill()
    few = stage.hand(operations_max=2)
    first = stage.save("one", by=few)
    assert first.victim is not None
    assert stage.save("two", by=few).outcome is Outcome.SAVED
    assert stage.save("three", by=few).outcome is Outcome.TOO_MANY_OPERATIONS
    assert stage.delete(made(first).id, by=few).outcome is Outcome.TOO_MANY_OPERATIONS
    stage.attempt = 2
    assert stage.save("three", by=stage.hand(operations_max=2)).outcome is Outcome.SAVED


@pytest.mark.rule("SM-15")
@pytest.mark.parametrize(("private", "mark"), [(True, True), (False, False)])
def test_an_edit_in_private_makes_a_row_of_a_shared_place_private(stage: Stage, private: bool, mark: bool) -> None:
    new = New(key=MINE, content="said there", origin="tool", author_kind="model", private_origin=False)
    there = stage.hand("t-there")
    row = made(stage.do(lambda connection: hand.save(connection, there, new, stage.clock())))
    assert not row.private_origin
    assert made(stage.update(row.id, "said elsewhere", by=stage.hand(private=private))).private_origin is mark
    in_space = stage.tool_row("of the place", PLACE)
    assert not made(stage.update(in_space, "of this place")).private_origin


# -- full lists --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-45", "SM-46")
def test_never_matched_rows_go_first_then_the_longest_unmatched(stage: Stage) -> None:
    first = stage.tool_row("oldest, matched")
    stage.clock.advance(hours=1)
    second = stage.tool_row("matched longer ago")
    third, fourth = stage.tool_row("never matched"), stage.tool_row("never matched too")
    stage.clock.advance(days=1)
    stage.search(matched=[second])
    stage.clock.advance(days=1)
    stage.search(matched=[first])
    stage.sleep(first, second, third, fourth)
    gone: list[int] = []
    for at in range(4):
        result = stage.save(f"new {at}", by=stage.hand(f"t-{at}"))
        assert result.victim is not None
        gone.append(result.victim.id)
        assert len(stage.rows(MINE)) == 4
    assert gone == [third, fourth, second, first]
    assert stage.save("one more").outcome is Outcome.LIST_FULL  # all that is left is awake


@pytest.mark.rule("SM-46")
@pytest.mark.parametrize(("matched", "goes"), [(False, 1), (True, 0)])
def test_the_date_decides_among_the_never_matched_and_the_id_among_those_matched_at_once(stage: Stage, matched: bool, goes: int) -> None:
    ids = stage.tool_rows(f"row {at}" for at in range(4))
    older = sa.update(memories).where(memories.c.id == ids[1]).values(created_at=stage.clock() - timedelta(days=400))  # as an import leaves it
    stage.do(lambda connection: connection.execute(older))
    if matched:
        stage.search(matched=ids)
    stage.sleep(*ids)
    victim = stage.save("new").victim
    assert victim is not None
    assert victim.id == ids[goes]


@pytest.mark.rule("SM-45", "SM-46", "SM-47")
def test_protected_pinned_and_awake_rows_are_no_victims(stage: Stage) -> None:
    ids = stage.fill()
    stage.edit(ids[0], "edited by a person")
    stage.pin(ids[1])
    stage.search(matched=[ids[2]])
    assert stage.save("fourth row again").outcome is Outcome.SAVED  # the pin left a place
    result = stage.save("evicts the only sleeper", by=stage.hand("t-2"))
    assert (result.outcome, result.victim and result.victim.id) == (Outcome.SAVED, ids[3])
    assert stage.save("no victim left", by=stage.hand("t-3")).outcome is Outcome.LIST_FULL


@pytest.mark.rule("SM-47", "SM-54", "SM-83", "SM-98")
def test_a_refused_save_says_why(stage: Stage) -> None:
    stage.fill(GLOBAL)
    ids = stage.fill(MINE)
    assert stage.save("x", GLOBAL).outcome is Outcome.LIST_FULL
    assert stage.save("x", by=stage.hand(search_ok=False)).outcome is Outcome.SEARCH_UNAVAILABLE
    assert stage.save("x", by=stage.hand(ageing_on=False)).outcome is Outcome.LIST_FULL
    stage.limits = Limits(unpinned=3, pinned=2)
    assert stage.save("x").outcome is Outcome.LIST_FULL  # over the cap: nothing goes for it
    stage.limits = Limits(unpinned=4, pinned=2)
    for memory_id in ids:
        stage.edit(memory_id, f"kept {memory_id}")
    assert stage.save("x").outcome is Outcome.LIST_FULL
    assert len(stage.rows(MINE)) == len(stage.rows(GLOBAL)) == 4


@pytest.mark.rule("SM-46")
def test_with_a_free_place_nothing_goes_whether_or_not_a_search_succeeded(stage: Stage) -> None:
    ids = stage.fill()
    stage.remove(ids[0])
    result = stage.save("x", by=stage.hand(search_ok=False, ageing_on=False))
    assert (result.outcome, result.victim) == (Outcome.SAVED, None)


@pytest.mark.rule("SM-48")
async def test_twenty_saves_at_once_into_a_full_list_forget_twenty_different_rows(database: Database, clock: FakeClock) -> None:
    stage = Stage.of(database, clock, Limits())
    stage.fill()
    hands = [stage.hand(f"t-{at}") for at in range(20)]

    async def save(at: int, by: Hand) -> Result:
        new = New(key=MINE, content=f"new {at}", origin="tool", author_kind="model")
        return await database.write(lambda connection: hand.save(connection, by, new, clock()))

    results = await asyncio.gather(*(save(at, by) for at, by in enumerate(hands)))
    assert {result.outcome for result in results} == {Outcome.SAVED}
    assert len({result.victim.id for result in results if result.victim}) == 20
    assert len(stage.rows(MINE)) == 100


@pytest.mark.rule("SM-48")
async def test_saves_at_once_by_one_attempt_keep_their_order_in_the_journal(database: Database, clock: FakeClock) -> None:
    stage = Stage.of(database, clock, Limits())
    by = stage.hand()

    async def save(at: int, key: ListKey) -> Result:
        new = New(key=key, content=f"new {at}", origin="tool", author_kind="model")
        return await database.write(lambda connection: hand.save(connection, by, new, clock()))

    results = await asyncio.gather(*(save(at, (GLOBAL, MINE, PLACE)[at % 3]) for at in range(15)))
    assert sorted(result.outcome for result in results) == [Outcome.SAVED] * 10 + [Outcome.TOO_MANY_OPERATIONS] * 5
    seqs = stage.do(lambda connection: connection.execute(sa.select(memory_journal.c.seq).order_by(memory_journal.c.seq)).scalars().all())
    assert seqs == list(range(1, 11))


@pytest.mark.rule("SM-36", "SM-43")
async def test_two_searches_at_once_tick_once_and_a_match_wins(database: Database, clock: FakeClock) -> None:
    stage = Stage.of(database, clock, Limits())
    ids = [stage.tool_row(f"row {at}") for at in range(10)]
    clock.advance(days=1)

    async def search(matched: list[int]) -> None:
        await database.write(lambda connection: decay_store.commit_search(connection, matched, ids, clock()))

    await asyncio.gather(*(search([ids[0]] if at % 2 else []) for at in range(8)))
    counters = [memory.unused_days for memory in stage.rows(MINE)]
    assert counters == [0] + [1] * 9


@pytest.mark.rule("SM-36", "SM-37", "SM-39", "SM-41", "SM-43")
def test_days_are_counted_once_each_and_a_match_ends_the_count(stage: Stage) -> None:
    row = stage.tool_row("plays the cello")

    def state() -> tuple[int, bool]:
        now = stage.row(row)
        assert now is not None
        return now.unused_days, now.dormant

    for day in range(1, 7):
        stage.clock.advance(days=1)
        for _ in range(50):
            stage.search(may_tick=[row])
        assert state() == (day, False)
    stage.clock.advance(days=7)  # a silent week
    stage.search(may_tick=[row])
    assert state() == (7, True)
    stage.clock.advance(days=1)
    stage.search(may_tick=[row])
    assert state() == (7, True)
    stage.search(matched=[row], may_tick=[row])
    assert state() == (0, False)
    stage.search(may_tick=[row])  # match, then miss on one day
    assert state() == (0, False)
    stage.clock.advance(days=-3)  # the clock went back
    stage.search(may_tick=[row])
    assert state() == (0, False)
    stage.search(matched=[row])
    stage.clock.advance(days=3)
    stage.search(may_tick=[row])  # the match of a wrong day gave no second tick
    assert state() == (0, False)


@pytest.mark.rule("SM-36")
def test_a_minute_before_and_after_midnight_are_two_days(stage: Stage) -> None:
    row = stage.tool_row("a")
    stage.clock.now = stage.clock.now.replace(day=20, hour=23, minute=59)
    stage.search(may_tick=[row])
    stage.clock.advance(minutes=2)
    stage.search(may_tick=[row])
    assert stage.rows(MINE)[0].unused_days == 2


@pytest.mark.rule("SM-36", "SM-74", "SM-75")
def test_a_pin_never_ages_whatever_a_search_says(stage: Stage) -> None:
    row = made(stage.add("a", pinned=True))
    before = stage.row(row.id)
    stage.sleep(row.id)
    stage.search(matched=[row.id])
    assert stage.row(row.id) == before


@pytest.mark.rule("SM-64")
def test_a_row_and_its_copy_in_the_journal_are_the_same(stage: Stage) -> None:
    row = made(stage.add('雪 🎻 "x"'))
    stage.search(matched=[row.id])
    whole = stage.row(row.id)
    assert whole is not None
    assert stored.from_json(stored.as_json(whole)) == whole


@pytest.mark.rule("SM-46")
def test_an_id_is_never_given_again(stage: Stage) -> None:
    first = stage.tool_row("a")
    stage.remove(first)
    assert stage.tool_row("b") > first
    assert stage.do(lambda connection: connection.execute(sa.select(sa.func.count()).select_from(memories)).scalar_one()) == 1


@pytest.mark.rule("SM-43", "SM-48")
async def test_searches_and_a_clearing_at_once_wait_for_each_other_and_none_fails(database: Database, clock: FakeClock) -> None:
    stage = Stage.of(database, clock, Limits())
    ids = stage.tool_rows(f"row {at}" for at in range(60))
    rows = stage.rows(MINE)
    clock.advance(days=1)

    async def search(matched: list[int]) -> None:
        await database.write(lambda connection: decay_store.commit_search(connection, matched, ids, clock()))

    async def drop(some: list[Memory]) -> None:
        await database.write(lambda connection: stored.delete(connection, some))

    await asyncio.gather(*(search(ids[at::7]) if at % 2 else drop(rows[at * 3 : at * 3 + 20][::-1]) for at in range(16)))
    assert all(memory.unused_days <= 1 for memory in stage.rows(MINE))

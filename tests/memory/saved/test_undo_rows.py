"""Taking back what the AI did: the matrix of T17, crashes, two regenerates, rewinds, one operation, deep memory (SM-64 to SM-73, SM-78)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa

from memory.database import Database
from memory.saved import clearing, hand, journal, undo
from memory.saved.journal import Op, Writer
from memory.saved.rows import Memory
from memory.saved.writing import New, Outcome, Result
from memory.schema import conversations, messages, turns
from tests.conftest import FakeClock
from tests.memory.saved.stage import ANN, MINE, Stage


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage.of(database, clock)


def made(result: Result) -> Memory:
    assert result.memory is not None, result.outcome
    return result.memory


def clear(stage: Stage) -> None:
    asked = stage.do(lambda connection: clearing.ask(connection, ANN, MINE, stage.clock()))
    stage.do(lambda connection: clearing.clear(connection, asked.token, ANN, MINE, stage.clock()))


# What a person does between the attempt and the regenerate.
Meanwhile = Callable[[Stage, int], object]
MEANWHILE: dict[str, Meanwhile] = {
    "untouched": lambda stage, memory_id: None,
    "pinned": lambda stage, memory_id: stage.pin(memory_id),
    "edited": lambda stage, memory_id: stage.edit(memory_id, "by a person"),
    "deleted": lambda stage, memory_id: stage.remove(memory_id),
    "cleared": lambda stage, memory_id: clear(stage),
}


@pytest.mark.rule("SM-65", "SM-66", "SM-74", "SM-78")
@pytest.mark.parametrize(
    ("meanwhile", "left"), [("untouched", None), ("pinned", "new"), ("edited", "by a person"), ("deleted", None), ("cleared", None)]
)
def test_a_created_row_goes_unless_a_person_made_it_theirs(stage: Stage, meanwhile: str, left: str | None) -> None:
    row = made(stage.save("new"))
    MEANWHILE[meanwhile](stage, row.id)
    stage.undo()
    now = stage.row(row.id)
    assert (now.content if now else None) == left


@pytest.mark.rule("SM-65", "SM-66", "SM-70", "SM-74", "SM-78")
@pytest.mark.parametrize(
    ("meanwhile", "left"), [("untouched", "old"), ("pinned", "new"), ("edited", "by a person"), ("deleted", None), ("cleared", None)]
)
def test_a_changed_row_gets_its_text_and_date_back_unless_a_person_touched_it(stage: Stage, meanwhile: str, left: str | None) -> None:
    before = made(stage.add("old"))
    stage.clock.advance(days=1)
    stage.search(may_tick=[before.id])
    stage.update(before.id, "new")
    MEANWHILE[meanwhile](stage, before.id)
    stage.undo()
    now = stage.row(before.id)
    assert (now.content if now else None) == left
    if meanwhile == "untouched":
        assert now == replace(before, unused_days=1, last_tick_day=stage.clock().date())  # all but the counter


@pytest.mark.rule("SM-65", "SM-78")
@pytest.mark.parametrize(("meanwhile", "back"), [("untouched", True), ("cleared", False)])
def test_a_deleted_row_returns_with_its_id_and_counters(stage: Stage, meanwhile: str, back: bool) -> None:
    row = stage.tool_row("old")
    stage.sleep(row)
    before = stage.row(row)
    stage.delete(row)
    MEANWHILE[meanwhile](stage, row)
    stage.undo()
    assert stage.row(row) == (before if back else None)


@pytest.mark.rule("SM-65", "SM-66", "SM-67", "SM-78")
@pytest.mark.parametrize(
    ("meanwhile", "back"),
    # With the save taken back its victim returns; a pin leaves a place, an edited row does not; a cleared list gives nothing back.
    [("untouched", True), ("pinned", True), ("edited", False), ("deleted", True), ("cleared", False)],
)
def test_an_evicted_row_returns_with_its_save_or_into_a_free_place(stage: Stage, meanwhile: str, back: bool) -> None:
    ids = stage.fill()
    before = stage.row(ids[0])
    saved = stage.save("new")
    assert saved.victim == before
    MEANWHILE[meanwhile](stage, made(saved).id)
    undone = stage.undo()
    assert stage.row(ids[0]) == (before if back else None)
    assert undone.forgotten == ((ids[0],) if meanwhile == "edited" else ())


@pytest.mark.rule("SM-66")
def test_what_another_turn_changed_later_stays(stage: Stage) -> None:
    row = made(stage.save("one"))
    stage.update(row.id, "two", by=stage.hand("t-2"))
    assert stage.undo("t-1").skipped == (row.id,)
    assert stage.texts() == ["two"]


@pytest.mark.rule("SM-66")
def test_of_several_operations_on_a_row_the_last_decides(stage: Stage) -> None:
    old = made(stage.add("old"))
    created = made(stage.save("a"))
    stage.update(created.id, "b")
    stage.update(old.id, "new")
    stage.update(old.id, "newer")
    gone = made(stage.save("gone again"))
    stage.delete(gone.id)
    stage.delete(old.id)
    stage.undo()
    assert stage.rows(MINE) == [old]


@pytest.mark.rule("SM-68", "SM-71")
def test_an_undo_happens_once_and_two_regenerates_leave_the_last_attempt(stage: Stage) -> None:
    old = made(stage.add("old"))
    stage.save("of the first attempt")
    stage.update(old.id, "old, changed")
    assert stage.undo()
    assert not stage.undo()  # after a crash before the new reply
    stage.attempt = 2
    stage.save("of the second attempt")
    stage.undo()
    stage.attempt = 3
    stage.save("of the third attempt")
    assert stage.texts() == ["old", "of the third attempt"]
    assert not stage.undo("t-1", 1)
    assert not stage.undo("t-without-writes", 1)
    assert stage.texts() == ["old", "of the third attempt"]


@pytest.mark.rule("SM-68")
def test_an_undo_that_fails_in_the_middle_changes_nothing(stage: Stage) -> None:
    row = made(stage.save("one"))

    def broken(connection: sa.Connection) -> None:
        undo.undo_attempt(connection, "t-1", 1, stage.clock(), limits=stage.limits)
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        stage.do(broken)
    assert stage.row(row.id) == row
    assert stage.undo().removed == (row,)


@pytest.mark.rule("SM-6", "SM-65")
def test_undo_may_lift_a_list_above_its_cap_and_loses_nothing(stage: Stage) -> None:
    ids = stage.fill(asleep=False)
    stage.delete(ids[0])
    stage.add("in its place")
    stage.undo()
    assert len(stage.rows(MINE)) == 5
    assert stage.save("one more", by=stage.hand("t-2")).outcome is Outcome.LIST_FULL
    assert stage.add("one more").outcome is Outcome.LIST_FULL


@pytest.mark.rule("SM-69")
def test_a_rewind_of_three_turns_undoes_the_newest_first(stage: Stage) -> None:
    row = made(stage.save("one", by=stage.hand("t-1")))
    stage.update(row.id, "two", by=stage.hand("t-2"))
    stage.update(row.id, "three", by=stage.hand("t-3"))
    kept = stage.do(lambda connection: undo.rewind(connection, "c-1", ["t-3", "t-2"], (), stage.clock(), limits=stage.limits))
    assert kept.undone
    assert stage.rows(MINE) == [row]
    stage.do(lambda connection: undo.rewind(connection, "c-1", ["t-1"], (), stage.clock(), limits=stage.limits))
    assert stage.rows(MINE) == []


def told(stage: Stage, *ids: str) -> None:
    def write(connection: sa.Connection) -> None:
        now = stage.clock()
        chat = {"id": "c-1", "key": "web:main:1", "channel": "web", "account": "main", "kind": "web", "created_at": now, "updated_at": now}
        connection.execute(sa.insert(conversations), chat)
        connection.execute(sa.insert(messages), [{"id": each, "conversation_id": "c-1", "role": "user", "created_at": now} for each in ids])

    stage.do(write)


def deep(stage: Stage, run: str, content: str, *sources: str) -> Memory:
    by = replace(stage.hand(), writer=Writer(actor="deep", run_id=run, conversation_id="c-1", source_messages=sources))
    new = New(key=MINE, content=content, origin="deep", author_kind="job")
    return made(stage.do(lambda connection: hand.save(connection, by, new, stage.clock())))


@pytest.mark.rule("SM-69", "SM-82")
def test_deep_memory_goes_only_with_all_its_source_messages_and_never_a_pin(stage: Stage) -> None:
    told(stage, "m-1", "m-2", "m-3")
    first = deep(stage, "r-1", "read of one and two", "m-1", "m-2")
    pinned = deep(stage, "r-2", "read of three", "m-3")
    stage.pin(pinned.id)

    def rewind(*removed: str) -> undo.Rewound:
        return stage.do(lambda connection: undo.rewind(connection, "c-1", [], removed, stage.clock(), limits=stage.limits))

    assert not rewind("m-2", "m-3").undone
    assert {memory.id for memory in stage.rows(MINE)} == {first.id, pinned.id}
    stage.do(lambda connection: connection.execute(sa.update(messages).where(messages.c.id == "m-2").values(state="hidden")))
    assert rewind("m-1").undone.removed == (first,)
    assert [memory.id for memory in stage.rows(MINE)] == [pinned.id]


@pytest.mark.rule("SM-72", "SM-66")
def test_one_operation_can_be_taken_back_from_the_panel(stage: Stage) -> None:
    ids = stage.fill()
    saved = stage.save("new")
    updated = made(stage.update(ids[1], "changed"))
    entries = stage.do(lambda connection: journal.of_lists(connection, [MINE], limit=10))
    assert [entry.op for entry in entries] == [Op.UPDATE, Op.EVICT, Op.CREATE]

    def take_back(entry_id: int) -> undo.Undone | None:
        return stage.do(lambda connection: undo.undo_operation(connection, entry_id, stage.clock(), limits=stage.limits))

    create = entries[2].id
    undone = take_back(create)
    assert undone is not None
    assert ([row.id for row in undone.removed], [row.id for row in undone.restored]) == ([made(saved).id], [ids[0]])
    assert take_back(create) is None
    stage.edit(ids[1], "by a person")
    skipped = take_back(entries[0].id)
    assert skipped is not None
    assert skipped.skipped == (updated.id,)
    assert not stage.undo()  # the regenerate finds nothing more to do


@pytest.mark.rule("SM-72")
def test_an_eviction_alone_is_taken_back_only_into_a_free_place(stage: Stage) -> None:
    ids = stage.fill()
    stage.save("new")
    [entry] = stage.do(lambda connection: [each for each in journal.of_turn(connection, "t-1") if each.op is Op.EVICT])
    full = stage.do(lambda connection: undo.undo_operation(connection, entry.id, stage.clock(), limits=stage.limits))
    assert full is not None
    assert full.forgotten == (ids[0],)


@pytest.mark.rule("SM-73")
def test_entries_end_after_some_days_and_a_rewind_says_so(stage: Stage) -> None:
    told(stage, "m-1")
    old = {"id": "t-1", "conversation_id": "c-1", "state": "answered", "started_at": stage.clock()}
    stage.do(lambda connection: connection.execute(sa.insert(turns), old))
    row = made(stage.save("kept"))
    stage.clock.advance(days=31)
    assert stage.do(lambda connection: journal.sweep(connection, stage.clock() - timedelta(days=30))) == 1
    rewound = stage.do(lambda connection: undo.rewind(connection, "c-1", ["t-1"], ["m-1"], stage.clock(), limits=stage.limits))
    assert (rewound.stays, bool(rewound.undone), stage.row(row.id)) == (("t-1",), False, row)


@pytest.mark.rule("SM-78")
def test_what_a_person_deleted_leaves_no_text_in_the_journal(stage: Stage) -> None:
    row = made(stage.save("a secret"))
    stage.update(row.id, "another secret")
    stage.remove(row.id)
    kept = stage.do(lambda connection: journal.of_turn(connection, "t-1"))
    assert [(entry.void, entry.before, entry.after) for entry in kept] == [(True, None, None)] * 2
    assert not stage.undo()

"""Characters that go and return, accounts that become one, people who leave: no row is lost (SM-6, SM-90, SM-92; T21). The switches (SM-87)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa

from memory import vectors
from memory.database import Database
from memory.saved import journal, lineages, moves, switches
from memory.saved.lists import LEARNING_ON, Learning, Privacy
from memory.saved.rows import Memory, character_list, global_list
from memory.saved.writing import Outcome, Result
from memory.saved_schema import memories, memory_decay, memory_journal
from memory.schema import people
from tests.conftest import FakeClock
from tests.memory.saved.stage import ANN, BOB, DEN, GLOBAL, MINE, PLACE, SORA, YUKI, Stage


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage.of(database, clock)


def made(result: Result) -> Memory:
    assert result.memory is not None, result.outcome
    return result.memory


# -- characters --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-92", "SM-6", "SM-5")
def test_rows_of_a_deleted_character_become_global_of_their_owner_as_they_are(stage: Stage) -> None:
    stage.fill(GLOBAL, asleep=False)
    stage.add("a global pin", GLOBAL, pinned=True)
    stage.add("another", GLOBAL, pinned=True)
    mine = [made(stage.add(text, pinned=text == "pin")) for text in ("one", "two", "pin")]
    stage.sleep(mine[0].id)
    bobs = made(stage.add("of bob", character_list(BOB, YUKI)))
    soras = made(stage.add("of sora", character_list(ANN, SORA)))
    before = {memory.id: memory for memory in stage.rows(MINE)}
    counts = stage.do(lambda connection: moves.delete_character(connection, YUKI, stage.clock()))
    assert (counts.rows, counts.people, counts.space_rows) == (4, 2, 0)
    after = {memory.id: memory for memory in stage.rows(GLOBAL) if memory.origin_character}
    assert after == {key: replace(memory, key=GLOBAL, origin_character=YUKI) for key, memory in before.items()}
    assert [memory.id for memory in stage.rows(global_list(BOB))] == [bobs.id]
    assert stage.rows(character_list(ANN, SORA)) == [soras]
    assert len([memory for memory in stage.rows(GLOBAL) if memory.pinned]) == 3  # above the cap, and nothing more fits
    assert stage.add("one more", GLOBAL).outcome is Outcome.LIST_FULL
    assert stage.pin(mine[1].id).outcome is Outcome.LIST_FULL
    assert stage.save("one more", GLOBAL).outcome is Outcome.LIST_FULL


@pytest.mark.rule("SM-92", "SM-66")
def test_what_the_ai_did_before_the_deletion_can_still_be_taken_back(stage: Stage) -> None:
    kept = stage.tool_row("kept")
    created = made(stage.save("new"))
    stage.delete(kept)
    stage.do(lambda connection: moves.delete_character(connection, YUKI, stage.clock()))
    undone = stage.undo()
    assert [memory.id for memory in undone.removed] == [created.id]
    assert [memory.id for memory in stage.rows(GLOBAL)] == [kept]


@pytest.mark.rule("SM-92")
def test_a_returned_lineage_offers_the_rows_to_be_moved_back(stage: Stage) -> None:
    row = made(stage.add("between us"))
    stage.add("of everyone", GLOBAL)
    stage.do(lambda connection: moves.delete_character(connection, YUKI, stage.clock()))
    assert stage.do(lambda connection: lineages.lineage_of(connection, "yuki", "雪", stage.clock())) == YUKI
    stage.do(lambda connection: moves.return_character(connection, YUKI))
    assert [memory.id for memory in stage.do(lambda connection: moves.returnable(connection, ANN, YUKI))] == [row.id]
    assert stage.texts(GLOBAL) == ["between us", "of everyone"]
    assert stage.do(lambda connection: moves.move_back(connection, ANN, YUKI)) == [row]
    assert (stage.rows(MINE), stage.texts(GLOBAL)) == ([row], ["of everyone"])


@pytest.mark.rule("SM-92")
def test_rows_of_spaces_are_archived_under_the_lineage_and_return_with_it(stage: Stage) -> None:
    row = made(stage.add("the house rule", PLACE))
    stage.do(lambda connection: moves.delete_character(connection, YUKI, stage.clock()))
    assert [(memory.archived, memory.key) for memory in stage.rows(PLACE)] == [(True, PLACE)]
    stage.do(lambda connection: moves.return_character(connection, YUKI))
    assert stage.rows(PLACE) == [row]


@pytest.mark.rule("SM-92")
def test_a_lineage_is_made_once_and_keeps_the_latest_name(stage: Stage) -> None:
    first = stage.do(lambda connection: lineages.lineage_of(connection, "hana", "花", stage.clock()))
    assert stage.do(lambda connection: lineages.lineage_of(connection, "hana", "Hana", stage.clock())) == first
    assert stage.do(lambda connection: lineages.names_of(connection, [first, YUKI])) == {first: "Hana", YUKI: "雪"}
    assert stage.do(lineages.lineages) == {"hana": first, "yuki": YUKI, "sora": SORA}


# -- people ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-90", "SM-6")
def test_linked_accounts_have_one_memory_in_which_exact_duplicates_are_one(stage: Stage) -> None:
    theirs = character_list(BOB, YUKI)
    stage.fill(asleep=False)
    kept = made(stage.add("likes tea", GLOBAL))
    pinned = made(stage.add("Likes TEA", global_list(BOB), pinned=True))
    bobs = [made(stage.add(text, theirs)) for text in ("a", "b")]
    stage.sleep(bobs[0].id)
    before = stage.row(bobs[0].id)
    assert before is not None
    stage.do(lambda connection: moves.join_people(connection, keep=ANN, gone=BOB))
    assert stage.rows(GLOBAL) == [replace(pinned, key=GLOBAL)]
    assert stage.row(kept.id) is None
    assert stage.row(bobs[0].id) == replace(before, key=MINE)
    assert len(stage.rows(MINE)) == 6  # above the cap of four, and nothing is lost
    assert stage.add("one more").outcome is Outcome.LIST_FULL
    stage.do(lambda connection: connection.execute(sa.delete(people).where(people.c.id == BOB)))
    assert len(stage.rows(MINE, GLOBAL)) == 7


@pytest.mark.rule("SM-90")
def test_of_two_equal_rows_the_better_protection_and_counters_remain(stage: Stage) -> None:
    kept = stage.tool_row("same")
    stage.sleep(kept)
    other = made(stage.add("SAME", character_list(BOB, YUKI)))
    stage.search(matched=[other.id])
    stage.do(lambda connection: moves.join_people(connection, keep=ANN, gone=BOB))
    [row] = stage.rows(MINE)
    assert (row.id, row.content, row.protected, row.dormant, row.unused_days) == (kept, "same", True, False, 0)
    assert row.last_matched_at == stage.clock()


@pytest.mark.rule("SM-90", "SM-87", "SM-14")
def test_of_the_switches_of_linked_accounts_the_stricter_counts(stage: Stage) -> None:
    def write(connection: sa.Connection) -> None:
        switches.set_learning(connection, ANN, YUKI, Learning(learn=True, use=False))
        switches.set_learning(connection, BOB, YUKI, Learning(learn=False, use=True))
        switches.set_learning(connection, BOB, SORA, Learning(learn=False, use=False))
        switches.set_blacklisted(connection, DEN, BOB, True, stage.clock())
        moves.join_people(connection, keep=ANN, gone=BOB)

    stage.do(write)
    off = Learning(learn=False, use=False)
    assert stage.do(lambda connection: switches.learning_of(connection, [ANN], [YUKI, SORA])) == {(ANN, YUKI): off, (ANN, SORA): off}
    assert stage.do(lambda connection: switches.blacklisted(connection, DEN)) == {ANN}


@pytest.mark.rule("SM-90", "SM-89")
def test_of_a_deleted_person_no_row_vector_or_entry_is_left(stage: Stage) -> None:
    row = made(stage.save("a secret"))
    stage.save("of the place", PLACE)
    stage.save("a global secret", GLOBAL)
    stage.delete(made(stage.add("gone already")).id)
    stage.do(lambda connection: vectors.put(connection, "f", {row.content_hash: np.ones(4, np.float32)}))

    def leave(connection: sa.Connection) -> None:
        moves.forget_person(connection, ANN)
        connection.execute(sa.delete(people).where(people.c.id == ANN))

    stage.do(leave)
    for table, left in ((memories, 1), (memory_decay, 1), (memory_journal, 1)):
        assert stage.do(lambda connection, table=table: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()) == left
    assert stage.do(lambda connection: connection.execute(sa.text("select count(*) from vectors")).scalar_one()) == 0
    assert stage.texts(PLACE) == ["of the place"]
    assert not stage.undo().restored


@pytest.mark.rule("SM-72")
def test_every_list_of_an_owner_is_found_also_one_that_is_empty_now(stage: Stage) -> None:
    stage.delete(made(stage.save("a")).id)
    stage.add("b", GLOBAL)
    stage.add("c", PLACE)
    assert stage.do(lambda connection: moves.lists_of_people(connection, [ANN, BOB])) == [MINE, GLOBAL]
    assert stage.do(lambda connection: moves.lists_of_spaces(connection, [DEN])) == [PLACE]
    assert stage.do(lambda connection: journal.lists_of(connection, BOB)) == set()


# -- switches ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-87")
def test_learning_is_on_until_switched_off_and_the_bits_can_be_set_apart(stage: Stage) -> None:
    def of(*characters: str) -> dict[tuple[str, str], Learning]:
        return stage.do(lambda connection: switches.learning_of(connection, [ANN, BOB], characters))

    assert of(YUKI, SORA) == {}
    for switch in (Learning(learn=False, use=False), Learning(learn=False, use=True), LEARNING_ON):
        stage.do(lambda connection, switch=switch: switches.set_learning(connection, ANN, YUKI, switch))
        assert of(YUKI, SORA) == {(ANN, YUKI): switch}
    row = made(stage.add("the panel goes on"))
    stage.do(lambda connection: switches.set_learning(connection, ANN, YUKI, Learning(learn=False, use=False)))
    assert stage.pin(row.id).outcome is Outcome.UPDATED
    assert stage.remove(row.id).outcome is Outcome.DELETED


@pytest.mark.rule("SM-87")
def test_a_space_has_a_switch_of_its_own_per_character(stage: Stage) -> None:
    assert stage.do(lambda connection: switches.space_learning_of(connection, DEN, YUKI)) == LEARNING_ON
    off = Learning(learn=False, use=False)
    stage.do(lambda connection: switches.set_space_learning(connection, DEN, YUKI, off))
    assert stage.do(lambda connection: switches.space_learning_of(connection, DEN, YUKI)) == off
    assert stage.do(lambda connection: switches.space_learning_of(connection, DEN, SORA)) == LEARNING_ON


@pytest.mark.rule("SM-13", "SM-14", "SM-15")
def test_privacy_sharing_and_the_blacklist_are_kept_and_reach_the_participants(stage: Stage) -> None:
    def write(connection: sa.Connection) -> None:
        switches.set_privacy(connection, ANN, Privacy.PARTIAL)
        switches.set_shares_private(connection, ANN, True)
        switches.set_blacklisted(connection, DEN, BOB, True, stage.clock())
        switches.set_blacklisted(connection, DEN, BOB, True, stage.clock())

    stage.do(write)
    bob, ann = stage.do(lambda connection: switches.participants_of(connection, [BOB, "p-nobody", ANN, BOB], space_id=DEN, spoke_today=[ANN]))
    assert (ann.person, ann.privacy, ann.shares_private, ann.blacklisted, ann.spoke_today) == (ANN, Privacy.PARTIAL, True, False, True)
    assert (bob.person, bob.privacy, bob.blacklisted, bob.spoke_today) == (BOB, Privacy.NORMAL, True, False)
    stage.do(lambda connection: switches.set_blacklisted(connection, DEN, BOB, False, stage.clock()))
    assert stage.do(lambda connection: switches.blacklisted(connection, DEN)) == frozenset()
    stage.do(lambda connection: switches.set_privacy(connection, ANN, Privacy.NORMAL))
    assert stage.do(lambda connection: switches.privacy_of(connection, ANN)) is Privacy.NORMAL
    with pytest.raises(LookupError):
        stage.do(lambda connection: switches.privacy_of(connection, "p-nobody"))


@pytest.mark.rule("SM-92")
def test_the_question_before_a_deletion_counts_what_would_move(stage: Stage) -> None:
    stage.add("a")
    stage.add("b", character_list(BOB, YUKI))
    stage.add("c", PLACE)
    counts = stage.do(lambda connection: moves.count_of_character(connection, YUKI))
    assert (counts.rows, counts.people, counts.space_rows) == (2, 2, 1)

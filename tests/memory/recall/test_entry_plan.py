"""Entries decided: what is hidden and what tells of it, when one is due, how a backfill is cut, which are merged."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall import entry_plan
from memory.recall.calendar_plan import Stamp
from memory.recall.entry_plan import ACTIVE_MOST, MERGED_AT_ONCE, Batch, Covering, Mergeable

AT = datetime(2026, 3, 8, tzinfo=UTC)


def talk(seqs: Iterable[int], audience: str = "") -> list[Stamp]:
    return [Stamp(seq=seq, at=AT, audience=audience) for seq in seqs]


def entries(*spans: tuple[int, int]) -> list[Covering]:
    return [Covering(id=number, seqs=tuple(range(first, last + 1))) for number, (first, last) in enumerate(spans, start=1)]


@pytest.mark.rule("RS-86")
@pytest.mark.parametrize(("own", "every", "ever", "due"), [(1, 1, 1, False), (4, 5, 9, False), (5, 5, 5, True), (1, 1, 2, True), (6, 5, 6, True)])
def test_an_entry_is_due_after_every_so_many_and_never_after_the_very_first(own: int, every: int, ever: int, *, due: bool) -> None:
    assert entry_plan.due(own, every, own_ever=ever) is due


@pytest.mark.rule("RS-90", "RS-91")
@pytest.mark.parametrize(("tail", "left"), [(10, 20), (3, 27), (0, 30), (40, 0)])
def test_the_tail_is_of_what_is_summarised_and_nought_hides_all_of_it(tail: int, left: int) -> None:
    assert entry_plan.hidden(entries((1, 20), (11, 30)), tail) == frozenset(range(1, left + 1))


@pytest.mark.rule("RS-94")
def test_what_two_entries_hid_is_shown_again_only_when_both_are_gone() -> None:
    both, one, none = entries((1, 20), (11, 30)), entries((1, 20)), entries()
    assert entry_plan.hidden(both, 0) - entry_plan.hidden(one, 0) == frozenset(range(21, 31))
    assert entry_plan.hidden(one, 0) - entry_plan.hidden(none, 0) == frozenset(range(1, 21))


@pytest.mark.rule("RS-72")
def test_an_entry_is_left_out_while_a_message_of_it_is_sent() -> None:
    assert entry_plan.left_out(entries((1, 10), (11, 20), (21, 30)), set(range(15, 40)), ()) == {2, 3}


@pytest.mark.rule("RS-72", "RS-90")
def test_an_entry_stays_beside_the_tail_of_what_it_hides() -> None:
    rows = entries((1, 10), (11, 20))
    gone = entry_plan.hidden(rows, 5)
    assert entry_plan.left_out(rows, set(range(1, 40)) - gone, gone) == frozenset()


@pytest.mark.rule("RS-90", "RS-92", "RS-94")
@given(
    spans=st.lists(st.tuples(st.integers(1, 80), st.integers(0, 20)), max_size=12),
    tail=st.integers(0, 30),
    edge=st.integers(0, 60),
    kept=st.integers(0, 12),
)
def test_every_message_is_sent_or_told_by_an_entry_that_is(spans: list[tuple[int, int]], tail: int, edge: int, kept: int) -> None:
    """Whatever overlaps, is deleted or set: of the messages behind the edge none is lost, and none is hidden that no entry stands for."""
    rows = entries(*[(first, first + more) for first, more in spans])[:kept]
    beyond = [Covering(id=row.id, seqs=tuple(seq for seq in row.seqs if seq > edge)) for row in rows]
    gone = entry_plan.hidden(beyond, tail)
    live = {seq for seq in range(edge + 1, 110) if seq not in gone}
    out = entry_plan.left_out(beyond, live, gone)
    told = {seq for row in beyond if row.id not in out for seq in row.seqs}
    assert gone <= told
    stood = {seq for row in beyond for seq in row.seqs}
    assert live >= set(range(edge + 1, 110)) - stood
    assert len(stood - gone) == min(tail, len(stood))


@pytest.mark.rule("RS-87", "RS-186")
def test_a_backfill_is_cut_at_audiences_and_around_what_entries_stand_for() -> None:
    said = sorted([*talk(range(1, 13)), *talk([13, 14], "p:bob"), *talk(range(15, 18))], key=lambda each: each.seq)
    assert entry_plan.batches(said, {5, 6}, 4) == [
        Batch(audience="", seqs=(1, 2, 3, 4)),
        Batch(audience="", seqs=(7, 8, 9, 10)),
        Batch(audience="", seqs=(11, 12, 15, 16)),
        Batch(audience="p:bob", seqs=(13, 14)),
        Batch(audience="", seqs=(17,)),
    ]


def automatic(count: int, *, level: int = 0, audience: str = "", first: int = 0, tokens: int = 10) -> list[Mergeable]:
    return [Mergeable(id=first + n, audience=audience, first_seq=first + n, level=level, tokens=tokens) for n in range(1, count + 1)]


@pytest.mark.rule("RS-95")
def test_only_more_than_two_hundred_are_merged_the_oldest_first() -> None:
    assert entry_plan.to_merge(automatic(ACTIVE_MOST)) == ()
    assert entry_plan.to_merge(automatic(ACTIVE_MOST + 1)) == tuple(range(1, MERGED_AT_ONCE + 1))


@pytest.mark.rule("RS-95")
def test_what_was_merged_before_waits_until_there_is_as_much_of_it() -> None:
    old, new = automatic(15, level=1), automatic(190, first=100)
    assert entry_plan.to_merge([*old, *new]) == tuple(range(101, 109))
    assert entry_plan.to_merge([*automatic(205, level=1), *automatic(8, first=900)])[0] == 1


@pytest.mark.rule("RS-95", "RS-186")
def test_entries_for_some_people_are_merged_with_each_other_alone() -> None:
    whispers = automatic(10, audience="p:bob")
    found = entry_plan.to_merge([*whispers, *automatic(195, first=100)])
    assert set(found) <= {each.id for each in automatic(195, first=100)}


@pytest.mark.rule("RS-95")
def test_entries_too_long_for_their_share_are_merged_too() -> None:
    assert entry_plan.to_merge(automatic(20, tokens=100), room=2_000) == ()
    assert len(entry_plan.to_merge(automatic(20, tokens=101), room=2_000)) == MERGED_AT_ONCE
    assert entry_plan.to_merge(automatic(1, tokens=9_000), room=2_000) == ()


@pytest.mark.rule("RS-82")
def test_messages_are_numbered_by_their_place_in_the_chat() -> None:
    assert entry_plan.places([7, 9, 31]) == {7: 1, 9: 2, 31: 3}

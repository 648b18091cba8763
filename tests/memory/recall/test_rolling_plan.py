"""Rolling summaries: 4 → 1 → 1, coverage without gaps, size within its share."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.kinds import Kind
from memory.recall.rolling_plan import Left, Merge, blocks_to_summarise, next_merge
from memory.recall.summary_rows import State, Summary

NOW = datetime(2026, 3, 8, tzinfo=UTC)
ROOMY = 10**9


def row(number: int, kind: Kind = Kind.RECENT, *, tokens: int = 50, audience: str = "") -> Summary:
    return Summary(
        id=number, conversation_id="c", kind=kind, state=State.ACTIVE, text=f"{number}", details=(), title="", audience=audience, first_seq=number,
        last_seq=number, local_date="", part=0, zone="", rollover_hour=0, failed_days=(), hand_edited=False, stale=False, fingerprint="", model="",
        origin="rolling", tokens=tokens, created_at=NOW, updated_at=NOW,
    )  # fmt: skip


def merged(rows: list[Summary], merge: Merge, number: int) -> list[Summary]:
    size = sum(each.tokens for each in merge.inputs)
    new = replace(row(number, merge.kind, tokens=size // 2 if merge.halve else 60), first_seq=merge.inputs[0].first_seq)
    return [each for each in rows if each not in merge.inputs] + [new]


@pytest.mark.rule("RS-45")
def test_three_stay_and_the_fourth_triggers() -> None:
    assert next_merge([row(n) for n in range(3)], room=ROOMY) is None
    merge = next_merge([row(n) for n in range(4)], room=ROOMY)
    assert merge is not None
    assert (merge.kind, [each.id for each in merge.inputs]) == (Kind.CONSOLIDATED, [0, 1, 2, 3])


@pytest.mark.rule("RS-45")
def test_sixteen_recents_end_as_one_long_term_and_nothing_else() -> None:
    rows: list[Summary] = []
    numbers = count(1)
    for _ in range(16):
        rows.append(row(next(numbers)))
        while (merge := next_merge(rows, room=ROOMY)) is not None:
            rows = merged(rows, merge, next(numbers))
    assert [each.kind for each in rows] == [Kind.LONG_TERM]


@pytest.mark.rule("RS-50")
def test_four_hundred_blocks_stay_inside_the_share() -> None:
    rows: list[Summary] = []
    numbers = count(1)
    for _ in range(400):
        rows.append(row(next(numbers)))
        while (merge := next_merge(rows, room=1_000)) is not None:
            rows = merged(rows, merge, next(numbers))
        assert sum(each.tokens for each in rows) <= 1_000
        assert {each.kind for each in rows} <= {Kind.RECENT, Kind.CONSOLIDATED, Kind.LONG_TERM}


@pytest.mark.rule("RS-186")
def test_audiences_never_merge() -> None:
    assert next_merge([row(n, audience="" if n % 2 else "p:1") for n in range(6)], room=ROOMY) is None


@pytest.mark.rule("RS-43", "RS-47", "RS-49", "RS-186")
@given(st.lists(st.sampled_from(["", "p:1"]), max_size=80), st.integers(1, 25))
def test_every_message_that_left_is_summarised_exactly_once(audiences: list[str], size: int) -> None:
    left = [Left(seq=at, audience=audience) for at, audience in enumerate(audiences, 1)]
    covered: list[int] = []
    while blocks := blocks_to_summarise([message for message in left if message.seq not in covered], size):
        assert len(blocks) <= 3
        for block in blocks:
            assert len(block.seqs) <= size
            assert {left[seq - 1].audience for seq in block.seqs} == {block.audience}
            covered += block.seqs
    assert sorted(covered) == [message.seq for message in left]
